//! Web pages as clients: what a browser lets a page send and read, by the rules of the Fetch standard.

use antiphon::transport::http::Guard;
use antiphon_mcp::http::StreamableHttp;
use serde_json::json;

use crate::changes;
use crate::support::http::{Http, HttpReply, HttpRequest};
use crate::support::{changes_filter, initialize, modern, names, notification, request, tool};

const PAGE: &str = "https://app.example";
/// The headers that need no permission.
const SAFE: [&str; 3] = ["accept", "host", "origin"];

async fn serve() -> Http {
    let server = changes::server();
    let http = StreamableHttp::new();
    let bound = server.bind_with("http://127.0.0.1:0/mcp", http).await.unwrap();
    let port = bound.endpoint().port().unwrap();
    let guard = Guard::new().loopback_only().allow_origin(PAGE);
    tokio::spawn(bound.guard(guard).serve(server));
    Http { port }
}

/// Asks whether a page may send a request, as a browser does.
async fn preflight(http: Http, request: &HttpRequest, origin: &str) -> HttpReply {
    let names: Vec<_> = request.names().filter(|name| !SAFE.contains(name)).collect();
    let question = http.request("OPTIONS").header("accept", "*/*").header("origin", origin);
    let question = question.header("access-control-request-method", request.method());
    question.header("access-control-request-headers", names.join(",")).send().await
}

fn lists(list: Option<&str>, wanted: &str) -> bool {
    list.is_some_and(|list| list.split(", ").any(|one| one.eq_ignore_ascii_case(wanted)))
}

/// Sends a request as a browser does for a page.
async fn fetch(http: Http, request: HttpRequest) -> HttpReply {
    let allowed = preflight(http, &request, PAGE).await;
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(PAGE));
    assert!(lists(allowed.header("access-control-allow-methods"), request.method()));
    let headers = allowed.header("access-control-allow-headers");
    for name in request.names().filter(|name| !SAFE.contains(name)) {
        // The wildcard does not include the token.
        let is_any = lists(headers, "*") && name != "authorization";
        assert!(lists(headers, name) || is_any, "{name}: {headers:?}");
    }
    let response = request.header("origin", PAGE).send().await;
    assert_eq!(response.header("access-control-allow-origin"), Some(PAGE), "{}", response.status);
    response
}

/// A header that the page can read.
fn exposed<'a>(response: &'a HttpReply, name: &str) -> Option<&'a str> {
    let is_exposed = lists(response.header("access-control-expose-headers"), name);
    response.header(name).filter(|_| is_exposed)
}

#[tokio::test]
async fn a_page_uses_a_session() {
    let http = serve().await;
    let begin = request(0, "initialize", initialize("2025-11-25", json!({})));
    let begun = fetch(http, http.post(begin.to_string()).header("authorization", "Bearer x")).await;
    let session = exposed(&begun, "mcp-session-id").unwrap().to_owned();
    let of_session = |request: HttpRequest| {
        let request = request.header("mcp-session-id", session.as_str());
        request.header("mcp-protocol-version", "2025-11-25").header("traceparent", "00-1-1-00")
    };
    let initialized = notification("notifications/initialized", json!({})).to_string();
    assert_eq!(fetch(http, of_session(http.post(initialized))).await.status, 202);
    let list = request(1, "tools/list", json!({})).to_string();
    let listed = fetch(http, of_session(http.post(list))).await.response().await;
    assert!(!names(&listed, "tools").is_empty());
    let get = || of_session(http.request("GET")).header("accept", "text/event-stream");
    assert!(fetch(http, get()).await.is_stream());
    assert_eq!(fetch(http, get().header("last-event-id", "9-9")).await.status, 400);
    assert_eq!(fetch(http, of_session(http.request("DELETE"))).await.status, 204);
    // Refusals too.
    assert_eq!(fetch(http, get()).await.status, 404);
    let nothing = http.request("GET").header("accept", "text/event-stream");
    assert_eq!(fetch(http, nothing.header("x-any", "1")).await.status, 405);
}

#[tokio::test]
async fn a_page_sends_modern_requests() {
    let http = serve().await;
    let call = http.modern(1, "tools/call", tool("none", json!({}))).header("mcp-param-x", "1");
    assert_eq!(fetch(http, call).await.status, 200);
    let filter = modern(changes_filter(json!({ "toolsListChanged": true })));
    let listen = http.modern(2, "subscriptions/listen", filter);
    let mut stream = fetch(http, listen).await;
    assert_eq!(stream.next().await["method"], "notifications/subscriptions/acknowledged");
}

#[tokio::test]
async fn a_page_of_another_origin_may_do_nothing() {
    let http = serve().await;
    let list = || http.modern(1, "tools/list", json!({}));
    for origin in ["https://evil.example", "null", "http://app.example"] {
        let refused = preflight(http, &list(), origin).await;
        assert_eq!(refused.status, 403);
        assert_eq!(refused.header("access-control-allow-origin"), None);
        let refused = list().header("origin", origin).send().await;
        assert_eq!(refused.status, 403);
        assert_eq!(refused.header("access-control-allow-origin"), None);
    }
    let plain = http.request("OPTIONS").status().await;
    assert_eq!(plain, 405, "not a preflight request");
}
