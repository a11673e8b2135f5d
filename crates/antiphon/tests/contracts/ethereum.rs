//! The conventions of Ethereum nodes, on HTTP, WebSocket and IPC.

use std::time::Duration;

use antiphon::layer::{Quota, RateLimit};
use antiphon::{Client, Context, Dialect, Handler as _, Limits, Router, Server, Topic};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::http::{JSON, exchange, post};
use crate::support::{Raw, request, within};

/// A toy node: a read, an answer of a chosen size, a call that never ends, and two kinds of subscription.
fn node() -> Router {
    let heads =
        |(): (), _cx: Context| async { Ok(futures_util::stream::iter([json!({"number": "0x1"})])) };
    let logs =
        |_: Value, _cx: Context| async { Ok(futures_util::stream::iter([json!({"data": "0x"})])) };
    Router::new()
        .method("eth_chainId", |(): (), _cx: Context| async { Ok("0x539") })
        .method("repeat", |(size,): (usize,), _cx: Context| async move { Ok("x".repeat(size)) })
        .method("forever", |(): (), _cx: Context| std::future::pending::<Result<(), _>>())
        .subscription(Topic::ethereum("newHeads"), heads)
        .subscription(Topic::ethereum("logs"), logs)
}

/// A raw peer of a toy node with these limits. The connection ends with the client.
fn served(limits: Limits) -> (Raw, Client) {
    Raw::served_in(Dialect::ethereum(), limits, node())
}

#[tokio::test]
async fn errors_have_the_codes_and_words_of_nodes() {
    let (mut raw, _node) = served(Limits::default());
    raw.send(&request(1, "eth_mine", "[]")).await;
    let message = "the method eth_mine does not exist/is not available";
    assert_eq!(raw.next().await["error"], json!({"code": -32601, "message": message}));

    raw.send(&request(2, "eth_chainId", "null")).await;
    assert_eq!(raw.next().await["result"], "0x539");

    let (mut raw, _node) = served(Limits { subscriptions: 0, ..Limits::default() });
    raw.send(&request(3, "eth_subscribe", r#"["newHeads"]"#)).await;
    assert_eq!(raw.next().await["error"]["code"], -32005);
}

/// What geth replies to the same messages: the codes and ids, in order.
#[tokio::test]
async fn invalid_messages_have_the_codes_and_ids_of_geth() {
    let (mut raw, _node) = served(Limits::default());
    let invalid = |id: Value| json!([[-32600, id]]);
    let call = request(7, "eth_chainId", "[]");
    for (message, replies) in [
        (
            r#"{"jsonrpc":"2.0","id":{"a":1},"method":"eth_chainId"}"#.to_owned(),
            invalid(Value::Null),
        ),
        (r#"{"jsonrpc":"1.0","id":2,"method":"eth_chainId"}"#.to_owned(), invalid(json!(2))),
        (r#"{"jsonrpc":"2.0","id":3}"#.to_owned(), invalid(json!(3))),
        ("3".to_owned(), invalid(Value::Null)),
        ("[]".to_owned(), invalid(Value::Null)),
        (format!("[1,{call}]"), json!([[-32600, null], [null, 7]])),
        (r#"{"jsonrpc":"2.0","id":null,"method":"eth_chainId"}"#.to_owned(), json!([[null, null]])),
    ] {
        raw.send(&message).await;
        let reply = raw.next().await;
        let entries = reply.as_array().cloned().unwrap_or_else(|| vec![reply.clone()]);
        let found: Vec<_> =
            entries.iter().map(|entry| json!([entry["error"]["code"], entry["id"]])).collect();
        assert_eq!(json!(found), replies, "{message}: {reply}");
    }
}

#[tokio::test]
async fn a_rate_limit_has_the_code_that_clients_retry() {
    let node = node().layer(RateLimit::new(Quota::new(1, Duration::from_secs(3_600))));
    let (mut raw, _node) = Raw::served_in(Dialect::ethereum(), Limits::default(), node);
    raw.send(&request(1, "eth_chainId", "[]")).await;
    assert_eq!(raw.next().await["result"], "0x539");
    raw.send(&request(2, "eth_chainId", "[]")).await;
    let error = raw.next().await["error"].take();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32005), &json!("rate limit exceeded"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_has_the_code_of_nodes() {
    let limit = Some(Duration::from_secs(1));
    let (mut raw, _node) = served(Limits { request_timeout: limit, ..Limits::default() });
    raw.send(&request(1, "forever", "[]")).await;
    let error = raw.next().await["error"].take();
    assert_eq!(error, json!({"code": -32002, "message": "request timed out"}));
}

/// The entries that fit keep their results; the others get an error each.
#[tokio::test]
async fn a_batch_over_the_response_limit_is_answered_in_part() {
    let (mut raw, _node) = served(Limits { response_bytes: 400, ..Limits::default() });
    let entries: Vec<_> =
        (1..=4).map(|id| request(id, "repeat", if id == 2 { "[500]" } else { "[20]" })).collect();
    raw.send(&format!("[{}]", entries.join(","))).await;
    let answer = raw.next().await;
    let kinds: Vec<_> =
        answer.as_array().unwrap().iter().map(|entry| &entry["error"]["code"]).collect();
    assert_eq!(kinds, [&Value::Null, &json!(-32003), &Value::Null, &Value::Null], "{answer}");
    assert_eq!(answer[1]["error"]["message"], "response too large");
    raw.send(&request(9, "repeat", "[500]")).await;
    assert_eq!(raw.next().await["error"]["code"], -32003);
}

#[tokio::test]
async fn a_batch_over_the_limit_of_entries_is_an_invalid_request() {
    let (mut raw, _node) = served(Limits { batch_entries: 2, ..Limits::default() });
    let entry = request(1, "eth_chainId", "[]");
    raw.send(&format!("[{entry},{entry},{entry}]")).await;
    let error = raw.next().await["error"].take();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32600), &json!("batch too large")));
}

/// Returns the status line and the body of a response.
fn parts(response: &str) -> (&str, &str) {
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap(), body)
}

#[tokio::test]
async fn http_has_no_subscriptions_but_a_websocket_on_the_same_port_has() {
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().dialect(Dialect::ethereum());
    let endpoint = server.endpoint().clone();
    let address = endpoint.to_string();
    tokio::spawn(server.serve(node()));

    let call = post("/", JSON, &request(1, "eth_subscribe", r#"["newHeads"]"#));
    let response = exchange(&address, &call).await;
    let (status, body) = parts(&response);
    let body: Value = serde_json::from_str(body).unwrap();
    let error = json!({"code": -32601, "message": "notifications not supported"});
    assert_eq!((status, &body["error"], &body["id"]), ("HTTP/1.1 200 OK", &error, &json!(1)));

    // A batch is answered entry by entry.
    let batch = format!(
        "[{},{}]",
        request(1, "eth_subscribe", r#"["newHeads"]"#),
        request(2, "eth_chainId", "[]")
    );
    let response = exchange(&address, &post("/", JSON, &batch)).await;
    let replies: Value = serde_json::from_str(parts(&response).1).unwrap();
    assert_eq!((&replies[0]["error"], &replies[1]["result"]), (&error, &json!("0x539")));

    let health = "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n";
    let response = exchange(&address, health).await;
    assert_eq!(parts(&response), ("HTTP/1.1 200 OK", ""));

    // The batch limit of nodes is the default of the server.
    let entry = request(1, "eth_chainId", "[]");
    let batch = format!("[{}]", vec![entry; 1_001].join(","));
    let response = exchange(&address, &post("/", JSON, &batch)).await;
    assert!(parts(&response).1.contains("batch too large"), "{response}");

    let client = Client::connect(endpoint.as_ws()).await.unwrap();
    let mut heads = client.subscribe::<Value>(Topic::ethereum("newHeads"), ()).await.unwrap();
    assert_eq!(within(heads.next()).await.unwrap().unwrap()["number"], "0x1");
}

#[cfg(unix)]
#[tokio::test]
async fn ipc_carries_values_that_follow_each_other() {
    let path = std::env::temp_dir().join(format!("antiphon-ipc-{}", std::process::id()));
    let endpoint = format!("unix:{}", path.display());
    let server = Server::bind(&*endpoint).await.unwrap().dialect(Dialect::ethereum());
    tokio::spawn(server.serve(node()));

    // Two values without a separator, and one with line breaks and without an end of line.
    let mut stream = BufReader::new(tokio::net::UnixStream::connect(&path).await.unwrap());
    let call = request(1, "eth_chainId", "[]");
    let spread = call.replace(',', ",\n");
    stream.write_all(format!("{call}{call}{spread}").as_bytes()).await.unwrap();
    for _ in 0..3 {
        let mut line = String::new();
        within(stream.read_line(&mut line)).await.unwrap();
        assert!(line.contains("0x539"), "{line}");
    }

    let client = Client::builder().dialect(Dialect::ethereum()).connect(&*endpoint).await.unwrap();
    let mut logs = client.subscribe::<Value>(Topic::ethereum("logs"), (json!({}),)).await.unwrap();
    assert_eq!(within(logs.next()).await.unwrap().unwrap()["data"], "0x");
}
