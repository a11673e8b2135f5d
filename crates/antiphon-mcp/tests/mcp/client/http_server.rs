//! An HTTP server in this process that answers from a script.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use antiphon::http::{HeaderMap, Method, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A body of any kind.
pub(super) type Body = BoxBody<Bytes, Infallible>;

/// A request of the client.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Received {
    /// The JSON-RPC method, or the HTTP method of a request without a body.
    pub(super) fn name(&self) -> &str {
        self.body["method"].as_str().unwrap_or(self.method.as_str())
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A response with this result.
    pub(super) fn result(&self, result: &Value) -> Response<Body> {
        json_response(200, &json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }

    /// A response with this error.
    pub(super) fn error(&self, status: u16, error: &Value) -> Response<Body> {
        json_response(status, &json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error}))
    }
}

/// A server whose responses are a function of the requests.
pub(super) struct HttpScript {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Received>>>,
}

impl HttpScript {
    pub(super) async fn start<F, Fut>(answer: F) -> Self
    where
        F: Fn(Received) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<Received>>>::default();
        let (log, answer) = (seen.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (log.clone(), answer.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (log, answer) = (log.clone(), answer.clone());
                    async move {
                        let received = read(request).await;
                        log.lock().unwrap().push(received.clone());
                        Ok::<_, Infallible>(answer(received).await)
                    }
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, seen }
    }

    pub(super) fn seen(&self) -> Vec<Received> {
        self.seen.lock().unwrap().clone()
    }

    /// The names of the requests, in order.
    pub(super) fn names(&self) -> Vec<String> {
        self.seen().iter().map(|it| it.name().to_owned()).collect()
    }

    /// The requests of one name.
    pub(super) fn named(&self, name: &str) -> Vec<Received> {
        self.seen().into_iter().filter(|it| it.name() == name).collect()
    }
}

async fn read(request: Request<Incoming>) -> Received {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = parts.uri.to_string();
    Received { method: parts.method, path, headers: parts.headers, body }
}

pub(super) fn json_response(status: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
        .headers_mut()
        .insert("content-type", "application/json; charset=utf-8".parse().unwrap());
    response
}

pub(super) fn status(status: u16) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// An event stream with this text, which then ends.
pub(super) fn events(text: impl Into<String>) -> Response<Body> {
    let (sender, response) = open_events();
    sender.send(text.into()).unwrap();
    response
}

/// An event stream that is open as long as its sender.
pub(super) fn open_events() -> (mpsc::UnboundedSender<String>, Response<Body>) {
    let (sender, texts) = mpsc::unbounded_channel::<String>();
    let frames = stream::unfold(texts, |mut texts| async move {
        let text = texts.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(text))), texts))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(SyncStream(Box::pin(frames)))));
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    (sender, response)
}

/// A stream that one task polls, so that it may be shared.
struct SyncStream<S>(std::pin::Pin<Box<S>>);

impl<S: futures_core::Stream> futures_core::Stream for SyncStream<S> {
    type Item = S::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<S::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

/// The text of an event with a message.
pub(super) fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}
