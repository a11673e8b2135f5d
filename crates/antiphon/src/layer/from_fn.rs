//! A layer from an async function.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon_core::{Outcome, RawJson};
use tower_layer::Layer;
use tower_service::Service;

use crate::BoxFuture;
use crate::error::CallError;
use crate::service::{CallService, IncomingCall, LayerCall, OutgoingCall, ReadyCall};

/// Makes a layer of a server from an async function. The function runs for each call, each notification
/// and each entry of a batch.
///
/// [`Next::run`] passes the call to the rest of the service. The outcome of the function is the response,
/// even if it did not call `Next::run`. The outcome of a notification is not sent.
///
/// ```
/// use antiphon::{Client, Context, ErrorObject, Handler, Router, layer};
/// use std::time::Instant;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// let service = router.layer(layer::from_fn(|request, next| async move {
///     if request.call.method == "forbidden" {
///         return Err(ErrorObject::unauthorized());
///     }
///     let (method, start) = (request.call.method.clone(), Instant::now());
///     let outcome = next.run(request).await;
///     println!("{method}: {:?}", start.elapsed());
///     outcome
/// }));
/// let client = Client::in_process(service);
/// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
/// assert!(client.call::<String>("forbidden", ()).await.is_err());
/// # Ok(()) }
/// ```
///
/// A function with a name has this signature:
///
/// ```
/// use antiphon::layer::{self, IncomingCall, Next};
/// use antiphon::{Handler, Outcome, Router};
///
/// async fn log(request: IncomingCall, next: Next) -> Outcome {
///     println!("{} calls {}", request.cx.connection().transport, request.call.method);
///     next.run(request).await
/// }
///
/// let service = Router::new().layer(layer::from_fn(log));
/// # drop(service);
/// ```
pub fn from_fn<F, Fut>(function: F) -> FromFn<F, IncomingCall>
where
    F: Fn(IncomingCall, Next<IncomingCall>) -> Fut + Clone,
    Fut: Future<Output = Outcome>,
{
    FromFn { function, request: PhantomData }
}

/// Makes a layer of a client from an async function, for [`Client::layer`](crate::Client::layer).
///
/// It is like [`from_fn`], but the function takes an [`OutgoingCall`] and a `Next<OutgoingCall>`, and
/// returns `Result<RawJson, CallError>`. This layer sends a call a second time if the first attempt was not
/// sent:
///
/// ```
/// use antiphon::{Client, layer};
///
/// # fn example(client: Client) -> Client {
/// client.layer(layer::from_outgoing_fn(|request, next| async move {
///     match next.clone().run(request.clone()).await {
///         Err(error) if error.was_not_sent() => next.run(request).await,
///         outcome => outcome,
///     }
/// }))
/// # }
/// ```
pub fn from_outgoing_fn<F, Fut>(function: F) -> FromFn<F, OutgoingCall>
where
    F: Fn(OutgoingCall, Next<OutgoingCall>) -> Fut + Clone,
    Fut: Future<Output = Result<RawJson, CallError>>,
{
    FromFn { function, request: PhantomData }
}

/// The layer of [`from_fn`] and [`from_outgoing_fn`].
pub struct FromFn<F, R> {
    function: F,
    request: PhantomData<fn(R)>,
}

/// The rest of a service, inside a layer of [`from_fn`] or [`from_outgoing_fn`]. A layer that runs a call
/// twice clones it.
pub struct Next<R: LayerCall = IncomingCall>(Arc<dyn Run<R>>);

/// The service of [`FromFn`].
pub struct FromFnService<F, R: LayerCall> {
    function: F,
    next: Next<R>,
}

/// The inner service, with its type erased.
trait Run<R: LayerCall>: Send + Sync {
    fn run(&self, request: R) -> BoxFuture<'static, Result<RawJson, R::Error>>;
}

impl<S, R> Run<R> for S
where
    S: CallService<R, Future: Send> + Send + Sync + 'static,
    R: LayerCall,
{
    fn run(&self, request: R) -> BoxFuture<'static, Result<RawJson, R::Error>> {
        Box::pin(ReadyCall::new(&mut self.clone(), request))
    }
}

impl<R: LayerCall> Next<R> {
    /// Passes the call on, and returns its outcome. The outcome of a notification is null.
    pub async fn run(self, request: R) -> Result<RawJson, R::Error> {
        self.0.run(request).await
    }
}

impl<R: LayerCall> Clone for Next<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: Clone, R> Clone for FromFn<F, R> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), request: PhantomData }
    }
}

impl<F: Clone, R: LayerCall> Clone for FromFnService<F, R> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), next: self.next.clone() }
    }
}

impl<S, F, R> Layer<S> for FromFn<F, R>
where
    S: CallService<R, Future: Send> + Send + Sync + 'static,
    F: Clone,
    R: LayerCall,
{
    type Service = FromFnService<F, R>;

    fn layer(&self, inner: S) -> Self::Service {
        FromFnService { function: self.function.clone(), next: Next(Arc::new(inner)) }
    }
}

impl<F, Fut, R> Service<R> for FromFnService<F, R>
where
    F: Fn(R, Next<R>) -> Fut,
    Fut: Future<Output = Result<RawJson, R::Error>>,
    R: LayerCall,
{
    type Response = RawJson;
    type Error = R::Error;
    type Future = Fut;

    /// Always ready: the function runs before the call waits for an inner service.
    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), R::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Fut {
        (self.function)(request, self.next.clone())
    }
}

impl<F, R> fmt::Debug for FromFn<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}

impl<F, R: LayerCall> fmt::Debug for FromFnService<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFnService").finish_non_exhaustive()
    }
}

impl<R: LayerCall> fmt::Debug for Next<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}
