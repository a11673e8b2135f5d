//! The limits of tasks.

use std::time::Duration;

use antiphon_mcp::TaskSettings;
use serde_json::{Value, json};

use crate::support::{As, Wire};
use crate::tools;

const SECOND: Duration = Duration::from_secs(1);

fn server(settings: TaskSettings) -> antiphon_mcp::McpServer {
    tools::builder().0.tasks(settings).build()
}

#[tokio::test(start_paused = true)]
async fn too_many_tasks_are_not_created() {
    let server = server(TaskSettings::new().max_tasks(2).ttl(60 * SECOND));
    let wire = Wire::new(server.clone());
    let first = wire.begin("wait").await;
    wire.begin("wait").await;
    // A call whose task is optional runs without one.
    let result = wire.modern("tools/call", json!({ "name": "number" })).await.unwrap();
    assert_eq!(result["resultType"], "complete");
    let error = wire.modern("tools/call", json!({ "name": "must_wait" })).await.unwrap_err();
    assert_eq!(error.code.0, -32009);
    // A legacy client that has asked for a task gets no other result.
    let (legacy, _) = Wire::legacy(server, "2025-11-25").await;
    let params = json!({ "name": "number", "task": {} });
    assert_eq!(legacy.call("tools/call", params).await.unwrap_err().code.0, -32009);
    tokio::time::sleep(61 * SECOND).await;
    let error = wire.modern("tasks/get", json!({ "taskId": first })).await.unwrap_err();
    assert_eq!(error.code.0, -32602);
    wire.begin("number").await;
}

#[tokio::test]
async fn one_caller_cannot_take_all_tasks() {
    let server = server(TaskSettings::new().running_per_caller(1));
    let ada = Wire::new(As("ada", server.clone()));
    // A task that has ended does not count.
    let ended = ada.begin("number").await;
    ada.until(&ended, "completed").await;
    ada.begin("must_wait").await;
    let error = ada.modern("tools/call", json!({ "name": "must_wait" })).await.unwrap_err();
    assert_eq!(error.code.0, -32009);
    Wire::new(As("bob", server)).begin("must_wait").await;
}

#[tokio::test]
async fn the_number_of_running_tasks_is_limited() {
    let wire = Wire::new(server(TaskSettings::new().max_running(1)));
    let task = wire.begin("must_wait").await;
    let error = wire.modern("tools/call", json!({ "name": "must_wait" })).await.unwrap_err();
    assert_eq!(error.code.0, -32009);
    wire.modern("tasks/cancel", json!({ "taskId": task })).await.unwrap();
    wire.begin("must_wait").await;
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_results_are_limited_and_freed() {
    let settings = TaskSettings::new().max_bytes(3_000).ttl(60 * SECOND);
    let wire = Wire::new(server(settings));
    let begin = async |length: usize| {
        let params = json!({ "name": "text", "arguments": { "length": length } });
        let created = wire.modern("tools/call", params).await.unwrap();
        created["taskId"].as_str().unwrap().to_owned()
    };
    wire.until(&begin(2_000).await, "completed").await;
    let state = wire.until(&begin(2_000).await, "failed").await;
    let message = state["error"]["message"].as_str().unwrap();
    assert!(message.contains("limit"), "{message}");
    tokio::time::sleep(61 * SECOND).await;
    wire.until(&begin(2_000).await, "completed").await;
}

#[tokio::test]
async fn a_client_cannot_ask_for_any_time_to_live() {
    let settings = TaskSettings::new().ttl(60 * SECOND).max_ttl(90 * SECOND);
    let (wire, _) = Wire::legacy(server(settings), "2025-11-25").await;
    for (wanted, granted) in [
        (json!({}), 60_000),
        (json!({ "ttl": null }), 60_000),
        (json!({ "ttl": 80_000 }), 80_000),
        (json!({ "ttl": 1e12 }), 90_000),
        (json!({ "ttl": 0 }), 1_000),
    ] {
        let params = json!({ "name": "wait", "task": wanted });
        let created: Value = wire.call("tools/call", params).await.unwrap();
        assert_eq!(created["task"]["ttl"], granted);
    }
    let params = json!({ "name": "wait", "task": { "ttl": "long" } });
    assert_eq!(wire.call("tools/call", params).await.unwrap_err().code.0, -32602);
}
