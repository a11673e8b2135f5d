//! Where a handler's panic ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context as Poller, Poll};

use crate::BoxFuture;

/// A handler's future whose panics end here: the text goes to the log and never to the other side.
pub(crate) struct CatchUnwind<T>(Option<BoxFuture<'static, T>>);

#[derive(Debug)]
pub(crate) struct Panicked;

/// What became of a handler that was entered.
pub(crate) enum FirstPoll<T> {
    /// It is over, and what it ends with has been seen.
    Done,
    Waits(CatchUnwind<T>),
    Panicked,
}

impl<T> CatchUnwind<T> {
    pub(crate) fn new(future: BoxFuture<'static, T>) -> Self {
        Self(Some(future))
    }

    /// Makes a handler's future and polls it. What is ready at once is seen by `done` where it stands:
    /// moving it up through the calls costs as much as half of the rest.
    #[inline(always)]
    pub(crate) fn enter(
        make: impl FnOnce() -> BoxFuture<'static, T>,
        poller: &mut Poller<'_>,
        done: impl FnOnce(&T),
    ) -> FirstPoll<T> {
        // Outside of what may panic: a future that is dropped by a panic and panics in turn would
        // end the process.
        let mut caught = Self(None);
        let is_done = catch_unwind(AssertUnwindSafe(|| {
            match &caught.0.insert(make()).as_mut().poll(poller) {
                Poll::Ready(end) => {
                    // First, for what it holds of the context.
                    caught.0 = None;
                    done(end);
                    true
                }
                Poll::Pending => false,
            }
        }));
        match is_done {
            Ok(true) => FirstPoll::Done,
            Ok(false) => FirstPoll::Waits(caught),
            Err(panic) => {
                report(panic);
                FirstPoll::Panicked
            }
        }
    }

    pub(crate) fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<Result<T, Panicked>> {
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(Panicked)) };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(poller))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => {
                report(panic);
                self.end();
                Poll::Ready(Err(Panicked))
            }
        }
    }

    /// Drops the future, whose values may panic too.
    fn end(&mut self) {
        let future = self.0.take();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(future))) {
            report(panic);
        }
    }
}

impl<T> Drop for CatchUnwind<T> {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end();
        }
    }
}

fn report(panic: Box<dyn Any + Send>) {
    end_panic(panic, |text| tracing::error!(panic = text, "a handler panicked"));
}

/// Tells the text of what was thrown, and drops it.
pub(crate) fn end_panic(panic: Box<dyn Any + Send>, tell: impl FnOnce(&str)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tell(text.unwrap_or("of no text"));
    // What was thrown may throw when it is dropped.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}
