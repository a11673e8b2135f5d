//! Modern requests over HTTP: their headers, their streams, and their ends.

use antiphon::Limits;
use antiphon_mcp::http::StreamableHttp;
use antiphon_mcp::types::Tool;
use antiphon_mcp::{McpServer, ServerTool};
use base64::Engine as _;
use serde_json::{Value, json};

use crate::support::gate::Gate;
use crate::support::http::{Http, HttpRequest};
use crate::support::{changes_filter, code, modern, modern_with, names, request, text, tool};
use crate::{asking, changes, lifecycle, signals};

#[tokio::test]
async fn a_request_stands_for_itself() {
    let http = Http::serve(&lifecycle::server()).await;
    let reply = http.modern(1, "tools/list", json!({})).send().await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    assert_eq!(names(&reply.response().await, "tools"), ["revision"]);
    let called = http.modern_call("tools/call", tool("revision", json!({}))).await;
    assert_eq!(text(&called), "2026-07-28");
    assert_eq!(called["result"]["resultType"], "complete");
    let unknown = http.modern(1, "no/such", json!({})).send().await;
    assert_eq!(unknown.status, 404);
    assert_eq!(code(&unknown.response().await), -32601);
    let notified = http.modern(1, "notifications/x", json!({}));
    let text =
        json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": modern(json!({})) });
    assert_eq!(notified.body(text.to_string()).status().await, 202);
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let http = Http::serve(&lifecycle::server()).await;
    let post = |body: Value| http.modern(1, "tools/list", json!({})).body(body.to_string());
    let params = modern(json!({}));
    for body in [
        json!({ "jsonrpc": "2.0", "id": null, "method": "tools/list", "params": params }),
        json!({ "jsonrpc": "2.0", "id": {}, "method": "tools/list", "params": params }),
        json!({ "jsonrpc": "2.0", "id": 1, "params": params }),
        json!({ "jsonrpc": "2.0", "params": params }),
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params }]),
    ] {
        let reply = post(body.clone()).send().await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(code(&reply.response().await), -32600, "{body}");
    }
}

#[tokio::test]
async fn headers_repeat_the_body() {
    let http = Http::serve(&lifecycle::server()).await;
    let call = || http.modern(1, "tools/call", tool("revision", json!({})));
    let encoded = base64::engine::general_purpose::STANDARD.encode("revision");
    let good: [HttpRequest; 3] = [
        call(),
        call().header("mcp-name", format!("=?base64?{encoded}?=")),
        call().header("mcp-name", " revision "),
    ];
    for request in good {
        assert_eq!(request.status().await, 200);
    }
    let bad: [(&str, HttpRequest); 9] = [
        ("no method", call().without("mcp-method")),
        ("no name", call().without("mcp-name")),
        ("no version", call().without("mcp-protocol-version")),
        ("another method", call().header("mcp-method", "tools/list")),
        ("another name", call().header("mcp-name", "other")),
        ("another case", call().header("mcp-name", "Revision")),
        ("two names", call().and_header("mcp-name", "other")),
        ("not base64", call().header("mcp-name", "=?base64?!!?=")),
        ("another revision", call().header("mcp-protocol-version", "2025-11-25")),
    ];
    for (what, request) in bad {
        let reply = request.send().await;
        assert_eq!(reply.status, 400, "{what}");
        assert_eq!(code(&reply.response().await), -32020, "{what}");
    }
}

#[tokio::test]
async fn the_body_is_checked_too() {
    let http = Http::serve(&lifecycle::server()).await;
    let send = |params: Value, version: &'static str| {
        http.modern(1, "tools/list", json!({}))
            .body(crate::support::request(1, "tools/list", params).to_string())
            .header("mcp-protocol-version", version)
            .send()
    };
    let mut unknown = modern(json!({}));
    unknown["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let reply = send(unknown, "2031-01-01").await;
    assert_eq!(reply.status, 400);
    assert_eq!(code(&reply.response().await), -32022);
    let mut bare = modern(json!({}));
    bare["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    for params in [bare, json!({}), json!({ "_meta": 7 })] {
        let reply = send(params, "2026-07-28").await;
        assert_eq!(reply.status, 400);
        assert_eq!(code(&reply.response().await), -32602);
    }
}

#[tokio::test]
async fn params_that_are_headers_are_compared() {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "size": { "type": "integer", "x-mcp-header": "Size" },
    } });
    let description = Tool::new("store", schema.as_object().unwrap().clone());
    let store = ServerTool::dynamic(description, |it, _cx| async move { it.as_str().to_owned() });
    let server = McpServer::builder("test", "1").tool(store.unwrap()).build();
    let http = Http::serve(&server).await;
    let call = |arguments: Value| http.modern(1, "tools/call", tool("store", arguments));
    for (request, status) in [
        (call(json!({})), 200),
        (call(json!({ "region": "eu" })).header("mcp-param-region", "eu"), 200),
        (call(json!({ "region": "eu" })).header("mcp-param-region", "=?base64?ZXU=?="), 200),
        (call(json!({ "region": "eu" })), 400),
        (call(json!({ "region": "eu" })).header("mcp-param-region", "us"), 400),
        (call(json!({})).header("mcp-param-region", "us"), 400),
        (call(json!({ "size": 7 })).header("mcp-param-size", "7"), 200),
        (call(json!({ "size": 7 })).header("mcp-param-size", "8"), 400),
    ] {
        assert_eq!(request.status().await, status);
    }
}

#[tokio::test]
async fn a_handler_is_dropped_when_its_client_leaves() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let http = Http::serve(&server).await;
    let call = tokio::spawn(http.modern(1, "tools/call", tool("wait", json!({}))).send());
    gate.begun(1).await;
    call.abort();
    gate.ended(1).await;
}

#[tokio::test]
async fn progress_and_logs_come_on_the_stream_of_the_call() {
    let server = McpServer::builder("test", "1")
        .tool(signals::progress("work", &[1.0, 2.0]))
        .tool(signals::logging())
        .build();
    let http = Http::serve(&server).await;
    let mut params = modern(tool("work", json!({})));
    params["_meta"]["progressToken"] = json!("p");
    let mut reply = http.modern(1, "tools/call", params.clone()).send().await;
    for step in [1, 2] {
        let event = reply.event().await.unwrap();
        assert_eq!(event.id, None, "a modern stream cannot be resumed");
        assert_eq!(event.json()["params"]["progress"], step);
    }
    assert_eq!(text(&reply.next().await), "done");
    assert_eq!(reply.event().await, None);
    let plain = http.modern(1, "tools/call", params).header("accept", "application/json");
    let reply = plain.send().await;
    assert!(!reply.is_stream());
    assert_eq!(text(&reply.response().await), "done");
}

#[tokio::test]
async fn a_subscription_is_a_stream() {
    let server = changes::server();
    let http = Http::serve(&server).await;
    let listen =
        |filter: Value| http.modern(7, "subscriptions/listen", changes_filter(filter)).send();
    let mut tools = listen(json!({ "toolsListChanged": true })).await;
    let mut resources = listen(json!({ "resourceSubscriptions": ["doc://a"] })).await;
    for stream in [&mut tools, &mut resources] {
        let first = stream.next().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    }
    server.resource_updated("doc://a");
    assert_eq!(resources.next().await["params"]["uri"], "doc://a");
    server.tools_changed();
    assert_eq!(tools.next().await["method"], "notifications/tools/list_changed");
    server.stop_listening();
    for stream in [&mut tools, &mut resources] {
        assert_eq!(stream.next().await["result"]["resultType"], "complete");
        assert_eq!(stream.event().await, None);
    }
}

#[tokio::test]
async fn a_missing_capability_gets_400() {
    let http = Http::serve(&asking::server()).await;
    let reply = http.modern(1, "tools/call", tool("name", json!({}))).send().await;
    assert_eq!(reply.status, 400);
    assert_eq!(code(&reply.response().await), -32021);
    let params = modern_with(tool("name", json!({})), json!({ "elicitation": {} }));
    let reply = http.modern(1, "tools/call", params).send().await;
    assert_eq!(reply.response().await["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn one_endpoint_serves_both_eras_without_sessions_too() {
    let options = StreamableHttp::new().sessions(false);
    let http = Http::serve_with(&lifecycle::server(), options, Limits::default()).await;
    assert_eq!(
        text(&http.modern_call("tools/call", tool("revision", json!({}))).await),
        "2026-07-28"
    );
}

#[tokio::test]
async fn no_message_passes_the_check_of_the_headers() {
    let http = Http::serve(&lifecycle::server()).await;
    let call = request(1, "tools/call", modern(tool("revision", json!({})))).to_string();
    let members = call.strip_prefix('{').unwrap();
    for (name, body) in [
        ("a name that is no text", format!(r#"{{"\ud800":1,{members}"#)),
        ("an unknown member twice", format!(r#"{{"a":1,"a":2,{members}"#)),
        ("a member twice", format!(r#"{{"id":1,{members}"#)),
        ("params twice", format!(r#"{{"params":{{}},{members}"#)),
        ("params that hide", call.replacen("\"params\"", "\"p\\u0061rams\"", 1)),
        (
            "a name in params that is no text",
            call.replacen("\"_meta\"", "\"\\udc00\":1,\"_meta\"", 1),
        ),
    ] {
        let reply = http.post(body).header("mcp-method", "ping").send().await;
        assert_eq!(reply.status, 400, "{name}");
        let response = reply.response().await;
        assert!(response["error"].is_object(), "{name}: {response}");
    }
}
