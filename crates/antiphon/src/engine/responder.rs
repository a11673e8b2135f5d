//! A service without a transport: takes one message and returns its reply.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use antiphon_core::{ErrorObject, Limits, decode, encode};
use bytes::{Bytes, BytesMut};

use super::dispatcher::Dispatcher;
use super::reply_buffer::ReplyBuffer;
use super::settings::Settings;
use crate::connection::Connection;
use crate::context::Origin;
use crate::dialect::Dialect;
use crate::service::Handler;

/// Answers messages that the application has received by its own means, such as a message queue, a
/// serial port, a cloud function or a test.
///
/// Calls are dispatched as on a connection, within the same limits. Handlers cannot call the caller back.
/// Dropping the future of an answer cancels its calls.
///
/// ```
/// use antiphon::{Context, Responder, Router};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let responder = Responder::new(Router::new().method("add", |(a, b): (i64, i64), _cx: Context| {
///     async move { Ok(a + b) }
/// }));
/// let answer = responder.answer(r#"{"jsonrpc":"2.0","method":"add","params":[2,3],"id":1}"#).await;
/// assert_eq!(answer.unwrap(), r#"{"jsonrpc":"2.0","result":5,"id":1}"#);
/// # }
/// ```
#[derive(Clone)]
pub struct Responder {
    dispatcher: Dispatcher,
    origin: Origin,
}

impl Responder {
    /// Creates a responder with default limits.
    pub fn new(handler: impl Handler) -> Self {
        Self::with_limits(handler, Limits::default())
    }

    /// Creates a responder with these limits.
    pub fn with_limits(handler: impl Handler, limits: Limits) -> Self {
        Self {
            dispatcher: Dispatcher {
                handler: Arc::new(handler),
                settings: Arc::new(Settings::new(limits)),
            },
            origin: Origin::request(Connection::new("none")),
        }
    }

    /// Sets the dialect: the versions of JSON-RPC, the error codes, and whether `"params": null` is accepted. Its
    /// other settings need a connection to the caller and have no effect.
    ///
    /// ```
    /// use antiphon::{Context, Dialect, Responder, Router};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    /// let responder = Responder::new(router).dialect(Dialect::bitcoin());
    /// let answer = responder.answer(r#"{"method":"ping","id":[1]}"#).await;
    /// assert_eq!(answer.unwrap(), r#"{"result":"pong","error":null,"id":[1]}"#);
    /// # }
    /// ```
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        let settings = Arc::make_mut(&mut self.dispatcher.settings);
        *settings = settings.clone().in_dialect(dialect, None);
        self
    }

    /// Returns the reply to a message or a batch; `None` if it has no reply, like a notification.
    pub async fn answer(&self, message: impl Into<Bytes>) -> Option<Bytes> {
        self.answer_from(&self.origin, message.into()).await
    }

    /// Like [`answer`](Self::answer), with the facts of the message: the name of its transport, the
    /// remote address, extensions. Handlers find them in their [`Context`](crate::Context).
    pub async fn answer_with(&self, facts: Connection, message: impl Into<Bytes>) -> Option<Bytes> {
        self.answer_from(&Origin::request(facts), message.into()).await
    }

    async fn answer_from(&self, origin: &Origin, message: Bytes) -> Option<Bytes> {
        let limit = self.dispatcher.settings.limits.longest_frame();
        if message.len() > limit {
            let mut out = BytesMut::new();
            let id = self.dispatcher.settings.rules.versions.unreadable_id();
            encode::response(&id, &Err(ErrorObject::request_too_large(limit)), &mut out);
            return Some(out.freeze());
        }
        let payload = decode(&message, &self.dispatcher.settings.rules);
        let mut started = None;
        let mut payload = Some(payload);
        poll_fn(move |poller| {
            if let Some(payload) = payload.take() {
                let out = &mut ReplyBuffer::single();
                match self.dispatcher.start(payload, None, origin, out, poller).or_drive() {
                    Ok(answer) => return Poll::Ready(answer),
                    Err(drive) => started = Some(drive),
                }
            }
            started.as_mut().map_or(Poll::Ready(None), |drive| drive.poll(poller))
        })
        .await
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder").finish_non_exhaustive()
    }
}
