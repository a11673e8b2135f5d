//! Where a panic of a layer or a handler ends, as an error that the layers further out can see.
//!
//! The dispatcher catches what gets through to it, so no call goes unanswered without this layer. With
//! it, metrics and spans around it see -32603, and the application hears of it. The text of a panic
//! goes to the log and to the hook, never to the other side.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Method, RawJson};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::pass::Passing;
use super::passage::Passage;
use super::trace::short;
use super::{BoxError, Wrapped, always_ready};
use crate::catch_unwind::end_panic;

/// Answers -32603 for what panics further in.
///
/// ```
/// use antiphon::layer::CatchPanic;
/// use antiphon::{Handler, Router};
///
/// # let router = Router::new();
/// let service = router.layer(CatchPanic::new().hook(|method, text| {
///     eprintln!("{method} panicked: {text}");
/// }));
/// ```
#[derive(Clone, Default)]
pub struct CatchPanic {
    hook: Option<Hook>,
}

type Hook = Arc<dyn Fn(&str, &str) + Send + Sync>;

impl CatchPanic {
    /// Writes panics to the log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the method and the text to this too.
    #[must_use]
    pub fn hook(mut self, hook: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    fn report(&self, method: &Method, panic: Box<dyn Any + Send>) -> ErrorObject {
        end_panic(panic, |text| {
            tracing::error!(method = short(method.as_str()), panic = text, "a call panicked");
            if let Some(hook) = &self.hook {
                hook(method.as_str(), text);
            }
        });
        ErrorObject::internal_error()
    }
}

impl fmt::Debug for CatchPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatchPanic").field("hook", &self.hook.is_some()).finish()
    }
}

impl<S> Layer<S> for CatchPanic {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: self.clone(), inner }
    }
}

impl<S, R> Service<R> for Wrapped<CatchPanic, S>
where
    S: Service<R, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = Catching<S, R>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        always_ready(poller)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (policy, method) = (self.policy.clone(), request.call().method.clone());
        let entered = AssertUnwindSafe(|| Passage::enter(&mut self.inner, request));
        let passage = catch_unwind(entered)
            .unwrap_or_else(|panic| Passage::refuse(policy.report(&method, panic)));
        Catching { passage: Some(passage), policy, method }
    }
}

pin_project! {
    /// A call whose panics end here.
    pub struct Catching<S, R>
    where
        S: Service<R>,
        R: Passing,
    {
        #[pin]
        passage: Option<Passage<S, R>>,
        policy: CatchPanic,
        method: Method,
    }
}

impl<S, R> Future for Catching<S, R>
where
    S: Service<R, Response = RawJson>,
    S::Error: Into<BoxError> + 'static,
    R: Passing,
{
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(passage) = this.passage.as_mut().as_pin_mut() else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| passage.poll(poller))) {
            Ok(poll) => poll,
            Err(panic) => {
                let error = this.policy.report(this.method, panic);
                // What is dropped may panic too.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| this.passage.set(None))) {
                    this.policy.report(this.method, panic);
                }
                Poll::Ready(Err(R::refused(error)))
            }
        }
    }
}
