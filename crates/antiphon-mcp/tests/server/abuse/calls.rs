//! Calls that do not end: of clients that have left, that do not answer, or that listen.

use std::time::Duration;

use antiphon::Limits;
use antiphon_mcp::http::StreamableHttp;
use antiphon_mcp::types::ElicitFormParams;
use antiphon_mcp::{McpServer, RequestContext, Rounds, ServerTool, ToolError};
use serde_json::{Value, json};

use crate::changes;
use crate::support::duplex::{Duplex, serve_tcp};
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{code, modern, modern_with, request, text, tool};

#[tokio::test]
async fn calls_that_outlive_their_clients_are_limited() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let options = StreamableHttp::new().session_calls(3).max_calls(5);
    let http = Http::serve_with(&server, options, Limits::default()).await;
    let one = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let other = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let call = |session: &HttpSession, id: usize| {
        session.post(&request(id, "tools/call", tool("wait", json!({}))))
    };
    for (begun, session) in [&one, &one, &one, &other, &other].into_iter().enumerate() {
        let left = tokio::spawn(call(session, begun).send());
        gate.begun(begun + 1).await;
        left.abort();
    }
    for session in [&one, &other] {
        let refused = call(session, 9).send().await.response().await;
        assert_eq!(code(&refused), -32009);
    }
    let third = HttpSession::begin(http, "2025-11-25", json!({})).await;
    assert_eq!(code(&call(&third, 9).send().await.response().await), -32009);
    assert_eq!(gate.count(), 5);
    gate.open(6);
    gate.ended(5).await;
    assert_eq!(text(&call(&third, 9).send().await.response().await), "passed");
}

/// A tool that asks, and holds a place at the gate while it waits.
fn asking(gate: &Gate) -> ServerTool {
    let gate = gate.clone();
    ServerTool::new("ask", move |(): (), cx: RequestContext| {
        let gate = gate.clone();
        async move {
            let _running = gate.visit();
            cx.elicit(ElicitFormParams::new("?", antiphon_mcp::types::ElicitationSchema::new()))
                .await?;
            Ok::<_, ToolError>("answered")
        }
    })
}

fn elicitation() -> Value {
    json!({ "elicitation": {} })
}

#[tokio::test]
async fn questions_that_nobody_answers_end_with_their_connection() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(asking(&gate)).build();
    let limits = Limits { shutdown_timeout: Duration::from_millis(10), ..Limits::default() };
    let port = serve_tcp(&server, limits).await;
    let (mut silent, mut other) = (Duplex::to_port(port).await, Duplex::to_port(port).await);
    for client in [&mut silent, &mut other] {
        client.initialize("2025-11-25", elicitation()).await;
    }
    for _ in 0..3000 {
        silent.begin("tools/call", tool("ask", json!({}))).await;
    }
    gate.begun(1024).await;
    assert_eq!(gate.count(), 1024, "the limit of requests in flight");
    assert_eq!(other.call("ping", json!({})).await["result"], json!({}));
    drop(silent);
    gate.ended(gate.count()).await;
}

#[tokio::test]
async fn questions_that_nobody_answers_time_out() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(asking(&gate));
    let server = server.ask_timeout(Duration::from_millis(200)).build();
    let mut session = HttpSession::start(&server, elicitation()).await;
    let mut stream = session.open("tools/call", tool("ask", json!({}))).await;
    assert_eq!(stream.next().await["method"], "elicitation/create");
    assert_eq!(stream.next().await["result"]["isError"], true);
    gate.ended(1).await;
    let mut client = Duplex::start(&server, "2025-06-18", elicitation()).await;
    client.begin("tools/call", tool("ask", json!({}))).await;
    let question = client.next().await;
    let withdrawn = client.next().await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert_eq!(client.next().await["result"]["isError"], true);
}

#[tokio::test]
async fn kept_handlers_are_limited() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(asking(&gate));
    let server = server.rounds(Rounds::Keep).kept_handlers(10).build();
    let mut client = Duplex::connect(&server).await;
    for number in 0..100 {
        let asked =
            client.call("tools/call", modern_with(tool("ask", json!({})), elicitation())).await;
        match number {
            0..10 => assert_eq!(asked["result"]["resultType"], "input_required"),
            _ => assert_eq!(asked["error"]["code"], -32009, "{asked}"),
        }
    }
    gate.ended(90).await;
    drop((client, server));
}

#[tokio::test]
async fn listeners_are_limited_by_the_requests_in_flight() {
    let server = changes::server();
    let limits = Limits { in_flight: 20, ..Limits::default() };
    let port = serve_tcp(&server, limits).await;
    let (mut flood, mut other) = (Duplex::to_port(port).await, Duplex::to_port(port).await);
    other.initialize("2025-11-25", json!({})).await;
    let filter = modern(json!({ "notifications": { "toolsListChanged": true } }));
    for _ in 0..100 {
        flood.begin("subscriptions/listen", filter.clone()).await;
    }
    for _ in 0..20 {
        let acknowledged = flood.next().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    }
    assert_eq!(other.call("ping", json!({})).await["result"], json!({}));
    server.tools_changed();
    assert_eq!(other.next().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn panics_cost_one_call_each() {
    let panic = ServerTool::new("panic", |(): (), _cx: RequestContext| async {
        assert!(std::hint::black_box(false), "a handler that panics");
    });
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(panic).tool(gate.tool("wait")).build();
    let options = StreamableHttp::new().session_calls(2).max_calls(2);
    let http = Http::serve_with(&server, options, Limits::default()).await;
    let mut session = HttpSession::begin(http, "2025-11-25", json!({})).await;
    for _ in 0..50 {
        assert_eq!(code(&session.call("tools/call", tool("panic", json!({}))).await), -32603);
    }
    gate.open(1);
    assert_eq!(text(&session.call("tools/call", tool("wait", json!({}))).await), "passed");
}
