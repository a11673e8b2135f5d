//! The reports of one progress on the wire: in order, and none after the end.
//!
//! Invariant: one lock guards both the queueing of a report and the end. So nothing follows `end`, even if a task
//! reports while the response of its request ends the progress.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use antiphon::{CallError, Peer};
use serde::Serialize;

use crate::types::{ProgressToken, WorkDoneProgressEnd};

/// The method of every progress report and every part of a result.
pub(super) const METHOD: &str = "$/progress";

/// The params of `$/progress`, without a copy of the value.
#[derive(Serialize)]
pub(super) struct ReportParams<'a, V> {
    pub(super) token: &'a ProgressToken,
    pub(super) value: V,
}

/// The sender of reports with one token.
#[derive(Debug)]
pub(super) struct ReportLine {
    peer: Peer,
    pub(super) token: ProgressToken,
    has_ended: Mutex<bool>,
}

impl ReportLine {
    pub(super) fn new(peer: Peer, token: ProgressToken) -> Self {
        Self { peer, token, has_ended: Mutex::new(false) }
    }

    /// Sends a report. Waits while the write queue is full. Does nothing after the end.
    pub(super) async fn send(&self, report: impl Serialize) -> Result<(), CallError> {
        self.send_and(report, false).await
    }

    /// Sends the end with a message.
    pub(super) async fn finish(&self, message: String) -> Result<(), CallError> {
        self.send_and(WorkDoneProgressEnd::new(Some(message)), true).await
    }

    async fn send_and(&self, report: impl Serialize, is_end: bool) -> Result<(), CallError> {
        let params = ReportParams { token: &self.token, value: report };
        let mut sending = pin!(self.peer.notify(METHOD, params));
        poll_fn(|poller| {
            let mut has_ended = self.lock();
            if *has_ended {
                return Poll::Ready(Ok(()));
            }
            let sent = sending.as_mut().poll(poller);
            *has_ended = is_end && matches!(sent, Poll::Ready(Ok(())));
            sent
        })
        .await
    }

    /// Sends the end without waiting, unless it was already sent.
    pub(super) fn end(&self) {
        let mut has_ended = self.lock();
        if !std::mem::replace(&mut *has_ended, true) {
            let params = ReportParams { token: &self.token, value: WorkDoneProgressEnd::default() };
            // Fails only if the connection has ended.
            let _ = self.peer.notify_now(METHOD, params);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.lock()
    }

    /// No code that holds the lock can panic halfway through a change.
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.has_ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
