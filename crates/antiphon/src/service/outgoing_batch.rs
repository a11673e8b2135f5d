//! A batch whose entries pass layers one by one, and are sent together.
//!
//! Each entry passes the layers as a call of its own, concurrently with the others. The innermost service
//! hands the entry over to this module, and the entry then waits for its reply. Each poll of the batch
//! first lets every entry make progress. Then it sends all entries that were handed over as one batch, in
//! their order. The batch never waits for an entry that a layer delays, because that entry may wait for
//! another entry of the batch, for example for its permit of a concurrency limit. A delayed entry is sent
//! later, with any others that arrive in the same poll. So there is no timer and no deadlock.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Poller, Poll};

use antiphon_core::RawJson;
use futures_core::Stream as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};

use crate::call::exchange::missing_reply;
use crate::call::{BatchEntry, CallError, Caller, Invocation};
use crate::error::ErrorChain;

type Reply = Result<RawJson, CallError>;

/// Sends a batch whose entries pass layers first. Returns one reply per call.
pub(super) async fn send<F>(
    entries: Vec<BatchEntry>,
    pass_layers: impl Fn(Invocation, Arc<EntrySender>) -> F,
    caller: &dyn Caller,
) -> Result<Vec<Reply>, CallError>
where
    F: Future<Output = Reply>,
{
    let (sender, arrivals) = mpsc::unbounded_channel();
    let passing = entries.into_iter().enumerate().map(|(position, entry)| {
        let (call, is_notification) = match entry {
            BatchEntry::Call(call) => (call, false),
            BatchEntry::Notification(call) => (call, true),
        };
        let sender = EntrySender {
            position,
            is_notification,
            is_sent: AtomicBool::new(false),
            arrivals: sender.clone(),
        };
        let passing = pass_layers(call, Arc::new(sender));
        async move { (is_notification, passing.await) }
    });
    let (replies, failure) = drive(join_all(passing), arrivals, caller).await;
    let replies: Vec<Reply> = replies.into_iter().filter_map(call_reply).collect();
    match failure {
        // A batch that failed as a whole has one error.
        Some(error) if replies.iter().all(Result::is_err) => Err(error),
        _ => Ok(replies),
    }
}

/// The reply of a call. A notification has none, so an error of it goes to the log.
fn call_reply((is_notification, reply): (bool, Reply)) -> Option<Reply> {
    if let (true, Err(error)) = (is_notification, &reply) {
        tracing::debug!(error = %ErrorChain(error), "a notification of a batch was not sent");
    }
    (!is_notification).then_some(reply)
}

/// Polls the entries in their layers, sends those that arrive, and returns the output of all. The
/// second value is the last error that a sent batch failed with as a whole.
async fn drive<T>(
    passing: impl Future<Output = T>,
    mut arrivals: mpsc::UnboundedReceiver<ArrivedEntry>,
    caller: &dyn Caller,
) -> (T, Option<CallError>) {
    let mut passing = pin!(passing);
    let mut sent = FuturesUnordered::new();
    let mut failure = None;
    let output = poll_fn(|poller| {
        loop {
            if let Poll::Ready(output) = passing.as_mut().poll(poller) {
                return Poll::Ready(output);
            }
            let group = take_arrived(&mut arrivals, poller);
            if !group.is_empty() {
                sent.push(send_group(group, caller));
            }
            let mut has_replies = false;
            while let Poll::Ready(Some(outcome)) = pin!(&mut sent).poll_next(poller) {
                has_replies = true;
                failure = outcome.err().or(failure.take());
            }
            if !has_replies {
                return Poll::Pending;
            }
        }
    })
    .await;
    (output, failure)
}

/// Takes the entries that have arrived, in the order of the batch.
fn take_arrived(
    arrivals: &mut mpsc::UnboundedReceiver<ArrivedEntry>,
    poller: &mut Poller<'_>,
) -> Vec<ArrivedEntry> {
    let mut group = Vec::new();
    while let Poll::Ready(1..) = arrivals.poll_recv_many(poller, &mut group, usize::MAX) {}
    // A layer may have dropped an entry after it arrived.
    group.retain(|arrived| !arrived.reply.is_closed());
    group.sort_unstable_by_key(|arrived| arrived.position);
    group
}

/// Sends entries as one batch, and gives each its reply.
async fn send_group(group: Vec<ArrivedEntry>, caller: &dyn Caller) -> Result<(), CallError> {
    let (entries, waiting): (Vec<_>, Vec<_>) = group
        .into_iter()
        .map(|ArrivedEntry { entry, reply, .. }| {
            let is_call = matches!(entry, BatchEntry::Call(_));
            (entry, (is_call, reply))
        })
        .unzip();
    match caller.send_batch(entries).await {
        Ok(replies) => {
            let mut replies = replies.into_iter();
            for (is_call, waiting) in waiting {
                let reply = if is_call { replies.next() } else { Some(Ok(RawJson::NULL)) };
                let _ = waiting.send(reply.unwrap_or_else(|| Err(missing_reply())));
            }
            Ok(())
        }
        Err(error) => {
            for (_, waiting) in waiting {
                let _ = waiting.send(Err(error.clone()));
            }
            Err(error)
        }
    }
}

/// An entry that has passed its layers.
struct ArrivedEntry {
    position: usize,
    entry: BatchEntry,
    reply: oneshot::Sender<Reply>,
}

/// Hands one entry over to its batch.
pub(super) struct EntrySender {
    position: usize,
    is_notification: bool,
    is_sent: AtomicBool,
    arrivals: mpsc::UnboundedSender<ArrivedEntry>,
}

impl EntrySender {
    pub(super) fn is_notification(&self) -> bool {
        self.is_notification
    }

    /// Returns true the first time. A repeated call, such as a retry of a layer, is not part of the
    /// batch and is sent by itself.
    pub(super) fn is_first_call(&self) -> bool {
        !self.is_sent.swap(true, Ordering::Relaxed)
    }

    /// Hands the entry over, and returns the future of its reply.
    pub(super) fn send(&self, call: Invocation) -> impl Future<Output = Reply> + Send + use<> {
        let entry = match self.is_notification {
            true => BatchEntry::Notification(call),
            false => BatchEntry::Call(call),
        };
        let (reply, received) = oneshot::channel();
        // Fails if the batch was dropped while a task of a layer holds the entry. Then the sender of
        // the reply is dropped too.
        let _ = self.arrivals.send(ArrivedEntry { position: self.position, entry, reply });
        async move { received.await.unwrap_or_else(|_| Err(missing_reply())) }
    }
}
