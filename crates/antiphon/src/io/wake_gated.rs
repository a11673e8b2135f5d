//! A future beside another in one task, polled only when it was woken itself.
//!
//! A connection is polled for every message; its clocks and stop signals say something once in a
//! while, and each poll of one costs as much as a message. Beside it, they cost a look at a flag.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// A future that is polled when its own waker was used, and once to begin with.
pub(crate) struct WakeGated<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    /// The bell, as the future knows it.
    waker: Waker,
    /// The task that the bell wakes.
    task: Option<Waker>,
}

struct Bell {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> WakeGated<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: AtomicWaker::new() });
        let waker = Waker::from(bell.clone());
        Self { future: Box::pin(future), bell, waker, task: None }
    }

    /// The future itself, to change it; it is polled again.
    pub(crate) fn change(&mut self, change: impl FnOnce(Pin<&mut F>)) {
        change(self.future.as_mut());
        self.bell.rung.store(true, Ordering::Relaxed);
    }

    /// Polls the future if it has something to say. Not to be polled again once it is ready, unless
    /// it was changed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let known = self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker()));
        if known && !self.bell.rung.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // What rings from here on wakes the task; what has rung before is answered now.
        self.bell.task.register(cx.waker());
        if !known {
            self.task = Some(cx.waker().clone());
        }
        if !self.bell.rung.swap(false, Ordering::AcqRel) {
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
    fn it_is_polled_when_it_was_woken_and_not_when_others_were() {
        let mut polls = 0;
        let mut own = None;
        let mut aside = WakeGated::new(poll_fn(|cx| {
            polls += 1;
            own = Some(cx.waker().clone());
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        }));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(aside.poll(&mut cx).is_pending());
        assert!(aside.poll(&mut cx).is_pending());
        aside.waker.wake_by_ref();
        assert!(aside.poll(&mut cx).is_ready());
        drop(aside);
        assert_eq!(polls, 2);
        assert!(own.is_some());
    }
}
