//! Lets a connection end a run that is spawned as a task, or cancel some of its calls.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Context;

use antiphon_core::Id;
use futures_util::task::AtomicWaker;

/// The way to end a run from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndRun {
    /// Reply now, with an error for each unfinished call.
    Expire = 1,
    /// Drop the run, because the peer is gone.
    Abort = 2,
}

/// Shared by a connection and the task of one run.
#[derive(Debug, Default)]
pub(crate) struct RunControl {
    end: AtomicU8,
    cancelled: Mutex<Vec<Id>>,
    /// Whether `cancelled` holds any id, so that most polls take no lock.
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

    /// Returns how the run must end, if it must. Its task calls this at each poll.
    pub(crate) fn ended(&self, poller: &mut Context<'_>) -> Option<EndRun> {
        self.task.register(poller.waker());
        match self.end.load(Ordering::Acquire) {
            0 => None,
            1 => Some(EndRun::Expire),
            _ => Some(EndRun::Abort),
        }
    }
}
