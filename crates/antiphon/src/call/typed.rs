//! One call, with a type for its result.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{Id, Method, Params, ParamsError, RawJson};
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::progress::{Patience, Progress, Watch};
use super::{CallError, Caller, Invocation};
use crate::BoxFuture;

/// A typed call that is sent when it is awaited.
///
/// Dropping it, or the future made from it, abandons the call.
#[must_use = "a call is sent when it is awaited"]
pub struct Call<R> {
    caller: Arc<dyn Caller>,
    pub(super) invocation: Result<Invocation, ParamsError>,
    patience: Patience,
    watch: Option<Watch>,
    result: PhantomData<fn() -> R>,
}

impl<R> Call<R> {
    pub(crate) fn new(
        caller: Arc<dyn Caller>,
        method: &str,
        params: &(impl Serialize + ?Sized),
        timeout: Option<Duration>,
    ) -> Self {
        let invocation = Params::encode(params).map(|params| Invocation::new(method, params));
        let patience = Patience { timeout, ..Patience::default() };
        Self { caller, invocation, patience, watch: None, result: PhantomData }
    }

    /// Gives up after this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.patience.timeout = Some(timeout);
        self
    }

    /// Lets the timeout begin anew with each progress that is told, up to this time in all. The
    /// connection needs a [`Dialect`](crate::Dialect) with progress.
    pub fn extend_on_progress(mut self, at_most: Duration) -> Self {
        self.patience.cap = Some(at_most);
        self.watch.get_or_insert_with(|| Watch::new(None));
        self
    }

    /// The call, and how far it comes as a stream beside it. Progress that nobody takes is dropped, and
    /// holds up nothing. The connection needs a [`Dialect`](crate::Dialect) with progress.
    ///
    /// ```
    /// # use antiphon::{Client, Context, Dialect, Router};
    /// # use antiphon::transport::memory::pair;
    /// use futures_util::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (ours, theirs) = pair();
    /// let router = Router::new().method("index", |_: serde_json::Value, cx: Context| async move {
    ///     cx.progress("half done").await?;
    ///     Ok("done")
    /// });
    /// # let _server = Client::builder().dialect(Dialect::lsp()).handler(router).over(theirs);
    /// # let client = Client::builder().dialect(Dialect::lsp()).over(ours);
    /// let (call, mut progress) = client.call::<String>("index", ()).with_progress::<String>();
    /// let (result, seen) = tokio::join!(call, progress.next());
    /// assert_eq!((result?.as_str(), seen.unwrap()?.as_str()), ("done", "half done"));
    /// # Ok(()) }
    /// ```
    pub fn with_progress<P>(mut self) -> (Self, Progress<P>) {
        let (watch, progress) = Progress::watch();
        self.watch = Some(watch);
        (self, progress)
    }

    /// Sends a header with this call, in place of one of that name that the client has. Only HTTP has
    /// any: elsewhere the call fails with [`CallError::NoHeaders`].
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if let Ok(invocation) = &mut self.invocation {
            invocation.headers_mut().append(name, value);
        }
        self
    }

    /// Calls with this id in place of one of our own.
    pub fn id(mut self, id: Id) -> Self {
        if let Ok(invocation) = &mut self.invocation {
            invocation.id = Some(id);
        }
        self
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("invocation", &self.invocation).finish_non_exhaustive()
    }
}

impl<R: DeserializeOwned + 'static> IntoFuture for Call<R> {
    type Output = Result<R, CallError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let invocation = self.invocation.map_err(CallError::Encode)?;
            let method = invocation.method.clone();
            let result = match self.watch {
                None => within(self.patience.timeout, self.caller.send(invocation)).await?,
                Some(watch) => {
                    let call = self.caller.send_watched(invocation, watch.clone());
                    self.patience.wait(call, &watch).await?
                }
            };
            typed(&method, result)
        })
    }
}

pub(super) fn typed<R: DeserializeOwned + 'static>(
    method: &Method,
    result: RawJson,
) -> Result<R, CallError> {
    crate::same_type::same_type(result).or_else(|result| {
        result
            .decode()
            .map_err(|source| CallError::Decode { method: method.as_str().to_owned(), source })
    })
}

pub(crate) async fn within<T>(
    timeout: Option<Duration>,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match timeout {
        None => call.await,
        Some(limit) => {
            tokio::time::timeout(limit, call).await.unwrap_or(Err(CallError::TimedOut(limit)))
        }
    }
}
