//! Listeners that the application has made: every protocol on each of them, and what cannot be served.

use std::future::IntoFuture as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon::transport::memory::pair;
use antiphon::{Accept, BindError, CallError, Client, Connection, Context, Limits, Router, Server};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::support::{bound, connect, dial, request, rest, wires_and_http, within};

/// Byte streams that the test passes in, as the connections of a listener.
struct Foreign {
    streams: mpsc::UnboundedReceiver<io::Result<DuplexStream>>,
    address: Option<SocketAddr>,
    polls: Arc<AtomicUsize>,
}

impl Accept for Foreign {
    type Stream = DuplexStream;

    fn poll_accept(
        &mut self,
        cx: &mut Poller<'_>,
    ) -> Poll<io::Result<(DuplexStream, Option<SocketAddr>)>> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        match self.streams.poll_recv(cx) {
            Poll::Ready(Some(stream)) => {
                Poll::Ready(stream.map(|stream| (stream, "192.0.2.7:9".parse().ok())))
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }
}

type Passing = mpsc::UnboundedSender<io::Result<DuplexStream>>;

fn foreign(address: Option<&str>) -> (Foreign, Passing) {
    let (pass, streams) = mpsc::unbounded_channel();
    let address = address.map(|address| address.parse().unwrap());
    (Foreign { streams, address, polls: Arc::default() }, pass)
}

fn pass(passing: &Passing) -> DuplexStream {
    let (ours, theirs) = duplex(64 * 1024);
    passing.send(Ok(theirs)).unwrap();
    ours
}

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Io for S {}

/// The way to a server.
#[derive(Clone)]
enum Way {
    Tcp(SocketAddr),
    Unix(PathBuf),
    Foreign(Passing),
}

impl Way {
    async fn dial(&self) -> Box<dyn Io> {
        match self {
            Self::Tcp(address) => Box::new(TcpStream::connect(address).await.unwrap()),
            Self::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
            Self::Foreign(passing) => Box::new(pass(passing)),
        }
    }
}

/// A path in a temporary folder that is free.
fn free_path() -> PathBuf {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    let name = format!("antiphon-listener-{}-{number}", std::process::id());
    std::env::temp_dir().join(name)
}

/// A Unix listener whose file goes with the test.
struct UnixFile(PathBuf);

impl Drop for UnixFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn unix() -> (UnixListener, UnixFile) {
    let path = free_path();
    (UnixListener::bind(&path).unwrap(), UnixFile(path))
}

const LISTENERS: [&str; 3] = ["tcp", "unix", "foreign"];
const PROTOCOLS: [&str; 4] = ["tcp", "tcp+header", "http", "ws"];

/// A server on a listener of this kind.
async fn listening(kind: &str, protocol: &str) -> (Server, Way, Option<UnixFile>) {
    let endpoint = format!("{protocol}://localhost:0");
    match kind {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            (Server::from_listener(listener, &endpoint).unwrap(), Way::Tcp(address), None)
        }
        "unix" => {
            let (listener, file) = unix();
            let way = Way::Unix(file.0.clone());
            (Server::from_listener(listener, &endpoint).unwrap(), way, Some(file))
        }
        _ => {
            let (listener, passing) = foreign(None);
            let server = Server::from_listener(listener, &endpoint).unwrap();
            (server, Way::Foreign(passing), None)
        }
    }
}

fn ping() -> Router {
    Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") })
}

/// Calls `ping` in this protocol. Returns the reply, with its head where it has one.
async fn ask(protocol: &str, stream: &mut Box<dyn Io>) -> String {
    within(async {
        let call = request(1, "ping", "[]");
        match protocol {
            "tcp" => {
                // A server that refuses may have closed.
                let _ = stream.write_all(format!("{call}\n").as_bytes()).await;
                until(stream, b"\n").await
            }
            "tcp+header" => {
                let call = format!("Content-Length: {}\r\n\r\n{call}", call.len());
                let _ = stream.write_all(call.as_bytes()).await;
                message(stream).await
            }
            "http" => {
                let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
                let call = format!("{head}\r\ncontent-length: {}\r\n\r\n{call}", call.len());
                let _ = stream.write_all(call.as_bytes()).await;
                message(stream).await
            }
            _ => {
                let head = "GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n\
                    connection: upgrade\r\nsec-websocket-version: 13\r\n\
                    sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
                let _ = stream.write_all(head.as_bytes()).await;
                let head = message(stream).await;
                if !head.starts_with("HTTP/1.1 101") {
                    return head;
                }
                frame(stream, &call).await
            }
        }
    })
    .await
}

/// Sends a masked text frame, and returns the next one.
async fn frame(stream: &mut Box<dyn Io>, text: &str) -> String {
    let length = 0x80 | u8::try_from(text.len()).unwrap();
    let frame = [&[0x81, length, 0, 0, 0, 0], text.as_bytes()].concat();
    stream.write_all(&frame).await.unwrap();
    let mut head = [0; 2];
    stream.read_exact(&mut head).await.unwrap();
    assert!(head[1] < 126, "a longer frame than expected");
    let mut reply = vec![0; head[1].into()];
    stream.read_exact(&mut reply).await.unwrap();
    String::from_utf8(reply).unwrap()
}

async fn until(stream: &mut Box<dyn Io>, end: &[u8]) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end) {
        match stream.read_u8().await {
            Ok(byte) => text.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(text).unwrap()
}

/// A head with a length, and the body.
async fn message(stream: &mut Box<dyn Io>) -> String {
    let head = until(stream, b"\r\n\r\n").await;
    let length = head.to_ascii_lowercase();
    let length = length.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

#[tokio::test]
async fn every_protocol_runs_on_every_listener() {
    for kind in LISTENERS {
        for protocol in PROTOCOLS {
            let (server, way, _file) = listening(kind, protocol).await;
            tokio::spawn(server.serve(ping()));
            for _ in 0..2 {
                let reply = ask(protocol, &mut way.dial().await).await;
                assert!(reply.contains(r#""result":"pong""#), "{kind}, {protocol}: {reply:?}");
            }
        }
    }
}

/// Contract 7. A connection that ends makes room for the next one.
#[tokio::test]
async fn the_connection_limit_holds_on_every_listener() {
    for kind in LISTENERS {
        for protocol in PROTOCOLS {
            let (server, way, _file) = listening(kind, protocol).await;
            tokio::spawn(
                server.limits(Limits { connections: 1, ..Limits::default() }).serve(ping()),
            );
            let mut first = way.dial().await;
            assert!(ask(protocol, &mut first).await.contains("pong"), "{kind}, {protocol}");
            let refused = ask(protocol, &mut way.dial().await).await;
            assert!(refused.contains("-32009"), "{kind}, {protocol}: {refused:?}");
            assert!(refused.contains("too many connections"), "{kind}, {protocol}: {refused:?}");
            drop(first);
            within(async { while !ask(protocol, &mut way.dial().await).await.contains("pong") {} })
                .await;
        }
    }
}

#[tokio::test]
async fn several_threads_serve_every_listener() {
    for kind in LISTENERS {
        for protocol in PROTOCOLS {
            let (server, way, _file) = listening(kind, protocol).await;
            let (stop, stopped) = oneshot::channel::<()>();
            let serving = server.threads(2).serve_until(ping(), async { drop(stopped.await) });
            let serving = tokio::spawn(serving);
            let calls = (0..8).map(|_| {
                let way = way.clone();
                async move { ask(protocol, &mut way.dial().await).await }
            });
            for reply in futures_util::future::join_all(calls).await {
                assert!(reply.contains("pong"), "{kind}, {protocol}: {reply:?}");
            }
            drop(stop);
            within(serving).await.unwrap().unwrap();
        }
    }
}

/// The text of an error, with its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[tokio::test]
async fn an_endpoint_that_a_listener_cannot_serve_is_an_error() {
    for (endpoint, reason) in [
        ("exec:cat", "exec: is for clients only"),
        ("stdio:", "stdio: has no listener"),
        ("memory:x", "memory: has no listener"),
        ("http://localhost/rpc?q=1", "a server has no query"),
        ("ws://localhost/?", "a server has no query"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let error = Server::from_listener(listener, endpoint).unwrap_err();
        assert!(matches!(error, BindError::Failed { .. }), "{endpoint}: {error:?}");
        assert!(whole(&error).contains(reason), "{endpoint}: {}", whole(&error));
    }
    let error = Server::from_listener(foreign(None).0, "gopher://localhost").unwrap_err();
    assert!(matches!(error, BindError::Endpoint(_)), "{error:?}");
}

#[tokio::test]
async fn an_address_in_use_is_reported_with_a_remedy() {
    let first = Server::bind("tcp://127.0.0.1:0").await.unwrap();
    let endpoint = first.endpoint().to_string();
    let error = Server::bind(&endpoint).await.unwrap_err();
    assert!(whole(&error).contains("or stop the other server"), "{}", whole(&error));
    let BindError::Failed { endpoint: named, source } = error else { panic!("{error:?}") };
    assert_eq!((named, source.kind()), (endpoint, std::io::ErrorKind::AddrInUse));
}

/// Found when the listener is added: a server with another endpoint would serve that one only, and
/// never report the failure.
#[tokio::test]
async fn tls_needs_a_tcp_listener() {
    for endpoint in ["https://localhost", "wss://localhost", "tls://localhost:1"] {
        let (listener, _file) = unix();
        for added in [
            Server::from_listener(listener, endpoint),
            Server::bind("tcp://127.0.0.1:0")
                .await
                .unwrap()
                .and_listener(foreign(None).0, endpoint),
        ] {
            let error = added.unwrap_err();
            assert!(whole(&error).contains("TLS needs a TCP listener"), "{}", whole(&error));
        }
    }
}

#[tokio::test]
async fn tls_needs_a_certificate() {
    for endpoint in ["https://localhost", "wss://localhost", "tls://localhost:1"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::bind("tcp://127.0.0.1:0").await.unwrap();
        let server = server.and_listener(listener, endpoint).unwrap();
        let error = within(server.serve(ping())).await.unwrap_err();
        assert!(error.to_string().contains("no certificate"), "{error}");
    }
}

#[tokio::test]
async fn a_secure_endpoint_runs_on_a_listener_of_the_application() {
    for (scheme, port) in [("https", ""), ("wss", ""), ("tls", ":1")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::from_listener(listener, format!("{scheme}://localhost{port}"));
        let server = server.unwrap().tls(crate::pki::local().server());
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(ping()));
        let client = connect(&address).await;
        assert_eq!(within(client.call::<String>("ping", ()).into_future()).await.unwrap(), "pong");
    }
}

#[tokio::test]
async fn the_file_of_a_listener_that_the_application_made_stays() {
    for threads in [1, 2] {
        let (listener, file) = unix();
        let server = Server::from_listener(listener, "unix:/ignored").unwrap().threads(threads);
        within(server.serve_until(ping(), std::future::ready(()))).await.unwrap();
        assert!(file.0.exists(), "{threads} threads");
    }
}

#[tokio::test]
async fn the_facts_of_a_foreign_connection_are_those_of_its_listener() {
    let facts = |(): (), cx: Context| async move {
        Ok((cx.connection().transport, cx.connection().remote))
    };
    let router = Router::new().method("ping", facts);
    for (protocol, transport) in [("tcp", "custom"), ("http", "http"), ("ws", "ws")] {
        let (listener, passing) = foreign(Some("198.51.100.1:80"));
        let server = Server::from_listener(listener, format!("{protocol}://localhost:1")).unwrap();
        let endpoint = server.endpoint().to_string();
        assert!(endpoint.starts_with(&format!("{protocol}://198.51.100.1")), "{endpoint}");
        tokio::spawn(server.serve(router.clone()));
        let reply = ask(protocol, &mut Way::Foreign(passing).dial().await).await;
        let facts = format!(r#"["{transport}","192.0.2.7:9"]"#);
        assert!(reply.contains(&facts), "{protocol}: {reply}");
    }
}

#[tokio::test]
async fn a_foreign_host_is_refused_where_the_listener_is_on_loopback() {
    for (address, status) in
        [(Some("127.0.0.1:80"), "403"), (Some("[::1]:80"), "403"), (None, "200")]
    {
        let (listener, passing) = foreign(address);
        tokio::spawn(Server::from_listener(listener, "http://localhost").unwrap().serve(ping()));
        let call = request(1, "ping", "[]");
        let head = "POST / HTTP/1.1\r\nhost: evil.example\r\ncontent-type: application/json";
        let mut stream: Box<dyn Io> = Box::new(pass(&passing));
        let call = format!("{head}\r\ncontent-length: {}\r\n\r\n{call}", call.len());
        stream.write_all(call.as_bytes()).await.unwrap();
        let reply = within(message(&mut stream)).await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{address:?}: {reply}");
    }
}

/// The clock of the test moves only while nothing else can.
#[tokio::test(start_paused = true)]
async fn a_listener_that_fails_is_polled_again_after_a_pause() {
    const FAILURES: usize = 20;
    let (listener, passing) = foreign(None);
    let polls = listener.polls.clone();
    for _ in 0..FAILURES {
        passing.send(Err(io::ErrorKind::ConnectionAborted.into())).unwrap();
    }
    let start = Instant::now();
    tokio::spawn(Server::from_listener(listener, "tcp://localhost:1").unwrap().serve(ping()));
    let reply = ask("tcp", &mut Way::Foreign(passing).dial().await).await;
    assert!(reply.contains("pong"), "{reply}");
    assert!(start.elapsed() >= Duration::from_millis(50) * 20, "{:?}", start.elapsed());
    assert!(polls.load(Ordering::Relaxed) < 3 * FAILURES, "{polls:?}");
}

#[tokio::test]
async fn a_listener_that_panics_ends_the_server_with_an_error() {
    struct Panics;

    impl Accept for Panics {
        type Stream = DuplexStream;

        fn poll_accept(
            &mut self,
            _: &mut Poller<'_>,
        ) -> Poll<io::Result<(DuplexStream, Option<SocketAddr>)>> {
            panic!("on purpose")
        }
    }

    let server = Server::from_listener(Panics, "tcp://localhost:1").unwrap();
    assert!(within(server.serve(ping())).await.is_err());

    // The other endpoints go on.
    let server = bound("tcp://127.0.0.1:0").await;
    let address = server.endpoint().to_string();
    let server = server.and_listener(Panics, "tcp://localhost:1").unwrap();
    tokio::spawn(server.serve(ping()));
    let client = connect(&address).await;
    assert_eq!(within(client.call::<String>("ping", ()).into_future()).await.unwrap(), "pong");
}

/// A stream that panics when it is polled.
struct PanickingStream;

impl AsyncRead for PanickingStream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Poller<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        panic!("on purpose")
    }
}

impl AsyncWrite for PanickingStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Poller<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        panic!("on purpose")
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<io::Result<()>> {
        panic!("on purpose")
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<io::Result<()>> {
        panic!("on purpose")
    }
}

/// A listener whose first connection panics.
struct FirstPanics(Foreign, bool);

impl Accept for FirstPanics {
    type Stream = tokio_util::either::Either<PanickingStream, DuplexStream>;

    fn poll_accept(
        &mut self,
        cx: &mut Poller<'_>,
    ) -> Poll<io::Result<(Self::Stream, Option<SocketAddr>)>> {
        use tokio_util::either::Either::{Left, Right};
        if !std::mem::replace(&mut self.1, true) {
            return Poll::Ready(Ok((Left(PanickingStream), None)));
        }
        self.0.poll_accept(cx).map_ok(|(stream, remote)| (Right(stream), remote))
    }
}

/// The place of a connection that panics is free again.
#[tokio::test]
async fn a_stream_that_panics_ends_only_its_connection() {
    for protocol in PROTOCOLS {
        let (listener, passing) = foreign(None);
        let endpoint = format!("{protocol}://localhost:1");
        let server = Server::from_listener(FirstPanics(listener, false), &endpoint).unwrap();
        tokio::spawn(server.limits(Limits { connections: 1, ..Limits::default() }).serve(ping()));
        let way = Way::Foreign(passing);
        within(async { while !ask(protocol, &mut way.dial().await).await.contains("pong") {} })
            .await;
    }
}

/// Panics for the first connection or request only.
fn panics_once() -> impl Fn(&mut Connection) + Send + Sync + 'static {
    let panicked = AtomicBool::new(false);
    move |_| assert!(panicked.swap(true, Ordering::Relaxed), "on purpose")
}

#[tokio::test]
async fn on_connect_that_panics_loses_only_its_connection() {
    for wire in wires_and_http() {
        let limits = Limits { connections: 1, ..Limits::default() };
        let server = bound(wire).await.limits(limits).on_connect(panics_once());
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(ping()));
        let first = match crate::support::client().connect(&address).await {
            Ok(client) => {
                within(client.call::<String>("ping", ()).into_future()).await.unwrap_err()
            }
            // The upgrade to a WebSocket is answered with status 500.
            Err(error) => {
                assert!(wire.starts_with("ws") && whole(&error).contains("500"), "{error:?}");
                CallError::Transport("500".into())
            }
        };
        if wire.starts_with("http") {
            assert!(first.to_string().contains("500"), "{wire}: {first}");
        }
        // The place of the first connection becomes free.
        within(async {
            loop {
                if let Ok(client) = crate::support::client().connect(&address).await
                    && client.call::<String>("ping", ()).await.is_ok()
                {
                    break;
                }
            }
        })
        .await;
    }
}

#[tokio::test]
async fn on_connect_that_panics_is_status_500_on_the_fast_path_and_by_hyper() {
    for more in ["", "te: x\r\n"] {
        let server = bound("http://127.0.0.1:0").await.on_connect(panics_once());
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(ping()));
        for status in ["500", "200"] {
            let mut stream = dial(&address).await;
            let call = request(1, "ping", "[]");
            let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
            let text = format!(
                "{head}{more}connection: close\r\ncontent-length: {}\r\n\r\n{call}",
                call.len()
            );
            stream.write_all(text.as_bytes()).await.unwrap();
            let response = String::from_utf8(rest(&mut stream).await).unwrap();
            assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{more:?}: {response}");
        }
    }
}

#[tokio::test]
async fn on_connect_that_panics_fails_a_single_transport_and_not_a_stream_of_them() {
    let (ours, theirs) = pair();
    let server = Server::from_transport(ours, Connection::new("pair"));
    let served = within(server.on_connect(panics_once()).serve(ping())).await;
    assert!(served.unwrap_err().to_string().contains("on_connect"));
    drop(theirs);

    let (first, first_client) = pair();
    let (second, second_client) = pair();
    let transports = [first, second].map(|transport| (transport, Connection::new("pair")));
    let server = Server::from_transports(futures_util::stream::iter(transports));
    let serving = tokio::spawn(server.on_connect(panics_once()).serve(ping()));
    let first = Client::over(first_client);
    assert!(within(first.call::<String>("ping", ()).into_future()).await.is_err());
    let second = Client::over(second_client);
    assert_eq!(within(second.call::<String>("ping", ()).into_future()).await.unwrap(), "pong");
    drop(second);
    within(serving).await.unwrap().unwrap();
}

/// The client does not wait for the end of the handshake.
#[tokio::test]
async fn a_frame_that_comes_with_the_handshake_is_served() {
    for kind in LISTENERS {
        for protocol in ["ws", "http"] {
            let (server, way, _file) = listening(kind, protocol).await;
            tokio::spawn(server.serve(ping()));
            let mut stream = way.dial().await;
            let call = request(1, "ping", "[]");
            let length = 0x80 | u8::try_from(call.len()).unwrap();
            let head = "GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n\
                connection: upgrade\r\nsec-websocket-version: 13\r\n\
                sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
            let frame = [&[0x81, length, 0, 0, 0, 0], call.as_bytes()].concat();
            stream.write_all(&[head.as_bytes(), &frame].concat()).await.unwrap();
            let reply = within(async {
                until(&mut stream, b"\r\n\r\n").await;
                let mut head = [0; 2];
                stream.read_exact(&mut head).await.unwrap();
                let mut reply = vec![0; head[1].into()];
                stream.read_exact(&mut reply).await.unwrap();
                String::from_utf8(reply).unwrap()
            })
            .await;
            assert!(reply.contains("pong"), "{kind}, {protocol}: {reply}");
        }
    }
}

/// The longest timeouts are no timeouts: they must not overflow the clock.
#[tokio::test]
async fn endless_limits_serve_on_every_wire() {
    let limits = Limits {
        request_timeout: Some(Duration::MAX),
        handshake_timeout: Duration::MAX,
        stall_timeout: Duration::MAX,
        idle_timeout: Some(Duration::MAX),
        keep_alive: Some(Duration::MAX),
        shutdown_timeout: Duration::MAX,
        frame_bytes: usize::MAX,
        batch_entries: usize::MAX,
        in_flight: usize::MAX,
        pending_calls: usize::MAX,
        subscriptions: usize::MAX,
        response_bytes: usize::MAX,
        write_queue_bytes: usize::MAX,
        connections: usize::MAX,
        ..Limits::default()
    };
    let router = ping().method("wait", |(): (), _cx: Context| async {
        tokio::task::yield_now().await;
        Ok("pong")
    });
    let mut wires: Vec<_> = wires_and_http().into_iter().map(|wire| (wire, false)).collect();
    wires.push(("http://127.0.0.1:0", true));
    for (wire, http2) in wires {
        let server = bound(wire).await.limits(limits.clone());
        let address = server.endpoint().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = server.serve_until(router.clone(), async { drop(stopped.await) });
        let serving = tokio::spawn(serving);
        let builder = crate::support::client().limits(limits.clone());
        let builder = if http2 { builder.http2() } else { builder };
        let client = builder.timeout(Duration::MAX).connect(&address).await.unwrap();
        for method in ["ping", "wait"] {
            let reply = within(client.call::<String>(method, ()).into_future()).await;
            assert_eq!(reply.unwrap(), "pong", "{wire}");
        }
        drop(client);
        drop(stop);
        within(serving).await.unwrap().unwrap();
    }
    for protocol in PROTOCOLS {
        let (server, way, _file) = listening("foreign", protocol).await;
        tokio::spawn(server.limits(limits.clone()).serve(ping()));
        assert!(ask(protocol, &mut way.dial().await).await.contains("pong"), "{protocol}");
    }
}

/// RFC 9112, section 3.2. A Unix socket and a foreign listener have no address, and the rule holds.
#[tokio::test]
async fn a_request_without_a_host_is_refused_on_every_listener() {
    for kind in LISTENERS {
        let (server, way, _file) = listening(kind, "http").await;
        tokio::spawn(server.serve(ping()));
        let mut stream = way.dial().await;
        let call = request(1, "ping", "[]");
        let head = "POST / HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length";
        let text = format!("{head}: {}\r\n\r\n{call}", call.len());
        stream.write_all(text.as_bytes()).await.unwrap();
        let reply = within(message(&mut stream)).await;
        assert!(reply.starts_with("HTTP/1.1 400"), "{kind}: {reply}");
    }
}

/// A shutdown waits until no thread listens, so that the address is free when it returns.
#[tokio::test]
async fn the_address_is_free_after_a_shutdown_of_several_threads() {
    let endpoint = Server::bind("tcp://127.0.0.1:0").await.unwrap().endpoint().to_string();
    for _ in 0..20 {
        let server = Server::bind(&endpoint).await.unwrap().threads(4);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(ping(), async { drop(stopped.await) }));
        let client = connect(&endpoint).await;
        within(client.call::<String>("ping", ()).into_future()).await.unwrap();
        within(client.close()).await;
        drop(stop);
        within(serving).await.unwrap().unwrap();
    }
}

/// An IPv4 loopback address that is mapped to IPv6 is a loopback address too.
#[cfg(feature = "http")]
#[tokio::test]
async fn a_mapped_loopback_address_refuses_foreign_hosts() {
    let server = Server::bind("http://[::ffff:127.0.0.1]:0").await.unwrap();
    let endpoint = server.endpoint().to_string();
    let port = endpoint.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    tokio::spawn(server.serve(ping()));
    let mut stream = dial(&format!("http://127.0.0.1:{port}")).await;
    let head = "GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let response = String::from_utf8(rest(&mut stream).await).unwrap();
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
}
