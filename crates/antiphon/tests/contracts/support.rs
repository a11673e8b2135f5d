//! Two sides in one process, and a raw peer that sends arbitrary messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon::transport::memory::{MemoryTransport, pair};
use antiphon::{
    CallError, Client, ClientBuilder, Code, Context, Dialect, Endpoint, EndpointError, Handler,
    Limits, Router, Server,
};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

#[cfg(feature = "tls")]
use crate::pki;

/// Longer than any test. As the stall timeout, it makes a test fail whose connection advances only by
/// its timer.
pub(crate) const FOREVER: Duration = Duration::from_secs(600);

/// Fails a test that hangs. It does so before the watchdog of a connection checks for the first time, so
/// that its timer cannot hide a missing wake-up.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("the test hangs")
}

/// Both sides of one connection, as two clients of each other.
pub(crate) fn both(
    left: (Limits, impl Handler),
    right: (Limits, impl Handler),
) -> (Client, Client) {
    let (a, b) = pair();
    let side = |(limits, handler)| Client::builder().limits(limits).handler(handler);
    let right_side = Client::builder().limits(right.0).handler(right.1);
    (ClientBuilder::over(side(left), a), right_side.over(b))
}

/// A raw peer, which sends and receives single messages.
pub(crate) struct Raw(pub(crate) MemoryTransport);

impl Raw {
    /// A raw peer of a connection that this handler serves.
    pub(crate) fn served(limits: Limits, handler: impl Handler) -> (Self, Client) {
        Self::served_in(Dialect::plain(), limits, handler)
    }

    /// Like [`served`](Self::served), in a dialect.
    pub(crate) fn served_in(
        dialect: Dialect,
        limits: Limits,
        handler: impl Handler,
    ) -> (Self, Client) {
        let (ours, theirs) = pair();
        let builder = Client::builder().limits(limits).dialect(dialect);
        (Self(ours), builder.handler(handler).over(theirs))
    }

    pub(crate) async fn send(&mut self, message: &str) {
        self.0.send(Bytes::copy_from_slice(message.as_bytes())).await.unwrap();
    }

    /// Receives the next message.
    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text().await).unwrap()
    }

    /// Receives the next message as it was sent.
    pub(crate) async fn next_text(&mut self) -> String {
        let frame = within(self.0.next()).await.expect("the connection is open").unwrap();
        String::from_utf8(frame.to_vec()).unwrap()
    }
}

/// The endpoints on which both sides can call.
pub(crate) fn wires() -> Vec<&'static str> {
    let mut wires = vec!["tcp://127.0.0.1:0", "memory:*"];
    if cfg!(feature = "ws") {
        wires.push("ws://127.0.0.1:0");
    }
    if cfg!(feature = "tls") {
        wires.push("tls://127.0.0.1:0");
    }
    if cfg!(all(feature = "ws", feature = "tls")) {
        wires.push("wss://127.0.0.1:0");
    }
    wires
}

/// Like [`wires`], with HTTP.
pub(crate) fn wires_and_http() -> Vec<&'static str> {
    let mut wires = wires();
    if cfg!(feature = "http") {
        wires.push("http://127.0.0.1:0");
    }
    if cfg!(all(feature = "http", feature = "tls")) {
        wires.push("https://127.0.0.1:0");
    }
    wires
}

/// A client that trusts the servers of these tests.
pub(crate) fn client() -> ClientBuilder {
    #[cfg(feature = "tls")]
    return Client::builder().tls(pki::trusting());
    #[cfg(not(feature = "tls"))]
    Client::builder()
}

/// Connects a client that trusts the servers of these tests.
pub(crate) async fn connect(
    endpoint: impl TryInto<Endpoint, Error: Into<EndpointError>>,
) -> Client {
    client().connect(endpoint).await.unwrap()
}

/// A server on a free port or name of this endpoint. A `*` is replaced by a unique name.
pub(crate) async fn bound(endpoint: &str) -> Server {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let name = NAMES.fetch_add(1, Ordering::Relaxed).to_string();
    let server = Server::bind(&endpoint.replace('*', &name)).await.unwrap();
    #[cfg(feature = "tls")]
    let server = server.tls(pki::local().server());
    server
}

/// Serves a handler until the test ends, and returns its endpoint.
pub(crate) async fn serve(endpoint: &str, limits: Limits, handler: impl Handler) -> String {
    let server = bound(endpoint).await.limits(limits);
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(handler));
    address
}

/// The WebSocket endpoint of an HTTP endpoint.
#[cfg(feature = "http")]
pub(crate) fn as_ws(address: &str) -> Endpoint {
    address.parse::<Endpoint>().unwrap().as_ws()
}

/// A TCP connection to this endpoint.
pub(crate) async fn dial(address: &str) -> BufReader<TcpStream> {
    let authority = address.split("://").nth(1).unwrap().split('/').next().unwrap();
    let stream = TcpStream::connect(authority).await.unwrap();
    stream.set_nodelay(true).unwrap();
    BufReader::new(stream)
}

/// Reads the next line, as JSON.
pub(crate) async fn line(stream: &mut BufReader<TcpStream>) -> Value {
    let mut line = String::new();
    within(stream.read_line(&mut line)).await.unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

/// Reads until the peer ends the connection, with or without a reset.
pub(crate) async fn rest(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut rest = Vec::new();
    let _ = within(stream.read_to_end(&mut rest)).await;
    rest
}

/// Waits until the stall timeout of a TCP server has passed more than once. Connections that stall are
/// the clock.
pub(crate) async fn stall_goes_by(address: &str) {
    for _ in 0..2 {
        let mut stalled = dial(address).await;
        stalled.write_all(b"{\"jsonrpc\":").await.unwrap();
        rest(&mut stalled).await;
    }
}

/// Waits for another task, which wakes this one.
pub(crate) async fn elsewhere() {
    tokio::spawn(tokio::task::yield_now()).await.unwrap();
}

/// Methods that wait for the test, and the channels on which they report.
pub(crate) struct Holding {
    /// Has the method `hold` and the notification `hold_note`, which report their start and wait.
    pub(crate) router: Router,
    pub(crate) entered: mpsc::Receiver<()>,
    pub(crate) release: Arc<Notify>,
    /// Receives a message for each cancellation.
    pub(crate) gone: mpsc::Receiver<()>,
}

pub(crate) fn holding() -> Holding {
    let (enter, entered) = mpsc::channel(64);
    let (leave, gone) = mpsc::channel(64);
    let release = Arc::new(Notify::new());
    let go = release.clone();
    let hold = move |cx: Context| {
        let (enter, leave, go) = (enter.clone(), leave.clone(), go.clone());
        async move {
            let token = cx.cancellation().clone();
            tokio::spawn(async move {
                token.cancelled().await;
                let _ = leave.send(()).await;
            });
            enter.send(()).await.unwrap();
            go.notified().await;
        }
    };
    let held = hold.clone();
    let router = Router::new()
        .method("hold", move |(): (), cx: Context| {
            let held = held(cx);
            async move {
                held.await;
                Ok("held")
            }
        })
        .notification("hold_note", move |(): (), cx: Context| hold(cx));
    Holding { router, entered, release, gone }
}

/// Calls until the call is refused, and returns its error. A server may accept calls until its shutdown is
/// visible.
pub(crate) async fn refused_at_shutdown(client: &Client) -> CallError {
    loop {
        match client.call::<String>("nowhere", ()).await {
            Err(CallError::Rpc(error)) if error.code == Code::METHOD_NOT_FOUND => {}
            other => return other.unwrap_err(),
        }
    }
}

pub(crate) fn answer(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#)
}

pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
}

pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}
