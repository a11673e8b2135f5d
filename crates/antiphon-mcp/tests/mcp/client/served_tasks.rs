//! A server of 2025-11-25 that asks its questions as tasks.

use antiphon_mcp::client::{McpClient, McpClientBuilder};
use antiphon_mcp::types::{CreateMessageResult, ElicitResult, SamplingContent};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::legacy::legacy;

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A client whose user waits for the gate.
fn builder(gate: std::sync::Arc<Notify>) -> McpClientBuilder {
    McpClient::builder()
        .tasks()
        .on_elicit_form(move |_| {
            let gate = gate.clone();
            async move {
                gate.notified().await;
                Ok(ElicitResult::decline())
            }
        })
        .on_sample(|_| async {
            Ok(CreateMessageResult::new("model", SamplingContent::text("hello")))
        })
}

async fn connect(version: &'static str) -> (McpClient, std::sync::Arc<Notify>, Value) {
    let gate = std::sync::Arc::new(Notify::new());
    let server = legacy(version, json!({"tools": {}})).await;
    let client = server.connect(builder(gate.clone())).await.unwrap();
    let declared = server.params("initialize")[0]["capabilities"]["tasks"].clone();
    (client, gate, declared)
}

/// What the client answers to a request of the server.
async fn ask(client: &McpClient, method: &str, params: Value) -> Result<Value, i64> {
    let arguments = json!({"method": method, "params": params});
    match client.call_tool("ask", arguments).await {
        Ok(result) => Ok(serde_json::from_str(&result.joined_text()).unwrap()),
        Err(error) => Err(error.code().unwrap()),
    }
}

fn question() -> Value {
    json!({"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}, "task": {"ttl": 30_000}})
}

#[tokio::test]
async fn a_question_becomes_a_task_of_the_client() {
    let (client, gate, declared) = connect("2025-11-25").await;
    let requests = json!({"sampling": {"createMessage": {}}, "elicitation": {"create": {}}});
    assert_eq!(declared, json!({"list": {}, "cancel": {}, "requests": requests}));
    let created = ask(&client, "elicitation/create", question()).await.unwrap();
    let task = created["task"]["taskId"].clone();
    assert_eq!(
        (&created["task"]["status"], &created["task"]["ttl"]),
        (&json!("working"), &json!(30_000))
    );
    let named = json!({"taskId": task});
    assert_eq!(ask(&client, "tasks/get", named.clone()).await.unwrap(), created["task"]);
    let list = ask(&client, "tasks/list", json!({})).await.unwrap();
    assert_eq!(list, json!({"tasks": [created["task"]]}));
    let waiting = tokio::spawn({
        let (client, named) = (client.clone(), named.clone());
        async move { ask(&client, "tasks/result", named).await }
    });
    gate.notify_one();
    let result = waiting.await.unwrap().unwrap();
    assert_eq!(result, json!({"action": "decline", "_meta": {RELATED: {"taskId": task}}}));
    assert_eq!(ask(&client, "tasks/get", named.clone()).await.unwrap()["status"], "completed");
    assert_eq!(ask(&client, "tasks/cancel", named).await, Err(-32602));
    assert_eq!(ask(&client, "tasks/get", json!({"taskId": "x"})).await, Err(-32602));
    assert_eq!(ask(&client, "tasks/list", json!({"cursor": "x"})).await, Err(-32602));
}

#[tokio::test]
async fn a_task_of_the_client_is_cancelled() {
    let (client, _gate, _) = connect("2025-11-25").await;
    let created = ask(&client, "elicitation/create", question()).await.unwrap();
    let named = json!({"taskId": created["task"]["taskId"]});
    let state = ask(&client, "tasks/cancel", named.clone()).await.unwrap();
    assert_eq!(state["status"], "cancelled");
    assert_eq!(ask(&client, "tasks/result", named).await, Err(-32603));
}

#[tokio::test]
async fn tasks_of_the_client_are_bounded() {
    let (client, _gate, _) = connect("2025-11-25").await;
    for _ in 0..64 {
        ask(&client, "elicitation/create", question()).await.unwrap();
    }
    assert_eq!(ask(&client, "elicitation/create", question()).await, Err(-32009));
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_client_ends_with_its_time_to_live() {
    let (client, _gate, _) = connect("2025-11-25").await;
    let created = ask(&client, "elicitation/create", question()).await.unwrap();
    let named = json!({"taskId": created["task"]["taskId"]});
    // The wait lasts as long as the task.
    assert_eq!(ask(&client, "tasks/result", named.clone()).await, Err(-32603));
    assert_eq!(ask(&client, "tasks/get", named).await, Err(-32602));
}

#[tokio::test]
async fn older_revisions_get_the_answer_at_once() {
    let (client, gate, _) = connect("2025-06-18").await;
    gate.notify_one();
    let answer = ask(&client, "elicitation/create", question()).await.unwrap();
    assert_eq!(answer, json!({"action": "decline"}));
    assert_eq!(ask(&client, "tasks/list", json!({})).await, Err(-32601));
}

#[tokio::test]
async fn an_answer_names_the_task_of_its_question() {
    let (client, _gate, _) = connect("2025-11-25").await;
    let params = json!({"messages": [], "maxTokens": 5, "_meta": {RELATED: {"taskId": "t"}}});
    let answer = ask(&client, "sampling/createMessage", params).await.unwrap();
    assert_eq!(answer["_meta"], json!({RELATED: {"taskId": "t"}}));
}
