//! The tools of a document: their names, their descriptions, and which are offered.

use antiphon_mcp::McpServer;
use antiphon_mcp::from_openrpc::ToolsFromOpenRpc;
use serde_json::json;

use crate::client::{McpClient, document, document_with, echo};

fn of(names: &[&str]) -> ToolsFromOpenRpc {
    let method = |name: &&str| json!({ "name": name, "params": [], "result": { "name": "r", "schema": true } });
    ToolsFromOpenRpc::new(document(&names.iter().map(method).collect()), echo())
}

#[tokio::test]
async fn patterns_choose_the_tools() {
    let methods = &["math.add", "math.reset", "getX", "other", "rpc.discover"];
    let names = async |tools| McpClient::of_tools(tools).await.tool_names().await;
    assert_eq!(names(of(methods)).await, ["math.add", "math.reset", "getX", "other"]);
    let some = of(methods).allow(["math.*", "get*"]).deny(["*reset"]);
    assert_eq!(names(some).await, ["math.add", "getX"]);
    let named = of(methods).prefix("p_").rename("other", "mine");
    assert_eq!(names(named).await, ["p_math.add", "p_math.reset", "p_getX", "mine"]);
}

#[tokio::test]
async fn a_mapped_name_calls_its_own_method() {
    let client = McpClient::of_tools(of(&["a/b", "a_b", "ä"])).await;
    assert_eq!(client.tool_names().await, ["a_b_2", "a_b", "_"]);
    for (tool, method) in [("a_b_2", "a/b"), ("a_b", "a_b"), ("_", "ä")] {
        let result = client.tool(tool, json!({})).await;
        assert_eq!(result["structuredContent"]["method"], method);
    }
}

#[tokio::test]
async fn a_method_describes_its_tool() {
    let methods = json!([{
        "name": "find", "summary": "Finds a node.", "description": "It looks everywhere.",
        "deprecated": true, "x-read-only": true,
        "params": [
            { "name": "id", "required": true, "schema": { "$ref": "#/components/schemas/Id" } },
            { "$ref": "#/components/contentDescriptors/Deep" },
        ],
        "result": { "name": "node", "schema": { "$ref": "#/components/schemas/Node" } },
        "errors": [{ "code": -32001, "message": "not found" }],
        "examples": [{ "name": "e", "params": [{ "name": "id", "value": 7 }],
                       "result": { "name": "node", "value": null } }],
    }]);
    let components = json!({
        "schemas": {
            "Id": { "type": "integer" },
            "Node": { "type": "object", "properties": {
                "children": { "type": "array", "items": { "$ref": "#/components/schemas/Node" } },
            } },
        },
        "contentDescriptors": {
            "Deep": { "name": "deep", "schema": { "type": "boolean" }, "summary": "look deeper" },
        },
    });
    let tools = ToolsFromOpenRpc::new(document_with(&methods, &components), echo());
    let client = McpClient::of_tools(tools).await;
    let node = json!({ "type": "object", "properties": {
        "children": { "type": "array", "items": { "$ref": "#/$defs/Node" } },
    } });
    let mut output = node.clone();
    output["$defs"] = json!({ "Node": node });
    assert_eq!(
        client.tools().await,
        [json!({
            "name": "find",
            "title": "Finds a node",
            "description": "Deprecated.\n\nFinds a node.\n\nIt looks everywhere.\n\n\
                            Errors: -32001 not found.\n\nExample: {\"id\":7} returns null",
            "annotations": { "readOnlyHint": true },
            "inputSchema": {
                "type": "object",
                "properties": {
                    "id": { "$ref": "#/$defs/Id" },
                    "deep": { "type": "boolean", "description": "look deeper" },
                },
                "required": ["id"],
                "additionalProperties": false,
                "$defs": { "Id": { "type": "integer" } },
            },
            "outputSchema": output,
        })]
    );
}

#[tokio::test]
async fn read_only_hints_are_given_when_told() {
    let hints = async |tools| {
        let tools = McpClient::of_tools(tools).await.tools().await;
        tools.iter().map(|tool| tool["annotations"]["readOnlyHint"] == true).collect::<Vec<_>>()
    };
    let methods = &["eth_getBalance", "eth_call", "eth_sign"];
    assert_eq!(hints(of(methods)).await, [false, false, false]);
    assert_eq!(hints(of(methods).read_only(["*_call"])).await, [false, true, false]);
    assert_eq!(hints(of(methods).guess_read_only(true)).await, [true, false, false]);
}

#[tokio::test]
async fn tools_are_added_to_a_server_that_runs() {
    let server = McpServer::builder("test", "1").with_tools().build();
    let mut client = McpClient::of(server.clone()).await;
    assert!(client.tool_names().await.is_empty());
    of(&["late"]).add_to(&server).unwrap();
    client.told("notifications/tools/list_changed").await;
    assert_eq!(client.tool_names().await, ["late"]);
}
