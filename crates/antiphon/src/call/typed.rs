//! A call with a typed result.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{Id, Method, Params, ParamsError, RawJson};
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::deadline::within;
use super::progress::{CallTimeouts, Progress, Watch};
use super::{CallError, Caller, Invocation};
use crate::BoxFuture;

/// A typed call that is sent when it is awaited.
///
/// Dropping it, or the future made from it, abandons the call. Over HTTP this cancels the handler of the
/// peer. On a connection it does so if the [`Dialect`](crate::Dialect) has a cancellation. Otherwise the
/// handler runs on, and its response is ignored. A timeout has the same effect.
///
/// # Errors
/// See [`CallError`]. [`CallError::was_not_sent`] and [`CallError::may_have_run`] tell whether the call may be
/// sent again.
///
/// # Cancel safety
/// A call is not cancel safe: a dropped call may have been executed, and its result is lost. To wait for it
/// in a loop with `tokio::select!`, make the future once with `into_future`, and poll `&mut` of it.
///
/// ```
/// use antiphon::{CallError, Client};
/// use std::time::Duration;
///
/// # async fn example(client: Client) -> Result<(), CallError> {
/// let call = client.call::<i64>("subtract", (42, 23)).timeout(Duration::from_secs(5));
/// assert_eq!(call.await?, 19);
/// # Ok(()) }
/// ```
#[must_use = "a call is sent when it is awaited"]
pub struct Call<R> {
    caller: Arc<dyn Caller>,
    pub(super) invocation: Result<Invocation, ParamsError>,
    timeouts: CallTimeouts,
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
        let timeouts = CallTimeouts { timeout, ..CallTimeouts::default() };
        Self { caller, invocation, timeouts, watch: None, result: PhantomData }
    }

    /// Sets the timeout of the call.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.timeout = Some(timeout);
        self
    }

    /// Restarts the timeout with each reported progress, up to this total time. The connection needs a
    /// [`Dialect`](crate::Dialect) with progress.
    pub fn extend_on_progress(mut self, at_most: Duration) -> Self {
        self.timeouts.total = Some(at_most);
        self.watch.get_or_insert_with(|| Watch::new(None));
        self
    }

    /// Returns the call and a stream of its progress. The stream holds up to 64 values that are not read yet,
    /// and drops the oldest beyond that. It never delays the call. The connection needs a
    /// [`Dialect`](crate::Dialect) with progress.
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

    /// Sends a header with this call. It replaces a header of the client with the same name. On a
    /// transport that cannot send headers the call fails with [`CallError::CannotSendHeaders`]. HTTP can,
    /// and so can a [`RequestReply`](crate::transport::RequestReply) that declares it.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if let Ok(invocation) = &mut self.invocation {
            invocation.headers_mut().append(name, value);
        }
        self
    }

    /// Sets the id of the request. Otherwise the client picks one. On a connection the call fails with
    /// [`CallError::Refused`] if a call with this id waits for its response, or if the id is a number of 2^63
    /// or more. A batch ignores the id.
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
                None => within(self.timeouts.timeout, self.caller.send(invocation)).await?,
                Some(watch) => {
                    let call = self.caller.send_watched(invocation, watch.clone());
                    self.timeouts.wait(call, &watch).await?
                }
            };
            typed(&method, result)
        })
    }
}

/// Decodes the result of a call. A result of type `RawJson` is returned unchanged.
pub(super) fn typed<R: DeserializeOwned + 'static>(
    method: &Method,
    result: RawJson,
) -> Result<R, CallError> {
    crate::same_type::same_type(result).or_else(|result| {
        result
            .decode()
            .map_err(|source| CallError::Decode { method: method.clone(), source: source.into() })
    })
}
