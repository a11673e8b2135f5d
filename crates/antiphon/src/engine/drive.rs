//! Drives a running payload to its reply.

use std::task::{Context as Poller, Poll};

use antiphon_core::ErrorObject;
use bytes::Bytes;

use super::run::{Run, RunState};
use super::run_control::{EndRun, RunControl};

/// A run, and its reply once there is one.
///
/// Code that waits for a reply polls a `Drive`. Polling the run itself is not enough, because its first
/// poll may already have returned the reply.
pub(crate) struct Drive {
    /// Dropped after the reply is taken, which releases the items of subscriptions that it has opened.
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

    /// A drive for a run that is spawned as a task.
    pub(crate) fn detached(run: Box<Run>) -> Self {
        Self { run, answer: None }
    }

    /// Takes the notifications that follow the reply.
    pub(crate) fn take_followers(&mut self) -> Vec<Bytes> {
        self.run.take_followers()
    }

    /// Like [`poll`](Self::poll), for a task: `control` lets the connection end the run, or cancel
    /// some of its calls.
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

    /// Ready with the reply when the payload is finished; `None` if it has no reply.
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
