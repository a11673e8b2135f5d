//! The reports with one token on the wire: in order, and none after the end. They are work-done progress, or the parts
//! of a result.
//!
//! Invariant: one lock guards both the queueing of a report and the end. So nothing follows the end, even if a task
//! reports while the response of its request ends the progress. `end` is sent once, and only after `begin`.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use antiphon::{CallError, Peer};
use serde::Serialize;

use crate::types::{ProgressToken, WorkDoneProgressBegin, WorkDoneProgressEnd};

/// The method of every progress report and every part of a result.
const METHOD: &str = "$/progress";

/// The params of `$/progress`, without a copy of the value.
#[derive(Serialize)]
struct ReportParams<'a, V> {
    token: &'a ProgressToken,
    value: V,
}

/// The sender of reports with one token.
#[derive(Debug)]
pub(super) struct ReportLine {
    peer: Peer,
    pub(super) token: ProgressToken,
    stage: Mutex<Stage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// `begin` was not sent. The parts of a result have none.
    Created,
    /// `begin` was sent, so `end` must follow.
    Begun,
    /// The token is no longer valid.
    Ended,
}

impl ReportLine {
    pub(super) fn new(peer: Peer, token: ProgressToken) -> Self {
        Self { peer, token, stage: Mutex::new(Stage::Created) }
    }

    /// A sender with a token that is no longer valid. It sends nothing.
    pub(super) fn ended(peer: Peer, token: ProgressToken) -> Self {
        Self { peer, token, stage: Mutex::new(Stage::Ended) }
    }

    /// Sends the first report of work-done progress.
    pub(super) async fn begin(&self, begin: WorkDoneProgressBegin) -> Result<(), CallError> {
        self.send_and(begin, Some(Stage::Begun)).await
    }

    /// Sends a report. Waits while the write queue is full. Does nothing after the end.
    pub(super) async fn send(&self, report: impl Serialize) -> Result<(), CallError> {
        self.send_and(report, None).await
    }

    /// Sends the end with a message.
    pub(super) async fn finish(&self, message: String) -> Result<(), CallError> {
        self.send_and(WorkDoneProgressEnd::new(Some(message)), Some(Stage::Ended)).await
    }

    async fn send_and(&self, report: impl Serialize, next: Option<Stage>) -> Result<(), CallError> {
        let params = ReportParams { token: &self.token, value: report };
        let mut sending = pin!(self.peer.notify(METHOD, params));
        poll_fn(|poller| {
            let mut stage = self.lock();
            if *stage == Stage::Ended {
                return Poll::Ready(Ok(()));
            }
            let sent = sending.as_mut().poll(poller);
            if let (Poll::Ready(Ok(())), Some(next)) = (&sent, next) {
                *stage = next;
            }
            sent
        })
        .await
    }

    /// Ends the line. Sends `end` without waiting, if `begin` was sent.
    pub(super) fn end(&self) {
        let mut stage = self.lock();
        if std::mem::replace(&mut *stage, Stage::Ended) == Stage::Begun {
            let params = ReportParams { token: &self.token, value: WorkDoneProgressEnd::default() };
            // Fails only if the connection has ended.
            let _ = self.peer.notify_now(METHOD, params);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.lock() == Stage::Ended
    }

    /// Ignores lock poisoning, because no code panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
