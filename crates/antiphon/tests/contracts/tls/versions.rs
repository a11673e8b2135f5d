//! The negotiated HTTP version, and how its connections are shared.

use std::collections::HashSet;
use std::future::IntoFuture as _;

use antiphon::{Client, Context, ErrorChain, Limits, Router, Server};
use futures_util::future::join_all;

use super::{attempt, serve_tls, service, speaking};
use crate::pki::{local, trusting};
use crate::support::{as_ws, connect, serve, within};

/// Both versions by ALPN, on a port that accepts WebSockets too.
#[tokio::test]
async fn an_https_port_serves_both_versions_and_websockets() {
    let address = serve("https://127.0.0.1:0", Limits::default(), service()).await;
    for builder in [Client::builder(), Client::builder().http2()] {
        let client = builder.tls(trusting()).connect(&address).await.unwrap();
        for _ in 0..3 {
            let transport = within(client.call::<String>("transport", ()).into_future()).await;
            assert_eq!(transport.unwrap(), "https");
        }
    }
    let client = connect(as_ws(&address)).await;
    assert_eq!(within(client.call::<String>("transport", ()).into_future()).await.unwrap(), "wss");
}

/// The client uses the version that the server offers, and fails if the other one is required.
#[tokio::test]
async fn a_client_uses_the_version_that_the_server_offers() {
    for protocols in [&[&b"http/1.1"[..]][..], &[b"h2"], &[b"something/else", b"http/1.1"]] {
        let tls = speaking(protocols);
        let address = serve_tls("https://127.0.0.1:0", tls, Limits::default()).await;
        assert_eq!(attempt(trusting(), &address).await, Ok(None));
        let insists = Client::builder().http2().tls(trusting()).connect(&address).await.unwrap();
        let called = within(insists.call::<String>("transport", ()).into_future()).await;
        match protocols.contains(&&b"h2"[..]) {
            true => assert_eq!(called.unwrap(), "https"),
            false => {
                let refused = ErrorChain(&called.unwrap_err()).to_string();
                assert!(refused.contains("HTTP"), "{refused}");
                assert!(!refused.contains("is the server running"), "{refused}");
            }
        }
    }
}

/// A client picks HTTP/2 if the server offers it, so each server here offers only one version.
#[tokio::test]
async fn messages_of_any_size_are_carried_by_either_version() {
    for protocol in [&b"http/1.1"[..], b"h2"] {
        let echo =
            Router::new().method("echo", |(text,): (String,), _cx: Context| async { Ok(text) });
        let server = Server::bind("https://127.0.0.1:0").await.unwrap();
        let server = server.tls(speaking(&[protocol]));
        let address = server.endpoint().to_string();
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

/// The first connection, which negotiates the version, is used for calls too.
#[tokio::test]
async fn calls_share_connections_as_their_version_allows() {
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
