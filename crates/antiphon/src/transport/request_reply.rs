//! Custom transports that carry a request and its reply, without a connection.
//!
//! A message queue with reply subjects is an example. The transport only moves payloads.
//! `RequestReplyCaller` assigns ids, encodes batches, applies limits and matches replies.

use antiphon_core::{Payload, RawJson, Rules, decode};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::BoxFuture;
use crate::call::exchange::{
    BatchResults, RequestIds, encode_batch, encode_id, match_batch, match_call, match_notification,
    no_reply, readable,
};
use crate::call::{BatchEntry, CallError, Caller, Invocation, Watch};
use crate::connection::Connection;
use crate::dialect::CallStyle;
use crate::engine::Settings;
use crate::subscription::Follower;
use crate::tap::{Direction, Taps};

/// A transport that sends one message and returns its reply.
///
/// A closure of the form `Fn(RequestMessage) -> impl Future<Output = Result<Option<Bytes>, CallError>>`
/// implements it. Implement the trait yourself for a transport that sends headers, or that has a name of
/// its own in error messages.
///
/// Exchanges run concurrently. The caller drops the future of an exchange that it abandons, for example
/// after its timeout.
///
/// ```
/// use antiphon::transport::{RequestMessage, RequestReply};
/// use antiphon::{BoxFuture, CallError, Client, Context, Responder, Router};
/// use bytes::Bytes;
///
/// /// Sends each message to a service in the same process.
/// struct InProcess(Responder);
///
/// impl RequestReply for InProcess {
///     fn exchange(&self, message: RequestMessage) -> BoxFuture<'_, Result<Option<Bytes>, CallError>> {
///         Box::pin(async move { Ok(self.0.answer(message.payload).await) })
///     }
///
///     fn name(&self) -> &'static str {
///         "the in-process transport"
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), CallError> {
/// let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
/// let client = Client::builder().over_request_reply(InProcess(Responder::new(router)));
/// assert_eq!(client.call::<String>("ping", ()).await?, "pong");
/// # Ok(()) }
/// ```
pub trait RequestReply: Send + Sync + 'static {
    /// Sends a message and returns the reply; `None` if no reply is expected or none has arrived.
    ///
    /// # Errors
    /// Fail with [`CallError::Closed`] if the message was certainly not sent, with
    /// [`CallError::Interrupted`] if it may have been, and otherwise with [`CallError::Transport`].
    ///
    /// # Cancel safety
    /// The caller may drop the future at any await. An abandoned exchange must not affect others: its late
    /// reply must not become the reply of the next one.
    fn exchange(&self, message: RequestMessage) -> BoxFuture<'_, Result<Option<Bytes>, CallError>>;

    /// The name of the transport in error messages.
    fn name(&self) -> &'static str {
        "this transport"
    }

    /// Whether the transport sends [`RequestMessage::headers`]. If not, a call with headers fails with
    /// [`CallError::CannotSendHeaders`].
    fn has_headers(&self) -> bool {
        false
    }
}

/// One message to send over a [`RequestReply`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestMessage {
    /// The JSON text: a call, a notification or a batch.
    pub payload: Bytes,
    /// Whether the message contains a call. Otherwise there is no reply to wait for.
    pub expects_reply: bool,
    /// The headers of the call; empty if the transport sends none.
    pub headers: HeaderMap,
}

impl<F, R> RequestReply for F
where
    F: Fn(RequestMessage) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Option<Bytes>, CallError>> + Send + 'static,
{
    fn exchange(&self, message: RequestMessage) -> BoxFuture<'_, Result<Option<Bytes>, CallError>> {
        Box::pin(self(message))
    }
}

/// Calls over a [`RequestReply`].
pub(crate) struct RequestReplyCaller<W> {
    wire: W,
    ids: RequestIds,
    rules: Rules,
    calls: CallStyle,
    /// The largest reply, in bytes.
    max_reply: usize,
    tap: Taps,
    /// The connection that taps receive with each message.
    connection: Connection,
}

impl<W: RequestReply> RequestReplyCaller<W> {
    pub(crate) fn new(wire: W, settings: &Settings) -> Self {
        let connection = Connection::new(wire.name());
        let (rules, calls) = (settings.rules, settings.calls());
        let (max_reply, tap) = (settings.limits.longest_frame(), settings.tap.clone());
        Self { wire, ids: RequestIds::default(), rules, calls, max_reply, tap, connection }
    }

    /// Encodes a call up to its id.
    fn head(&self, call: &Invocation) -> BytesMut {
        let mut payload = BytesMut::with_capacity(call.about_len());
        call.encode_head(self.calls, &mut payload);
        payload
    }

    /// Checks that the transport can send the headers of these calls, and merges them. If two calls have
    /// a header of the same name, the last call wins.
    fn headers<'a>(
        &self,
        calls: impl Iterator<Item = &'a Invocation>,
    ) -> Result<HeaderMap, CallError> {
        let mut all = HeaderMap::new();
        for headers in calls.filter_map(Invocation::headers) {
            headers.keys().for_each(|name| drop(all.remove(name)));
            for (name, value) in headers {
                all.append(name, value.clone());
            }
        }
        if !all.is_empty() && !self.wire.has_headers() {
            return Err(CallError::CannotSendHeaders(self.wire.name()));
        }
        Ok(all)
    }

    /// Sends a message. Returns its reply, decoded and as it is, or `None` if there is none.
    async fn exchange(
        &self,
        message: RequestMessage,
    ) -> Result<Option<(Payload, Bytes)>, CallError> {
        self.tap(Direction::Sent, &message.payload);
        let Some(reply) = self.wire.exchange(message).await? else { return Ok(None) };
        if reply.len() > self.max_reply {
            let (len, limit) = (reply.len(), self.max_reply);
            return Err(CallError::OverLimit(
                format!("the reply has {len} bytes, over the limit of {limit}").into(),
            ));
        }
        self.tap(Direction::Received, &reply);
        Ok((!reply.is_empty()).then(|| (decode(&reply, &self.rules), reply)))
    }

    /// Like `exchange`, for a message that expects a reply.
    async fn request(&self, payload: BytesMut, headers: HeaderMap) -> Result<Payload, CallError> {
        let message = RequestMessage { payload: payload.freeze(), expects_reply: true, headers };
        let (payload, reply) = self.exchange(message).await?.ok_or_else(|| no_reply(""))?;
        readable(payload, &reply, String::new)
    }

    /// Like `exchange`, for a message that expects no reply. An error in an unexpected reply refers to
    /// this message.
    async fn publish(&self, payload: BytesMut, headers: HeaderMap) -> Result<(), CallError> {
        let message = RequestMessage { payload: payload.freeze(), expects_reply: false, headers };
        let reply = self.exchange(message).await?;
        reply.map_or(Ok(()), |(payload, _)| match_notification(payload))
    }

    /// Shows a message to the tap. An empty reply is not a message.
    fn tap(&self, direction: Direction, message: &[u8]) {
        if !message.is_empty() {
            self.tap.message(direction, message, &self.connection);
        }
    }
}

impl<W: RequestReply> Caller for RequestReplyCaller<W> {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(async move {
            let headers = self.headers(std::iter::once(&call))?;
            let id = self.ids.for_call(&call);
            let mut payload = self.head(&call);
            encode_id(&id, &mut payload);
            match_call(&id, self.request(payload, headers).await?)
        })
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            let headers = self.headers(std::iter::once(&notification))?;
            let mut payload = self.head(&notification);
            self.calls.end_notification(&mut payload);
            self.publish(payload, headers).await
        })
    }

    fn send_watched(&self, _: Invocation, _: Watch) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(std::future::ready(Err(CallError::CannotCallBack(self.wire.name()))))
    }

    fn subscribe(&self, _: Invocation, _: Follower) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(std::future::ready(Err(CallError::CannotCallBack(self.wire.name()))))
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<BatchResults, CallError>> {
        Box::pin(async move {
            let headers = self.headers(entries.iter().map(BatchEntry::invocation))?;
            let ids = self.ids.for_batch(&entries);
            let len = entries.iter().map(|entry| entry.invocation().about_len()).sum();
            let mut payload = BytesMut::with_capacity(len);
            encode_batch(&entries, ids.clone(), self.calls, &mut payload);
            if ids.is_empty() {
                self.publish(payload, headers).await?;
                return Ok(Vec::new());
            }
            match_batch(ids, self.request(payload, headers).await?, self.calls)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use antiphon_core::Limits;
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::{Client, Context, Responder, Router};

    fn responder() -> Responder {
        let router = Router::new()
            .method("add", |(a, b): (i64, i64), _cx: Context| async move { Ok(a + b) })
            .method("echo", |(text,): (String,), _cx: Context| async move { Ok(text) });
        Responder::new(router)
    }

    /// A transport to a responder, and the messages that it received.
    fn wire() -> (impl RequestReply, Arc<Mutex<Vec<RequestMessage>>>) {
        let (responder, seen) = (responder(), Arc::<Mutex<Vec<RequestMessage>>>::default());
        let sent = seen.clone();
        let wire = move |message: RequestMessage| {
            let responder = responder.clone();
            sent.lock().unwrap().push(message.clone());
            async move { Ok(responder.answer(message.payload).await) }
        };
        (wire, seen)
    }

    fn replying(reply: Option<&'static str>) -> Client {
        Client::builder().over_request_reply(move |_| {
            std::future::ready(Ok(reply.map(|reply| Bytes::from_static(reply.as_bytes()))))
        })
    }

    #[tokio::test]
    async fn calls_notifications_and_batches_pass() {
        let (wire, seen) = wire();
        let client = Client::builder().over_request_reply(wire);
        assert_eq!(client.call::<i64>("add", (1, 2)).await.unwrap(), 3);
        client.notify("add", (1, 2)).await.unwrap();
        let mut batch = client.batch();
        let sum = batch.call::<i64>("add", (3, 4));
        batch.notify("add", (0, 0));
        let wrong = batch.call::<i64>("subtract", (3, 4));
        let mut replies = batch.send().await.unwrap();
        assert_eq!(replies.take(sum).unwrap(), 7);
        assert!(matches!(replies.take(wrong), Err(CallError::Rpc(_))));
        let mut notifications = client.batch();
        notifications.notify("add", (0, 0));
        notifications.send().await.unwrap();
        let expects: Vec<bool> =
            seen.lock().unwrap().iter().map(|message| message.expects_reply).collect();
        assert_eq!(expects, [true, false, true, false]);
    }

    #[tokio::test]
    async fn a_reply_that_is_none_or_not_for_the_call_fails_it() {
        for (reply, reason) in [
            (None, "no reply to a call"),
            (Some(""), "no reply to a call"),
            (Some(r#"{"jsonrpc":"2.0","result":1,"id":9}"#), "is for id 9"),
            (Some("nonsense"), "Parse error"),
            (Some(r#"[{"jsonrpc":"2.0","result":1,"id":1}]"#), "not a Response"),
        ] {
            let error = replying(reply).call::<i64>("add", (1, 2)).await.unwrap_err();
            assert!(matches!(&error, CallError::Protocol(_)), "{error:?}");
            assert!(crate::ErrorChain(&error).to_string().contains(reason), "{error}");
        }
    }

    #[tokio::test]
    async fn an_error_in_the_reply_to_a_notification_is_returned() {
        let refused = r#"{"jsonrpc":"2.0","error":{"code":-32009,"message":"busy"},"id":null}"#;
        let error = replying(Some(refused)).notify("add", (1, 2)).await.unwrap_err();
        assert!(matches!(error, CallError::Rpc(_)), "{error:?}");
    }

    #[tokio::test]
    async fn the_size_of_a_reply_is_limited() {
        let (wire, _) = wire();
        let limits = Limits { frame_bytes: 200, ..Limits::default() };
        let client = Client::builder().limits(limits).over_request_reply(wire);
        assert_eq!(client.call::<String>("echo", ("short",)).await.unwrap(), "short");
        let error = client.call::<String>("echo", ("x".repeat(200),)).await.unwrap_err();
        assert!(crate::ErrorChain(&error).to_string().contains("over the limit of 200"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_a_reply_times_out() {
        let client = Client::builder()
            .timeout(Duration::from_secs(1))
            .over_request_reply(|_| std::future::pending());
        let error = client.call::<i64>("add", (1, 2)).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    }

    #[tokio::test]
    async fn headers_need_a_wire_that_has_them() {
        struct WithHeaders;

        impl RequestReply for WithHeaders {
            fn exchange(
                &self,
                message: RequestMessage,
            ) -> BoxFuture<'_, Result<Option<Bytes>, CallError>> {
                Box::pin(async move {
                    assert_eq!(message.headers["x-tenant"], "a");
                    Ok(responder().answer(message.payload).await)
                })
            }

            fn has_headers(&self) -> bool {
                true
            }
        }

        let call = |client: &Client| {
            let (name, value) =
                (HeaderName::from_static("x-tenant"), HeaderValue::from_static("a"));
            client.call::<i64>("add", (1, 2)).header(name, value)
        };
        let client = Client::builder().over_request_reply(WithHeaders);
        assert_eq!(call(&client).await.unwrap(), 3);
        let error = call(&replying(None)).await.unwrap_err();
        assert!(matches!(error, CallError::CannotSendHeaders(_)), "{error:?}");
    }

    #[tokio::test]
    async fn there_is_no_way_back() {
        let error = replying(None).subscribe::<i64>("ticks", ()).await.unwrap_err();
        assert!(error.to_string().contains("cannot call back"), "{error}");
    }
}
