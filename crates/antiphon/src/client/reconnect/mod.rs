//! A client that survives its connection: when one ends, it makes another.
//!
//! What happens then to a call that was under way is a choice with no right answer in general: it may
//! have been carried out or not. So it fails with [`CallError::Interrupted`](crate::CallError), unless its
//! method was declared idempotent; then it is sent again. A call that was not sent yet waits for the
//! next connection. Subscriptions are made anew, and their streams say that there was a gap.

mod backoff;
mod caller;
mod supervisor;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use caller::Lasting;

/// How a client comes back when its connection has ended: see
/// [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect).
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
/// let mut states = client.states().expect("it reconnects");
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
    at_first: bool,
    idempotent: Vec<String>,
    retries: u32,
}

/// What a client that reconnects is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// There is a connection.
    Connected,
    /// There is none; this is the attempt that is made or waited for.
    Reconnecting {
        /// The first is 1.
        attempt: u32,
        /// Why there is none.
        reason: Arc<str>,
    },
    /// There is none, and there will be none.
    Closed {
        /// Why.
        reason: Arc<str>,
    },
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            shortest: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            attempts: None,
            at_first: false,
            idempotent: Vec::new(),
            retries: 3,
        }
    }
}

impl Reconnect {
    /// Comes back for ever: after 100 milliseconds, then after twice the time that it waited last, up
    /// to 30 seconds; each time a random part less, so that many clients do not come back at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for so long before the first attempt, and at most for so long before any.
    #[must_use]
    pub fn pause(mut self, shortest: Duration, longest: Duration) -> Self {
        self.shortest = shortest;
        self.longest = longest.max(shortest);
        self
    }

    /// Gives up after so many attempts in a row.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Tries again from the start: a server that is not there yet is waited for. Without it, the first
    /// connection fails as it does for any client.
    #[must_use]
    pub fn at_first(mut self) -> Self {
        self.at_first = true;
        self
    }

    /// Declares methods that do no harm when they are carried out twice: their calls are sent again
    /// when the connection is lost under them. A name that ends in `*` is all that begin so.
    #[must_use]
    pub fn idempotent<N: Into<String>>(mut self, methods: impl IntoIterator<Item = N>) -> Self {
        self.idempotent.extend(methods.into_iter().map(Into::into));
        self
    }

    /// Sends a call again at most so many times; without it, three times. A call that ends its server
    /// would end it for ever.
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
    fn methods_are_idempotent_by_name_and_by_beginning() {
        let reconnect = Reconnect::new().idempotent(["get", "read_*"]);
        for (method, is) in [("get", true), ("gets", false), ("read_", true), ("read_a", true)] {
            assert_eq!(reconnect.is_idempotent(method), is, "{method}");
        }
        assert!(!Reconnect::new().is_idempotent("get"));
        assert!(Reconnect::new().idempotent(["*"]).is_idempotent("anything"));
    }
}
