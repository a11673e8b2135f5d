//! Plain HTTP: a server of one function, and single requests.

use std::convert::Infallible;
use std::sync::Arc;

use antiphon::http::{HeaderValue, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server that ends with its owner.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves each request with a function.
pub(crate) async fn serve(
    respond: impl Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync + 'static,
) -> HttpServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let respond = Arc::new(respond);
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let respond = respond.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let respond = respond.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
                    Ok::<_, Infallible>(respond(Request::from_parts(head, body)).map(Full::new))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service).map(drop));
        }
    });
    HttpServer { url, task }
}

/// Sends a request to its absolute URL.
pub(crate) async fn send(request: Request<Bytes>) -> Response<Bytes> {
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().unwrap().to_string();
    head.headers.insert("host", HeaderValue::from_str(&authority).unwrap());
    head.uri = head.uri.path_and_query().unwrap().as_str().parse().unwrap();
    let stream = TcpStream::connect(&authority).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::from_parts(head, Full::new(body));
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn empty_response(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

pub(crate) fn redirect(target: &str) -> Response<Bytes> {
    let mut response = empty_response(StatusCode::FOUND);
    response.headers_mut().insert("location", HeaderValue::from_str(target).unwrap());
    response
}
