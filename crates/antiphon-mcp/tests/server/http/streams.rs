//! Event streams of a session: of a call, of the session itself, and their resumption.

use antiphon_mcp::types::LoggingLevel;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::{Value, json};

use crate::asking::{accept, capabilities};
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{notification, request, text, tool};
use crate::{asking, changes};

/// A server with a tool that logs, waits at the gate, logs again and ends.
fn server(gate: &Gate, closes: bool) -> McpServer {
    let gate = gate.clone();
    let talk = ServerTool::new("talk", move |(): (), cx: RequestContext| {
        let gate = gate.clone();
        async move {
            cx.log(LoggingLevel::Info, "before").await;
            if closes {
                assert!(cx.close_stream());
            }
            gate.pass().await;
            cx.log(LoggingLevel::Info, "after").await;
            "done"
        }
    });
    McpServer::builder("test", "1").tool(talk).build()
}

fn data(message: &Value) -> &str {
    message["params"]["data"].as_str().unwrap_or_else(|| panic!("no log: {message}"))
}

#[tokio::test]
async fn a_call_that_its_client_has_left_is_resumed_while_it_runs() {
    let gate = Gate::new();
    let mut session = HttpSession::start(&server(&gate, false), json!({})).await;
    let mut stream = session.open("tools/call", tool("talk", json!({}))).await;
    let first = stream.event().await.unwrap();
    assert_eq!(data(&first.json()), "before");
    drop(stream);
    gate.begun(1).await;
    let mut resumed = session.resume(first.id.as_deref().unwrap()).await;
    assert_eq!(resumed.status, 200);
    gate.open(1);
    let second = resumed.event().await.unwrap();
    assert_eq!(data(&second.json()), "after");
    assert_eq!(text(&resumed.next().await), "done");
    assert_eq!(resumed.event().await, None);
    // Afterwards too, as often as the client wants.
    for _ in 0..2 {
        let mut again = session.resume(second.id.as_deref().unwrap()).await;
        assert_eq!(text(&again.next().await), "done");
        assert_eq!(again.event().await, None);
    }
}

#[tokio::test]
async fn a_handler_can_close_its_stream() {
    let gate = Gate::new();
    let mut session = HttpSession::start(&server(&gate, true), json!({})).await;
    let mut stream = session.open("tools/call", tool("talk", json!({}))).await;
    assert_eq!(data(&stream.next().await), "before");
    let priming = stream.event().await.unwrap();
    assert_eq!((priming.data.as_str(), priming.retry), ("", Some(1000)));
    assert_eq!(stream.event().await, None);
    gate.open(1);
    gate.ended(1).await;
    let mut resumed = session.resume(priming.id.as_deref().unwrap()).await;
    assert_eq!(data(&resumed.next().await), "after");
    assert_eq!(text(&resumed.next().await), "done");
}

#[tokio::test]
async fn ids_that_are_forged_or_of_another_session_are_refused() {
    let gate = Gate::new();
    gate.open(10);
    let http = Http::serve(&server(&gate, false)).await;
    let mut session = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let other = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let mut stream = session.open("tools/call", tool("talk", json!({}))).await;
    let mut last = stream.event().await.unwrap();
    while let Some(event) = stream.event().await {
        last = event;
    }
    let id = last.id.unwrap();
    let long = "9".repeat(5_000);
    for forged in ["", "x", "1", "-", "1-", "-1", "1-99", "99-0", "0-1", "1-1-1", &long, "ü"] {
        assert_eq!(session.get().header("last-event-id", forged).status().await, 400, "{forged}");
    }
    assert_eq!(other.get().header("last-event-id", &id).status().await, 400);
    assert_eq!(session.resume(&id).await.event().await, None, "nothing was missed");
}

#[tokio::test]
async fn a_cancelled_call_ends_the_stream_that_was_resumed() {
    let gate = Gate::new();
    let mut session = HttpSession::start(&server(&gate, false), json!({})).await;
    let mut stream = session.open("tools/call", tool("talk", json!({}))).await;
    let first = stream.event().await.unwrap();
    drop(stream);
    gate.begun(1).await;
    let mut resumed = session.resume(first.id.as_deref().unwrap()).await;
    let cancelled = notification("notifications/cancelled", json!({ "requestId": 1 }));
    assert_eq!(session.post(&cancelled).status().await, 202);
    gate.ended(1).await;
    assert_eq!(resumed.event().await, None, "no response, but an end");
}

#[tokio::test]
async fn a_call_is_cancelled_by_a_post_and_not_by_a_disconnect() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let session = HttpSession::start(&server, json!({})).await;
    let call = |id: &str| session.post(&request(id, "tools/call", tool("wait", json!({}))));
    let left = tokio::spawn(call("left").send());
    gate.begun(1).await;
    left.abort();
    let _ = left.await;
    let running = tokio::spawn(call("1").send());
    gate.begun(2).await;
    let cancel = |id: Value| {
        session.post(&notification("notifications/cancelled", json!({ "requestId": id }))).status()
    };
    // The number is not the text.
    assert_eq!(cancel(json!(1)).await, 202);
    assert_eq!(cancel(json!("1")).await, 202);
    gate.ended(1).await;
    assert_eq!(running.await.unwrap().event().await, None);
    gate.open(1);
    gate.ended(2).await;
}

#[tokio::test]
async fn the_stream_of_the_session_tells_changes() {
    let server = changes::server();
    let mut session = HttpSession::start(&server, json!({})).await;
    session.call("resources/subscribe", json!({ "uri": "doc://a" })).await;
    // Nobody reads: each change waits once.
    for _ in 0..1000 {
        server.tools_changed();
        server.resource_updated("doc://a");
        server.resource_updated("doc://b");
    }
    let mut stream = session.get().send().await;
    assert_eq!(stream.next().await["method"], "notifications/tools/list_changed");
    let update = stream.event().await.unwrap();
    assert_eq!(update.json()["params"]["uri"], "doc://a");
    server.prompts_changed();
    assert_eq!(stream.next().await["method"], "notifications/prompts/list_changed");
    // A second reader replaces the first.
    let mut second = session.get().send().await;
    server.tools_changed();
    assert_eq!(second.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(stream.event().await, None);
    let mut resumed = session.resume(update.id.as_deref().unwrap()).await;
    assert_eq!(resumed.next().await["method"], "notifications/prompts/list_changed");
    assert_eq!(resumed.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(second.event().await, None);
}

#[tokio::test]
async fn a_question_goes_out_on_the_stream_of_its_call() {
    let http = Http::serve(&asking::server()).await;
    let mut one = HttpSession::begin(http, "2025-06-18", capabilities()).await;
    let mut other = HttpSession::begin(http, "2025-06-18", capabilities()).await;
    let mut stream = one.open("tools/call", tool("name", json!({}))).await;
    let mut other_stream = other.open("tools/call", tool("name", json!({}))).await;
    let (question, other_question) = (stream.next().await, other_stream.next().await);
    assert_eq!(question["id"], other_question["id"], "ids of different sessions may be equal");
    other.answer(&other_question, accept("Bob")).await;
    one.answer(&question, accept("Ada")).await;
    assert_eq!(text(&stream.next().await), "Ada");
    assert_eq!(text(&other_stream.next().await), "Bob");
    // Two questions at once, and a client that accepts no stream.
    let mut stream = one.open("tools/call", tool("both", json!({}))).await;
    let (first, second) = (stream.next().await, stream.next().await);
    one.answer(&second, accept("Eve")).await;
    one.answer(&first, accept("Ada")).await;
    assert_eq!(text(&stream.next().await), "Ada and Eve");
    let call = one.post(&request(9, "tools/call", tool("name", json!({}))));
    let response = call.header("accept", "application/json").send().await.response().await;
    assert_eq!(response["result"]["isError"], true, "{response}");
}

#[tokio::test]
async fn a_question_that_waits_ends_with_its_session() {
    let mut session = HttpSession::start(&asking::server(), capabilities()).await;
    let mut stream = session.open("tools/call", tool("name", json!({}))).await;
    let question = stream.next().await;
    assert_eq!(session.delete().status().await, 204);
    // Either the call is cancelled first, or its question.
    if let Some(last) = stream.event().await {
        assert_eq!(last.json()["result"]["isError"], true, "{last:?}");
    }
    assert_eq!(stream.event().await, None);
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept("Ada") });
    assert_eq!(session.post(&answer).status().await, 404);
}
