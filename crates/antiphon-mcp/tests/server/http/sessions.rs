//! Sessions over HTTP: their ids, their ends, and what keeps them apart.

use std::time::Duration;

use antiphon::{Identity, Limits};
use antiphon_mcp::McpServer;
use antiphon_mcp::http::StreamableHttp;
use serde_json::json;

use crate::lifecycle::server;
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{code, initialize, names, notification, request, text, tool};

#[tokio::test]
async fn a_session_lives_until_it_is_deleted() {
    let mut session = HttpSession::start(&server(), json!({})).await;
    assert_eq!(names(&session.call("tools/list", json!({})).await, "tools"), ["revision"]);
    assert_eq!(text(&session.call("tools/call", tool("revision", json!({}))).await), "2025-11-25");
    let mut stream = session.get().send().await;
    assert_eq!(stream.status, 200);
    assert_eq!(session.delete().status().await, 204);
    assert_eq!(stream.event().await, None, "the stream ends with its session");
    assert_eq!(session.delete().status().await, 404);
    assert_eq!(session.get().status().await, 404);
    let gone = session.post(&request(1, "ping", json!({}))).send().await;
    assert_eq!(gone.status, 404);
    let gone = gone.response().await;
    assert_eq!((code(&gone), &gone["id"]), (-32600, &json!(1)));
    let gone = session.post(&notification("notifications/x", json!({}))).send().await;
    assert_eq!(gone.status, 404);
    assert_eq!(gone.response().await.get("id"), None);
}

#[tokio::test]
async fn a_session_needs_its_id() {
    let session = HttpSession::start(&server(), json!({})).await;
    assert!(session.id.len() >= 20 && session.id.bytes().all(|byte| byte.is_ascii_graphic()));
    let ping = request(1, "ping", json!({}));
    assert_eq!(session.post(&ping).without("mcp-session-id").status().await, 400);
    let long = "x".repeat(10_000);
    for forged in ["", "x", &session.id[1..], &session.id.to_lowercase(), &long, "a b", "ü"] {
        let status = session.post(&ping).header("mcp-session-id", forged).status().await;
        assert_eq!(status, 404, "{forged}");
    }
    let http = session.http;
    let failed = http.post(request(1, "initialize", json!({})).to_string()).send().await;
    assert_eq!(failed.header("mcp-session-id"), None, "no session of a failed request");
}

#[tokio::test]
async fn sessions_with_equal_ids_and_tokens_do_not_mix() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let http = Http::serve(&server).await;
    let one = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let other = HttpSession::begin(http, "2025-03-26", json!({})).await;
    assert_ne!(one.id, other.id);
    let call = request("same", "tools/call", tool("wait", json!({})));
    let (post_one, post_other) = (one.post(&call), other.post(&call));
    let calls = tokio::spawn(async move { tokio::join!(post_one.send(), post_other.send()) });
    gate.begun(2).await;
    let cancelled = notification("notifications/cancelled", json!({ "requestId": "same" }));
    assert_eq!(other.post(&cancelled).status().await, 202);
    gate.ended(1).await;
    gate.open(1);
    let (reply_one, mut reply_other) = calls.await.unwrap();
    assert_eq!(text(&reply_one.response().await), "passed");
    assert_eq!(reply_other.event().await, None, "a cancelled call has no response");
}

#[tokio::test]
async fn an_id_can_be_used_again_only_after_its_response() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let mut session = HttpSession::start(&server, json!({})).await;
    let call = request(1, "tools/call", tool("wait", json!({})));
    let running = tokio::spawn(session.post(&call).send());
    gate.begun(1).await;
    let twice = session.post(&call).send().await;
    assert_eq!(code(&twice.response().await), -32600);
    gate.open(2);
    assert_eq!(text(&running.await.unwrap().response().await), "passed");
    assert_eq!(text(&session.call("tools/call", tool("wait", json!({}))).await), "passed");
}

#[tokio::test]
async fn idle_sessions_end_and_busy_ones_do_not() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let options = StreamableHttp::new().session_idle(Duration::from_millis(300));
    let http = Http::serve_with(&server, options, Limits::default()).await;
    let idle = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let read = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let mut calling = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let stream = read.get().send().await;
    let call = request(1, "tools/call", tool("wait", json!({})));
    let running = tokio::spawn(calling.post(&call).send());
    gate.begun(1).await;
    // A request would touch the session, so there is nothing to wait for but the time itself.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(idle.get().status().await, 404);
    gate.open(1);
    assert_eq!(text(&running.await.unwrap().response().await), "passed");
    assert_eq!(calling.call("ping", json!({})).await["result"], json!({}));
    assert_eq!(stream.status, 200);
    assert_eq!(read.post(&request(1, "ping", json!({}))).status().await, 200);
}

#[tokio::test]
async fn a_new_session_ends_the_one_that_is_idle_longest() {
    let options = StreamableHttp::new().max_sessions(2);
    let http = Http::serve_with(&server(), options, Limits::default()).await;
    let begin = || HttpSession::begin(http, "2025-11-25", json!({}));
    let (one, two) = (begin().await, begin().await);
    let ping = request(1, "ping", json!({}));
    assert_eq!(one.post(&ping).status().await, 200);
    let three = begin().await;
    assert_eq!(two.post(&ping).status().await, 404);
    let streams = [one.get().send().await, three.get().send().await];
    let params = initialize("2025-11-25", json!({}));
    let refused = http.post(request(1, "initialize", params).to_string()).send().await;
    assert_eq!((refused.status, refused.header("mcp-session-id")), (503, None));
    drop(streams);
}

#[tokio::test]
async fn without_sessions_each_request_stands_for_itself() {
    let options = StreamableHttp::new().sessions(false);
    let http = Http::serve_with(&server(), options, Limits::default()).await;
    let params = initialize("2025-11-25", json!({}));
    let begun = http.post(request(1, "initialize", params).to_string()).send().await;
    assert_eq!((begun.status, begun.header("mcp-session-id")), (200, None));
    assert_eq!(begun.response().await["result"]["protocolVersion"], "2025-11-25");
    let call = request(1, "tools/call", tool("revision", json!({}))).to_string();
    let called = http.post(&*call).header("mcp-protocol-version", "2025-06-18").send().await;
    assert_eq!(text(&called.response().await), "2025-06-18");
    let called = http.post(&*call).header("mcp-session-id", "any").send().await;
    assert_eq!(text(&called.response().await), "2025-03-26", "what no header means");
    let get = http.request("GET").header("accept", "text/event-stream");
    assert_eq!(get.header("mcp-session-id", "any").status().await, 405);
    assert_eq!(http.request("DELETE").status().await, 405);
    let subscribe = request(1, "resources/subscribe", json!({ "uri": "a:b" })).to_string();
    assert_eq!(code(&http.post(subscribe).send().await.response().await), -32601);
}

/// A layer that takes the name of the caller from a header, as one that checks tokens would.
fn named<B>(mut request: antiphon::http::Request<B>) -> antiphon::http::Request<B> {
    if let Some(name) = request.headers().get("x-name").and_then(|name| name.to_str().ok()) {
        let identity = Identity::new(name);
        request.extensions_mut().insert(identity);
    }
    request
}

#[tokio::test]
async fn a_session_belongs_to_who_has_begun_it() {
    let mcp = server().http_service(StreamableHttp::new().http_sse(true));
    let naming = tower::util::MapRequest::new(mcp, named::<axum::body::Body>);
    let app = axum::Router::<()>::new().route_service("/mcp", naming);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let http = Http { port: listener.local_addr().unwrap().port() };
    tokio::spawn(async move { axum::serve(listener, app).await });
    let params = initialize("2025-11-25", json!({}));
    let begin = http.post(request(1, "initialize", params).to_string()).header("x-name", "ada");
    let begun = begin.send().await;
    let id = begun.header("mcp-session-id").unwrap();
    let ping = http.post(request(1, "ping", json!({})).to_string()).header("mcp-session-id", id);
    let get =
        http.request("GET").header("accept", "text/event-stream").header("mcp-session-id", id);
    let delete = http.request("DELETE").header("mcp-session-id", id);
    for other in ["bob", "Ada"] {
        for request in [ping.clone(), get.clone(), delete.clone()] {
            assert_eq!(request.header("x-name", other).status().await, 404, "{other}");
        }
    }
    assert_eq!(ping.clone().status().await, 404, "a caller without a name");
    assert_eq!(ping.header("x-name", "ada").status().await, 200);
    let get = http.request("GET").header("accept", "text/event-stream").header("x-name", "ada");
    let path = get.send().await.event().await.unwrap().data;
    let post = http.post(request(1, "ping", json!({})).to_string()).path(path);
    assert_eq!(post.clone().header("x-name", "bob").status().await, 404);
}
