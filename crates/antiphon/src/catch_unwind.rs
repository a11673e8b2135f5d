//! A boundary that catches the panics of handlers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context as Poller, Poll};

use crate::BoxFuture;

/// The future of a handler, with its panics caught. The panic message goes to the log, never to the peer.
pub(crate) struct CatchUnwind<T>(Option<BoxFuture<'static, T>>);

/// The handler, or other code of the application, panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

/// The result of the first poll of a handler.
pub(crate) enum FirstPoll<T> {
    /// The handler has ended, and `done` has received its output.
    Done,
    Waits(CatchUnwind<T>),
    Panicked,
}

impl<T> CatchUnwind<T> {
    pub(crate) fn new(future: BoxFuture<'static, T>) -> Self {
        Self(Some(future))
    }

    /// Creates the future of a handler and polls it. An output that is ready at once is passed to `done`
    /// by reference, because moving it up the call stack costs half as much as the rest of the call.
    #[inline(always)]
    pub(crate) fn enter(
        make: impl FnOnce() -> BoxFuture<'static, T>,
        poller: &mut Poller<'_>,
        done: impl FnOnce(&T),
    ) -> FirstPoll<T> {
        // Declared outside of the closure that may panic. A future that is dropped while a panic
        // unwinds, and panics itself, would abort the process.
        let mut caught = Self(None);
        let is_done = catch_unwind(AssertUnwindSafe(|| {
            match &caught.0.insert(make()).as_mut().poll(poller) {
                Poll::Ready(end) => {
                    // Dropped first, because it may hold the context.
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

    /// Drops the future. A destructor may panic too.
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

/// Runs code of the application that must not take its caller down. A panic is logged with the name
/// of the code, and is the error.
pub(crate) fn guarded<T>(name: &'static str, run: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        end_panic(panic, |text| tracing::error!(panic = text, "{name} panicked"));
        Panicked
    })
}

/// Passes the panic message to `report`, and drops the payload.
pub(crate) fn end_panic(panic: Box<dyn Any + Send>, report: impl FnOnce(&str)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    report(text.unwrap_or("(no message)"));
    // The payload may panic when it is dropped.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}
