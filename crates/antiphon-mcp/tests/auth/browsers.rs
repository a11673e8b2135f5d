//! A server that requires tokens, and a web page whose origin it allows.

use antiphon::http::{HeaderMap, Request, Response, StatusCode};
use antiphon::transport::http::Guard;
use antiphon_mcp::auth::Challenge;
use antiphon_mcp::auth::server::{Authorization, JwtVerifier, ProtectedResource};
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use bytes::Bytes;
use serde_json::json;

use crate::support::http::send;
use crate::support::keys::{ISSUER, claims, key_set, signing_key};

const PAGE: &str = "https://app.example";

/// A call of a tool, as the page sends it.
fn request(url: &str, tool: &str, token: Option<&str>) -> Request<Bytes> {
    let message = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": tool,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let mut request = Request::post(url)
        .header("origin", PAGE)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(Bytes::from(message.to_string())).unwrap()
}

/// The headers that the page can read.
fn readable(response: &Response<Bytes>) -> HeaderMap {
    let headers = response.headers();
    let origin = headers.get("access-control-allow-origin").expect("unreadable");
    assert!(origin == PAGE || origin == "*", "{origin:?}");
    let exposed = headers.get("access-control-expose-headers").map(|it| it.to_str().unwrap());
    let is_exposed = |name: &str| exposed.is_some_and(|all| all.split(", ").any(|it| it == name));
    let readable = headers.iter().filter(|(name, _)| is_exposed(name.as_str()));
    readable.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[tokio::test]
async fn a_page_reads_why_it_needs_a_token() {
    let key = signing_key("1");
    let read = ServerTool::new("read", |(): (), _cx: RequestContext| async { "read" });
    let write = ServerTool::new("write", |(): (), _cx: RequestContext| async { "written" });
    let mcp = McpServer::builder("test", "1").tool(read).tool(write.scope("files:write")).build();
    let bound = mcp.bind("http://127.0.0.1:0/mcp").await.unwrap();
    let url = bound.endpoint().to_string();
    let resource = ProtectedResource::new(&url).unwrap().authorization_server(ISSUER).unwrap();
    let verifier = JwtVerifier::new(ISSUER, &url, key_set(&[&key]));
    let bound = bound.http_layer(Authorization::new(resource, verifier));
    let bound = bound.guard(Guard::new().loopback_only().allow_origin(PAGE));
    tokio::spawn(bound.serve(mcp));

    let preflight = Request::options(&url)
        .header("origin", PAGE)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,mcp-method");
    let allowed = send(preflight.body(Bytes::new()).unwrap()).await;
    assert_eq!(allowed.status(), StatusCode::NO_CONTENT);
    assert_eq!(allowed.headers()["access-control-allow-origin"], PAGE);
    let headers = allowed.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(headers.split(", ").any(|name| name == "authorization"), "{headers}");

    let token = key.sign(&claims(&url, &json!({}))).unwrap();
    for (tool, token, status) in [
        ("read", None, StatusCode::UNAUTHORIZED),
        ("read", Some("forged"), StatusCode::UNAUTHORIZED),
        ("write", Some(token.as_str()), StatusCode::FORBIDDEN),
    ] {
        let response = send(request(&url, tool, token)).await;
        assert_eq!(response.status(), status);
        let challenge = Challenge::of_response(status, &readable(&response));
        assert!(challenge.resource_metadata.is_some(), "{tool} {token:?}");
    }
    let response = send(request(&url, "read", Some(&token))).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["access-control-allow-origin"], PAGE);
}
