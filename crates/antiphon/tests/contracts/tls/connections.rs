//! Connections over TLS: how they begin, what they carry, and how they end.

use std::future::IntoFuture as _;
use std::net::Shutdown;
use std::time::Duration;

use antiphon::transport::tls::TlsStream;
use antiphon::{Client, Context, Direction, Limits, Router, Server, TappedMessage};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use super::{SECURE, attempt, serve_tls, service};
use crate::pki::{local, trusting};
use crate::support::{
    FOREVER, Holding, connect, dial, holding, line, request, rest, serve, within,
};

#[tokio::test]
async fn every_secure_wire_carries_calls_and_has_its_name() {
    for endpoint in SECURE {
        let address = serve(endpoint, Limits::default(), service()).await;
        assert!(address.starts_with(endpoint.split("://").next().unwrap()), "{address}");
        let client = connect(&address).await;
        let transport: String = within(client.call("transport", ()).into_future()).await.unwrap();
        assert!(address.starts_with(&format!("{transport}://")), "{transport} at {address}");
        within(client.close()).await;
    }
}

#[tokio::test]
async fn both_sides_call_over_a_secure_wire() {
    for endpoint in ["wss://127.0.0.1:0", "tls://127.0.0.1:0", "tls+header://127.0.0.1:0"] {
        let address = serve(endpoint, Limits::default(), service()).await;
        let mine = Router::new().method("name", |(): (), _cx: Context| async { Ok("Ada") });
        let client = Client::builder().tls(trusting()).handler(mine).connect(&address).await;
        let client = client.unwrap();
        assert_eq!(within(client.call::<String>("ask", ()).into_future()).await.unwrap(), "Ada");
    }
}

#[tokio::test]
async fn nothing_is_served_without_a_certificate() {
    for endpoint in SECURE {
        let server = Server::bind(endpoint).await.unwrap().and("tcp://127.0.0.1:0").await.unwrap();
        let refused = within(server.serve(service())).await.unwrap_err().to_string();
        assert!(
            refused.contains("no certificate") && refused.contains("`Server::tls`"),
            "{refused}"
        );
        assert!(refused.contains(endpoint.split("://").next().unwrap()), "{refused}");
    }
}

/// A client that does not speak TLS gets an error that names the right scheme.
#[tokio::test]
async fn a_client_without_tls_gets_an_error() {
    for endpoint in ["https://127.0.0.1:0", "wss://127.0.0.1:0"] {
        let address = serve(endpoint, Limits::default(), service()).await;
        let mut plain = dial(&address).await;
        let request = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
        plain.write_all(request.as_bytes()).await.unwrap();
        let told = String::from_utf8(rest(&mut plain).await).unwrap();
        assert!(told.starts_with("HTTP/1.1 400 ") && told.ends_with("call https://\n"), "{told}");
        let http = Client::connect(&address.replace("wss", "http").replace("https", "http")).await;
        let refused = within(http.unwrap().call::<String>("transport", ()).into_future()).await;
        assert!(refused.unwrap_err().to_string().contains("this port speaks TLS"));
    }
    let address = serve("tls://127.0.0.1:0", Limits::default(), service()).await;
    let mut plain = dial(&address).await;
    plain.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":1}\n").await.unwrap();
    assert_eq!(line(&mut plain).await["error"]["data"], "this port speaks TLS; call tls://");
    assert!(rest(&mut plain).await.is_empty());
    let address = serve("tls+header://127.0.0.1:0", Limits::default(), service()).await;
    let mut plain = dial(&address).await;
    plain.write_all(b"Content-Length: 2\r\n\r\n{}").await.unwrap();
    assert!(rest(&mut plain).await.starts_with(b"Content-Length: "));
}

#[tokio::test]
async fn a_tls_client_of_a_plain_port_reports_it() {
    let address = serve("http://127.0.0.1:0", Limits::default(), service()).await;
    for secure in ["https", "wss", "tls"] {
        let address = address.replace("http", secure);
        let refused = attempt(trusting(), &address).await.unwrap_err();
        assert!(refused.contains("does not speak TLS on this port; use http://"), "{refused}");
    }
    // A server that only closes.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tls://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
    });
    let refused = attempt(trusting(), &address).await.unwrap_err();
    assert!(refused.contains("TLS") || refused.contains("reset"), "{refused}");
}

/// Sends only the first bytes of a handshake.
const STALLED: [u8; 6] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01];

#[tokio::test]
async fn a_stalled_handshake_is_ended_and_frees_its_permit() {
    for endpoint in SECURE {
        let handshake_timeout = Duration::from_millis(50);
        let limits = Limits { connections: 1, handshake_timeout, ..Limits::default() };
        let address = serve_tls(endpoint, local().server(), limits).await;
        for beginning in [&STALLED[..], &[]] {
            let mut stalled = dial(&address).await;
            stalled.write_all(beginning).await.unwrap();
            assert!(rest(&mut stalled).await.is_empty(), "{endpoint}");
        }
        // The permit is released shortly after the socket is closed.
        let served = async {
            while attempt(trusting(), &address).await != Ok(None) {
                tokio::task::yield_now().await;
            }
        };
        within(served).await;
    }
}

#[tokio::test]
async fn pending_handshakes_delay_neither_others_nor_a_shutdown() {
    for endpoint in SECURE {
        let server = Server::bind(endpoint).await.unwrap().tls(local().server());
        let address = server.endpoint().to_string();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(service(), async { drop(stopped.await) }));
        let mut stalled = Vec::new();
        for _ in 0..20 {
            let mut stream = dial(&address).await;
            stream.write_all(&STALLED).await.unwrap();
            stalled.push(stream);
        }
        assert_eq!(attempt(trusting(), &address).await, Ok(None));
        drop(stop);
        within(serving).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_connection_over_the_limit_receives_an_error() {
    let limits = Limits { connections: 1, ..Limits::default() };
    for endpoint in SECURE {
        let address = serve_tls(endpoint, local().server(), limits.clone()).await;
        let first = connect(&address).await;
        within(first.call::<String>("transport", ()).into_future()).await.unwrap();
        let refused = attempt(trusting(), &address).await.unwrap_err();
        let told = refused.contains("too many connections") || refused.contains("503");
        assert!(told, "{endpoint}: {refused}");
        drop(first);
    }
}

/// An attacker who cuts a connection could truncate its messages, so only a TLS close is an end of input.
#[tokio::test]
async fn a_connection_that_is_cut_is_not_an_end_of_input() {
    for says_goodbye in [true, false] {
        let Holding { router, mut entered, release, mut gone } = holding();
        let limits = Limits { shutdown_timeout: FOREVER, ..Limits::default() };
        let address = serve("tls://127.0.0.1:0", limits, router).await;
        let socket = std::net::TcpStream::connect(address.trim_start_matches("tls://")).unwrap();
        socket.set_nonblocking(true).unwrap();
        let twin = socket.try_clone().unwrap();
        let socket = TcpStream::from_std(socket).unwrap();
        let stream = trusting().connect(socket, "localhost").await.unwrap();
        let mut stream = BufReader::new(stream);
        let asked = format!("{}\n", request(1, "hold", "[]"));
        stream.write_all(asked.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        within(entered.recv()).await.unwrap();
        if says_goodbye {
            stream.shutdown().await.unwrap();
            release.notify_one();
            let mut answer = String::new();
            within(stream.read_line(&mut answer)).await.unwrap();
            assert!(answer.contains(r#""result":"held""#), "{answer}");
            // Then the server sends its TLS close too.
            assert_eq!(within(stream.read_to_string(&mut answer)).await.unwrap(), 0);
        } else {
            twin.shutdown(Shutdown::Write).unwrap();
            within(gone.recv()).await.unwrap();
        }
    }
}

/// Requests for a text of this size: as a line, on the HTTP fast path, and through hyper.
fn asked(size: usize) -> [(&'static str, String); 3] {
    let body = request(1, "big", &format!("[{size}]"));
    let post = |more: &str| {
        format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    [
        ("tls://127.0.0.1:0", format!("{body}\n")),
        ("https://127.0.0.1:0", post("")),
        ("https://127.0.0.1:0", post("te: trailers\r\n")),
    ]
}

/// A client with small socket buffers.
async fn narrow(address: &str) -> BufReader<TlsStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let authority = address.split("://").nth(1).unwrap().parse().unwrap();
    let socket = socket.connect(authority).await.unwrap();
    BufReader::new(trusting().connect(socket, "localhost").await.unwrap())
}

/// Bytes that a server has written may wait in its TLS buffer; a client that does not read is still
/// disconnected.
#[tokio::test]
async fn a_response_that_is_not_read_is_a_stall() {
    let stall_timeout = Duration::from_millis(100);
    let limits = Limits { stall_timeout, connections: 1, ..Limits::default() };
    for (endpoint, asked) in asked(8 << 20) {
        let (enter, mut entered) = mpsc::channel(8);
        let router = service().method("big", move |(size,): (usize,), _cx: Context| {
            let enter = enter.clone();
            async move {
                enter.send(()).await.unwrap();
                Ok("x".repeat(size))
            }
        });
        let address = serve(endpoint, limits.clone(), router).await;
        let mut deaf = narrow(&address).await;
        deaf.write_all(asked.as_bytes()).await.unwrap();
        deaf.flush().await.unwrap();
        within(entered.recv()).await.unwrap();
        // The limit is one connection, so another one is accepted once the first has ended.
        within(async { while attempt(trusting(), &address).await != Ok(None) {} }).await;
        drop(deaf);
    }
}

/// The tap sees the plain messages, because it is above TLS.
#[tokio::test]
async fn a_tap_sees_plain_messages() {
    for endpoint in SECURE {
        let address = serve(endpoint, Limits::default(), service()).await;
        let (see, mut seen) = mpsc::channel(8);
        let builder = Client::builder().tls(trusting()).tap(move |message: &TappedMessage<'_>| {
            let text = String::from_utf8_lossy(message.bytes).into_owned();
            let _ = see.try_send((message.direction, text));
        });
        let client = builder.connect(&address).await.unwrap();
        within(client.call::<String>("transport", ()).into_future()).await.unwrap();
        let (direction, message) = within(seen.recv()).await.unwrap();
        assert_eq!(direction, Direction::Sent);
        assert!(message.contains(r#""method":"transport""#), "{message}");
    }
}

#[tokio::test]
async fn several_threads_serve_one_secure_port() {
    for endpoint in SECURE {
        let server = Server::bind(endpoint).await.unwrap().tls(local().server()).threads(3);
        let address = server.endpoint().to_string();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(service(), async { drop(stopped.await) }));
        for _ in 0..12 {
            assert_eq!(attempt(trusting(), &address).await, Ok(None));
        }
        drop(stop);
        within(serving).await.unwrap().unwrap();
    }
}
