//! The reason why a connection has ended.

use std::error::Error;
use std::fmt;
use std::io;

use super::{BoxError, Cause};

/// The reason why a connection has ended.
///
/// ```
/// use antiphon::{CallError, Client, CloseReason};
///
/// # async fn example(client: Client) {
/// match client.call::<i64>("subtract", (42, 23)).await {
///     Err(CallError::Interrupted(CloseReason::ByPeer)) => println!("the server is restarting"),
///     other => println!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed the connection.
    ByPeer,
    /// This side closed the connection.
    ByUs,
    /// The connection failed: an I/O error, a timeout, or a violation of the protocol.
    Failed(Cause),
}

impl CloseReason {
    /// Whether one of the two sides closed the connection. False if it failed.
    pub fn is_clean(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }

    /// The reason of a connection that failed with this error, or for this reason.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(Cause::new(error))
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPeer => f.write_str("the peer closed it"),
            Self::ByUs => f.write_str("this side closed it"),
            Self::Failed(cause) => cause.fmt(f),
        }
    }
}

/// `Failed` is transparent: it has the message and the source of its cause.
impl Error for CloseReason {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(cause) => cause.source(),
            Self::ByPeer | Self::ByUs => None,
        }
    }
}

/// Two failures are equal if they have the same message.
impl PartialEq for CloseReason {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ByPeer, Self::ByPeer) | (Self::ByUs, Self::ByUs) => true,
            (Self::Failed(one), Self::Failed(other)) => one.to_string() == other.to_string(),
            _ => false,
        }
    }
}

impl Eq for CloseReason {}

impl From<&str> for CloseReason {
    fn from(reason: &str) -> Self {
        Self::failed(reason)
    }
}

impl From<String> for CloseReason {
    fn from(reason: String) -> Self {
        Self::failed(reason)
    }
}

impl From<io::Error> for CloseReason {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<Cause> for CloseReason {
    fn from(cause: Cause) -> Self {
        Self::Failed(cause)
    }
}
