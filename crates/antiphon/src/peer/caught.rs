//! Where a handler's panic ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context as Poller, Poll};

use crate::BoxFuture;

/// A handler's future whose panics end here: the text goes to the log and never to the other side.
pub(super) struct Caught<T>(Option<BoxFuture<'static, T>>);

pub(super) struct Panicked;

impl<T> Caught<T> {
    pub(super) fn new(make: impl FnOnce() -> BoxFuture<'static, T>) -> Self {
        Self(catch_unwind(AssertUnwindSafe(make)).map_err(|panic| report(&*panic)).ok())
    }

    pub(super) fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<Result<T, Panicked>> {
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(Panicked)) };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(poller))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => {
                self.0 = None;
                report(&*panic);
                Poll::Ready(Err(Panicked))
            }
        }
    }
}

fn report(panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("of no text"), "a handler panicked");
}
