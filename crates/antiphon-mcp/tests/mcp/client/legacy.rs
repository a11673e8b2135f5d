//! The client and servers of legacy revisions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::{ErrorObject, Server};
use antiphon_mcp::client::{McpClient, McpError, ServerEra, ServerNotification};
use antiphon_mcp::types::{CreateMessageResult, ElicitResult, Revision, Root, SubscriptionFilter};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use super::scripted::{Scripted, initialized, text, unknown};

/// A legacy server with other methods.
pub(super) async fn legacy(version: &'static str, capabilities: Value) -> Scripted {
    Scripted::start(move |method, params, cx| {
        let capabilities = capabilities.clone();
        async move {
            match &*method {
                "initialize" => Ok(initialized(version, &capabilities)),
                "ping" | "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
                "tools/list" => Ok(json!({"tools": [{"name": "add", "inputSchema": {"type": "object",
                        "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                        "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}}}]})),
                "tools/call" if params["name"] == "add" => {
                    let sum = &params["arguments"]["a"];
                    let sum = if sum == 13 { json!("unlucky") } else { sum.clone() };
                    Ok(json!({"content": [], "structuredContent": {"sum": sum}}))
                }
                // Asks the client, with the method and the params that the arguments name.
                "tools/call" if params["name"] == "ask" => {
                    let arguments = &params["arguments"];
                    let asked = arguments["method"].as_str().unwrap();
                    let answer = cx.peer()?.call::<Value>(asked, &arguments["params"]).await?;
                    Ok(text(&answer.to_string()))
                }
                "tools/call" => {
                    let peer = cx.peer()?;
                    for method in params["arguments"]["notify"].as_array().unwrap() {
                        peer.notify(method[0].as_str().unwrap(), &method[1]).await?;
                    }
                    Ok(text("ok"))
                }
                _ => unknown(),
            }
        }
    })
    .await
}

#[tokio::test]
async fn an_error_of_the_probe_leads_to_a_handshake() {
    let server = legacy("2025-06-18", json!({"tools": {}})).await;
    let builder =
        McpClient::builder().roots(vec![]).on_elicit(|_| async { Ok(ElicitResult::cancel()) });
    let client = server.connect(builder).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
    client.ping().await.unwrap();
    let sent = ["server/discover", "initialize", "notifications/initialized", "ping"];
    assert_eq!(server.methods(), sent);
    let params = &server.params("initialize")[0];
    assert_eq!(params["protocolVersion"], "2025-11-25");
    assert_eq!(
        params["capabilities"],
        json!({"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}})
    );
    assert_eq!(server.params("ping"), [json!({})]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_probe_leads_to_a_handshake_and_is_not_cancelled() {
    let server = Scripted::start(|method, _, _| async move {
        match &*method {
            "server/discover" => std::future::pending().await,
            "initialize" => Ok(initialized("2025-11-25", &json!({}))),
            _ => unknown(),
        }
    })
    .await;
    let client = server.client().await;
    assert_eq!(client.revision(), Revision::V2025_11_25);
    // The server refuses it, but it has read every message before.
    assert_eq!(client.ping().await.unwrap_err().code(), Some(-32601));
    let sent = ["server/discover", "initialize", "notifications/initialized", "ping"];
    assert_eq!(server.methods(), sent);
}

#[tokio::test]
async fn a_server_that_exits_on_the_probe_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let read = async |expected: &str| {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            assert!(line.contains(expected), "{line}");
            let message: Value = serde_json::from_str(&line).unwrap();
            (stream, message["id"].clone())
        };
        drop(read("server/discover").await);
        let (mut stream, id) = read("initialize").await;
        let result = initialized("2024-11-05", &json!({}));
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        stream.write_all(format!("{response}\n").as_bytes()).await.unwrap();
        stream
    });
    let client = McpClient::connect(&endpoint).await.unwrap();
    assert_eq!(client.revision(), Revision::V2024_11_05);
    drop(server.await.unwrap());
}

#[tokio::test]
async fn an_assumed_revision_saves_the_probe_and_may_be_wrong() {
    let server = legacy("2025-11-25", json!({})).await;
    let era = server.client().await.era();
    let saved = serde_json::to_string(&era).unwrap();
    let era: ServerEra = serde_json::from_str(&saved).unwrap();
    server.connect(McpClient::builder().assume(era)).await.unwrap();
    assert_eq!(server.params("server/discover").len(), 1);
    let modern = Scripted::start(|method, _, _| async move {
        match &*method {
            "server/discover" => Ok(super::scripted::discovered(&json!({}))),
            _ => unknown(),
        }
    })
    .await;
    let client = modern.connect(McpClient::builder().assume(era)).await.unwrap();
    assert!(client.revision().is_modern());
}

#[tokio::test]
async fn a_forced_revision_is_the_only_one() {
    let server = legacy("2025-11-25", json!({})).await;
    let only = |revision| server.connect(McpClient::builder().revision(revision));
    assert_eq!(only(Revision::V2025_11_25).await.unwrap().revision(), Revision::V2025_11_25);
    let error = only(Revision::V2025_03_26).await.unwrap_err();
    assert!(matches!(error, McpError::NoCommonRevision { .. }), "{error}");
    assert_eq!(only(Revision::V2026_07_28).await.unwrap_err().code(), Some(-32601));
}

#[tokio::test]
async fn handlers_answer_the_requests_of_the_server() {
    let server = legacy("2025-11-25", json!({"tools": {}})).await;
    let builder = McpClient::builder()
        .roots(vec![Root::new("file:///a")])
        .on_sample(|params| async move {
            assert_eq!(params.max_tokens, 5);
            Ok(CreateMessageResult::new("m", "hello"))
        })
        .on_elicit_form(|_| async { Ok(ElicitResult::decline()) });
    let client = server.connect(builder).await.unwrap();
    let ask = async |method: &str, params: Value| {
        let arguments = json!({"method": method, "params": params});
        client.call_tool("ask", arguments).await.map(|result| result.joined_text())
    };
    assert_eq!(ask("ping", json!({})).await.unwrap(), "{}");
    client.set_roots(vec![Root::new("file:///b")]).await.unwrap();
    assert_eq!(ask("roots/list", json!({})).await.unwrap(), r#"{"roots":[{"uri":"file:///b"}]}"#);
    assert_eq!(server.params("notifications/roots/list_changed").len(), 1);
    let sampling = json!({"messages": [], "maxTokens": 5});
    let sampled = ask("sampling/createMessage", sampling).await.unwrap();
    assert!(sampled.contains(r#""text":"hello""#), "{sampled}");
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    assert_eq!(ask("elicitation/create", form).await.unwrap(), r#"{"action":"decline"}"#);
    let url =
        json!({"mode": "url", "message": "m", "url": "https://example.com", "elicitationId": "1"});
    assert_eq!(ask("elicitation/create", url).await.unwrap_err().code(), Some(-32602));
    let with_tools = json!({"messages": [], "maxTokens": 5, "tools": []});
    assert_eq!(ask("sampling/createMessage", with_tools).await.unwrap_err().code(), Some(-32602));
    assert_eq!(
        ask("elicitation/create", json!({"mode": "x"})).await.unwrap_err().code(),
        Some(-32602)
    );
    assert_eq!(ask("unknown", json!({})).await.unwrap_err().code(), Some(-32601));
}

#[tokio::test]
async fn arguments_and_results_are_checked_against_listed_schemas() {
    let server = legacy("2025-11-25", json!({"tools": {}})).await;
    let client = server.client().await;
    // Before the list, the server checks.
    assert!(client.call_tool("add", json!({"a": "x"})).await.is_ok());
    assert_eq!(client.list_tools().await.unwrap().len(), 1);
    let error = client.call_tool("add", json!({"a": "x"})).await.unwrap_err();
    assert!(matches!(&error, McpError::InvalidArguments { tool, .. } if tool == "add"), "{error}");
    assert!(error.to_string().contains(": a: "), "{error}");
    let error = client.call_tool("add", ()).await.unwrap_err();
    assert!(matches!(error, McpError::InvalidArguments { .. }), "{error}");
    let error = client.call_tool("add", json!({"a": 13})).await.unwrap_err();
    assert!(matches!(error, McpError::InvalidResult { .. }), "{error}");
    #[derive(serde::Deserialize)]
    struct Sum {
        sum: i64,
    }
    let sum: Sum = client.call_tool_as("add", json!({"a": 5})).await.unwrap();
    assert_eq!(sum.sum, 5);
    let lenient = server.connect(McpClient::builder().validate(false)).await.unwrap();
    lenient.list_tools().await.unwrap();
    assert!(lenient.call_tool("add", json!({"a": 13})).await.is_ok());
}

#[tokio::test]
async fn notifications_reach_listeners_and_handlers() {
    let capabilities =
        json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}});
    let server = legacy("2025-11-25", capabilities).await;
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = logged.clone();
    let builder =
        McpClient::builder().on_log(move |message| log.lock().unwrap().push(message.data));
    let client = server.connect(builder).await.unwrap();
    let filter =
        SubscriptionFilter::list_changes().with_resource_subscriptions(vec!["a:b".to_owned()]);
    let mut changes = client.listen(filter.clone()).await.unwrap();
    let second = client.listen(filter).await.unwrap();
    let granted = SubscriptionFilter::new()
        .with_tools_list_changed(true)
        .with_resource_subscriptions(vec!["a:b".to_owned()]);
    assert_eq!(changes.acknowledged(), &granted);
    let notify = json!({"notify": [
        ["notifications/message", {"level": "info", "data": "logged"}],
        ["notifications/prompts/list_changed", {}],
        ["notifications/resources/updated", {"uri": "other:c"}],
        ["notifications/resources/updated", {}],
        ["notifications/resources/updated", {"uri": "a:b"}],
        ["notifications/tools/list_changed", {}]]});
    client.call_tool("notify", notify).await.unwrap();
    let updated = ServerNotification::ResourceUpdated { uri: "a:b".to_owned() };
    assert_eq!(changes.next().await.unwrap().unwrap(), updated);
    assert_eq!(changes.next().await.unwrap().unwrap(), ServerNotification::ToolsChanged);
    assert_eq!(*logged.lock().unwrap(), [json!("logged")]);
    // The last subscription to a resource unsubscribes.
    drop(second);
    client.ping().await.unwrap();
    assert_eq!(server.params("resources/unsubscribe").len(), 0);
    client.clone().close().await;
    assert!(changes.next().await.is_none());
}

#[tokio::test]
async fn a_repeated_cursor_is_an_error() {
    let server = Scripted::start(|method, params, _| async move {
        match &*method {
            "initialize" => Ok(initialized("2025-11-25", &json!({}))),
            "prompts/list" => match params["cursor"].as_str() {
                None => Ok(json!({"prompts": [{"name": "a"}], "nextCursor": "2"})),
                Some("2") => Ok(json!({"prompts": [{"name": "b"}]})),
                Some(_) => Err(ErrorObject::invalid_params()),
            },
            "resources/list" => Ok(json!({"resources": [], "nextCursor": "same"})),
            _ => unknown(),
        }
    })
    .await;
    let client = server.client().await;
    let names: Vec<_> =
        client.list_prompts().await.unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(client.list_prompts_page(Some("2")).await.unwrap().prompts.len(), 1);
    let error = client.list_resources().await.unwrap_err();
    assert!(error.to_string().contains("the cursor \"same\" twice"), "{error}");
}

#[tokio::test]
async fn a_list_is_bounded_in_bytes() {
    let server = Scripted::start(|method, params, _| async move {
        match &*method {
            "initialize" => Ok(initialized("2025-11-25", &json!({}))),
            "prompts/list" => {
                let page: u32 = params["cursor"].as_str().unwrap_or("0").parse().unwrap();
                let description = "x".repeat(24 << 20);
                let prompts = json!([{"name": page.to_string(), "description": description}]);
                Ok(json!({"prompts": prompts, "nextCursor": (page + 1).to_string()}))
            }
            _ => unknown(),
        }
    })
    .await;
    let error = server.client().await.list_prompts().await.unwrap_err();
    assert!(error.to_string().contains("has more than 67108864 bytes"), "{error}");
    assert_eq!(server.params("prompts/list").len(), 3);
}

#[tokio::test]
async fn an_answer_that_does_not_match_the_form_is_not_sent() {
    let server = legacy("2025-11-25", json!({"tools": {}})).await;
    let answer =
        || async { Ok(ElicitResult::accept(json!({"n": "x"}).as_object().unwrap().clone())) };
    let question = json!({"method": "elicitation/create", "params": {"message": "n?",
        "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    let client = server.connect(McpClient::builder().on_elicit(move |_| answer())).await.unwrap();
    let error = client.call_tool("ask", &question).await.unwrap_err();
    assert_eq!(error.code(), Some(-32603), "{error}");
    let builder = McpClient::builder().on_elicit(move |_| answer()).validate(false);
    let client = server.connect(builder).await.unwrap();
    assert!(client.call_tool("ask", &question).await.unwrap().joined_text().contains("accept"));
}

#[tokio::test]
async fn an_endpoint_that_does_not_exist_is_an_error() {
    assert!(matches!(McpClient::connect("nonsense").await, Err(McpError::Endpoint(_))));
    assert!(matches!(McpClient::connect("memory:mcp-nobody").await, Err(McpError::Connect(_))));
    let server = Server::bind("tcp://127.0.0.1:0").await.unwrap();
    let endpoint = server.endpoints()[0].to_string();
    drop(server);
    let client =
        McpClient::builder().probe_timeout(Duration::from_millis(50)).connect(&*endpoint).await;
    assert!(client.is_err());
}
