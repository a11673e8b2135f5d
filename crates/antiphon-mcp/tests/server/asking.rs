//! Questions to the client while a request runs: forms, the model, the roots, in both eras.

use antiphon_mcp::types::{CreateMessageParams, IncludeContext, SamplingContent, SamplingMessage};
use antiphon_mcp::{Elicited, McpServer, RequestContext, ServerTool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::duplex::Duplex;
use crate::support::{code, modern_with, text, tool};

#[derive(Deserialize, JsonSchema)]
struct Name {
    #[schemars(length(min = 2))]
    name: String,
}

async fn name(cx: &RequestContext, key: &str) -> Result<String, ToolError> {
    Ok(match cx.question(key).elicit_as::<Name>("Who are you?").await? {
        Elicited::Accepted(Name { name }) => name,
        Elicited::Declined => "declined".to_owned(),
        Elicited::Cancelled => "cancelled".to_owned(),
    })
}

pub(crate) fn server() -> McpServer {
    McpServer::builder("test", "1")
        .tool(ServerTool::new("name", |(): (), cx: RequestContext| async move {
            name(&cx, "name").await
        }))
        .tool(ServerTool::new("both", |(): (), cx: RequestContext| async move {
            let (one, two) = tokio::join!(name(&cx, "one"), name(&cx, "two"));
            Ok::<_, ToolError>(format!("{} and {}", one?, two?))
        }))
        .tool(ServerTool::new("sample", |(): (), cx: RequestContext| async move {
            let message = SamplingMessage::user(SamplingContent::text("2+2?"));
            let answer = cx.sample(CreateMessageParams::new(vec![message], 10)).await?;
            Ok::<_, ToolError>(answer.model)
        }))
        .tool(ServerTool::new("roots", |(): (), cx: RequestContext| async move {
            Ok::<_, ToolError>(cx.roots().await?.len().to_string())
        }))
        .build()
}

pub(crate) fn capabilities() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

pub(crate) fn accept(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

fn sampled() -> Value {
    let content = json!({ "type": "text", "text": "4" });
    json!({ "role": "assistant", "content": content, "model": "m" })
}

async fn legacy() -> Duplex {
    Duplex::start(&server(), "2025-06-18", capabilities()).await
}

#[tokio::test]
async fn a_legacy_client_is_called() {
    let mut client = legacy().await;
    for (name, method, answer, expected) in [
        ("name", "elicitation/create", accept("Ada"), "Ada"),
        ("name", "elicitation/create", json!({ "action": "decline" }), "declined"),
        ("name", "elicitation/create", json!({ "action": "cancel" }), "cancelled"),
        ("sample", "sampling/createMessage", sampled(), "m"),
        ("roots", "roots/list", json!({ "roots": [{ "uri": "file:///a" }] }), "1"),
    ] {
        let id = client.begin("tools/call", tool(name, json!({}))).await;
        let question = client.next().await;
        assert_eq!(question["method"], method);
        client.answer(&question, answer).await;
        let response = client.next().await;
        assert_eq!((response["id"].as_u64(), text(&response)), (Some(id), expected));
    }
}

#[tokio::test]
async fn questions_at_the_same_time_get_their_own_answers() {
    let mut client = legacy().await;
    client.begin("tools/call", tool("both", json!({}))).await;
    let (one, two) = (client.next().await, client.next().await);
    assert_ne!(one["id"], two["id"]);
    client.answer(&two, accept("Bob")).await;
    client.answer(&one, accept("Ada")).await;
    assert_eq!(text(&client.next().await), "Ada and Bob");
}

#[tokio::test]
async fn an_invalid_answer_fails_the_call_only() {
    let mut client = legacy().await;
    for answer in [
        json!({}),
        json!([]),
        json!("Ada"),
        json!(null),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "name": 7 } }),
        json!({ "action": "accept", "content": { "name": "A" } }),
        json!({ "action": "perhaps" }),
    ] {
        client.begin("tools/call", tool("name", json!({}))).await;
        let question = client.next().await;
        client.answer(&question, answer.clone()).await;
        let response = client.next().await;
        let is_error = response["result"]["isError"] == true || response["error"].is_object();
        assert!(is_error || answer["action"] == "perhaps", "{answer}: {response}");
    }
    client.begin("tools/call", tool("name", json!({}))).await;
    let question = client.next().await;
    let error = json!({ "code": -1, "message": "not today" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error })).await;
    let response = client.next().await;
    assert_eq!(response["result"]["isError"], true);
    assert!(text(&response).contains("not today"), "{response}");
    client.begin("tools/call", tool("name", json!({}))).await;
    let question = client.next().await;
    let both = json!({ "jsonrpc": "2.0", "id": question["id"], "error": error, "result": {} });
    client.send(&both).await;
    assert_eq!(client.next().await["result"]["isError"], true);
}

#[tokio::test]
async fn a_client_without_the_capability_is_not_asked() {
    let server = server();
    let mut client = Duplex::start(&server, "2025-11-25", json!({})).await;
    for name in ["name", "sample", "roots", "both"] {
        let legacy = client.call("tools/call", tool(name, json!({}))).await;
        assert_eq!(legacy["result"]["isError"], true, "{name}");
        assert!(text(&legacy).contains("does not support"), "{legacy}");
        let new = client.call("tools/call", modern_with(tool(name, json!({})), json!({}))).await;
        assert_eq!(code(&new), -32021, "{name}");
        assert!(new["error"]["data"]["requiredCapabilities"].is_object(), "{new}");
    }
    let url_only = json!({ "elicitation": { "url": {} } });
    let response = client.call("tools/call", modern_with(tool("name", json!({})), url_only)).await;
    assert_eq!(code(&response), -32021);
}

#[tokio::test]
async fn a_cancelled_call_withdraws_its_question() {
    let mut client = legacy().await;
    let id = client.begin("tools/call", tool("name", json!({}))).await;
    let question = client.next().await;
    let cancelled = json!({ "requestId": id });
    client.send(&crate::support::notification("notifications/cancelled", cancelled)).await;
    let withdrawn = client.next().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    client.answer(&question, accept("late")).await;
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn the_end_of_an_elicitation_by_url_is_told_after_the_response_too() {
    let (sender, mut contexts) = tokio::sync::mpsc::unbounded_channel();
    let url = ServerTool::new("url", move |(): (), cx: RequestContext| {
        sender.send(cx).unwrap();
        async { Err::<String, _>(ToolError::url_elicitation_required(Vec::new())) }
    });
    let server = McpServer::builder("test", "1").tool(url).build();
    let mut client = Duplex::start(&server, "2025-11-25", capabilities()).await;
    assert_eq!(code(&client.call("tools/call", tool("url", json!({}))).await), -32042);
    let cx = contexts.recv().await.unwrap();
    cx.elicitation_completed("e1").await;
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/elicitation/complete");
    assert_eq!(told["params"]["elicitationId"], "e1");
}

#[tokio::test]
async fn context_of_servers_needs_a_client_that_has_declared_it() {
    let sample = ServerTool::new("sample", |(): (), cx: RequestContext| async move {
        let message = SamplingMessage::user(SamplingContent::text("2+2?"));
        let params = CreateMessageParams::new(vec![message], 10);
        let params = params.with_include_context(IncludeContext::ThisServer);
        Ok::<_, ToolError>(cx.sample(params).await?.model)
    });
    let server = McpServer::builder("test", "1").tool(sample).build();
    for (revision, sampling, is_asked) in [
        ("2025-06-18", json!({}), true),
        ("2025-11-25", json!({}), false),
        ("2025-11-25", json!({ "context": {} }), true),
    ] {
        let mut client = Duplex::start(&server, revision, json!({ "sampling": sampling })).await;
        client.begin("tools/call", tool("sample", json!({}))).await;
        let next = client.next().await;
        assert_eq!(next["method"] == "sampling/createMessage", is_asked, "{next}");
    }
}
