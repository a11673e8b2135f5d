//! A payload under way, driven to its answer.

use std::task::{Context as Poller, Poll};

use antiphon_core::ErrorObject;
use bytes::Bytes;

use super::run::{Run, RunState};
use super::run_control::{EndRun, RunControl};

/// A run and its answer, once it has one.
///
/// Every caller that waits for an answer polls a `Drive`. Polling the run itself is not enough: its
/// first poll may already have given the answer.
pub(crate) struct Drive {
    /// Dropped after the answer is taken: that releases what the run has opened.
    run: Box<Run>,
    answer: Option<Option<Bytes>>,
}

impl Drive {
    pub(super) fn new(state: RunState, run: Box<Run>) -> Self {
        let answer = match state {
            RunState::Done(answer) => Some(answer),
            RunState::Detached | RunState::Blocked => None,
        };
        Self { run, answer }
    }

    /// A drive for a run that has become a task.
    pub(crate) fn detached(run: Box<Run>) -> Self {
        Self { run, answer: None }
    }

    /// Polls a drive that the connection can end or cancel in part.
    pub(crate) fn poll_controlled(
        &mut self,
        control: &RunControl,
        poller: &mut Poller<'_>,
    ) -> Poll<Option<Bytes>> {
        match control.ended(poller) {
            Some(EndRun::Abort) => Poll::Ready(None),
            Some(EndRun::Expire) => {
                Poll::Ready(self.run.expire(&ErrorObject::server_busy("shutting down")))
            }
            None => {
                control.take_cancelled().iter().for_each(|id| self.run.cancel_call(id));
                self.poll(poller)
            }
        }
    }

    /// Ready with the answer, if the payload has one.
    pub(crate) fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<Option<Bytes>> {
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(answer);
        }
        match self.run.poll(poller) {
            RunState::Done(answer) => Poll::Ready(answer),
            RunState::Detached | RunState::Blocked => Poll::Pending,
        }
    }
}
