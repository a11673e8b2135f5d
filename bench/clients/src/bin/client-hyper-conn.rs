//! Antiphon's client with `hyper::client::conn::http1` as its HTTP/1.1: the rival of the exchange of
//! our own in `transport/http/client`.
//!
//! The future of a call polls the connection itself, so that no task and no channel between tasks
//! stands between them. Encoding, decoding and types are Antiphon's: only the HTTP part differs.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use antiphon::{BatchEntry, BoxFuture, CallError, Caller, Client, Invocation};
use antiphon_core::{Id, Limits, Message, Payload, RawJson, Rules, decode, encode};
use bytes::{BufMut, Bytes, BytesMut};
use clients::{Fault, Load, check};
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let load = Load::from_args()?;
    let uri: http::Uri = load.endpoint.parse()?;
    let address = uri.authority().ok_or("no address")?.to_string();
    let client = Client::from(Arc::new(HyperCaller::new(address)?) as Arc<dyn Caller>);
    load.run(move || {
        let call = client.call::<String>("say_hello", ());
        async { check(&call.await?) }
    })
    .await
}

struct HyperCaller {
    address: String,
    headers: HeaderMap,
    idle: Mutex<Vec<Conn>>,
    next: AtomicU64,
    rules: Rules,
    limit: usize,
}

/// A connection, and the handle that sends requests on it.
struct Conn {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<TcpStream>, Full<Bytes>>,
}

impl HyperCaller {
    fn new(address: String) -> Result<Self, Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(&address)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let limits = Limits::default();
        Ok(Self {
            address,
            headers,
            idle: Mutex::default(),
            next: AtomicU64::new(1),
            rules: limits.rules(),
            limit: limits.frame_bytes,
        })
    }

    async fn post_message(&self, message: Bytes) -> Result<Bytes, Fault> {
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = self.headers.clone();
        let mut conn = match self.reusable().await {
            Some(conn) => conn,
            None => self.connect().await?,
        };
        let response = conn.sender.send_request(request);
        let response = conn.drive(response).await??;
        let body = Limited::new(response.into_body(), self.limit).collect();
        let body = conn.drive(body).await??.to_bytes();
        self.idle.lock().unwrap().push(conn);
        Ok(body)
    }

    /// An idle connection that the server has not closed.
    async fn reusable(&self) -> Option<Conn> {
        loop {
            let mut conn = self.idle.lock().unwrap().pop()?;
            let ready = poll_fn(|cx| {
                if Pin::new(&mut conn.connection).poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                conn.sender.poll_ready(cx).map(|ready| ready.is_ok())
            });
            if ready.await {
                return Some(conn);
            }
        }
    }

    async fn connect(&self) -> Result<Conn, Fault> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Conn { sender, connection })
    }
}

impl Conn {
    /// Polls the connection beside what waits for it. The future of an exchange knows when it is over:
    /// hence it is polled first, and once more after a connection that has ended.
    async fn drive<T>(&mut self, waiting: impl Future<Output = T>) -> Result<T, Fault> {
        let mut waiting = pin!(waiting);
        let mut step = |cx: &mut Context<'_>| {
            if let Poll::Ready(done) = waiting.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            let ended = Pin::new(&mut self.connection).poll(cx);
            match (waiting.as_mut().poll(cx), ended) {
                (Poll::Ready(done), _) => Poll::Ready(Ok(done)),
                (Poll::Pending, Poll::Pending) => Poll::Pending,
                (Poll::Pending, Poll::Ready(_)) => Poll::Ready(Err("the connection ended".into())),
            }
        };
        poll_fn(|cx| step(cx)).await
    }
}

impl Caller for HyperCaller {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Box::pin(async move {
            let id = Id::from(self.next.fetch_add(1, Ordering::Relaxed));
            let mut message = BytesMut::with_capacity(256);
            encode::call_head(&call.method, call.params.as_ref(), &mut message);
            message.extend_from_slice(b",\"id\":");
            message.extend_from_slice(id.as_bytes());
            message.put_u8(b'}');
            let body = self.post_message(message.freeze()).await;
            let body = body.map_err(|fault| CallError::Transport(fault.into()))?;
            match decode(&body, &self.rules) {
                Payload::One(Ok(Message::Response(response))) if response.id == id => {
                    response.outcome.map_err(CallError::Rpc)
                }
                _ => Err(CallError::Protocol("not the response".into())),
            }
        })
    }

    fn post(&self, _: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async { Err(CallError::Unsupported("notifications")) })
    }

    fn send_batch(
        &self,
        _: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        Box::pin(async { Err(CallError::Unsupported("batches")) })
    }
}
