//! How a connection reaches a run that has become a task: to end it, or to cancel calls of it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Context;

use antiphon_core::Id;
use futures_util::task::AtomicWaker;

/// How a run is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndRun {
    /// Answer now, with an error for what has not finished.
    Expire = 1,
    /// Drop it: the peer is gone.
    Abort = 2,
}

/// Shared by a connection and the task of one run.
#[derive(Debug, Default)]
pub(crate) struct RunControl {
    end: AtomicU8,
    cancelled: Mutex<Vec<Id>>,
    /// Whether `cancelled` holds any id, so that a poll without news takes no lock.
    is_cancelled: AtomicBool,
    task: AtomicWaker,
}

impl RunControl {
    /// Ends the run. [`EndRun::Abort`] wins over [`EndRun::Expire`].
    pub(crate) fn end(&self, how: EndRun) {
        self.end.fetch_max(how as u8, Ordering::AcqRel);
        self.task.wake();
    }

    /// Cancels the calls of the run with this id.
    pub(crate) fn cancel(&self, id: Id) {
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.is_cancelled.store(true, Ordering::Release);
        self.task.wake();
    }

    /// Takes the ids that were cancelled since the last call. Called after [`ended`](Self::ended),
    /// which registers the waker.
    pub(crate) fn take_cancelled(&self) -> Vec<Id> {
        if !self.is_cancelled.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut self.cancelled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How the run is to end, if it is. Called by its task at each poll.
    pub(crate) fn ended(&self, poller: &mut Context<'_>) -> Option<EndRun> {
        self.task.register(poller.waker());
        match self.end.load(Ordering::Acquire) {
            0 => None,
            1 => Some(EndRun::Expire),
            _ => Some(EndRun::Abort),
        }
    }
}
