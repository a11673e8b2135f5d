//! How a connection reaches a run that has become a task: to end it with an answer, or without.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Context;

use futures_util::task::AtomicWaker;

/// What a pulled leash asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pull {
    /// Answer what has not finished, now.
    Expire = 1,
    /// There is nobody to answer.
    Abort = 2,
}

#[derive(Debug, Default)]
pub(super) struct Leash {
    pull: AtomicU8,
    task: AtomicWaker,
}

impl Leash {
    pub(super) fn pull(&self, pull: Pull) {
        self.pull.fetch_max(pull as u8, Ordering::AcqRel);
        self.task.wake();
    }

    /// Asked by the task each time it is polled.
    pub(super) fn pulled(&self, poller: &mut Context<'_>) -> Option<Pull> {
        self.task.register(poller.waker());
        match self.pull.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Pull::Expire),
            _ => Some(Pull::Abort),
        }
    }
}
