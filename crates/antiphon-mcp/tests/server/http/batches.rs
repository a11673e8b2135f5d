//! Batches over HTTP, which only 2025-03-26 has.

use serde_json::{Value, json};

use crate::asking::{self, accept, capabilities};
use crate::lifecycle::server;
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{code, initialize, modern, notification, request, text, tool};

fn pings() -> Value {
    json!([
        request(1, "ping", json!({})),
        notification("notifications/x", json!({})),
        request("b", "tools/call", tool("revision", json!({}))),
    ])
}

#[tokio::test]
async fn a_batch_gets_its_responses() {
    let http = Http::serve(&server()).await;
    let session = HttpSession::begin(http, "2025-03-26", json!({})).await;
    let responses = session.post(&pings()).send().await.response().await;
    assert_eq!(responses.as_array().unwrap().len(), 2, "{responses}");
    let called = responses.as_array().unwrap().iter().find(|it| it["id"] == "b").unwrap();
    assert_eq!(text(called), "2025-03-26");
    let silent = json!([notification("notifications/x", json!({}))]);
    assert_eq!(session.post(&silent).status().await, 202);
    assert_eq!(session.post(&json!([])).status().await, 400);
}

#[tokio::test]
async fn other_revisions_have_no_batches() {
    let http = Http::serve(&server()).await;
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = HttpSession::begin(http, revision, json!({})).await;
        let reply = session.post(&pings()).send().await;
        assert_eq!(reply.status, 400, "{revision}");
        assert_eq!(code(&reply.response().await), -32600);
    }
    let begin = json!([request(1, "initialize", initialize("2025-03-26", json!({})))]);
    assert_eq!(http.post(begin.to_string()).status().await, 400);
}

#[tokio::test]
async fn a_batch_can_hold_answers_and_cancellations() {
    let gate = Gate::new();
    let server = asking::server();
    server.add_tool(gate.tool("wait"));
    let http = Http::serve(&server).await;
    let mut session = HttpSession::begin(http, "2025-03-26", capabilities()).await;
    let mut stream = session.open("tools/call", tool("both", json!({}))).await;
    let (one, two) = (stream.next().await, stream.next().await);
    let waiting = request("w", "tools/call", tool("wait", json!({})));
    let waiting = tokio::spawn(session.post(&waiting).send());
    gate.begun(1).await;
    let answer = |question: &Value, name: &str| json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept(name) });
    let batch = json!([
        answer(&one, "Ada"),
        notification("notifications/cancelled", json!({ "requestId": "w" })),
        answer(&two, "Bob"),
    ]);
    assert_eq!(session.post(&batch).status().await, 202);
    assert_eq!(text(&stream.next().await), "Ada and Bob");
    gate.ended(1).await;
    assert_eq!(waiting.await.unwrap().event().await, None);
}

#[tokio::test]
async fn a_batch_cannot_hide_modern_requests_from_the_headers() {
    let http = Http::serve(&server()).await;
    let session = HttpSession::begin(http, "2025-03-26", json!({})).await;
    let call = modern(tool("revision", json!({})));
    let batch = json!([request(1, "ping", json!({})), request(2, "tools/call", call)]);
    let responses = session.post(&batch).send().await.response().await;
    let of = |id: u64| responses.as_array().unwrap().iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(of(1)["result"], json!({}));
    assert_eq!(code(of(2)), -32600);
}
