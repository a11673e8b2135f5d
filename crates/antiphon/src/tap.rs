//! A tap observes every message of a server or a client, in both directions.
//!
//! It cannot change, delay or drop a message. Without a tap, messages are not copied or timed.

use std::sync::Arc;
use std::time::SystemTime;

use antiphon_core::{Payload, Rules, decode};
use bytes::Bytes;

use crate::catch_unwind::{Panicked, guarded};
use crate::connection::Connection;
use crate::error::CloseReason;

/// Observes the messages of a server or a client. Every `Fn(&TappedMessage)` is a tap.
///
/// It runs on the task that reads or writes the message, so it must not block. A panic ends the
/// connection. On a client over HTTP or a [`RequestReply`](crate::transport::RequestReply), a panic unwinds
/// into the await of the call.
///
/// ```
/// use antiphon::{Client, Context, Direction, Router, TappedMessage};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// let tap = |message: &TappedMessage<'_>| {
///     let arrow = if message.direction == Direction::Sent { "-->" } else { "<--" };
///     eprintln!("{arrow} {}", String::from_utf8_lossy(message.bytes));
/// };
/// let client = Client::builder().tap(tap).in_process(router);
/// client.call::<String>("ping", ()).await?;
/// # Ok(()) }
/// ```
pub trait Tap: Send + Sync + 'static {
    /// Observes one message: a request, notification, response or batch.
    fn message(&self, message: &TappedMessage<'_>);

    /// Called when a connection opens. HTTP requests are not connections.
    fn opened(&self, connection: &Connection) {
        let _ = connection;
    }

    /// Called when a connection has ended, with the reason.
    fn closed(&self, connection: &Connection, reason: &CloseReason) {
        let _ = (connection, reason);
    }
}

impl<F: Fn(&TappedMessage<'_>) + Send + Sync + 'static> Tap for F {
    fn message(&self, message: &TappedMessage<'_>) {
        self(message);
    }
}

/// One message on the wire.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TappedMessage<'a> {
    /// The direction of the message.
    pub direction: Direction,
    /// The JSON text, without framing or HTTP head. If the peer sent invalid JSON, these are its bytes.
    pub bytes: &'a [u8],
    /// The connection, or the HTTP request, that carries it. [`Connection::id`] identifies it.
    pub connection: &'a Connection,
    /// The time at which this side received or sent it.
    pub at: SystemTime,
}

impl TappedMessage<'_> {
    /// Decodes the message. Entries that are not valid messages are in the payload as errors.
    pub fn decode(&self) -> Payload {
        decode(&Bytes::copy_from_slice(self.bytes), &Rules::default())
    }
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Sent by this side.
    Sent,
    /// Received by this side.
    Received,
}

/// The tap of a server or a client, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Taps(Option<Arc<dyn Tap>>);

impl Taps {
    pub(crate) fn new(tap: impl Tap) -> Self {
        Self(Some(Arc::new(tap)))
    }

    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Passes a message to the tap, if there is one.
    #[inline]
    pub(crate) fn message(&self, direction: Direction, bytes: &[u8], connection: &Connection) {
        if let Some(tap) = &self.0 {
            show(&**tap, direction, bytes, connection);
        }
    }

    /// Reports a connection that opens. It must not be served after a panic.
    pub(crate) fn opened(&self, connection: &Connection) -> Result<(), Panicked> {
        self.show_guarded(|tap| tap.opened(connection))
    }

    /// Reports the end of a connection. A panic must not keep the rest of the end from happening.
    pub(crate) fn closed(&self, connection: &Connection, reason: &CloseReason) {
        let _ = self.show_guarded(|tap| tap.closed(connection, reason));
    }

    fn show_guarded(&self, show: impl FnOnce(&dyn Tap)) -> Result<(), Panicked> {
        let Some(tap) = &self.0 else { return Ok(()) };
        guarded("the tap", || show(&**tap))
    }
}

/// Shows a message to a tap. Apart, so that the check for a tap is all that a call without one pays.
#[cold]
fn show(tap: &dyn Tap, direction: Direction, bytes: &[u8], connection: &Connection) {
    tap.message(&TappedMessage { direction, bytes, connection, at: SystemTime::now() });
}
