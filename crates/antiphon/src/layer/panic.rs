//! A layer that turns a panic of a handler or an inner layer into an error: [`CatchPanic`].

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Method, RawJson};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::policy::Policy;
use crate::catch_unwind::end_panic;
use crate::log_excerpt::log_excerpt;
use crate::service::{CallService, LayerCall, ReadyCall};

/// Turns a panic of a handler or an inner layer into the error -32603.
///
/// The server catches every panic, so each call gets a response even without this layer. With it, the
/// metrics and spans around it see -32603, and the application can install a hook. The panic message goes
/// to the log and to the hook, never to the peer.
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
    hook: Option<PanicHook>,
}

type PanicHook = Arc<dyn Fn(&str, &str) + Send + Sync>;

impl CatchPanic {
    /// Logs each panic.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also calls this function with the method and the panic message.
    #[must_use]
    pub fn hook(mut self, hook: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    fn report(&self, method: &Method, panic: Box<dyn Any + Send>) -> ErrorObject {
        end_panic(panic, |text| {
            tracing::error!(method = log_excerpt(method.as_str()), panic = text, "a call panicked");
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

impl<S: CallService<R>, R: LayerCall> Policy<S, R> for CatchPanic {
    type Future = CatchPanicCall<S, R>;

    fn call(&self, inner: &mut S, request: R) -> CatchPanicCall<S, R> {
        let (policy, method) = (self.clone(), request.call().method.clone());
        let call = catch_unwind(AssertUnwindSafe(|| ReadyCall::new(inner, request)))
            .unwrap_or_else(|panic| ReadyCall::failed(policy.report(&method, panic)));
        CatchPanicCall { call: Some(call), policy, method }
    }
}

pin_project! {
    /// A call whose panics are caught.
    pub struct CatchPanicCall<S, R>
    where
        S: Service<R>,
        R: LayerCall,
    {
        #[pin]
        call: Option<ReadyCall<S, R>>,
        policy: CatchPanic,
        method: Method,
    }
}

impl<S: CallService<R>, R: LayerCall> Future for CatchPanicCall<S, R> {
    type Output = Result<RawJson, R::Error>;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(call) = this.call.as_mut().as_pin_mut() else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| call.poll(poller))) {
            Ok(poll) => poll,
            Err(panic) => {
                let error = this.policy.report(this.method, panic);
                // Dropping the call may panic too.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| this.call.set(None))) {
                    this.policy.report(this.method, panic);
                }
                Poll::Ready(Err(R::from_box_error(error.into())))
            }
        }
    }
}
