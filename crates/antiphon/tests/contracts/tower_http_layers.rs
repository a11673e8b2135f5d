//! The layers of `tower-http` around the requests of a real server.

use std::time::Duration;

use antiphon::http::header::{AUTHORIZATION, HeaderName};
use antiphon::http::{HeaderValue, Response, StatusCode};
use antiphon::transport::http::HttpBody;
use antiphon::{Context, Router, Server};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower_http::add_extension::AddExtensionLayer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::decompression::{DecompressionLayer, RequestDecompressionLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::map_response_body::MapResponseBodyLayer;
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::propagate_header::PropagateHeaderLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::sensitive_headers::SetSensitiveHeadersLayer;
use tower_http::set_header::{SetRequestHeaderLayer, SetResponseHeaderLayer};
use tower_http::set_status::SetStatusLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;

use crate::http::{JSON, post};
use crate::support::{bound, dial, request, within};

const AGENT: HeaderName = HeaderName::from_static("x-agent");

fn service() -> Router {
    Router::new()
        .method("size", |(size,): (usize,), _: Context| async move { Ok("x".repeat(size)) })
        .method("agent", |(): (), cx: Context| async move {
            let agent = cx.connection().headers().get(AGENT);
            Ok(agent.and_then(|value| value.to_str().ok()).map(str::to_owned))
        })
        .method("secret", |(): (), cx: Context| async move {
            Ok(cx.connection().headers().get(AUTHORIZATION).is_some_and(HeaderValue::is_sensitive))
        })
        .method(
            "number",
            |(): (), cx: Context| async move { Ok(cx.extensions().get::<u32>().copied()) },
        )
        .method("wait", |(): (), _: Context| {
            std::future::pending::<Result<(), antiphon::ErrorObject>>()
        })
}

/// The response to a raw request of a server with these layers, in lower case up to the body.
async fn ask_bytes(server: Server, request: &[u8]) -> (String, Vec<u8>) {
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(service()));
    let mut stream = dial(&address).await;
    stream.write_all(request).await.unwrap();
    let mut response = Vec::new();
    within(stream.read_to_end(&mut response)).await.unwrap();
    let end = response.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let body = response.split_off(end + 4);
    (String::from_utf8(response).unwrap().to_lowercase(), body)
}

async fn ask(server: Server, request: &str) -> (String, String) {
    let (head, body) = ask_bytes(server, request.replace("{host}", "localhost").as_bytes()).await;
    (head, String::from_utf8(body).unwrap())
}

async fn server() -> Server {
    bound("http://127.0.0.1:0").await
}

fn call(headers: &str, method: &str, params: &str) -> String {
    post("/", &format!("{JSON}{headers}"), &request(1, method, params))
}

#[tokio::test]
async fn cors_answers_a_preflight() {
    let server = server().await.http_layer(CorsLayer::permissive());
    let preflight = "OPTIONS / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
        origin: https://a.example\r\naccess-control-request-method: POST\r\n\r\n";
    let (head, _) = ask(server, preflight).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains("access-control-allow-origin: *"), "{head}");
}

#[tokio::test]
async fn a_timeout_ends_a_request() {
    let layer =
        TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(1));
    let (head, _) = ask(server().await.http_layer(layer), &call("", "wait", "[]")).await;
    assert!(head.starts_with("http/1.1 504"), "{head}");
}

#[tokio::test]
async fn headers_are_validated() {
    let layer = || ValidateRequestHeaderLayer::accept("application/json");
    let refused = call("accept: text/html\r\n", "agent", "[]");
    let (head, _) = ask(server().await.http_layer(layer()), &refused).await;
    assert!(head.starts_with("http/1.1 406"), "{head}");
    let accepted = call("accept: application/json\r\n", "agent", "[]");
    let (head, _) = ask(server().await.http_layer(layer()), &accepted).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[tokio::test]
async fn a_body_over_the_limit_of_a_layer_is_refused() {
    let layer = || RequestBodyLimitLayer::new(80);
    let (head, body) = ask(server().await.http_layer(layer()), &call("", "size", "[2]")).await;
    assert!(head.starts_with("http/1.1 200") && body.contains("xx"), "{head}{body}");
    let long = call("", "size", &format!("[2{}]", " ".repeat(80)));
    let (head, _) = ask(server().await.http_layer(layer()), &long).await;
    assert!(head.starts_with("http/1.1 413"), "{head}");
    let chunked = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{JSON}\
        transfer-encoding: chunked\r\n\r\n64\r\n{}\r\n0\r\n\r\n",
        " ".repeat(100)
    );
    let (head, _) = ask(server().await.http_layer(layer()), &chunked).await;
    assert!(head.starts_with("http/1.1 413"), "{head}");
}

#[tokio::test]
async fn responses_are_compressed_and_decompressed() {
    let asked = call("accept-encoding: gzip\r\n", "size", "[3000]");
    let compressed = server().await.http_layer(CompressionLayer::new());
    let asked = asked.replace("{host}", "localhost");
    let (head, body) = ask_bytes(compressed, asked.as_bytes()).await;
    assert!(head.contains("content-encoding: gzip") && body.len() < 1000, "{head}");
    let both =
        server().await.http_layer(CompressionLayer::new()).http_layer(DecompressionLayer::new());
    let (head, body) = ask_bytes(both, asked.as_bytes()).await;
    assert!(!head.contains("content-encoding") && body.len() > 3000, "{head}");
}

#[tokio::test]
async fn requests_are_decompressed() {
    let server = server().await.http_layer(RequestDecompressionLayer::new());
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{JSON}\
        content-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        COMPRESSED.len()
    );
    let (head, body) = ask_bytes(server, &[head.as_bytes(), &COMPRESSED].concat()).await;
    assert!(head.starts_with("http/1.1 200") && body.len() > 300, "{head}");
}

/// `{"jsonrpc":"2.0","method":"size","params":[300],"id":1}` by gzip.
const COMPRESSED: [u8; 71] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 202, 42, 206, 207, 43, 42, 72, 86, 178, 82, 50, 210,
    51, 80, 210, 81, 202, 77, 45, 201, 200, 79, 1, 114, 139, 51, 171, 82, 129, 252, 130, 196, 162,
    196, 220, 98, 37, 171, 104, 99, 3, 131, 88, 29, 165, 76, 160, 148, 97, 45, 0, 230, 44, 220,
    117, 55, 0, 0, 0,
];

#[tokio::test]
async fn headers_are_set_and_propagated() {
    let set = SetRequestHeaderLayer::overriding(AGENT, HeaderValue::from_static("ada"));
    let server_sets = server().await.http_layer(set);
    let (_, body) = ask(server_sets, &call("", "agent", "[]")).await;
    assert!(body.contains("\"ada\""), "{body}");
    let set = SetResponseHeaderLayer::overriding(AGENT, HeaderValue::from_static("bob"));
    let (head, _) = ask(server().await.http_layer(set), &call("", "agent", "[]")).await;
    assert!(head.contains("x-agent: bob"), "{head}");
    let propagate = PropagateHeaderLayer::new(AGENT);
    let asked = call("x-agent: eve\r\n", "agent", "[]");
    let (head, _) = ask(server().await.http_layer(propagate), &asked).await;
    assert!(head.contains("x-agent: eve"), "{head}");
}

#[tokio::test]
async fn requests_get_ids() {
    let name = HeaderName::from_static("x-request-id");
    let server = server()
        .await
        .http_layer(PropagateRequestIdLayer::new(name.clone()))
        .http_layer(SetRequestIdLayer::new(name, MakeRequestUuid));
    let (head, _) = ask(server, &call("", "agent", "[]")).await;
    assert!(head.contains("x-request-id: "), "{head}");
}

#[tokio::test]
async fn secrets_are_marked_and_requests_traced() {
    let server = server()
        .await
        .http_layer(TraceLayer::new_for_http())
        .http_layer(SetSensitiveHeadersLayer::new([AUTHORIZATION]));
    let (_, body) = ask(server, &call("authorization: Bearer x\r\n", "secret", "[]")).await;
    assert!(body.contains("true"), "{body}");
}

#[tokio::test]
async fn a_panic_in_a_layer_is_caught() {
    let panicking = MapRequestBodyLayer::new(|_: HttpBody| -> HttpBody { panic!("on purpose") });
    let server = server().await.http_layer(panicking).http_layer(CatchPanicLayer::new());
    let (head, _) = ask(server, &call("", "agent", "[]")).await;
    assert!(head.starts_with("http/1.1 500"), "{head}");
}

#[tokio::test]
async fn paths_are_normalized() {
    let server = bound("http://127.0.0.1:0/rpc").await;
    let server = server.http_layer(NormalizePathLayer::trim_trailing_slash());
    let asked = post("/rpc/", JSON, &request(1, "agent", "[]"));
    let (head, _) = ask(server, &asked).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[tokio::test]
async fn bodies_are_mapped() {
    let requests = MapRequestBodyLayer::new(|body| Limited::new(body, 1000));
    let responses = MapResponseBodyLayer::new(|body: HttpBody| {
        body.map_frame(|frame| frame.map_data(|_: Bytes| Bytes::from_static(b"mapped")))
    });
    let replaced = MapResponseBodyLayer::new(|_| Full::new(Bytes::from_static(b"replaced")));
    let server_maps = server().await.http_layer(requests).http_layer(replaced);
    let (_, body) = ask(server_maps, &call("", "agent", "[]")).await;
    assert_eq!(body, "replaced");
    let server_maps = server().await.http_layer(responses);
    let (_, body) = ask(server_maps, &call("", "agent", "[]")).await;
    assert!(body.contains("mapped"), "{body}");
}

#[tokio::test]
async fn extensions_reach_the_handler_and_statuses_are_set() {
    let server = server()
        .await
        .http_layer(AddExtensionLayer::new(7_u32))
        .http_layer(SetStatusLayer::new(StatusCode::ACCEPTED));
    let (head, body) = ask(server, &call("", "number", "[]")).await;
    assert!(head.starts_with("http/1.1 202") && body.contains("\"result\":7"), "{head}{body}");
}

#[test]
fn a_layer_can_construct_a_body() {
    let _: [Response<HttpBody>; 4] = [
        Response::default(),
        Response::new("text".into()),
        Response::new(String::new().into()),
        Response::new(Bytes::new().into()),
    ];
}
