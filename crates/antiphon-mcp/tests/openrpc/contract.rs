//! A contract as tools, with one line.

use antiphon::{CallError, Context};
use antiphon_mcp::McpServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::McpClient;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Quotient {
    whole: i64,
    rest: i64,
}

#[antiphon::rpc]
pub(crate) trait Math {
    /// Divides one number by another.
    ///
    /// Both are integers.
    async fn divide(&self, dividend: i64, divisor: i64) -> Result<Quotient, CallError>;

    /// Counts, with progress.
    async fn count(&self, to: u32, cx: Context) -> Result<u32, CallError>;
}

struct Calculator;

impl Math for Calculator {
    async fn divide(&self, dividend: i64, divisor: i64) -> Result<Quotient, CallError> {
        match (dividend.checked_div(divisor), dividend.checked_rem(divisor)) {
            (Some(whole), Some(rest)) => Ok(Quotient { whole, rest }),
            _ => Err(antiphon::ErrorObject::new(-32050, "division by zero").into()),
        }
    }

    async fn count(&self, to: u32, cx: Context) -> Result<u32, CallError> {
        for number in 1..=to {
            cx.progress(json!({ "progress": number, "total": to, "message": "counting" })).await?;
        }
        Ok(to)
    }
}

async fn client() -> McpClient {
    McpClient::of(McpServer::builder("calc", "1.0").contract(Calculator.into_router()).build())
        .await
}

#[tokio::test]
async fn methods_are_tools() {
    let client = client().await;
    let tools = client.tools().await;
    let divide = tools.iter().find(|tool| tool["name"] == "divide").unwrap();
    assert_eq!(divide["title"], "Divides one number by another");
    assert!(divide["description"].as_str().unwrap().contains("Both are integers."));
    assert_eq!(divide["inputSchema"]["required"], json!(["dividend", "divisor"]));
    assert_eq!(divide["outputSchema"]["properties"]["rest"]["type"], "integer");
    assert_eq!(
        client.tool("divide", json!({ "dividend": 7, "divisor": 2 })).await,
        json!({
            "content": [{ "type": "text", "text": r#"{"whole":3,"rest":1}"# }],
            "structuredContent": { "whole": 3, "rest": 1 },
        }),
    );
    let error = client.tool_error("divide", json!({ "dividend": 7, "divisor": 0 })).await;
    assert_eq!(error, "error -32050: division by zero");
    let error = client.tool_error("divide", json!({ "dividend": "7", "divisor": 2 })).await;
    assert!(error.contains("`dividend`"), "{error}");
}

#[tokio::test]
async fn progress_reaches_the_client() {
    let mut client = client().await;
    let call = json!({
        "name": "count", "arguments": { "to": 3 }, "_meta": { "progressToken": "p" },
    });
    let result = client.call("tools/call", call).await;
    assert_eq!(result["content"][0]["text"], "3");
    for number in 1..=3 {
        let told = client.told("notifications/progress").await;
        let expected = json!({
            "progressToken": "p", "progress": number, "total": 3, "message": "counting",
        });
        assert_eq!(told, expected);
    }
}
