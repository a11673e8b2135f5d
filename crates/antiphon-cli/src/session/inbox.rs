//! A queue of the notifications and calls from the server.
//!
//! A `wait` takes the oldest matching message. Messages that arrived before the line count too, so nothing is missed
//! between two lines. Each message is taken once. `clear` discards all messages in the queue.
//!
//! The queue is bounded: beyond the limit, it discards the oldest messages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::{Invocation, Params, RawJson};
use bytes::Bytes;
use tokio::sync::Notify;

/// The maximum number of messages.
const MOST: usize = 1_000;

/// The maximum total size of the methods and params. The newest message is kept at any size.
const MOST_BYTES: usize = 16 << 20;

/// The messages from the server that no `wait` has taken. Clones share the same inbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    kept: Mutex<Kept>,
    arrival: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    messages: VecDeque<Received>,
    bytes: usize,
    /// The number of discarded messages.
    discarded: usize,
}

#[derive(Debug)]
struct Received {
    method: String,
    params: RawJson,
}

impl Inbox {
    pub(crate) fn push(&self, message: &Invocation) {
        let params = message.params.as_ref().map(Params::as_json).map(RawJson::as_bytes);
        // A copy, because the params would keep their whole frame in memory.
        let params = params.and_then(|text| RawJson::parse(Bytes::copy_from_slice(text)).ok());
        let params = params.unwrap_or(RawJson::NULL);
        let message = Received { method: message.method.as_str().to_owned(), params };
        let mut kept = self.lock();
        kept.bytes += message.bytes();
        kept.messages.push_back(message);
        while kept.messages.len() > MOST || (kept.bytes > MOST_BYTES && kept.messages.len() > 1) {
            kept.take(0);
            kept.discarded += 1;
        }
        drop(kept);
        self.0.arrival.notify_waiters();
    }

    /// Takes the oldest message of a method with matching params. Waits until there is one.
    pub(super) async fn take(&self, method: &str, fits: impl Fn(&RawJson) -> bool) -> RawJson {
        loop {
            // Created before the inbox is checked, so no arrival is missed.
            let arrival = self.0.arrival.notified();
            if let Some(params) = self.take_now(method, &fits) {
                return params;
            }
            arrival.await;
        }
    }

    /// Takes a matching message if one has arrived.
    pub(super) fn take_now(
        &self,
        method: &str,
        fits: impl Fn(&RawJson) -> bool,
    ) -> Option<RawJson> {
        let mut kept = self.lock();
        let is_wanted = |message: &Received| message.method == method && fits(&message.params);
        let at = kept.messages.iter().position(is_wanted)?;
        kept.take(at)
    }

    /// Returns the methods of the messages.
    pub(super) fn methods(&self) -> Vec<String> {
        let kept = self.lock();
        let methods: BTreeSet<_> = kept.messages.iter().map(|message| &message.method).collect();
        methods.into_iter().cloned().collect()
    }

    /// Discards all messages.
    pub(super) fn clear(&self) {
        *self.lock() = Kept::default();
    }

    /// Returns the number of messages discarded since the last call.
    pub(super) fn take_discarded(&self) -> usize {
        std::mem::take(&mut self.lock().discarded)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, at: usize) -> Option<RawJson> {
        let message = self.messages.remove(at)?;
        self.bytes -= message.bytes();
        Some(message.params)
    }
}

impl Received {
    fn bytes(&self) -> usize {
        self.method.len() + self.params.as_bytes().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(method: &str, params: &str) -> Invocation {
        Invocation::new(method, Params::parse(params).ok())
    }

    fn taken(inbox: &Inbox, method: &str) -> Option<String> {
        inbox.take_now(method, |_| true).map(|params| params.to_string())
    }

    #[test]
    fn the_oldest_message_that_fits_is_taken_once() {
        let inbox = Inbox::default();
        for (method, params) in [("a", "[1]"), ("b", "[2]"), ("a", "[3]"), ("c", "")] {
            inbox.push(&message(method, params));
        }
        assert_eq!(taken(&inbox, "b").as_deref(), Some("[2]"));
        assert_eq!(taken(&inbox, "b"), None);
        let third = inbox.take_now("a", |params| params.as_str() == "[3]");
        assert_eq!(third.unwrap().as_str(), "[3]");
        assert_eq!(taken(&inbox, "a").as_deref(), Some("[1]"));
        assert_eq!(taken(&inbox, "c").as_deref(), Some("null"));
    }

    #[test]
    fn the_oldest_messages_are_discarded() {
        let inbox = Inbox::default();
        for number in 0..MOST + 5 {
            inbox.push(&message("a", &format!("[{number}]")));
        }
        assert_eq!((taken(&inbox, "a").as_deref(), inbox.take_discarded()), (Some("[5]"), 5));
        inbox.clear();
        assert_eq!((taken(&inbox, "a"), inbox.take_discarded()), (None, 0));
        let large = format!("[\"{}\"]", "x".repeat(MOST_BYTES));
        inbox.push(&message("a", "[1]"));
        inbox.push(&message("a", &large));
        assert_eq!(taken(&inbox, "a").map(|params| params.as_str().len()), Some(large.len()));
        assert_eq!((taken(&inbox, "a"), inbox.lock().bytes), (None, 0));
        // A method counts too, and a server chooses its length.
        let name = "m".repeat(MOST_BYTES / 2);
        for params in ["[1]", "[2]"] {
            inbox.push(&message(&name, params));
        }
        assert_eq!((taken(&inbox, &name).as_deref(), inbox.lock().bytes), (Some("[2]"), 0));
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_arrival() {
        let inbox = Inbox::default();
        let waiting = tokio::spawn({
            let inbox = inbox.clone();
            async move { inbox.take("a", |_| true).await }
        });
        tokio::task::yield_now().await;
        inbox.push(&message("b", "[1]"));
        inbox.push(&message("a", "[2]"));
        assert_eq!(waiting.await.unwrap().as_str(), "[2]");
    }
}
