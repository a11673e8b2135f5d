//! A call with its options.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{BoxFuture, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::core::Core;
use super::error::McpError;
use super::inbox::ProgressSink;
use super::login_clock::LoginClock;
use super::wire::RoutingHeaders;
use crate::types::{Meta, ProgressParams, from_object};

/// A call. It is sent when it is awaited, and cancelled when the future is dropped.
///
/// ```no_run
/// # async fn example(client: antiphon_mcp::client::McpClient) -> Result<(), antiphon_mcp::client::McpError> {
/// use std::time::Duration;
///
/// let prompt = client
///     .get_prompt("review", [("language", "rust")])
///     .timeout(Duration::from_secs(5))
///     .on_progress(|progress| println!("{}", progress.progress))
///     .await?;
/// # drop(prompt);
/// # Ok(()) }
/// ```
#[must_use = "a call is sent when it is awaited"]
pub struct McpCall<R> {
    core: Arc<Core>,
    pub(super) method: &'static str,
    pub(super) params: Result<RawJson, McpError>,
    pub(super) options: CallOptions,
    result: PhantomData<fn() -> R>,
}

/// The options of a call.
#[derive(Clone, Default)]
pub(super) struct CallOptions {
    pub(super) timeout: Option<Duration>,
    /// The time in all, if progress restarts the timeout.
    pub(super) total: Option<Duration>,
    pub(super) receive: Option<Arc<dyn Fn(ProgressParams) + Send + Sync>>,
    pub(super) meta: Meta,
    pub(super) headers: RoutingHeaders,
    pub(super) is_endless: bool,
}

impl CallOptions {
    /// Returns the receiver of progress, if the call has one.
    pub(super) fn sink(&self) -> Option<Arc<ProgressSink>> {
        let wanted = self.receive.is_some() || self.total.is_some();
        let sink = || ProgressSink { receive: self.receive.clone(), arrived: Notify::new() };
        wanted.then(|| Arc::new(sink()))
    }

    /// Waits for the response within the timeout of this call, or of the client.
    pub(super) async fn within<T>(
        &self,
        clock: &LoginClock,
        default: Option<Duration>,
        sink: Option<&ProgressSink>,
        response: impl Future<Output = Result<T, McpError>>,
    ) -> Result<T, McpError> {
        let Some(limit) = self.timeout.or(default).filter(|_| !self.is_endless) else {
            return response.await;
        };
        let mut response = std::pin::pin!(response);
        let timer = clock.timer();
        let mut deadline = limit;
        loop {
            let next = self.total.map_or(deadline, |total| deadline.min(total));
            let arrived = async {
                match sink.filter(|_| self.total.is_some()) {
                    Some(sink) => sink.arrived.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                outcome = response.as_mut() => return outcome,
                () = arrived => deadline = timer.elapsed().saturating_add(limit),
                () = timer.reach(next) => return Err(McpError::TimedOut(next)),
            }
        }
    }
}

impl<R> McpCall<R> {
    pub(super) fn new(core: Arc<Core>, method: &'static str, params: &impl Serialize) -> Self {
        let params = encoded(method, params);
        Self { core, method, params, options: CallOptions::default(), result: PhantomData }
    }

    /// Sets the timeout of this call. The time in which the application answers questions of the server does not
    /// count in modern revisions, and that in which [`Credentials`](super::Credentials) return a token never does.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Restarts the timeout with each progress notification, for at most `total` in all.
    pub fn extend_on_progress(mut self, total: Duration) -> Self {
        self.options.total = Some(total);
        self
    }

    /// Asks for progress notifications, and passes them to a function, which must not block.
    pub fn on_progress(mut self, receive: impl Fn(ProgressParams) + Send + Sync + 'static) -> Self {
        self.options.receive = Some(Arc::new(receive));
        self
    }

    /// Sets members of `_meta`.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.options.meta = meta;
        self
    }

    pub(super) fn named(mut self, name: impl Into<String>) -> Self {
        self.options.headers.name = Some(name.into());
        self
    }
}

impl<R: DeserializeOwned + 'static> IntoFuture for McpCall<R> {
    type Output = Result<R, McpError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let result = self.core.request(self.method, self.params?, &self.options).await?;
            decoded(self.method, &result)
        })
    }
}

impl<R> fmt::Debug for McpCall<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpCall").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Encodes params.
pub(super) fn encoded(method: &str, params: &impl Serialize) -> Result<RawJson, McpError> {
    let encode = |source| McpError::Encode { method: method.to_owned(), source };
    RawJson::encode(params).map_err(encode)
}

/// Reads a result.
pub(super) fn decoded<R: DeserializeOwned>(method: &str, result: &RawJson) -> Result<R, McpError> {
    from_object(result.as_str())
        .map_err(|source| McpError::Decode { method: method.to_owned(), source })
}
