//! The client over Streamable HTTP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::BoxFuture;
use antiphon::Cause;
use antiphon::http::{HeaderName, HeaderValue, Method};
use antiphon_mcp::client::{Credentials, McpClient, McpError, Refusal, ServerNotification};
use antiphon_mcp::types::{ElicitResult, Revision, Root, SubscriptionFilter};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::http_server::{HttpScript, Received, event, events, json_response, open_events, status};
use super::scripted::{discovered, initialized, text};

fn call_result(value: &str) -> Value {
    let mut result = text(value);
    result["resultType"] = json!("complete");
    result
}

/// Answers the handshake of a legacy server with a session.
fn handshake(request: &Received) -> Option<antiphon::http::Response<super::http_server::Body>> {
    Some(match request.name() {
        "server/discover" => json_response(
            400,
            &json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32000, "message": "Bad Request: no session"}}),
        ),
        "initialize" => {
            let mut response = request.result(&initialized("2025-06-18", &json!({"tools": {}})));
            response.headers_mut().insert("mcp-session-id", "s-1".parse().unwrap());
            response
        }
        "notifications/initialized" | "notifications/cancelled" => status(202),
        "GET" => status(405),
        "DELETE" => status(200),
        "ping" => request.result(&json!({})),
        _ => return None,
    })
}

#[tokio::test]
async fn modern_requests_have_routing_headers() {
    let server = HttpScript::start(|request| async move {
        match request.name() {
            "server/discover" => request.result(&discovered(&json!({"tools": {}}))),
            "tools/list" => request.result(&json!({"resultType": "complete", "tools": [
                {"name": "café", "inputSchema": {"type": "object", "properties": {
                    "region": {"type": "string", "x-mcp-header": "Region"},
                    "count": {"type": "integer", "x-mcp-header": "Count"}}}},
                {"name": "broken", "inputSchema": {"type": "object", "properties": {
                    "a": {"type": "number", "x-mcp-header": "A"}}}}]})),
            _ => request.result(&call_result("ok")),
        }
    })
    .await;
    let (name, value) = (HeaderName::from_static("x-tenant"), HeaderValue::from_static("t"));
    let client = McpClient::builder().header(name, value).connect(&*server.url).await.unwrap();
    assert_eq!(client.revision(), Revision::LATEST);
    // The tools are listed first, for the headers.
    client.call_tool("café", json!({"region": " eu", "count": 7})).await.unwrap();
    assert_eq!(server.names(), ["server/discover", "tools/list", "tools/call"]);
    let calls = server.named("tools/call");
    let header = |name| calls[0].header(name).unwrap_or_default();
    assert_eq!(header("mcp-protocol-version"), "2026-07-28");
    assert_eq!(header("mcp-method"), "tools/call");
    assert_eq!(header("mcp-name"), "=?base64?Y2Fmw6k=?=");
    assert_eq!(header("mcp-param-region"), "=?base64?IGV1?=");
    assert_eq!(header("mcp-param-count"), "7");
    assert_eq!(header("accept"), "application/json, text/event-stream");
    assert_eq!(header("x-tenant"), "t");
    assert_eq!(calls[0].header("mcp-session-id"), None);
    let names: Vec<_> = client.list_tools().await.unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["café"], "a tool with an invalid mark is not listed");
}

#[tokio::test]
async fn a_header_mismatch_refreshes_the_tools_once() {
    let versions = Arc::new(Mutex::new(0));
    let server = HttpScript::start(move |request| {
        let versions = versions.clone();
        async move {
            match request.name() {
                "server/discover" => request.result(&discovered(&json!({"tools": {}}))),
                "tools/list" => {
                    let mut version = versions.lock().unwrap();
                    *version += 1;
                    let name = format!("V{version}");
                    request.result(
                        &json!({"resultType": "complete", "ttlMs": 60_000, "tools": [{"name": "t",
                        "inputSchema": {"type": "object",
                            "properties": {"a": {"type": "string", "x-mcp-header": name}}}}]}),
                    )
                }
                _ if request.header("mcp-param-v2").is_some() => request.result(&call_result("ok")),
                _ => request.error(400, &json!({"code": -32020, "message": "Header mismatch"})),
            }
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    assert_eq!(client.call_tool("t", json!({"a": "x"})).await.unwrap().joined_text(), "ok");
    assert_eq!(server.named("tools/list").len(), 2);
}

#[tokio::test]
async fn a_legacy_server_gets_a_session_and_its_end() {
    let server = HttpScript::start(|request| async move {
        handshake(&request).unwrap_or_else(|| request.result(&text("ok")))
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
    client.call_tool("t", ()).await.unwrap();
    client.close().await;
    let initialize = &server.named("initialize")[0];
    assert_eq!(
        (initialize.header("mcp-session-id"), initialize.header("mcp-protocol-version")),
        (None, None)
    );
    let deleted = &server.named("DELETE")[0];
    assert_eq!(deleted.header("mcp-session-id"), Some("s-1"));
    let call = &server.named("tools/call")[0];
    assert_eq!(call.header("mcp-session-id"), Some("s-1"));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(call.header("mcp-method"), None);
}

#[tokio::test]
async fn a_session_that_has_ended_is_renewed_once() {
    let sessions = Arc::new(Mutex::new(0));
    let server = HttpScript::start(move |request| {
        let sessions = sessions.clone();
        async move {
            if request.name() == "initialize" {
                let mut response = handshake(&request).unwrap();
                let mut count = sessions.lock().unwrap();
                *count += 1;
                response
                    .headers_mut()
                    .insert("mcp-session-id", format!("s-{count}").parse().unwrap());
                return response;
            }
            match request.header("mcp-session-id") {
                Some("s-1") if request.name() == "tools/call" => status(404),
                _ => handshake(&request).unwrap_or_else(|| request.result(&text("ok"))),
            }
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    let calls =
        futures_util::future::join_all((0..4).map(|_| async { client.call_tool("t", ()).await }));
    for result in calls.await {
        assert_eq!(result.unwrap().joined_text(), "ok");
    }
    assert_eq!(server.named("initialize").len(), 2);
}

#[tokio::test]
async fn a_stream_carries_progress_requests_and_the_response() {
    let (answered, answers) = mpsc::unbounded_channel::<Value>();
    let answers = Arc::new(tokio::sync::Mutex::new(answers));
    let server = HttpScript::start(move |request| {
        let (answered, answers) = (answered.clone(), answers.clone());
        async move {
            if request.body.get("method").is_none() && request.method == Method::POST {
                answered.send(request.body.clone()).unwrap();
                return status(202);
            }
            if let Some(response) = handshake(&request) {
                return response;
            }
            let (sender, response) = open_events();
            let token = request.body["params"]["_meta"]["progressToken"].clone();
            let id = request.body["id"].clone();
            tokio::spawn(async move {
                let send = |message: Value| sender.send(event(&message)).unwrap();
                sender.send(": hello\n\nid: 1\ndata:\n\n".to_owned()).unwrap();
                send(json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 0.5}}));
                send(json!({"jsonrpc": "2.0", "id": "ask", "method": "roots/list"}));
                let answer = answers.lock().await.recv().await.unwrap();
                send(json!({"jsonrpc": "2.0", "id": id, "result": text(&answer.to_string())}));
            });
            response
        }
    })
    .await;
    let client = McpClient::builder()
        .roots(vec![Root::new("file:///r")])
        .connect(&*server.url)
        .await
        .unwrap();
    let progress = Arc::new(Mutex::new(Vec::new()));
    let seen = progress.clone();
    let call =
        client.call_tool("t", ()).on_progress(move |it| seen.lock().unwrap().push(it.progress));
    let answer = call.await.unwrap().joined_text();
    assert_eq!(answer, r#"{"id":"ask","jsonrpc":"2.0","result":{"roots":[{"uri":"file:///r"}]}}"#);
    assert_eq!(*progress.lock().unwrap(), [0.5]);
}

#[tokio::test]
async fn a_lost_legacy_stream_is_resumed_after_its_last_event() {
    let server = HttpScript::start(|request| async move {
        match (request.name(), request.header("last-event-id")) {
            ("GET", Some("e-1")) => events("retry: 1\nid: e-2\ndata:\n\n"),
            ("GET", Some("e-2")) => {
                let result = json!({"jsonrpc": "2.0", "id": 3, "result": text("resumed")});
                events(event(&result))
            }
            _ => handshake(&request).unwrap_or_else(|| events("retry: 1\nid: e-1\ndata:\n\n")),
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "resumed");
    let resumed: Vec<_> = server
        .named("GET")
        .iter()
        .filter_map(|it| it.header("last-event-id").map(str::to_owned))
        .collect();
    assert_eq!(resumed, ["e-1", "e-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_keeps_ending_is_given_up() {
    let server = HttpScript::start(|request| async move {
        match request.name() {
            "GET" => events("id: e\nretry: 0\ndata:\n\n"),
            _ => handshake(&request).unwrap_or_else(|| events("id: e\ndata:\n\n")),
        }
    })
    .await;
    let client = McpClient::builder().without_timeout().connect(&*server.url).await.unwrap();
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(error, McpError::Interrupted(_)), "{error}");
    let resumed =
        server.named("GET").iter().filter(|it| it.header("last-event-id").is_some()).count();
    // The stream of the call, and the stream of the session, which is given up in the same way.
    assert!(resumed <= 14, "{resumed} attempts");
}

#[tokio::test]
async fn a_lost_modern_stream_fails_the_call() {
    let server = HttpScript::start(|request| async move {
        match request.name() {
            "server/discover" => request.result(&discovered(&json!({}))),
            "tools/list" => request.result(&json!({"resultType": "complete", "tools": []})),
            _ => events("id: e-1\ndata:\n\n"),
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    let error = client.call_tool("t", ()).await.unwrap_err();
    assert!(matches!(error, McpError::Interrupted(_)), "{error}");
    assert!(server.named("GET").is_empty());
}

#[tokio::test]
async fn foreign_and_invalid_responses_are_refused() {
    let server = HttpScript::start(|request| async move {
        let id = request.body["id"].clone();
        let ok = text("wrong");
        let json = |body: Value| json_response(200, &body);
        match (request.name(), request.body["params"]["name"].as_str().unwrap_or_default()) {
            (_, "wrong") => json(json!({"jsonrpc": "2.0", "id": 999, "result": ok})),
            (_, "text") => json(json!({"jsonrpc": "2.0", "id": id.to_string(), "result": ok})),
            (_, "null") => json(json!({"jsonrpc": "2.0", "id": null, "result": ok})),
            (_, "null error") => json(json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "m"}})),
            (_, "both") => json(json!({"jsonrpc": "2.0", "id": id, "result": ok, "error": {"code": 1, "message": "m"}})),
            (_, "stream") => events(event(&json!({"jsonrpc": "2.0", "id": 999, "result": ok}))),
            (_, "html") => antiphon::http::Response::new(http_body_util::BodyExt::boxed(
                http_body_util::Full::new(bytes::Bytes::from_static(b"<html>")),
            )),
            (_, "accepted") => status(202),
            _ => handshake(&request).unwrap_or_else(|| request.result(&ok)),
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    for name in ["wrong", "text", "null", "null error", "both", "stream", "html", "accepted"] {
        let error = client.call_tool(name, ()).await.unwrap_err();
        assert!(matches!(error, McpError::Protocol(_)), "{name}: {error}");
    }
}

#[tokio::test]
async fn statuses_and_errors_are_reported() {
    let server = HttpScript::start(|request| async move {
        match request.body["params"]["name"].as_str() {
            Some("busy") => status(503),
            Some("error") => request.error(400, &json!({"code": -32602, "message": "no"})),
            Some("large") => request.result(&text(&"x".repeat(100_000))),
            Some("large event") => events(format!("data: {}\n\n", "x".repeat(100_000))),
            _ => handshake(&request).unwrap_or_else(|| request.result(&text("ok"))),
        }
    })
    .await;
    let limits =
        antiphon::Limits { frame_bytes: 50_000, response_bytes: 50_000, ..Default::default() };
    let client = McpClient::builder().limits(limits).connect(&*server.url).await.unwrap();
    let call = async |name: &str| client.call_tool(name, ()).await.unwrap_err();
    assert!(
        matches!(call("busy").await, McpError::Status { status, .. } if status.as_u16() == 503)
    );
    assert_eq!(call("error").await.code(), Some(-32602));
    for name in ["large", "large event"] {
        let error = call(name).await;
        assert!(error.to_string().contains("longer than the limit"), "{error}");
    }
    assert!(client.call_tool("t", ()).await.is_ok());
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let started = Arc::new(Notify::new());
    let (cancelled, mut cancellations) = mpsc::unbounded_channel();
    let (start, modern) = (started.clone(), Arc::new(Mutex::new(false)));
    let is_modern = modern.clone();
    let server = HttpScript::start(move |request| {
        let (start, cancelled, is_modern) =
            (start.clone(), cancelled.clone(), *is_modern.lock().unwrap());
        async move {
            match request.name() {
                "server/discover" if is_modern => request.result(&discovered(&json!({}))),
                "tools/list" => request.result(&json!({"resultType": "complete", "tools": []})),
                "notifications/cancelled" => {
                    cancelled.send("notification").unwrap();
                    status(202)
                }
                "tools/call" => {
                    let (sender, response) = open_events();
                    tokio::spawn(async move {
                        sender.closed().await;
                        if is_modern {
                            cancelled.send("closed").unwrap();
                        }
                    });
                    start.notify_one();
                    response
                }
                _ => handshake(&request).unwrap(),
            }
        }
    })
    .await;
    for (era, expected) in [(false, "notification"), (true, "closed")] {
        *modern.lock().unwrap() = era;
        let client = McpClient::connect(&server.url).await.unwrap();
        let call = tokio::spawn(async move { client.call_tool("slow", ()).await });
        started.notified().await;
        call.abort();
        assert_eq!(cancellations.recv().await, Some(expected));
    }
}

#[tokio::test]
async fn calls_wait_for_the_stream_of_the_session() {
    let stream = Arc::new(Mutex::new(None));
    let server = HttpScript::start(move |request| {
        let stream = stream.clone();
        async move {
            match request.name() {
                "GET" => {
                    for _ in 0..1_000 {
                        tokio::task::yield_now().await;
                    }
                    let (sender, response) = open_events();
                    *stream.lock().unwrap() = Some(sender);
                    response
                }
                "tools/call" => {
                    let is_open = stream.lock().unwrap().is_some();
                    request.result(&text(if is_open { "open" } else { "too early" }))
                }
                _ => handshake(&request).unwrap_or_else(|| request.result(&json!({}))),
            }
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "open");
}

#[tokio::test]
async fn a_stream_that_never_opens_does_not_block_the_session() {
    let server = HttpScript::start(|request| async move {
        match request.name() {
            "GET" => std::future::pending().await,
            _ => handshake(&request).unwrap_or_else(|| request.result(&text("ok"))),
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "ok");
}

#[tokio::test]
async fn a_subscription_is_opened_again_after_a_loss() {
    let opened = Arc::new(Mutex::new(0));
    let server = HttpScript::start(move |request| {
        let opened = opened.clone();
        async move {
            let id = request.body["id"].clone();
            let notification = |method: &str, filter: Value| {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                event(&json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta, "notifications": filter}}))
            };
            let acknowledged = notification("notifications/subscriptions/acknowledged", json!({"toolsListChanged": true}));
            let changed = notification("notifications/tools/list_changed", json!({}));
            let ended = event(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}}));
            match request.name() {
                "server/discover" => request.result(&discovered(&json!({}))),
                _ => {
                    let mut count = opened.lock().unwrap();
                    *count += 1;
                    match *count {
                        1 => events(acknowledged + &changed),
                        2 => status(503),
                        _ => events(acknowledged + &changed + &ended),
                    }
                }
            }
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    let changes = client.listen(SubscriptionFilter::list_changes()).await.unwrap();
    let seen: Vec<_> = changes.map(Result::unwrap).collect().await;
    use ServerNotification::{Resumed, ToolsChanged};
    assert_eq!(seen, [ToolsChanged, Resumed, ToolsChanged]);
    let ids: Vec<_> =
        server.named("subscriptions/listen").iter().map(|it| it.body["id"].clone()).collect();
    assert!(ids.len() == 3 && ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
}

#[tokio::test]
async fn the_stream_of_a_session_carries_notifications() {
    let server = HttpScript::start(|request| async move {
        match request.name() {
            "initialize" => {
                let capabilities = json!({"tools": {"listChanged": true}});
                request.result(&initialized("2025-11-25", &capabilities))
            }
            "GET" if request.header("last-event-id").is_none() => events(format!(
                "retry: 1\nid: 1\n{}",
                event(&json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}))
            )),
            "GET" => {
                let (sender, response) = open_events();
                tokio::spawn(async move {
                    let changed =
                        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                    sender.send("data: nonsense\n\n".to_owned() + &event(&changed)).unwrap();
                    sender.closed().await;
                });
                response
            }
            _ => handshake(&request).unwrap(),
        }
    })
    .await;
    let client = McpClient::builder();
    let (sender, mut received) = mpsc::unbounded_channel();
    let client = client
        .on_notification(move |it| drop(sender.send(it)))
        .connect(&*server.url)
        .await
        .unwrap();
    assert_eq!(received.recv().await, Some(ServerNotification::PromptsChanged));
    assert_eq!(received.recv().await, Some(ServerNotification::ToolsChanged));
    client.close().await;
}

/// Tokens that are numbered. The first one is refused.
struct Numbered(Arc<Mutex<Vec<String>>>);

impl Credentials for Numbered {
    fn token<'a>(
        &'a self,
        refused: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<String>, Cause>> {
        let mut challenges = self.0.lock().unwrap();
        if let Some(refused) = refused {
            challenges.push(format!("{} {}", refused.status, refused.challenge));
        }
        let token = format!("token-{}", challenges.len());
        Box::pin(std::future::ready(Ok(Some(token))))
    }
}

#[tokio::test]
async fn a_refused_request_is_repeated_with_another_token() {
    let server = HttpScript::start(|request| async move {
        let refuse = |code: u16, challenge: &'static str| {
            let mut response = status(code);
            response.headers_mut().insert("www-authenticate", HeaderValue::from_static(challenge));
            response
        };
        match request.header("authorization") {
            Some("Bearer token-0") | None => refuse(401, "Bearer realm=\"a\""),
            Some("Bearer token-1") if request.name() == "tools/call" => {
                refuse(403, "Bearer error=\"insufficient_scope\"")
            }
            _ => handshake(&request).unwrap_or_else(|| request.result(&text("ok"))),
        }
    })
    .await;
    let challenges = Arc::<Mutex<Vec<String>>>::default();
    let builder = McpClient::builder().credentials(Numbered(challenges.clone()));
    let client = builder.connect(&*server.url).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "ok");
    let expected = ["401 Bearer realm=\"a\"", "403 Bearer error=\"insufficient_scope\""];
    assert_eq!(*challenges.lock().unwrap(), expected);
    for builder in [McpClient::builder(), McpClient::builder().credentials("token-0".to_owned())] {
        let error = builder.connect(&*server.url).await.unwrap_err();
        let McpError::Unauthorized { status, challenge } = &error else { panic!("{error}") };
        assert_eq!((status.as_u16(), challenge.as_deref()), (401, Some("Bearer realm=\"a\"")));
    }
}

/// The user needs five minutes for the login. The clock is paused only meanwhile: a paused clock does not wait for sockets.
struct SlowLogin;

impl Credentials for SlowLogin {
    fn token<'a>(
        &'a self,
        refused: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<String>, Cause>> {
        Box::pin(async move {
            if refused.is_none() {
                return Ok(None);
            }
            tokio::time::pause();
            tokio::time::sleep(Duration::from_secs(300)).await;
            tokio::time::resume();
            Ok(Some("token".to_owned()))
        })
    }
}

#[tokio::test]
async fn a_login_does_not_count_against_timeouts() {
    let server = HttpScript::start(|request| async move {
        match (request.header("authorization"), request.name()) {
            (None, _) => status(401),
            (_, "server/discover") => request.result(&discovered(&json!({"tools": {}}))),
            _ => request.result(&call_result("ok")),
        }
    })
    .await;
    let client = McpClient::builder().credentials(SlowLogin).connect(&*server.url).await.unwrap();
    assert_eq!(client.revision(), Revision::LATEST);
    let call = client.call_tool("t", ()).timeout(Duration::from_secs(30));
    assert_eq!(call.await.unwrap().joined_text(), "ok");
    assert!(server.named("initialize").is_empty());
}

#[tokio::test]
async fn a_session_that_has_half_begun_is_not_used() {
    let sessions = Arc::new(Mutex::new(0));
    let (begun, mut half_begun) = mpsc::unbounded_channel();
    let server = HttpScript::start(move |request| {
        let (sessions, begun) = (sessions.clone(), begun.clone());
        async move {
            match (request.name(), request.header("mcp-session-id")) {
                ("initialize", _) => {
                    let mut response = handshake(&request).unwrap();
                    let mut count = sessions.lock().unwrap();
                    *count += 1;
                    let id = format!("s-{count}").parse().unwrap();
                    response.headers_mut().insert("mcp-session-id", id);
                    response
                }
                ("notifications/initialized", Some("s-2")) => {
                    begun.send(()).unwrap();
                    std::future::pending().await
                }
                ("tools/call", Some("s-1")) => status(404),
                ("tools/call", Some("s-2")) => {
                    request.error(400, &json!({"code": -32602, "message": "not initialized"}))
                }
                _ => handshake(&request).unwrap_or_else(|| request.result(&text("ok"))),
            }
        }
    })
    .await;
    let client = McpClient::connect(&server.url).await.unwrap();
    tokio::select! {
        _ = client.call_tool("t", ()) => panic!("the call waits for the new session"),
        begun = half_begun.recv() => begun.unwrap(),
    }
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "ok");
    assert_eq!(server.named("initialize").len(), 3);
}

/// The server begins anew with its ids. Its first question in each session has the id 1.
#[tokio::test]
async fn a_question_ends_with_its_session() {
    let sessions = Arc::new(Mutex::new(0));
    let (answered, mut answers) = mpsc::unbounded_channel();
    let server = HttpScript::start(move |request| {
        let (sessions, answered) = (sessions.clone(), answered.clone());
        async move {
            let session = request.header("mcp-session-id").map(str::to_owned);
            match request.name() {
                "initialize" => {
                    let mut response = handshake(&request).unwrap();
                    let mut count = sessions.lock().unwrap();
                    *count += 1;
                    let id = format!("s-{count}").parse().unwrap();
                    response.headers_mut().insert("mcp-session-id", id);
                    response
                }
                "GET" => {
                    let (sender, response) = open_events();
                    let params = json!({"message": session,
                        "requestedSchema": {"type": "object", "properties": {}}});
                    let question = json!({"jsonrpc": "2.0", "id": 1,
                        "method": "elicitation/create", "params": params});
                    sender.send(event(&question)).unwrap();
                    tokio::spawn(async move { sender.closed().await });
                    response
                }
                "tools/call" if session.as_deref() == Some("s-1") => status(404),
                "tools/call" => request.result(&text("ok")),
                "POST" => {
                    answered.send((session, request.body.clone())).unwrap();
                    status(202)
                }
                _ => handshake(&request).unwrap(),
            }
        }
    })
    .await;
    let (asked, mut questions) = mpsc::unbounded_channel();
    let first_answer = Arc::new(Notify::new());
    let late = first_answer.clone();
    let builder = McpClient::builder().on_elicit_form(move |question| {
        let (asked, late) = (asked.clone(), late.clone());
        async move {
            asked.send(question.message().to_owned()).unwrap();
            if question.message() == "s-1" {
                late.notified().await;
                return Ok(ElicitResult::decline());
            }
            Ok(ElicitResult::cancel())
        }
    });
    let client = builder.connect(&*server.url).await.unwrap();
    assert_eq!(questions.recv().await.unwrap(), "s-1");
    client.call_tool("t", ()).await.unwrap();
    assert_eq!(questions.recv().await.unwrap(), "s-2");
    let (session, answer) = answers.recv().await.unwrap();
    assert_eq!(session.as_deref(), Some("s-2"));
    assert_eq!(answer["result"]["action"], "cancel", "{answer}");
    // The user answers the question of the session that has ended.
    first_answer.notify_one();
    client.call_tool("t", ()).await.unwrap();
    client.close().await;
    assert!(answers.try_recv().is_err());
}

#[tokio::test]
async fn requests_of_a_server_are_bounded() {
    const SENT: usize = 300;
    let stream = Arc::new(Mutex::new(String::new()));
    let (answered, mut answers) = mpsc::unbounded_channel();
    let text = stream.clone();
    let server = HttpScript::start(move |request| {
        let (text, answered) = (text.clone(), answered.clone());
        async move {
            match request.name() {
                "GET" => {
                    let (sender, response) = open_events();
                    sender.send(text.lock().unwrap().clone()).unwrap();
                    tokio::spawn(async move { sender.closed().await });
                    response
                }
                // A response of the client, which the server never takes.
                "POST" => {
                    answered.send(request.body["error"]["code"].clone()).unwrap();
                    std::future::pending().await
                }
                _ => handshake(&request).unwrap(),
            }
        }
    })
    .await;
    let request = |id: usize| {
        let params =
            json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
        event(
            &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
        )
    };
    let begun = Arc::new(Mutex::new(0));
    for (is_same_id, expected, code) in [(false, 64, -32009), (true, 1, -32600)] {
        let requests = (0..SENT).map(|id| request(if is_same_id { 7 } else { id }));
        *stream.lock().unwrap() = requests.collect();
        *begun.lock().unwrap() = 0;
        let count = begun.clone();
        let builder = McpClient::builder().on_elicit_form(move |_| {
            *count.lock().unwrap() += 1;
            std::future::pending()
        });
        let client = builder.connect(&*server.url).await.unwrap();
        for _ in 0..64 - usize::from(is_same_id) {
            assert_eq!(answers.recv().await.unwrap(), code);
        }
        assert_eq!(*begun.lock().unwrap(), expected);
        client.close().await;
        while answers.try_recv().is_ok() {}
    }
}

#[tokio::test]
async fn a_lost_state_of_a_task_is_asked_for_again() {
    let polls = Arc::new(Mutex::new(0));
    let server = HttpScript::start(move |request| {
        let polls = polls.clone();
        async move {
            let task = |mut state: Value| {
                let known = json!({"taskId": "t1", "createdAt": "2026-01-01T00:00:00Z",
                    "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 1});
                state.as_object_mut().unwrap().extend(known.as_object().unwrap().clone());
                request.result(&state)
            };
            match request.name() {
                "server/discover" => request.result(&discovered(&json!({"tools": {}}))),
                "tools/list" => request.result(&json!({"resultType": "complete", "tools": []})),
                "tools/call" => task(json!({"resultType": "task", "status": "working"})),
                _ => {
                    *polls.lock().unwrap() += 1;
                    match *polls.lock().unwrap() {
                        1 => status(503),
                        _ => task(json!({"status": "completed", "result": text("done")})),
                    }
                }
            }
        }
    })
    .await;
    let client = McpClient::builder().tasks().connect(&*server.url).await.unwrap();
    assert_eq!(client.call_tool("t", ()).await.unwrap().joined_text(), "done");
}

#[tokio::test]
async fn a_server_that_takes_no_notification_does_not_block_forever() {
    let server = HttpScript::start(|request| async move {
        match request.name() {
            "notifications/initialized" => std::future::pending().await,
            _ => handshake(&request).unwrap(),
        }
    })
    .await;
    let builder = McpClient::builder().timeout(Duration::from_millis(50));
    let error = builder.connect(&*server.url).await.unwrap_err();
    assert!(matches!(error, McpError::TimedOut(_)), "{error}");
}

#[tokio::test]
async fn a_server_without_a_response_does_not_block_forever() {
    let server = HttpScript::start(|request| async move {
        match request.name() {
            "server/discover" => std::future::pending().await,
            _ => handshake(&request).unwrap_or_else(|| request.result(&text("ok"))),
        }
    })
    .await;
    let builder = McpClient::builder().probe_timeout(Duration::from_millis(20));
    let client = builder.connect(&*server.url).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
}
