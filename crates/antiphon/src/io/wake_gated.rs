//! A future that shares a task with another, and is polled only after its own waker was used.
//!
//! A connection is polled for every message. Its timers and stop signals become ready rarely, and each
//! poll of one costs as much as a message. With this gate they cost one load of a flag.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// A future that is polled after its own waker was used, and once at the start.
pub(crate) struct WakeGated<F> {
    future: Pin<Box<F>>,
    gate: Arc<WakeGate>,
    /// The gate, as the waker that the future gets.
    waker: Waker,
    /// The task that the gate wakes.
    task: Option<Waker>,
}

struct WakeGate {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for WakeGate {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> WakeGated<F> {
    pub(crate) fn new(future: F) -> Self {
        let gate = Arc::new(WakeGate { woken: AtomicBool::new(true), task: AtomicWaker::new() });
        let waker = Waker::from(gate.clone());
        Self { future: Box::pin(future), gate, waker, task: None }
    }

    /// Changes the future, and has it polled again.
    pub(crate) fn change(&mut self, change: impl FnOnce(Pin<&mut F>)) {
        change(self.future.as_mut());
        self.gate.woken.store(true, Ordering::Relaxed);
    }

    /// Polls the future if it was woken. After `Ready`, the caller must not poll again unless it has
    /// called [`change`](Self::change).
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let known = self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker()));
        if known && !self.gate.woken.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // A wake after this line wakes the task; the swap below sees a wake before it.
        self.gate.task.register(cx.waker());
        if !known {
            self.task = Some(cx.waker().clone());
        }
        if !self.gate.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn the_future_is_polled_only_after_its_own_wake() {
        let mut polls = 0;
        let mut own = None;
        let mut gated = WakeGated::new(poll_fn(|cx| {
            polls += 1;
            own = Some(cx.waker().clone());
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        }));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(gated.poll(&mut cx).is_pending());
        assert!(gated.poll(&mut cx).is_pending());
        gated.waker.wake_by_ref();
        assert!(gated.poll(&mut cx).is_ready());
        drop(gated);
        assert_eq!(polls, 2);
        assert!(own.is_some());
    }
}
