//! TLS: who is believed, who is let in, and what happens to who speaks something else.

use std::future::IntoFuture as _;
use std::net::Shutdown;
use std::time::Duration;

use antiphon::transport::tls::{PeerCertificates, TlsClient, TlsServer};
use antiphon::{CallError, Client, ConnectError, Context, Direction, Limits, Router, Server};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::pki::{AUTHORITY, Authority, Identity, local, trusting};
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

/// A server of one version of HTTP is spoken to in that version, and refused where the other is asked
/// for.
#[tokio::test]
async fn a_client_speaks_what_the_server_picks() {
    use antiphon::transport::tls::rustls::{self, ServerConfig, pki_types::pem::PemObject as _};
    for protocols in [&[&b"http/1.1"[..]][..], &[b"h2"], &[b"something/else", b"http/1.1"]] {
        let provider = rustls::crypto::ring::default_provider();
        let chain = vec![rustls::pki_types::CertificateDer::from(local().der.clone())];
        let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(local().key.as_bytes()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let address = serve_tls("https://127.0.0.1:0", config.into(), Limits::default()).await;
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

fn showing(identity: &Identity) -> TlsClient {
    trusting().client_certificate(&identity.chain, &identity.key).unwrap()
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
