//! JSON-RPC 1.0 beside 2.0, and the conventions of Bitcoin nodes.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon::layer::{Auth, Credentials};
use antiphon::transport::http::BitcoinPolicy;
use antiphon::{
    CallError, Client, Context, Dialect, ErrorObject, Handler as _, Identity, Limits, RawJson,
    Router, Server, Version,
};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::http::{exchange, post};
use crate::support::{
    Holding, Raw, as_ws, bound, client, dial, elsewhere, holding, rest, wires_and_http, within,
};

fn node() -> Router {
    Router::new()
        .method("getbalance", |(): (), _cx: Context| async {
            RawJson::parse("20999999.97690000").map_err(ErrorObject::internal)
        })
        .method("getblockhash", |(height,): (u32,), _cx: Context| async move {
            match height {
                0 => Ok("000000000019d668"),
                _ => Err(ErrorObject::new(-8, "Block height out of range")),
            }
        })
        .method("wallet", |(): (), cx: Context| async move {
            Ok((
                cx.connection().path().map(str::to_owned),
                cx.identity().map(|who| who.name().to_owned()),
            ))
        })
        .method("repeat", |(size,): (usize,), _cx: Context| async move { Ok("x".repeat(size)) })
}

async fn serve(endpoint: &str, dialect: Dialect) -> String {
    let server = bound(endpoint).await.dialect(dialect);
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(node()));
    address
}

async fn connect(address: &str, dialect: Dialect) -> Client {
    client().dialect(dialect).connect(address).await.unwrap()
}

fn code<T>(outcome: Result<T, CallError>) -> i64 {
    match outcome {
        Ok(_) => 0,
        Err(CallError::Rpc(error)) => error.code.0,
        Err(other) => panic!("no response: {other}"),
    }
}

/// The timeout of a batch ends it before its last entry is read. That entry keeps its own error.
#[tokio::test(start_paused = true)]
async fn an_invalid_entry_behind_the_end_of_a_batch_has_the_message_of_a_node() {
    let Holding { router, entered: _entered, .. } = holding();
    let timeout = Some(Duration::from_millis(50));
    let limits = Limits { in_flight: 1, request_timeout: timeout, ..Limits::default() };
    let (mut raw, _server) = Raw::served_in(Dialect::bitcoin(), limits, router);
    let call = r#"{"method":"hold","id":1}"#;
    raw.send(&format!(r#"[{call},{call},{{"method":7,"id":2}}]"#)).await;
    let reply = raw.next().await;
    assert_eq!(reply[0]["error"]["code"], -32012, "{reply}");
    let error = json!({"code": -32600, "message": "Method must be a string"});
    assert_eq!(reply[2], json!({"result": null, "error": error, "id": 2}), "{reply}");
}

#[tokio::test]
async fn clients_of_both_versions_call_on_every_wire() {
    for dialect in [Dialect::bitcoin, Dialect::v1] {
        for endpoint in wires_and_http() {
            let address = serve(endpoint, dialect()).await;
            for version in [Version::V1, Version::V2] {
                let client = connect(&address, dialect().version(version)).await;
                let balance =
                    within(client.call::<RawJson>("getbalance", ()).into_future()).await.unwrap();
                assert_eq!(balance.as_str(), "20999999.97690000", "{address}");
                assert_eq!(code(client.call::<RawJson>("getblockhash", [7]).await), -8);
                assert_eq!(code(client.call::<RawJson>("unknown", ()).await), -32601);
                let mut batch = client.batch();
                let hash = batch.call::<String>("getblockhash", [0]);
                let none = batch.call::<String>("getblockhash", [1]);
                batch.notify("getbalance", ());
                let mut replies = within(batch.send()).await.unwrap();
                assert_eq!(replies.take(hash).unwrap(), "000000000019d668");
                assert_eq!(code(replies.take(none)), -8);
                within(client.notify("getbalance", ())).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn the_client_reads_both_shapes_and_sends_its_version() {
    for (dialect, sent) in [
        (Dialect::v1(), r#"{"method":"m","params":[],"id":1}"#),
        (Dialect::bitcoin(), r#"{"jsonrpc":"1.0","method":"m","params":[],"id":1}"#),
        (Dialect::bitcoin().version(Version::V2), r#"{"jsonrpc":"2.0","method":"m","id":1}"#),
        (Dialect::plain().version(Version::V1), r#"{"method":"m","params":[],"id":1}"#),
    ] {
        for (reply, expected) in [
            (r#"{"result":0.10000000,"error":null,"id":1}"#, Ok("0.10000000")),
            (r#"{"jsonrpc":"2.0","result":0.10,"id":1}"#, Ok("0.10")),
            (r#"{"jsonrpc":"2.0","result":null,"error":null,"id":1}"#, Ok("null")),
            (r#"{"result":null,"error":{"code":-8,"message":"no"},"id":1}"#, Err(-8)),
            (r#"{"jsonrpc":"2.0","error":{"code":-8,"message":"no"},"id":1}"#, Err(-8)),
            (r#"{"result":null,"error":"no","id":1}"#, Err(-32000)),
        ] {
            let client = Client::builder().dialect(dialect.clone()).over_request_reply(
                move |request: antiphon::transport::RequestMessage| {
                    assert_eq!(request.payload, sent);
                    std::future::ready(Ok(Some(reply.into())))
                },
            );
            let outcome = client.call::<RawJson>("m", ()).await;
            match expected {
                Ok(text) => assert_eq!(outcome.unwrap().as_str(), text),
                Err(expected) => assert_eq!(code(outcome), expected),
            }
        }
    }
}

/// Two peers would otherwise send `[]` to each other forever.
#[tokio::test]
async fn an_empty_batch_on_a_connection_is_an_invalid_request() {
    let (mut raw, _node) = Raw::served_in(Dialect::bitcoin(), Limits::default(), node());
    raw.send("[]").await;
    let error = json!({"code": -32600, "message": "a batch may not be empty"});
    assert_eq!(raw.next().await, json!({"result": null, "error": error, "id": null}));
    raw.send(r#"{"method":"getblockhash","params":[0]}"#).await;
    assert_eq!(raw.next().await, json!({"result": "000000000019d668", "error": null}));
}

/// A large result is sent in pieces. They have the version of the call too.
#[tokio::test]
async fn a_large_result_has_the_version_of_the_call() {
    let address = serve("http://127.0.0.1:0", Dialect::v1()).await;
    let text = "x".repeat(300_000);
    let call = r#"{"method":"repeat","params":[300000],"id":[1]}"#;
    let response = exchange(&address, &post("/", crate::http::JSON, call)).await;
    let body = response.split_once("\r\n\r\n").unwrap().1;
    assert!(body == format!(r#"{{"result":"{text}","error":null,"id":[1]}}"#));
}

#[tokio::test]
async fn wallets_and_identities_reach_the_handlers() {
    let auth = Auth::new().basic("alice", "hush");
    let server = Server::bind("http://127.0.0.1:0").await.unwrap();
    let server = server.dialect(Dialect::bitcoin());
    let server = server.http_policy(BitcoinPolicy::new().auth(auth.clone()));
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(node().layer(auth)));
    let basic = "authorization: Basic YWxpY2U6aHVzaA==\r\n";
    let call = r#"{"method":"wallet","id":1}"#;
    let response = exchange(&address, &post("/wallet/savings", basic, call)).await;
    assert!(
        response
            .ends_with("{\"result\":[\"/wallet/savings\",\"alice\"],\"error\":null,\"id\":1}\n"),
        "{response}"
    );
    for headers in ["", "authorization: Basic YWxpY2U6aHVzaB==\r\n", "authorization: Bearer x\r\n"]
    {
        // The body never comes: the refusal does not wait for it.
        let unfinished = post("/", headers, call).replace(call, "");
        let response = exchange(&address, &unfinished).await;
        assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
        assert!(response.contains("www-authenticate: Basic realm=\"jsonrpc\"\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\n"), "{response}");
    }
    if cfg!(feature = "ws") {
        assert!(Client::connect(as_ws(&address)).await.is_err());
    }
}

async fn serve_with(policy: BitcoinPolicy, handler: impl antiphon::Handler) -> String {
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().dialect(Dialect::bitcoin());
    let server = server.http_policy(policy);
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(handler));
    address
}

/// Otherwise every user of the node could call what a second `Auth` protects.
#[tokio::test]
async fn the_identity_of_a_policy_does_not_pass_another_auth() {
    let (users, admins) = (Auth::new().basic("alice", "hush"), Auth::new().basic("bob", "pw"));
    let policy = BitcoinPolicy::new().auth(users.clone());
    let basic = "authorization: Basic YWxpY2U6aHVzaA==\r\n";
    let call = r#"{"method":"wallet"}"#;
    let protected = serve_with(policy.clone(), node().layer(admins)).await;
    let response = exchange(&protected, &post("/", basic, call)).await;
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    let own = serve_with(policy, node().layer(users)).await;
    let response = exchange(&own, &post("/", basic, call)).await;
    assert!(response.starts_with("HTTP/1.1 200 ") && response.contains("alice"), "{response}");
}

/// Sends the pieces, and reads until the server closes the connection.
async fn exchange_pieces(address: &str, pieces: [&str; 2]) -> String {
    let mut stream = dial(address).await;
    for piece in pieces {
        let piece = piece.replace("{host}", address.split("://").nth(1).unwrap());
        // The server may have closed the connection.
        let _ = stream.write_all(piece.as_bytes()).await;
        elsewhere().await;
    }
    String::from_utf8(rest(&mut stream).await).unwrap()
}

/// The body of a rejected request holds a request with credentials. A server that took the body for the next request
/// would run it: behind a proxy, that is the request of somebody else.
#[tokio::test]
async fn the_body_of_a_rejected_request_is_no_request() {
    let auth = Auth::new().basic("alice", "hush");
    let counter = Arc::new(AtomicUsize::new(0));
    let count = counter.clone();
    let router = Router::new().method("run", move |(): (), _cx: Context| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok(()) }
    });
    let address = serve_with(BitcoinPolicy::new().auth(auth), router).await;
    let inner = post("/", "authorization: Basic YWxpY2U6aHVzaA==\r\n", r#"{"method":"run"}"#);
    let inner = inner.replace("{host}", "127.0.0.1");
    let (len, last) = (inner.len(), "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    for (headers, end) in [
        (format!("content-length: {len}\r\n\r\n"), ""),
        (format!("expect: 100-continue\r\ncontent-length: {len}\r\n\r\n"), ""),
        (format!("transfer-encoding: chunked\r\n\r\n{len:x}\r\n"), "\r\n0\r\n\r\n"),
    ] {
        let whole = format!("POST / HTTP/1.1\r\nhost: {{host}}\r\n{headers}{inner}{end}{last}");
        for cut in [whole.len(), whole.find(&inner).unwrap(), whole.len() - last.len()] {
            let (first, second) = whole.split_at(cut);
            let response = exchange_pieces(&address, [first, second]).await;
            let statuses: Vec<_> = response
                .match_indices("HTTP/1.1 ")
                .map(|(at, _)| &response[at + 9..at + 12])
                .collect();
            // It may close the connection instead of reading the body.
            assert!(["401", "401 405"].contains(&&*statuses.join(" ")), "{whole}: {response}");
        }
    }
    assert_eq!(counter.load(Ordering::Relaxed), 0);
}

/// The policy cannot wait for a verification, and the handler may have no `Auth` of its own.
#[tokio::test]
async fn a_policy_rejects_credentials_that_only_a_verification_knows() {
    let auth = Auth::new().basic("alice", "hush").verify(|credentials| async move {
        let Credentials::Bearer(token) = credentials else { return None };
        Some(Identity::new(token))
    });
    let address = serve_with(BitcoinPolicy::new().auth(auth), node()).await;
    for (headers, status) in [
        ("authorization: Basic YWxpY2U6aHVzaA==\r\n", 200),
        ("authorization: Bearer x\r\n", 401),
        ("authorization: Basic YWxpY2U6aHVzaB==\r\n", 401),
    ] {
        let response = exchange(&address, &post("/", headers, r#"{"method":"wallet"}"#)).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
    }
}

#[tokio::test]
async fn a_refused_body_gets_a_1_0_response_with_a_newline() {
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().dialect(Dialect::bitcoin());
    let address = server.endpoint().to_string();
    let limits = Limits { frame_bytes: 100, ..Limits::default() };
    tokio::spawn(server.limits(limits).serve(node()));
    let response = exchange(&address, &post("/", "", &" ".repeat(101))).await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with(r#"{"result":null,"error":{"code":-32007,"#), "{body}");
    assert!(body.ends_with("\"id\":null}\n"), "{body:?}");
}

/// A layer knows the credentials only after the body is read. The response is the same.
#[tokio::test]
async fn calls_that_a_layer_rejects_get_the_challenge() {
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().dialect(Dialect::bitcoin());
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(node().layer(Auth::new().basic("alice", "hush"))));
    let (v1, v2) = (r#"{"method":"wallet"}"#, r#"{"jsonrpc":"2.0","method":"wallet","id":1}"#);
    for call in [v1, v2, &format!("[{v1},{v2}]")] {
        let response = exchange(&address, &post("/", "", call)).await;
        assert!(response.starts_with("HTTP/1.1 401 "), "{call}: {response}");
        assert!(response.contains("www-authenticate: Basic realm=\"jsonrpc\"\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\n"), "{response}");
    }
}

#[tokio::test]
async fn a_policy_may_answer_always_in_1_0() {
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().dialect(Dialect::bitcoin());
    let server = server.http_policy(BitcoinPolicy::new().always_v1());
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(node()));
    let balance = r#"{"jsonrpc":"2.0","method":"getbalance","id":"x"}"#;
    let failed = r#"{"jsonrpc":"2.0","method":"getblockhash","params":[7],"id":[2]}"#;
    let legacy = r#"{"method":"getbalance"}"#;
    let silent = r#"{"jsonrpc":"2.0","method":"getbalance"}"#;
    let first = r#"{"result":20999999.97690000,"error":null,"id":"x"}"#;
    let second =
        r#"{"result":null,"error":{"code":-8,"message":"Block height out of range"},"id":[2]}"#;
    let third = r#"{"result":20999999.97690000,"error":null}"#;
    for (call, status, reply) in [
        (balance, 200, format!("{first}\n")),
        (failed, 500, format!("{second}\n")),
        (legacy, 200, format!("{third}\n")),
        (silent, 204, String::new()),
        ("[]", 200, "[]\n".to_owned()),
        (
            &*format!("[{balance},{silent},{failed},{legacy}]"),
            200,
            format!("[{first},{second},{third}]\n"),
        ),
    ] {
        let response = exchange(&address, &post("/", "", call)).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert_eq!(response.split_once("\r\n\r\n").unwrap().1, reply);
    }
}
