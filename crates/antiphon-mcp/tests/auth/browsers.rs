//! A server that requires tokens, and a web page whose origin it allows.

use std::future::IntoFuture as _;

use antiphon::http::{HeaderMap, Request, Response, StatusCode};
use antiphon::transport::http::Guard;
use antiphon_mcp::auth::Challenge;
use antiphon_mcp::auth::server::{Authorization, JwtVerifier, ProtectedResource};
use antiphon_mcp::http::StreamableHttp;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

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

/// A request of a page of `origin` to `host`, without a token.
fn foreign(method: &str, url: &str, host: &str, origin: &str) -> String {
    let path = url.splitn(4, '/').nth(3).unwrap();
    let preflight = match method {
        "OPTIONS" => "access-control-request-method: POST\r\n",
        _ => "",
    };
    format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\norigin: {origin}\r\n{preflight}\
         content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
    )
}

async fn head_of_response(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response.split("\r\n\r\n").next().unwrap().to_ascii_lowercase()
}

#[tokio::test]
async fn a_foreign_page_does_not_learn_that_a_token_is_needed() {
    let key = signing_key("1");
    let mcp = McpServer::builder("test", "1").build();
    let bound = mcp.bind("http://127.0.0.1:0/mcp").await.unwrap();
    let url = bound.endpoint().to_string();
    let resource = ProtectedResource::new(&url).unwrap().authorization_server(ISSUER).unwrap();
    let metadata = resource.metadata_url().to_owned();
    let verifier = JwtVerifier::new(ISSUER, &url, key_set(&[&key]));
    let authorization = Authorization::new(resource, verifier);
    // The guard is set after the layer: the order makes no difference.
    let bound = bound.http_layer(authorization.clone()).guard(Guard::new().allow_origin(PAGE));
    tokio::spawn(bound.serve(mcp.clone()));

    let guard = Guard::new().loopback_only().allow_origin(PAGE);
    let mounted = mcp.http_service(StreamableHttp::new()).guard(guard.clone());
    let app = axum::Router::new().route_service("/mcp", mounted);
    let app = app.layer(authorization.guard(guard));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let application = listener.local_addr().unwrap().to_string();
    tokio::spawn(axum::serve(listener, app).into_future());

    let served = url.split('/').nth(2).unwrap().to_owned();
    for address in [served, application] {
        for (host, origin) in
            [(&*address, "https://evil.example"), (&*address, "null"), ("evil.example", PAGE)]
        {
            for (method, url) in [("POST", &url), ("GET", &url), ("OPTIONS", &url)] {
                let head = head_of_response(&address, &foreign(method, url, host, origin)).await;
                assert!(head.starts_with("http/1.1 403 "), "{method} {host} {origin}: {head}");
                assert!(!head.contains("www-authenticate"), "{head}");
                assert!(!head.contains("access-control-allow-origin"), "{head}");
            }
        }
        let head = head_of_response(&address, &foreign("POST", &url, &address, PAGE)).await;
        assert!(head.starts_with("http/1.1 401 ") && head.contains("www-authenticate"), "{head}");
    }
    let served = url.split('/').nth(2).unwrap();
    for (origin, status) in [("https://evil.example", "403"), (PAGE, "200")] {
        let head = head_of_response(served, &foreign("GET", &metadata, served, origin)).await;
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{origin}: {head}");
    }
}
