//! Tools, resources, prompts and completion, and the faults of their params.

use antiphon_mcp::types::Tool;
use antiphon_mcp::{
    McpServer, RequestContext, RequestError, ServerPrompt, ServerResource, ServerTemplate,
    ServerTool, Structured, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::duplex::Duplex;
use crate::support::{code, modern, text, tool};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
    address: Address,
}

#[derive(Deserialize, JsonSchema)]
struct Address {
    #[schemars(range(min = 1))]
    number: u32,
}

#[derive(Serialize, JsonSchema)]
struct Receipt {
    total: u32,
}

#[derive(Deserialize)]
struct Page {
    id: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    topic: String,
}

fn server() -> McpServer {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let dynamic = Tool::new("dynamic", schema.as_object().unwrap().clone());
    McpServer::builder("test", "1")
        .tool(ServerTool::new("order", |it: Order, _cx: RequestContext| async move {
            Ok::<_, ToolError>(format!("{} to {}", it.item, it.address.number))
        }))
        .tool(ServerTool::new("pay", |(): (), _cx: RequestContext| async {
            Structured(Receipt { total: 7 })
        }))
        .tool(ServerTool::new("list", |(): (), _cx: RequestContext| async { Structured([1, 2]) }))
        .tool(ServerTool::new("fail", |(): (), _cx: RequestContext| async {
            Err::<(), _>(ToolError::new("out of tea"))
        }))
        .tool(
            ServerTool::dynamic(dynamic, |it, _cx| async move { it.as_str().to_owned() }).unwrap(),
        )
        .resource(ServerResource::new("doc://a", "a", |_cx| async {
            Ok::<_, RequestError>("the text")
        }))
        .template(
            ServerTemplate::new("page://{id}/text", "page", |Page { id }, _cx| async move {
                Ok::<_, RequestError>(format!("page {id}"))
            })
            .unwrap()
            .complete("id", |typed, _known| async move { vec![format!("{typed}0")] }),
        )
        .prompt(
            ServerPrompt::new(
                "write",
                |it: Topic, _cx| async move { Ok(format!("On {}", it.topic)) },
            )
            .complete("topic", |typed, known| async move {
                let tone = known.get("tone").cloned().unwrap_or_default();
                (0..200).map(|n| format!("{typed}{tone}{n}")).collect()
            }),
        )
        .build()
}

/// Calls in both eras, which must agree but for the members of modern results.
async fn both(method: &str, params: Value) -> Value {
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    let legacy = client.call(method, params.clone()).await;
    let new = client.call(method, modern(params)).await;
    if let Some(result) = new["result"].as_object() {
        assert_eq!(result["resultType"], "complete");
        assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
        let mut without = result.clone();
        for member in ["resultType", "_meta", "ttlMs", "cacheScope"] {
            without.remove(member);
        }
        assert_eq!(legacy["result"], Value::Object(without));
    } else {
        assert_eq!(legacy["error"], new["error"]);
    }
    new
}

#[tokio::test]
async fn a_tool_is_called() {
    let arguments = json!({ "item": "tea", "address": { "number": 7 } });
    let called = both("tools/call", tool("order", arguments)).await;
    assert_eq!(text(&called), "tea to 7");
    assert!(called["result"].get("isError").is_none_or(|it| it == false), "{called}");
    let called = both("tools/call", tool("pay", json!({}))).await;
    assert_eq!(called["result"]["structuredContent"], json!({ "total": 7 }));
    assert_eq!(text(&called), r#"{"total":7}"#);
    let called = both("tools/call", tool("dynamic", json!({ "n": 1 }))).await;
    assert_eq!(text(&called), r#"{"n":1}"#);
}

#[tokio::test]
async fn only_modern_clients_get_a_structured_array() {
    let mut client = Duplex::start(&server(), "2025-06-18", json!({})).await;
    let new = client.call("tools/call", modern(tool("list", json!({})))).await;
    assert_eq!(new["result"]["structuredContent"], json!([1, 2]));
    let legacy = client.call("tools/call", tool("list", json!({}))).await;
    assert!(legacy["result"].get("structuredContent").is_none(), "{legacy}");
    assert_eq!(text(&legacy), "[1,2]");
}

#[tokio::test]
async fn the_model_reads_why_a_call_failed() {
    for (name, arguments, expected) in [
        ("fail", json!({}), "out of tea"),
        ("order", json!({ "item": "tea" }), "address"),
        ("order", json!({ "item": 7, "address": { "number": 7 } }), "item"),
        ("order", json!({ "item": "tea", "address": { "number": "x" } }), "address.number"),
        ("order", json!({ "item": "tea", "address": { "number": 0 } }), "address.number"),
        ("dynamic", json!({ "n": "x" }), "`n`"),
        ("order", json!([]), "Object"),
        ("order", json!(7), "Object"),
        ("order", Value::Null, "item"),
        ("order", json!({ "item": "tea", "address": { "number": "x".repeat(9000) } }), "number"),
    ] {
        let called = both("tools/call", tool(name, arguments.clone())).await;
        assert_eq!(called["result"]["isError"], true, "{arguments}: {called}");
        assert!(text(&called).contains(expected), "{arguments}: {called}");
        assert!(text(&called).len() < 1000, "{arguments}");
    }
}

#[tokio::test]
async fn what_cannot_be_served_is_an_error() {
    let long = "x".repeat(100_000);
    for (method, params, expected) in [
        ("tools/call", tool("none", json!({})), -32602),
        ("tools/call", tool(&long, json!({})), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": 7 }), -32602),
        ("prompts/get", json!({ "name": "none" }), -32602),
        ("prompts/get", json!({ "name": "write", "arguments": {} }), -32602),
        ("prompts/get", json!({ "name": "write", "arguments": [] }), -32602),
        ("resources/read", json!({}), -32602),
        ("completion/complete", json!({}), -32602),
        ("no/such/method", json!({}), -32601),
        ("", json!({}), -32601),
    ] {
        let response = both(method, params).await;
        assert_eq!(code(&response), expected, "{method}: {response}");
        assert!(response.to_string().len() < 1000, "{method}");
    }
}

#[tokio::test]
async fn resources_are_read() {
    let read = both("resources/read", json!({ "uri": "doc://a" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "the text");
    let read = both("resources/read", json!({ "uri": "page://12/text" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "page 12");
    assert_eq!(read["result"]["contents"][0]["uri"], "page://12/text");
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    for uri in ["doc://b", "page://x/text", "page://1/2/text", ""] {
        let params = json!({ "uri": uri });
        let legacy = client.call("resources/read", params.clone()).await;
        assert_eq!(code(&legacy), -32002, "{uri}");
        let new = client.call("resources/read", modern(params)).await;
        assert_eq!(code(&new), -32602, "{uri}");
    }
}

#[tokio::test]
async fn prompts_and_completions_are_served() {
    let got =
        both("prompts/get", json!({ "name": "write", "arguments": { "topic": "tea" } })).await;
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "On tea");
    let complete = |reference: Value, name: &str, context: Value| {
        let argument = json!({ "name": name, "value": "1" });
        json!({ "ref": reference, "argument": argument, "context": context })
    };
    let prompt = json!({ "type": "ref/prompt", "name": "write" });
    let context = json!({ "arguments": { "tone": "-" } });
    let done = both("completion/complete", complete(prompt.clone(), "topic", context)).await;
    let completion = &done["result"]["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100, "the limit of the protocol");
    assert_eq!(completion["values"][0], "1-0");
    assert_eq!(completion["hasMore"], true);
    let done = both("completion/complete", complete(prompt, "other", json!({}))).await;
    assert_eq!(done["result"]["completion"]["values"], json!([]));
    let template = json!({ "type": "ref/resource", "uri": "page://{id}/text" });
    let done = both("completion/complete", complete(template, "id", json!({}))).await;
    assert_eq!(done["result"]["completion"]["values"], json!(["10"]));
    let none = json!({ "type": "ref/prompt", "name": "none" });
    let response = both("completion/complete", complete(none, "a", json!({}))).await;
    assert_eq!(code(&response), -32602);
}

#[tokio::test]
async fn modern_clients_get_no_code_of_earlier_revisions() {
    let missing = ServerResource::new("doc://gone", "gone", |_cx: RequestContext| async {
        Err::<String, _>(RequestError::new(-32002, "Resource not found"))
    });
    let url = ServerTool::new("url", |(): (), _cx: RequestContext| async {
        Err::<String, _>(ToolError::url_elicitation_required(Vec::new()))
    });
    let server = McpServer::builder("test", "1").resource(missing).tool(url).build();
    let mut old = Duplex::start(&server, "2025-11-25", json!({})).await;
    let mut new = Duplex::connect(&server).await;
    for (method, params, legacy, expected) in [
        ("resources/read", json!({ "uri": "doc://gone" }), -32002, -32602),
        ("tools/call", tool("url", json!({})), -32042, -32603),
    ] {
        assert_eq!(code(&old.call(method, params.clone()).await), legacy);
        assert_eq!(code(&new.call(method, modern(params)).await), expected);
    }
}

#[tokio::test]
async fn completions_that_are_not_declared_do_not_exist() {
    let prompt = ServerPrompt::new("plain", |(): (), _cx: RequestContext| async { Ok("text") });
    let server = McpServer::builder("test", "1").prompt(prompt).build();
    let mut old = Duplex::start(&server, "2025-11-25", json!({})).await;
    let mut new = Duplex::connect(&server).await;
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "plain" },
        "argument": { "name": "a", "value": "" },
    });
    assert_eq!(code(&old.call("completion/complete", params.clone()).await), -32601);
    assert_eq!(code(&new.call("completion/complete", modern(params)).await), -32601);
}
