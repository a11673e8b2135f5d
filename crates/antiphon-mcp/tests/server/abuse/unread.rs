//! Clients that ask for much and read nothing.

use std::time::Duration;

use antiphon::Limits;
use antiphon_mcp::http::StreamableHttp;
use antiphon_mcp::types::LoggingLevel;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::{Value, json};

use crate::changes;
use crate::support::duplex::{Duplex, serve_tcp};
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{modern, notification, tool};

/// How much a handler tells: more than every buffer on the way holds.
const MESSAGES: usize = 20_000;

/// A server with a tool that floods its client, and then passes the gate, which is open.
fn server(gate: &Gate) -> McpServer {
    let gate = gate.clone();
    let flood = ServerTool::new("flood", move |(): (), cx: RequestContext| {
        let gate = gate.clone();
        async move {
            let _running = gate.visit();
            let line = "x".repeat(1000);
            for _ in 0..MESSAGES {
                cx.log(LoggingLevel::Info, &line).await;
            }
            "done"
        }
    });
    McpServer::builder("test", "1").tool(flood).build()
}

fn limits() -> Limits {
    Limits { stall_timeout: Duration::from_millis(300), ..Limits::default() }
}

fn modern_flood() -> Value {
    let mut params = modern(tool("flood", json!({})));
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    params
}

#[tokio::test]
async fn a_legacy_post_that_nobody_reads_does_not_hold_its_handler() {
    let gate = Gate::new();
    let http = Http::serve_with(&server(&gate), StreamableHttp::new(), limits()).await;
    let mut greedy = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let mut other = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let unread = greedy.open("tools/call", tool("flood", json!({}))).await;
    gate.begun(1).await;
    assert_eq!(other.call("ping", json!({})).await["result"], json!({}));
    gate.ended(1).await;
    assert_eq!(greedy.call("ping", json!({})).await["result"], json!({}));
    drop(unread);
}

#[tokio::test]
async fn a_modern_post_that_nobody_reads_ends_its_handler() {
    let gate = Gate::new();
    let http = Http::serve_with(&server(&gate), StreamableHttp::new(), limits()).await;
    let unread = http.modern(1, "tools/call", modern_flood()).send().await;
    gate.begun(1).await;
    assert!(http.modern_call("tools/list", json!({})).await["result"].is_object());
    gate.ended(1).await;
    drop(unread);
}

#[tokio::test]
async fn a_duplex_client_that_reads_nothing_waits_alone() {
    let gate = Gate::new();
    let limits = Limits { shutdown_timeout: Duration::from_millis(10), ..limits() };
    let port = serve_tcp(&server(&gate), limits).await;
    let (mut greedy, mut other) = (Duplex::to_port(port).await, Duplex::to_port(port).await);
    for client in [&mut greedy, &mut other] {
        client.initialize("2025-11-25", json!({})).await;
    }
    for _ in 0..10 {
        greedy.begin("tools/call", tool("flood", json!({}))).await;
    }
    gate.begun(1).await;
    for _ in 0..10 {
        assert_eq!(other.call("ping", json!({})).await["result"], json!({}));
    }
    gate.ended(gate.count()).await;
}

#[tokio::test]
async fn a_get_that_nobody_reads_loses_its_stream_and_nothing_else() {
    let server = changes::server();
    let http = Http::serve(&server).await;
    let mut session = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let uri = "d:".to_owned() + &"x".repeat(10_000);
    let subscribed = session.call("resources/subscribe", json!({ "uri": uri })).await;
    assert_eq!(subscribed["result"], json!({}));
    let mut unread = session.get().send().await;
    for _ in 0..MESSAGES {
        server.resource_updated(&uri);
        tokio::task::yield_now().await;
    }
    assert_eq!(session.call("ping", json!({})).await["result"], json!({}));
    let mut got = 0;
    while let Some(event) = unread.event().await {
        assert_eq!(event.json()["method"], "notifications/resources/updated");
        got += 1;
        if got == MESSAGES {
            break;
        }
    }
    assert!(got < MESSAGES, "the buffers have no bound");
    let mut next = session.get().send().await;
    assert_eq!(next.next().await["params"]["uri"], uri, "the update that nobody has read");
}

#[tokio::test]
async fn subscriptions_that_nobody_reads_take_no_more_than_their_changes() {
    let server = changes::server();
    let port = serve_tcp(&server, limits()).await;
    let (mut unread, mut other) = (Duplex::to_port(port).await, Duplex::to_port(port).await);
    other.initialize("2025-11-25", json!({})).await;
    for _ in 0..50 {
        let filter = modern(json!({ "notifications": { "toolsListChanged": true } }));
        unread.begin("subscriptions/listen", filter).await;
        assert!(unread.next().await["method"].is_string());
    }
    for _ in 0..MESSAGES {
        server.tools_changed();
    }
    let changed = other.next().await;
    assert_eq!(changed, notification("notifications/tools/list_changed", json!({})));
    for _ in 0..50 {
        assert!(unread.next().await["method"].is_string());
    }
    assert!(unread.call("tools/list", modern(json!({}))).await["result"].is_object());
}
