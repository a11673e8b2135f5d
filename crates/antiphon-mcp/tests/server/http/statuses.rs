//! The statuses of requests, and who may send one.

use antiphon::Limits;
use antiphon_mcp::http::StreamableHttp;
use serde_json::{Value, json};

use crate::lifecycle::server;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{initialize, notification, request};

fn begin() -> String {
    request(1, "initialize", initialize("2025-11-25", json!({}))).to_string()
}

#[tokio::test]
async fn methods_and_media_types_are_checked() {
    let http = Http::serve(&server()).await;
    for method in ["GET", "DELETE", "PUT", "PATCH"] {
        assert_eq!(http.request(method).status().await, 405, "{method}");
    }
    let get = http.request("GET").header("accept", "text/event-stream").send().await;
    assert_eq!((get.status, get.header("allow")), (405, Some("POST")));
    assert_eq!(http.request("GET").header("accept", "text/html").status().await, 406);
    for (kind, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
    ] {
        assert_eq!(
            http.post(begin()).header("content-type", kind).status().await,
            status,
            "{kind}"
        );
    }
    assert_eq!(http.post(begin()).without("content-type").status().await, 415);
    for (accepted, status) in [
        ("application/json", 200),
        ("text/event-stream", 200),
        ("application/*", 200),
        ("*/*", 200),
        ("text/html", 406),
        ("", 406),
    ] {
        let post = http.post(begin()).header("accept", accepted);
        assert_eq!(post.status().await, status, "{accepted}");
    }
    assert_eq!(http.post(begin()).without("accept").status().await, 200);
    assert_eq!(http.post(begin()).path("/other").status().await, 404);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let http = Http::serve(&server()).await;
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""] {
        assert_eq!(http.post(begin()).header("host", host).status().await, 403, "{host}");
    }
    let localhost = format!("localhost:{}", http.port);
    assert_eq!(http.post(begin()).header("host", &localhost).status().await, 200);
    for origin in ["http://evil.example", "null", "file://", "http://127.0.0.1:1"] {
        assert_eq!(http.post(begin()).header("origin", origin).status().await, 403, "{origin}");
        let get = http.request("GET").header("origin", origin);
        assert_eq!(get.header("accept", "text/event-stream").status().await, 403, "{origin}");
    }
    let own = format!("http://127.0.0.1:{}", http.port);
    assert_eq!(http.post(begin()).header("origin", &own).status().await, 200);
}

#[tokio::test]
async fn what_is_no_message_gets_400() {
    let mut session = HttpSession::start(&server(), json!({})).await;
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("7", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, -32602),
    ] {
        let reply = session.of_session(session.http.post(body)).send().await;
        let expected = if code == -32602 { 200 } else { 400 };
        assert_eq!(reply.status, expected, "{body}");
        assert_eq!(reply.response().await["error"]["code"], code, "{body}");
    }
    assert_eq!(session.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn notifications_and_responses_get_202() {
    let session = HttpSession::start(&server(), json!({})).await;
    for accepted in [
        notification("notifications/cancelled", json!({ "requestId": 7 })),
        notification("notifications/cancelled", json!({})),
        notification("notifications/roots/list_changed", json!({})),
        notification("no/such", json!({})),
        json!({ "jsonrpc": "2.0", "id": 7, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": "7", "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": 1, "message": "m" } }),
    ] {
        let mut reply = session.post(&accepted).send().await;
        assert_eq!((reply.status, reply.text().await), (202, String::new()), "{accepted}");
    }
    for invalid in [
        json!({ "jsonrpc": "2.0", "id": 7, "result": {}, "error": { "code": 1, "message": "m" } }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": 7 }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": {} }),
    ] {
        assert_eq!(session.post(&invalid).status().await, 400, "{invalid}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let limits = Limits { frame_bytes: 10_000, ..Limits::default() };
    let http = Http::serve_with(&server(), StreamableHttp::new(), limits).await;
    let long = request(1, "initialize", json!({ "a": "x".repeat(20_000) })).to_string();
    assert_eq!(http.post(long).status().await, 413);
    assert_eq!(http.post(begin()).status().await, 200);
    let http = Http::serve(&server()).await;
    let mut huge = initialize("2025-11-25", json!({}));
    huge["capabilities"]["experimental"] = json!({ "a": { "b": "x".repeat(100_000) } });
    let reply = http.post(request(1, "initialize", huge).to_string()).send().await;
    assert_eq!(reply.header("mcp-session-id"), None);
    assert_eq!(reply.response().await["error"]["code"], -32602);
}

#[tokio::test]
async fn the_header_of_the_revision_is_checked() {
    let session = HttpSession::start(&server(), json!({})).await;
    let ping = request(1, "ping", json!({}));
    for (version, status) in
        [("2025-11-25", 200), ("2024-11-05", 200), ("1999-01-01", 400), ("", 400), ("x", 400)]
    {
        let post = session.post(&ping).header("mcp-protocol-version", version);
        assert_eq!(post.status().await, status, "{version}");
    }
    let reply = session.post(&ping).header("mcp-protocol-version", "x").send().await;
    let response: Value = reply.response().await;
    assert_eq!((&response["error"]["code"], &response["id"]), (&json!(-32022), &json!(1)));
    for request in [session.get(), session.delete()] {
        assert_eq!(request.header("mcp-protocol-version", "1999-01-01").status().await, 400);
    }
    assert_eq!(session.post(&ping).without("mcp-protocol-version").status().await, 200);
}
