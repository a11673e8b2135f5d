//! How a connection reaches a run that has become a task: to end it with an answer, or without.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Context;

use antiphon_core::Id;
use futures_util::task::AtomicWaker;

/// What a pulled leash asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndRun {
    /// Answer what has not finished, now.
    Expire = 1,
    /// There is nobody to answer.
    Abort = 2,
}

#[derive(Debug, Default)]
pub(crate) struct RunControl {
    pull: AtomicU8,
    /// Calls of it that are cancelled, and whether there are any.
    cancelled: Mutex<Vec<Id>>,
    is_cancelled: AtomicBool,
    task: AtomicWaker,
}

impl RunControl {
    pub(crate) fn pull(&self, pull: EndRun) {
        self.pull.fetch_max(pull as u8, Ordering::AcqRel);
        self.task.wake();
    }

    /// Cancels a call of it.
    pub(crate) fn cancel(&self, id: Id) {
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.is_cancelled.store(true, Ordering::Release);
        self.task.wake();
    }

    /// The calls that were cancelled since this was last asked; asked after `pulled`.
    pub(crate) fn cancelled(&self) -> Vec<Id> {
        if !self.is_cancelled.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut self.cancelled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asked by the task each time it is polled.
    pub(crate) fn pulled(&self, poller: &mut Context<'_>) -> Option<EndRun> {
        self.task.register(poller.waker());
        match self.pull.load(Ordering::Acquire) {
            0 => None,
            1 => Some(EndRun::Expire),
            _ => Some(EndRun::Abort),
        }
    }
}
