//! The calls of a payload whose handlers have not finished.

use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use antiphon_core::Outcome;
use futures_core::Stream;
use futures_util::stream::FuturesUnordered;

use super::in_flight::InFlightPermit;
use super::requests::panicked;
use crate::catch_unwind::{CatchUnwind, Panicked};

/// The unfinished calls of a payload. A single call, which is the common case, costs no allocation.
pub(super) enum PendingCalls {
    None,
    One(PendingCall),
    Many(FuturesUnordered<PendingCall>),
}

impl PendingCalls {
    pub(super) fn push(&mut self, call: PendingCall) {
        match std::mem::replace(self, Self::None) {
            Self::None => *self = Self::One(call),
            Self::One(first) => *self = Self::Many([first, call].into_iter().collect()),
            Self::Many(calls) => {
                calls.push(call);
                *self = Self::Many(calls);
            }
        }
    }

    /// Drops the calls of these reply slots.
    pub(super) fn remove(&mut self, slots: &[usize]) {
        let stays = |call: &PendingCall| !slots.contains(&call.slot);
        *self = match std::mem::replace(self, Self::None) {
            Self::None => Self::None,
            Self::One(call) if stays(&call) => Self::One(call),
            Self::One(_) => Self::None,
            Self::Many(calls) => Self::Many(calls.into_iter().filter(stays).collect()),
        };
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::One(_) => false,
            Self::Many(calls) => calls.is_empty(),
        }
    }

    /// Returns the reply slot and the outcome of a call that has finished, if there is one.
    pub(super) fn poll_ended(&mut self, poller: &mut Poller<'_>) -> Option<(usize, Outcome)> {
        let ended = match self {
            Self::None => return None,
            Self::One(call) => Pin::new(call).poll(poller).map(Some),
            Self::Many(calls) => return ready_or_none(Pin::new(calls).poll_next(poller)),
        };
        if ended.is_ready() {
            *self = Self::None;
        }
        ready_or_none(ended)
    }
}

fn ready_or_none<T>(poll: Poll<Option<T>>) -> Option<T> {
    match poll {
        Poll::Ready(ready) => ready,
        Poll::Pending => None,
    }
}

/// A running call, and the index of its reply slot.
pub(super) struct PendingCall {
    pub(super) slot: usize,
    pub(super) call: CatchUnwind<Outcome>,
    pub(super) _permit: InFlightPermit,
}

impl Future for PendingCall {
    type Output = (usize, Outcome);

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let slot = self.slot;
        self.call.poll(poller).map(|outcome| (slot, flatten(outcome)))
    }
}

fn flatten(outcome: Result<Outcome, Panicked>) -> Outcome {
    outcome.unwrap_or_else(|Panicked| panicked())
}
