//! A client that reconnects when its connection ends.
//!
//! [`Reconnect`] documents what happens to calls and subscriptions. `supervisor` makes the connections, and
//! `caller` sends each call to the current one.

mod backoff;
mod caller;
mod supervisor;

use std::time::Duration;

use crate::error::CloseReason;
pub(crate) use caller::ReconnectingCaller;

/// The policy by which a client reconnects: see
/// [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect).
///
/// The server may or may not have executed a call that waited for its response when the connection was lost.
/// So such a call fails with [`CallError::Interrupted`](crate::CallError::Interrupted), unless its method is
/// declared [idempotent](Self::idempotent): then the client sends it again. A call that was not sent yet waits
/// for the next connection, up to its timeout. Then it fails with
/// [`CallError::Unreachable`](crate::CallError::Unreachable), because nothing was sent. The client subscribes again to its subscriptions, and each
/// stream reports a [`SubscriptionError::Gap`](crate::SubscriptionError::Gap).
///
/// ```no_run
/// use antiphon::{Client, Reconnect};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder()
///     .reconnect(Reconnect::new().pause(Duration::from_millis(50), Duration::from_secs(10)))
///     .connect("ws://127.0.0.1:8650")
///     .await?;
/// let mut states = client.states().expect("the client reconnects");
/// tokio::spawn(async move {
///     while states.changed().await.is_ok() {
///         println!("{:?}", *states.borrow_and_update());
///     }
/// });
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Reconnect {
    shortest: Duration,
    longest: Duration,
    attempts: Option<u32>,
    wait_for_server: bool,
    idempotent: Vec<String>,
    retries: u32,
}

/// The state of a client that reconnects.
///
/// ```
/// use antiphon::{Client, ConnectionState};
///
/// # async fn example(client: Client) {
/// let mut states = client.states().expect("the client reconnects");
/// let connected = states.wait_for(|state| *state == ConnectionState::Connected).await;
/// # drop(connected);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// The client is connected.
    Connected,
    /// The client is not connected. It makes an attempt, or waits before the next one.
    Reconnecting {
        /// The number of the attempt, starting with 1.
        attempt: u32,
        /// The reason why the connection ended or the last attempt failed.
        reason: CloseReason,
    },
    /// The client is closed and makes no more attempts.
    Closed {
        /// The reason.
        reason: CloseReason,
    },
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            shortest: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            attempts: None,
            wait_for_server: false,
            idempotent: Vec::new(),
            retries: 3,
        }
    }
}

impl Reconnect {
    /// Reconnects without a limit of attempts. The first delay is 100 milliseconds, and each delay is twice
    /// the last, up to 30 seconds. A random part is subtracted, so that many clients do not reconnect at
    /// the same time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the delay before the first attempt, and the maximum delay.
    #[must_use]
    pub fn pause(mut self, shortest: Duration, longest: Duration) -> Self {
        self.shortest = shortest;
        self.longest = longest.max(shortest);
        self
    }

    /// Gives up after this many consecutive failed attempts. A connection that ends sooner than after 10
    /// seconds, or after the maximum delay if that is shorter, counts as a failed attempt.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Also retries the first connection, so that the client waits for a server that is not running yet.
    /// Without it, a failed first connection is an error, as for any client.
    #[must_use]
    pub fn wait_for_server(mut self) -> Self {
        self.wait_for_server = true;
        self
    }

    /// Declares methods as idempotent: safe to execute twice. A call that is in flight when the connection
    /// is lost is sent again. A name that ends in `*` matches every method with that prefix.
    ///
    /// If a resend fails because it could not be sent, the error is still
    /// [`CallError::Interrupted`](crate::CallError::Interrupted): the first attempt may have run. An error
    /// response describes the last attempt only.
    ///
    /// `MathClient::IDEMPOTENT` lists the idempotent methods of the contract `Math`. Methods of extended
    /// contracts are not in it: pass their constants too. For a nested router, add its prefix to each name.
    ///
    /// ```
    /// use antiphon::Reconnect;
    ///
    /// const READS: &[&str] = &["get", "list"];
    /// let reconnect = Reconnect::new().idempotent(READS).idempotent(["read_*"]);
    /// # drop(reconnect);
    /// ```
    #[must_use]
    pub fn idempotent<N: AsRef<str>>(mut self, methods: impl IntoIterator<Item = N>) -> Self {
        self.idempotent.extend(methods.into_iter().map(|name| name.as_ref().to_owned()));
        self
    }

    /// Sets how many times a call is sent again. The default is three. Without a limit, a call that
    /// crashes its server would crash it again and again.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    fn is_idempotent(&self, method: &str) -> bool {
        self.idempotent.iter().any(|known| match known.strip_suffix('*') {
            Some(prefix) => method.starts_with(prefix),
            None => method == known,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_idempotent_by_name_and_by_prefix() {
        let reconnect = Reconnect::new().idempotent(["get", "read_*"]);
        for (method, is) in [("get", true), ("gets", false), ("read_", true), ("read_a", true)] {
            assert_eq!(reconnect.is_idempotent(method), is, "{method}");
        }
        assert!(!Reconnect::new().is_idempotent("get"));
        const NAMES: &[&str] = &["get"];
        assert!(Reconnect::new().idempotent(NAMES).is_idempotent("get"));
        assert!(Reconnect::new().idempotent(vec!["get".to_owned()]).is_idempotent("get"));
        assert!(Reconnect::new().idempotent(["*"]).is_idempotent("anything"));
    }
}
