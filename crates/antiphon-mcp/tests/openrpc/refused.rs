//! Documents that cannot be offered: the error names the place and the remedy.

use antiphon_mcp::McpServer;
use antiphon_mcp::from_openrpc::{FromOpenRpcError, ToolsFromOpenRpc};
use serde_json::{Value, json};

use crate::client::{document, echo};

fn refused(methods: &Value, change: fn(ToolsFromOpenRpc) -> ToolsFromOpenRpc) -> FromOpenRpcError {
    let tools = change(ToolsFromOpenRpc::new(document(methods), echo()));
    McpServer::builder("test", "1").tools_from(tools).unwrap_err()
}

#[tokio::test]
async fn an_error_names_the_place() {
    let with_param = |schema: Value| {
        let result = json!({ "name": "r", "schema": {} });
        json!([{ "name": "m", "params": [{ "name": "p", "schema": schema }], "result": result }])
    };
    for (methods, expected) in [
        (json!([]), "describes no method"),
        (
            with_param(json!({ "$ref": "#/components/schemas/No" })),
            "the param `p` of the method `m`",
        ),
        (with_param(json!({ "$ref": "#/components/schemas/No" })), "`#/components/schemas/No`"),
        (with_param(json!({ "type": "nonsense" })), "the method `m` cannot be offered"),
        (with_param(json!([1])), "a schema is an Object, not [1]"),
    ] {
        let error = refused(&methods, |tools| tools).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn patterns_and_names_are_checked() {
    let method = |name: &str| json!({ "name": name, "params": [] });
    let methods = json!([method("one"), method("two")]);
    let error = refused(&methods, |tools| tools.allow(["three"]));
    assert!(error.to_string().contains("none of the 2 methods"), "{error}");
    assert!(error.to_string().contains("`one`"), "{error}");
    let error = refused(&methods, |tools| tools.rename("one", "no name"));
    assert!(error.to_string().contains("`no name`"), "{error}");
    let error = refused(&methods, |tools| tools.rename("three", "x"));
    assert!(error.to_string().contains("no method `three`"), "{error}");
    let error = refused(&methods, |tools| tools.rename("one", "x").rename("two", "x"));
    assert!(error.to_string().contains("not taken"), "{error}");
}

/// Each tool has its own copy of what it refers to, so a small document can describe large tools.
#[tokio::test]
async fn the_size_of_all_schemas_is_limited() {
    let numbers: Vec<u32> = (0..15_000).collect();
    let shared = json!({ "Large": { "enum": numbers } });
    let method = |number: usize| {
        let schema = json!({ "$ref": "#/components/schemas/Large" });
        json!({ "name": format!("m{number}"), "params": [{ "name": "p", "schema": schema }] })
    };
    let document =
        crate::client::document_with(&(0..40).map(method).collect(), &json!({ "schemas": shared }));
    let tools = ToolsFromOpenRpc::new(document, echo());
    let error = McpServer::builder("test", "1").tools_from(tools).unwrap_err();
    assert!(matches!(error, FromOpenRpcError::TooLarge { .. }), "{error}");
}
