//! Tool calls as tasks, on a server of 2025-11-25 that is not honest.

use std::time::Duration;

use antiphon_mcp::client::{McpClient, McpError};
use serde_json::{Value, json};

use super::scripted::{Reply, Scripted, initialized, text, unknown};

/// A task in this state.
fn task(status: &str, ttl: Option<u64>) -> Value {
    json!({"taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": ttl, "pollInterval": 1000})
}

/// A server whose task has this state at once, and this result.
async fn with_task(status: &'static str, ttl: Option<u64>, result: Option<Reply>) -> Scripted {
    Scripted::start(move |method, _, _| {
        let result = result.clone();
        async move {
            let tasks = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
            let tool = json!({"name": "t", "inputSchema": {"type": "object"},
                "execution": {"taskSupport": "required"}});
            match &*method {
                "initialize" => {
                    Ok(initialized("2025-11-25", &json!({"tools": {}, "tasks": tasks})))
                }
                "tools/list" => Ok(json!({"tools": [tool]})),
                "tools/call" => Ok(json!({"task": task(status, ttl)})),
                "tasks/get" => Ok(task(status, ttl)),
                "tasks/result" => match result {
                    Some(result) => result,
                    None => std::future::pending().await,
                },
                "tasks/cancel" => Ok(task("cancelled", ttl)),
                _ => unknown(),
            }
        }
    })
    .await
}

async fn call(server: &Scripted) -> Result<String, McpError> {
    let builder = McpClient::builder().timeout(Duration::from_secs(7));
    let client = server.connect(builder).await.unwrap();
    client.call_tool("t", ()).await.map(|result| result.joined_text())
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_requires_a_task_is_called_as_one() {
    let server = with_task("completed", None, Some(Ok(text("done")))).await;
    assert_eq!(call(&server).await.unwrap(), "done");
    assert_eq!(server.params("tools/call")[0]["task"], json!({}));
    assert!(server.params("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_result_that_never_comes_does_not_block_forever() {
    // An end was promised, so the timeout of each call applies.
    let server = with_task("completed", None, None).await;
    assert!(matches!(call(&server).await, Err(McpError::TimedOut(_))));
    // Before the end, the lifetime of the task applies.
    for status in ["working", "input_required"] {
        let server = with_task(status, Some(60_000), None).await;
        let error = call(&server).await.unwrap_err();
        assert!(matches!(error, McpError::TimedOut(it) if it.as_secs() == 60), "{error}");
        while server.params("tasks/cancel").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_of_another_task_is_refused() {
    let mut result = text("done");
    result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": "t2"}});
    let server = with_task("completed", None, Some(Ok(result))).await;
    assert!(matches!(call(&server).await, Err(McpError::Protocol(_))));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_an_error() {
    let server = with_task("cancelled", None, None).await;
    assert!(matches!(call(&server).await, Err(McpError::TaskCancelled { .. })));
}
