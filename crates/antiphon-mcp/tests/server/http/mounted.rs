//! The endpoint inside an application that has its own HTTP server, beside a plain JSON-RPC service.

use antiphon::transport::http::{Guard, HttpService};
use antiphon::{Context, Router};
use antiphon_mcp::McpServer;
use antiphon_mcp::http::StreamableHttp;
use serde_json::json;

use crate::lifecycle::server;
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{code, modern, names, request, text, tool};

async fn serve() -> Http {
    serve_server(server()).await.0
}

async fn serve_server(server: McpServer) -> (Http, tokio::task::JoinHandle<std::io::Result<()>>) {
    let mcp = server.http_service(StreamableHttp::new()).guard(Guard::new().loopback_only());
    let add = |(a, b): (i64, i64), _cx: Context| async move { Ok(a + b) };
    let rpc = HttpService::new(Router::new().method("add", add));
    let app = axum::Router::<()>::new().route_service("/mcp", mcp).route_service("/rpc", rpc);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    (Http { port }, serving)
}

#[tokio::test]
async fn both_services_answer() {
    let http = serve().await;
    let mut session = HttpSession::begin(http, "2025-11-25", json!({})).await;
    assert_eq!(names(&session.call("tools/list", json!({})).await, "tools"), ["revision"]);
    let called = http.modern_call("tools/call", tool("revision", json!({}))).await;
    assert_eq!(text(&called), "2026-07-28");
    let add = json!({ "jsonrpc": "2.0", "id": 1, "method": "add", "params": [1, 2] });
    let sum = http.post(add.to_string()).path("/rpc").send().await.response().await;
    assert_eq!(sum["result"], 3);
    let stranger = http.post(request(1, "tools/list", modern(json!({}))).to_string());
    assert_eq!(code(&stranger.path("/rpc").send().await.response().await), -32601);
    assert_eq!(session.delete().status().await, 204);
}

#[tokio::test]
async fn the_guard_of_the_service_is_kept() {
    let http = serve().await;
    let list = || http.modern(1, "tools/list", json!({}));
    assert_eq!(list().status().await, 200);
    assert_eq!(list().header("host", "evil.example").status().await, 403);
    assert_eq!(list().header("origin", "http://evil.example").status().await, 403);
}

#[tokio::test]
async fn sessions_end_with_the_service() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let (http, serving) = serve_server(server).await;
    let session = HttpSession::begin(http, "2025-11-25", json!({})).await;
    // Its client leaves, so the call runs on.
    let call = session.post(&request(1, "tools/call", tool("wait", json!({}))));
    let call = tokio::spawn(call.send());
    gate.begun(1).await;
    call.abort();
    assert!(call.await.is_err());
    serving.abort();
    gate.ended(1).await;
}
