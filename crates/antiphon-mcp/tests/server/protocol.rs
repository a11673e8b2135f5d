//! JSON-RPC itself: ids, batches, cancellation, and messages that are none.

use std::collections::BTreeSet;
use std::time::Duration;

use antiphon::Limits;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::{Value, json};

use crate::support::duplex::Duplex;
use crate::support::gate::Gate;
use crate::support::{code, modern, notification, request, text, tool};

fn server(gate: &Gate) -> McpServer {
    McpServer::builder("test", "1")
        .tool(gate.tool("wait"))
        .tool(ServerTool::new("panic", |(): (), _cx: RequestContext| async {
            assert!(std::hint::black_box(false), "a handler that panics");
        }))
        .build()
}

#[tokio::test]
async fn null_is_not_an_id() {
    let mut client = Duplex::start(&server(&Gate::new()), "2025-11-25", json!({})).await;
    for params in [json!({}), modern(json!({}))] {
        client.send(&request(Value::Null, "tools/list", params)).await;
        let response = client.next().await;
        assert_eq!((code(&response), &response["id"]), (-32600, &Value::Null));
    }
}

#[tokio::test]
async fn an_id_comes_back_byte_for_byte() {
    let mut client = Duplex::start(&server(&Gate::new()), "2025-11-25", json!({})).await;
    for id in [r#""1""#, "1", "1e0", "-7", "12345678901234567890123", r#""\u0041""#] {
        client.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
        let line = client.next_line().await.unwrap();
        assert!(line.contains(&format!(r#""id":{id}"#)), "{id}: {line}");
    }
}

#[tokio::test]
async fn a_cancelled_call_gets_no_response() {
    let gate = Gate::new();
    let mut client = Duplex::start(&server(&gate), "2025-11-25", json!({})).await;
    for (round, params) in
        [tool("wait", json!({})), modern(tool("wait", json!({})))].iter().enumerate()
    {
        let id = client.begin("tools/call", params.clone()).await;
        gate.begun(round + 1).await;
        // Neither another id, nor a text that looks like it.
        for other in [json!(id + 1000), json!(id.to_string()), json!(null), json!({})] {
            client
                .send(&notification("notifications/cancelled", json!({ "requestId": other })))
                .await;
        }
        client.send(&notification("notifications/cancelled", json!({}))).await;
        assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
        client.send(&notification("notifications/cancelled", json!({ "requestId": id }))).await;
        gate.ended(round + 1).await;
        assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
    }
}

#[tokio::test]
async fn a_handler_is_dropped_with_its_connection() {
    let gate = Gate::new();
    // A server cannot see whether a client has only closed its sending side, so it lets calls finish for this long.
    let limits = Limits { shutdown_timeout: Duration::from_millis(10), ..Limits::default() };
    let mut client = Duplex::connect_with(&server(&gate), limits).await;
    client.initialize("2025-11-25", json!({})).await;
    client.begin("tools/call", tool("wait", json!({}))).await;
    gate.begun(1).await;
    drop(client);
    gate.ended(1).await;
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_call_only() {
    let gate = Gate::new();
    let mut client = Duplex::start(&server(&gate), "2025-11-25", json!({})).await;
    let waiting = client.begin("tools/call", tool("wait", json!({}))).await;
    for params in [tool("panic", json!({})), modern(tool("panic", json!({})))] {
        assert_eq!(code(&client.call("tools/call", params).await), -32603);
    }
    gate.open(1);
    let response = client.next().await;
    assert_eq!((response["id"].as_u64(), text(&response)), (Some(waiting), "passed"));
}

#[tokio::test]
async fn messages_that_are_none_get_one_error_each() {
    let mut client = Duplex::start(&server(&Gate::new()), "2025-11-25", json!({})).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
        "[".repeat(1000),
        "]".repeat(1000)
    );
    for (sent, expected) in [
        ("{", -32700),
        ("nonsense", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, -32700),
        ("7", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#, -32600),
        (deep.as_str(), -32700),
        (nested.as_str(), -32700),
    ] {
        client.send_text(sent).await;
        let response = client.next().await;
        let shown: String = sent.chars().take(80).collect();
        assert!([expected, -32600].contains(&code(&response)), "{shown}: {response}");
    }
    client.send_bytes(b"\"\xff\xfe\"\n").await;
    assert_eq!(code(&client.next().await), -32700);
    // A name with half of a surrogate pair is nobody's name.
    client.send_text(r#"{"jsonrpc":"2.0","id":"s","method":"\ud800"}"#).await;
    assert!(client.next().await["error"].is_object());
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn responses_that_nobody_asked_for_are_ignored() {
    let mut client = Duplex::start(&server(&Gate::new()), "2025-11-25", json!({})).await;
    for id in [json!(1), json!("x"), json!(null), json!(-1), json!(1.5)] {
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} })).await;
        let error = json!({ "code": 1, "message": "m" });
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error, "result": {} })).await;
    }
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

fn batch(ids: std::ops::Range<u64>) -> Value {
    ids.map(|id| request(id, "ping", json!({}))).collect()
}

#[tokio::test]
async fn only_one_revision_has_batches() {
    let mut client = Duplex::start(&server(&Gate::new()), "2025-03-26", json!({})).await;
    client.send(&batch(10..13)).await;
    let responses = client.next().await;
    let ids: BTreeSet<_> =
        responses.as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, BTreeSet::from([10, 11, 12]));
    client.send(&json!([])).await;
    assert_eq!(code(&client.next().await), -32600);
    for other in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut client = Duplex::start(&server(&Gate::new()), other, json!({})).await;
        client.send(&batch(10..13)).await;
        let refused = client.next().await;
        assert_eq!((code(&refused), &refused["id"]), (-32600, &Value::Null), "{other}: {refused}");
        assert_eq!(client.call("ping", json!({})).await["result"], json!({}), "{other}");
    }
}

#[tokio::test]
async fn a_line_over_the_limit_is_refused_and_the_next_is_served() {
    let limits = Limits { frame_bytes: 10_000, ..Limits::default() };
    let mut client = Duplex::connect_with(&server(&Gate::new()), limits).await;
    client.initialize("2025-11-25", json!({})).await;
    client.begin("ping", json!({ "a": "x".repeat(20_000) })).await;
    let response = client.next().await;
    assert!(response["error"]["message"].as_str().is_some(), "{response}");
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}
