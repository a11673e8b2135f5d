//! Calls of tools as calls of methods: the params, the results, the failures, and the end of a call.

use std::time::Duration;

use antiphon::{Client, Context, ErrorObject, Router};
use antiphon_mcp::from_openrpc::ToolsFromOpenRpc;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

use crate::client::{McpClient, document, echo, soon};

fn method(name: &str) -> Value {
    json!({ "name": name, "params": [], "result": { "name": "r", "schema": true } })
}

#[tokio::test]
async fn params_and_results_are_exact() {
    let params = json!([
        { "name": "a", "required": true, "schema": true },
        { "name": "b", "schema": { "type": "string" } },
        { "name": "c", "schema": true },
    ]);
    let with_style = |name: &str, style: &str| {
        let mut method = method(name);
        method["params"] = params.clone();
        method["paramStructure"] = style.into();
        method
    };
    let methods = json!([
        with_style("position", "by-position"),
        with_style("name", "by-name"),
        with_style("either", "either"),
        method("none"),
    ]);
    let client = McpClient::of_tools(ToolsFromOpenRpc::new(document(&methods), echo())).await;
    for (tool, arguments, expected) in [
        ("position", r#"{"c":1.50,"a":18446744073709551616}"#, "[18446744073709551616,null,1.50]"),
        ("position", r#"{"a":{"x":[1E2, 1.0]}}"#, r#"[{"x":[1E2, 1.0]}]"#),
        ("either", r#"{"b":"\u0041","a":-0}"#, r#"[-0,"\u0041"]"#),
        ("name", r#"{"c":1.50,"a":1e0}"#, r#"{"a":1e0,"c":1.50}"#),
        ("none", "{}", "null"),
    ] {
        let result = client.tool_text(tool, arguments).await;
        let expected = format!(r#""structuredContent":{{"method":"{tool}","params":{expected}}}"#);
        assert!(result.contains(&expected), "{result}");
    }
    let error = client.tool_error("position", json!({ "b": "x" })).await;
    assert!(error.contains("\"a\" is a required property"), "{error}");
    let error = client.tool_error("none", json!({ "d": 1 })).await;
    assert!(error.contains("'d'"), "{error}");
}

#[tokio::test]
async fn other_results_are_text() {
    let router = Router::new()
        .method("text", |(): (), _: Context| async { Ok("a \"text\"") })
        .method("list", |(): (), _: Context| async { Ok((1, "x")) })
        .method("none", |(): (), _: Context| async { Ok(()) });
    let methods = json!([method("text"), method("list"), method("none")]);
    let tools = ToolsFromOpenRpc::new(document(&methods), Client::in_process(router));
    let client = McpClient::of_tools(tools).await;
    for (tool, text) in [("text", "a \"text\""), ("list", "[1,\"x\"]"), ("none", "null")] {
        let expected = json!({ "content": [{ "type": "text", "text": text }] });
        assert_eq!(client.tool(tool, json!({})).await, expected);
    }
    // Since 2026-07-28, every value can be structured.
    for (tool, text, structured) in [
        ("text", "a \"text\"", None),
        ("list", "[1,\"x\"]", Some(json!([1, "x"]))),
        ("none", "null", Some(Value::Null)),
    ] {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
        let result: Value = client.rpc.call("tools/call", params).await.unwrap();
        assert_eq!(result["content"], json!([{ "type": "text", "text": text }]), "{result}");
        assert_eq!(result.get("structuredContent"), structured.as_ref(), "{result}");
    }
}

/// A client of the protocol refuses a structured result that does not match the schema of its tool.
#[tokio::test]
async fn a_result_that_does_not_match_is_an_error_with_the_result() {
    let mut described = method("m");
    described["result"]["schema"] = json!({ "type": "object", "required": ["missing"] });
    let tools = || ToolsFromOpenRpc::new(document(&json!([described.clone()])), echo());
    let client = McpClient::of_tools(tools()).await;
    let error = client.tool_error("m", json!({})).await;
    assert!(error.contains("missing") && error.contains(r#"{"method":"m""#), "{error}");
    let client = McpClient::of_tools(tools().output_schemas(false)).await;
    assert_eq!(client.tool("m", json!({})).await["structuredContent"]["method"], "m");
}

#[tokio::test]
async fn an_error_of_the_service_is_a_tool_error() {
    let router = Router::new().method("fail", |(): (), _: Context| async {
        Err::<(), _>(ErrorObject::new(-32050, "out of stock").with_data(&json!({ "left": 0 })))
    });
    let methods = json!([method("fail"), method("unknown")]);
    let tools = ToolsFromOpenRpc::new(document(&methods), Client::in_process(router));
    let client = McpClient::of_tools(tools).await;
    let error = client.tool_error("fail", json!({})).await;
    assert_eq!(error, "error -32050: out of stock\ndata: {\"left\":0}");
    assert!(client.tool_error("unknown", json!({})).await.starts_with("error -32601: "));
}

#[tokio::test]
async fn a_timeout_and_a_lost_connection_are_tool_errors() {
    let router = Router::new().method("hang", |(): (), _: Context| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let service = Client::in_process(router);
    let tools = ToolsFromOpenRpc::new(document(&json!([method("hang")])), &service);
    let client = McpClient::of_tools(tools.timeout(Duration::from_millis(20))).await;
    let error = client.tool_error("hang", json!({})).await;
    assert!(error.contains("no response within 20ms"), "{error}");
    assert!(error.ends_with("the service may have executed the call"), "{error}");
    service.close().await;
    let error = client.tool_error("hang", json!({})).await;
    assert!(error.contains("the connection is closed"), "{error}");
    assert!(error.ends_with("the service has not executed the call"), "{error}");
}

/// Reports its end.
struct Guard(tokio::sync::mpsc::UnboundedSender<&'static str>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

#[tokio::test]
async fn a_cancelled_call_cancels_the_call_of_the_service() {
    let (events, mut seen) = unbounded_channel();
    let router = Router::new().method("hang", move |(): (), _: Context| {
        let guard = Guard(events.clone());
        async move {
            let _ = guard.0.send("started");
            std::future::pending::<()>().await;
            drop(guard);
            Ok(())
        }
    });
    let described = antiphon::openrpc::Description::method::<(), ()>();
    let tools = ToolsFromOpenRpc::of_router(router.describe("hang", described));
    let client = McpClient::of_tools(tools).await;
    let rpc = client.rpc.clone();
    let call = tokio::spawn(async move {
        rpc.call::<Value>("tools/call", json!({ "name": "hang", "arguments": {} })).await
    });
    assert_eq!(soon(seen.recv()).await, Some("started"));
    call.abort();
    assert_eq!(soon(seen.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn a_method_without_a_result_is_notified() {
    let (events, mut seen) = unbounded_channel();
    let router = Router::new().notification("log", move |(text,): (String,), _: Context| {
        let _ = events.send(text);
        std::future::ready(())
    });
    let params = json!([{ "name": "text", "required": true, "schema": { "type": "string" } }]);
    let methods = json!([{ "name": "log", "params": params }]);
    let tools = ToolsFromOpenRpc::new(document(&methods), Client::in_process(router));
    let client = McpClient::of_tools(tools).await;
    let result = client.tool("log", json!({ "text": "hi" })).await;
    assert_eq!(result["content"][0]["text"], "the notification was sent");
    assert_eq!(soon(seen.recv()).await.unwrap(), "hi");
}
