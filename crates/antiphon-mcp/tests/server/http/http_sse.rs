//! HTTP+SSE, the transport of 2024-11-05.

use antiphon::Limits;
use antiphon_mcp::McpServer;
use antiphon_mcp::http::StreamableHttp;
use serde_json::{Value, json};

use crate::asking::{self, accept, capabilities};
use crate::support::gate::Gate;
use crate::support::http::{Http, HttpReply};
use crate::support::{code, initialize, modern, request, text, tool};

/// A stream, and the URL that its messages are posted to.
struct Sse {
    http: Http,
    stream: HttpReply,
    path: String,
}

impl Sse {
    async fn open(http: Http) -> Self {
        let get = http.request("GET").header("accept", "text/event-stream");
        let mut stream = get.send().await;
        assert_eq!(stream.status, 200);
        let endpoint = stream.event().await.unwrap();
        assert_eq!(endpoint.event.as_deref(), Some("endpoint"));
        Self { http, stream, path: endpoint.data }
    }

    async fn post(&self, message: &Value) -> u16 {
        self.http.post(message.to_string()).path(&*self.path).status().await
    }

    async fn next(&mut self) -> Value {
        let event = self.stream.event().await.expect("the stream has ended");
        assert_eq!(event.event.as_deref(), Some("message"));
        event.json()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        assert_eq!(self.post(&request(1, method, params)).await, 202);
        self.next().await
    }
}

async fn serve(options: StreamableHttp) -> Http {
    Http::serve_with(&asking::server(), options.http_sse(true), Limits::default()).await
}

#[tokio::test]
async fn a_stream_is_a_connection() {
    let http = serve(StreamableHttp::new()).await;
    let (mut one, mut other) = (Sse::open(http).await, Sse::open(http).await);
    assert_ne!(one.path, other.path);
    for client in [&mut one, &mut other] {
        let begun = client.call("initialize", initialize("2024-11-05", capabilities())).await;
        assert_eq!(begun["result"]["protocolVersion"], "2024-11-05");
    }
    assert_eq!(one.post(&request(7, "tools/call", tool("name", json!({})))).await, 202);
    let question = one.next().await;
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept("Ada") });
    assert_eq!(one.post(&answer).await, 202);
    assert_eq!(text(&one.next().await), "Ada");
    assert_eq!(other.call("ping", json!({})).await["result"], json!({}));
    assert_eq!(code(&other.call("no/such", json!({})).await), -32601);
}

#[tokio::test]
async fn streams_are_found_by_their_ids_only() {
    let http = serve(StreamableHttp::new()).await;
    let client = Sse::open(http).await;
    let ping = request(1, "ping", json!({})).to_string();
    for path in ["/mcp?sessionId=", "/mcp?sessionId=x", "/mcp?a=b&sessionId=0"] {
        assert_eq!(http.post(&*ping).path(path).status().await, 404, "{path}");
    }
    let path = client.path.clone();
    drop(client);
    // The server sees the end of the stream when it looks at the connection.
    while http.post(&*ping).path(&*path).status().await != 404 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn streams_are_limited() {
    let http = serve(StreamableHttp::new().max_sessions(1)).await;
    let _only = Sse::open(http).await;
    let get = http.request("GET").header("accept", "text/event-stream");
    assert_eq!(get.status().await, 503);
}

#[tokio::test]
async fn garbage_is_answered_on_the_stream() {
    let http = serve(StreamableHttp::new()).await;
    let mut client = Sse::open(http).await;
    for garbage in ["{", "nonsense", "\u{0}"] {
        assert_eq!(http.post(garbage).path(&*client.path).status().await, 202);
        assert_eq!(code(&client.next().await), -32700);
    }
}

#[tokio::test]
async fn it_is_off_by_default() {
    let http = Http::serve(&asking::server()).await;
    let get = http.request("GET").header("accept", "text/event-stream");
    assert_eq!(get.status().await, 405);
}

#[tokio::test]
async fn the_calls_of_a_stream_are_limited() {
    let gate = Gate::new();
    let server = McpServer::builder("test", "1").tool(gate.tool("wait")).build();
    let options = StreamableHttp::new().http_sse(true).session_calls(3);
    let http = Http::serve_with(&server, options, Limits::default()).await;
    let mut client = Sse::open(http).await;
    client.call("initialize", initialize("2024-11-05", json!({}))).await;
    for id in 1..=3 {
        let call = request(id, "tools/call", tool("wait", json!({})));
        assert_eq!(client.post(&call).await, 202);
    }
    gate.begun(3).await;
    for id in 10..=20 {
        assert_eq!(client.post(&request(id, "ping", json!({}))).await, 202);
    }
    gate.open(1);
    assert_eq!(text(&client.next().await), "passed", "the pings wait for their place");
    assert_eq!(client.next().await["id"], 10);
}

#[tokio::test]
async fn a_stream_does_not_hide_modern_requests_from_the_headers() {
    let mut client = Sse::open(serve(StreamableHttp::new()).await).await;
    for _ in 0..2 {
        let refused = client.call("tools/list", modern(json!({}))).await;
        assert_eq!(code(&refused), -32600);
        client.call("initialize", initialize("2024-11-05", json!({}))).await;
    }
}
