//! TLS: who is believed, who is let in, and what happens to who speaks something else.

use std::collections::HashSet;
use std::future::IntoFuture as _;
use std::net::Shutdown;
use std::time::Duration;

use antiphon::layer::Auth;
use antiphon::transport::tls::rustls::pki_types::pem::PemObject as _;
use antiphon::transport::tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use antiphon::transport::tls::rustls::{self, ServerConfig};
use antiphon::transport::tls::{PeerCertificates, TlsClient, TlsServer, TlsStream};
use antiphon::{
    CallError, Client, ConnectError, Context, Direction, Handler as _, Identity, Limits, Router,
    Server,
};
use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use crate::pki::{AUTHORITY, Authority, Certified, local, trusting};
use crate::support::{
    FOREVER, Holding, connect, dial, holding, line, request, rest, serve, within,
};

const SECURE: [&str; 3] = ["https://127.0.0.1:0", "wss://127.0.0.1:0", "tls://127.0.0.1:0"];

/// What it knows of who calls.
fn service() -> Router {
    Router::new()
        .method("transport", |(): (), cx: Context| async move { Ok(cx.connection().transport) })
        .method("shown", |(): (), cx: Context| async move {
            let shown = cx.extensions().get::<PeerCertificates>();
            Ok(shown.map(|shown| shown.chain().map(<[u8]>::to_vec).collect::<Vec<_>>()))
        })
        .method("remote", |(): (), cx: Context| async move {
            Ok(cx.connection().remote.map(|remote| remote.to_string()))
        })
        .method("ask", |(): (), cx: Context| async move {
            Ok(cx.peer()?.call::<String>("name", ()).await?)
        })
}

async fn serve_tls(endpoint: &str, tls: TlsServer, limits: Limits) -> String {
    let server = Server::bind(endpoint).await.unwrap().tls(tls).limits(limits);
    let address = server.endpoints()[0].to_string();
    tokio::spawn(server.serve(service()));
    address
}

/// What one call gives, or why there is no answer; HTTP connects only then.
async fn attempt(tls: TlsClient, address: &str) -> Result<Option<Vec<Vec<u8>>>, String> {
    let connected = Client::builder().tls(tls).connect(address).await;
    let client = connected.map_err(|error| match error {
        ConnectError::Failed { source, .. } => source.to_string(),
        other => other.to_string(),
    })?;
    let called = within(client.call("shown", ()).into_future()).await;
    called.map_err(|error: CallError| error.to_string())
}

#[tokio::test]
async fn every_secure_wire_carries_calls_and_knows_its_name() {
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

/// Both by ALPN, on the port that takes WebSockets too.
#[tokio::test]
async fn an_https_port_speaks_both_versions_and_websocket() {
    let address = serve("https://127.0.0.1:0", Limits::default(), service()).await;
    for builder in [Client::builder(), Client::builder().http2()] {
        let client = builder.tls(trusting()).connect(&address).await.unwrap();
        for _ in 0..3 {
            let transport = within(client.call::<String>("transport", ()).into_future()).await;
            assert_eq!(transport.unwrap(), "https");
        }
    }
    let client = connect(&address.replace("https", "wss")).await;
    assert_eq!(within(client.call::<String>("transport", ()).into_future()).await.unwrap(), "wss");
}

/// A configuration of rustls, for a server that speaks these.
fn speaking(protocols: &[&[u8]]) -> TlsServer {
    let provider = rustls::crypto::ring::default_provider();
    let chain = vec![CertificateDer::from(local().der.clone())];
    let key = PrivateKeyDer::from_pem_slice(local().key.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider.into());
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config.into()
}

/// A server of one version of HTTP is spoken to in that version, and refused where the other is asked
/// for.
#[tokio::test]
async fn a_client_speaks_what_the_server_picks() {
    for protocols in [&[&b"http/1.1"[..]][..], &[b"h2"], &[b"something/else", b"http/1.1"]] {
        let tls = speaking(protocols);
        let address = serve_tls("https://127.0.0.1:0", tls, Limits::default()).await;
        assert_eq!(attempt(trusting(), &address).await, Ok(None));
        let insists = Client::builder().http2().tls(trusting()).connect(&address).await.unwrap();
        let called = within(insists.call::<String>("transport", ()).into_future()).await;
        match protocols.contains(&&b"h2"[..]) {
            true => assert_eq!(called.unwrap(), "https"),
            false => {
                let refused = called.unwrap_err().to_string();
                assert!(refused.contains("HTTP"), "{refused}");
                assert!(!refused.contains("is the server running"), "{refused}");
            }
        }
    }
}

/// A client would pick HTTP/2 where it can; here it cannot.
#[tokio::test]
async fn messages_of_any_size_pass_by_either_version() {
    for protocol in [&b"http/1.1"[..], b"h2"] {
        let echo =
            Router::new().method("echo", |(text,): (String,), _cx: Context| async { Ok(text) });
        let server = Server::bind("https://127.0.0.1:0").await.unwrap();
        let server = server.tls(speaking(&[protocol]));
        let address = server.endpoints()[0].to_string();
        tokio::spawn(server.serve(echo));
        let client = connect(&address).await;
        for _ in 0..2 {
            let calls = [1, 16 << 10, 65_537, 1 << 20, 5 << 20].map(|size| {
                let text = "x".repeat(size);
                let call = client.call::<String>("echo", (text.clone(),)).into_future();
                async move { assert!(call.await.unwrap() == text, "{size} bytes") }
            });
            within(join_all(calls)).await;
        }
    }
}

/// The first connection, which has asked for the version, is the one that is used.
#[tokio::test]
async fn calls_share_connections_as_their_version_can() {
    let one = speaking(&[b"http/1.1"]);
    for (tls, at_once) in [(one, 1), (speaking(&[b"h2"]), 1), (local().server(), 20)] {
        let address = serve_tls("https://127.0.0.1:0", tls, Limits::default()).await;
        let client = connect(&address).await;
        let mut remotes = HashSet::new();
        for _ in 0..3 {
            let calls = (0..at_once).map(|_| client.call::<String>("remote", ()).into_future());
            let answers = within(join_all(calls)).await;
            remotes.extend(answers.into_iter().map(Result::unwrap));
        }
        assert_eq!(remotes.len(), 1, "{remotes:?}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_is_not_believed() {
    let foreign = Authority::new("foreign").issue(&["127.0.0.1"]);
    let expired = AUTHORITY.issue_until(&["127.0.0.1"], 2020);
    let elsewhere = AUTHORITY.issue(&["example.org"]);
    for (shown, reason) in [
        (&foreign, "trust its authority as an extra root"),
        (&expired, "has expired"),
        (&elsewhere, "is for another name"),
    ] {
        for endpoint in SECURE {
            let address = serve_tls(endpoint, shown.server(), Limits::default()).await;
            let refused = attempt(trusting(), &address).await.unwrap_err();
            assert!(refused.contains(reason) && refused.contains("127.0.0.1"), "{refused}");
            // Whoever asks not to be protected is not.
            let careless = TlsClient::new().dangerously_accept_any_certificate();
            assert_eq!(attempt(careless, &address).await, Ok(None));
        }
    }
}

#[tokio::test]
async fn the_system_does_not_trust_the_authority_of_these_tests() {
    let address = serve("tls://127.0.0.1:0", Limits::default(), service()).await;
    let refused = attempt(TlsClient::new(), &address).await.unwrap_err();
    assert!(refused.contains("extra root"), "{refused}");
    let trusted = TlsClient::new().extra_roots(&AUTHORITY.pem).unwrap();
    assert_eq!(attempt(trusted, &address).await, Ok(None));
}

fn showing(certified: &Certified) -> TlsClient {
    trusting().client_certificate(&certified.chain, &certified.key).unwrap()
}

#[tokio::test]
async fn a_client_certificate_is_asked_for_proven_and_seen() {
    let clients = Authority::new("clients");
    let ada = clients.issue(&["ada.example"]);
    let stranger = Authority::new("strangers").issue(&["ada.example"]);
    let expired = clients.issue_until(&["ada.example"], 2020);
    let required = local().server().require_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let address = serve_tls(endpoint, required.clone(), Limits::default()).await;
        let seen = attempt(showing(&ada), &address).await.unwrap();
        assert_eq!(seen, Some(vec![ada.der.clone()]), "{endpoint}");
        let refused = attempt(trusting(), &address).await.unwrap_err();
        assert!(refused.contains("asks for a client certificate"), "{endpoint}: {refused}");
        for bad in [&stranger, &expired] {
            let refused = attempt(showing(bad), &address).await.unwrap_err();
            assert!(refused.contains("does not accept our certificate"), "{endpoint}: {refused}");
        }
    }
}

#[tokio::test]
async fn a_client_certificate_may_be_left_to_the_client() {
    let clients = Authority::new("clients");
    let ada = clients.issue(&["ada.example"]);
    let optional = local().server().accept_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let address = serve_tls(endpoint, optional.clone(), Limits::default()).await;
        assert_eq!(attempt(trusting(), &address).await, Ok(None));
        assert_eq!(attempt(showing(&ada), &address).await, Ok(Some(vec![ada.der.clone()])));
        // Nobody asks for it.
        let address = serve_tls(endpoint, local().server(), Limits::default()).await;
        assert_eq!(attempt(showing(&ada), &address).await, Ok(None));
    }
}

#[tokio::test]
async fn the_application_sees_who_connects() {
    let clients = Authority::new("clients");
    let ada = clients.issue(&["ada.example"]);
    let required = local().server().require_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let (tell, mut told) = mpsc::channel(1);
        let server = Server::bind(endpoint).await.unwrap().tls(required.clone());
        let server = server.on_connect(move |connection| {
            let shown = connection.extensions.get::<PeerCertificates>().cloned();
            let _ = tell.try_send(shown.map(|shown| shown.end_entity().to_vec()));
        });
        let address = server.endpoints()[0].to_string();
        tokio::spawn(server.serve(service()));
        attempt(showing(&ada), &address).await.unwrap();
        assert_eq!(within(told.recv()).await.unwrap().as_ref(), Some(&ada.der), "{endpoint}");
    }
}

/// A certificate becomes an identity, and whoever shows none is nobody.
#[tokio::test]
async fn a_certificate_is_a_credential() {
    let clients = Authority::new("clients");
    let (ada, bob) = (clients.issue(&["ada.example"]), clients.issue(&["bob.example"]));
    let optional = local().server().accept_client_certificates(&clients.pem).unwrap();
    for endpoint in SECURE {
        let known = ada.der.clone();
        let server = Server::bind(endpoint).await.unwrap().tls(optional.clone());
        let server = server.on_connect(move |connection| {
            let shown = connection.extensions.get::<PeerCertificates>();
            if shown.is_some_and(|shown| shown.end_entity() == known) {
                connection.extensions.insert(Identity::new("ada"));
            }
        });
        let address = server.endpoints()[0].to_string();
        let router = Router::new().method("who", |(): (), cx: Context| async move {
            Ok(cx.identity().map(|identity| identity.name().to_owned()))
        });
        tokio::spawn(server.serve(router.layer(Auth::new())));
        for (tls, who) in [(showing(&ada), Some("ada")), (showing(&bob), None), (trusting(), None)]
        {
            let client = Client::builder().tls(tls).connect(&address).await.unwrap();
            let called = within(client.call::<String>("who", ()).into_future()).await;
            match who {
                Some(name) => assert_eq!(called.unwrap(), name, "{endpoint}"),
                None => assert!(called.unwrap_err().to_string().contains("-32013"), "{endpoint}"),
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_served_without_a_certificate() {
    for endpoint in SECURE {
        let server = Server::bind(endpoint).await.unwrap().and("tcp://127.0.0.1:0").await.unwrap();
        let refused = within(server.serve(service())).await.unwrap_err().to_string();
        assert!(refused.contains("no certificate") && refused.contains("`tls`"), "{refused}");
        assert!(refused.contains(endpoint.split("://").next().unwrap()), "{refused}");
    }
}

#[test]
fn what_is_no_certificate_is_refused_with_a_reason() {
    let (ours, other) = (local(), AUTHORITY.issue(&["localhost"]));
    let refused = |chain: &str, key: &str| TlsServer::from_pem(chain, key).unwrap_err().to_string();
    assert!(refused("", &ours.key).contains("no certificate here"));
    assert!(refused(&ours.chain, &ours.chain).contains("no private key here"));
    assert!(refused(&ours.chain, &other.key).contains("not that of the certificate"));
    let refused = TlsClient::new().client_certificate(&ours.chain, &other.key).unwrap_err();
    assert!(refused.to_string().contains("not that of the certificate"));
    assert!(TlsClient::new().extra_roots("nothing").is_err());
    let missing = TlsServer::from_pem_files("/nowhere/chain.pem", "/nowhere/key.pem").unwrap_err();
    assert!(missing.to_string().contains("/nowhere/chain.pem"), "{missing}");
    let secret = format!("{:?}", trusting().client_certificate(&ours.chain, &ours.key).unwrap());
    assert!(!secret.contains("PRIVATE") && !secret.contains("key"), "{secret}");
}

/// A client that speaks no TLS learns what to call.
#[tokio::test]
async fn who_speaks_no_tls_is_told() {
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
async fn a_client_of_a_port_without_tls_is_told() {
    let address = serve("http://127.0.0.1:0", Limits::default(), service()).await;
    for secure in ["https", "wss", "tls"] {
        let address = address.replace("http", secure);
        let refused = attempt(trusting(), &address).await.unwrap_err();
        assert!(refused.contains("does not speak TLS there; use http://"), "{refused}");
    }
    // One that only closes.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tls://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
    });
    let refused = attempt(trusting(), &address).await.unwrap_err();
    assert!(refused.contains("TLS") || refused.contains("reset"), "{refused}");
}

/// The first bytes of a handshake, and no more.
const STALLED: [u8; 6] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01];

#[tokio::test]
async fn a_handshake_that_stalls_is_cut_and_its_place_is_free_again() {
    for endpoint in SECURE {
        let handshake_timeout = Duration::from_millis(50);
        let limits = Limits { connections: 1, handshake_timeout, ..Limits::default() };
        let address = serve_tls(endpoint, local().server(), limits).await;
        for beginning in [&STALLED[..], &[]] {
            let mut stalled = dial(&address).await;
            stalled.write_all(beginning).await.unwrap();
            assert!(rest(&mut stalled).await.is_empty(), "{endpoint}");
        }
        // A place is given up a little after its socket.
        let served = async {
            while attempt(trusting(), &address).await != Ok(None) {
                tokio::task::yield_now().await;
            }
        };
        within(served).await;
    }
}

#[tokio::test]
async fn handshakes_under_way_hold_up_neither_others_nor_a_shutdown() {
    for endpoint in SECURE {
        let server = Server::bind(endpoint).await.unwrap().tls(local().server());
        let address = server.endpoints()[0].to_string();
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
async fn one_connection_too_many_is_told_so() {
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

/// Whoever can cut a connection could shorten what was said on it: only a goodbye is an end.
#[tokio::test]
async fn a_connection_that_is_cut_off_is_no_end_of_input() {
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
            // And then the server says goodbye too.
            assert_eq!(within(stream.read_to_string(&mut answer)).await.unwrap(), 0);
        } else {
            twin.shutdown(Shutdown::Write).unwrap();
            within(gone.recv()).await.unwrap();
        }
    }
}

/// Asks for a text of that size: by a line, by what is usual, and by what hyper serves.
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

/// A client for which little waits on its way.
async fn narrow(address: &str) -> BufReader<TlsStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let authority = address.split("://").nth(1).unwrap().parse().unwrap();
    let socket = socket.connect(authority).await.unwrap();
    BufReader::new(trusting().connect(socket, "localhost").await.unwrap())
}

/// What a server has written stays in its TLS for a while; who does not read it is let go all the same.
#[tokio::test]
async fn an_answer_that_is_not_read_is_a_stall() {
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
        // There is room for one connection, and so for another once the first is ended.
        within(async { while attempt(trusting(), &address).await != Ok(None) {} }).await;
        drop(deaf);
    }
}

/// What was shown to the tap is what was said: TLS is below it.
#[tokio::test]
async fn messages_are_seen_as_they_are_without_tls() {
    for endpoint in SECURE {
        let address = serve(endpoint, Limits::default(), service()).await;
        let (see, mut seen) = mpsc::channel(8);
        let builder = Client::builder().tls(trusting()).inspect(move |direction, message| {
            let _ = see.try_send((direction, String::from_utf8_lossy(message).into_owned()));
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
        let address = server.endpoints()[0].to_string();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(service(), async { drop(stopped.await) }));
        for _ in 0..12 {
            assert_eq!(attempt(trusting(), &address).await, Ok(None));
        }
        drop(stop);
        within(serving).await.unwrap().unwrap();
    }
}
