//! How clients are told of tasks of 2026-07-28.

use serde_json::{Value, json};

use crate::support::{Wire, with_meta};
use crate::tools;

/// Listens to tasks. Returns the acknowledged ids.
async fn listen(wire: &mut Wire, ids: &[&str]) -> Value {
    let params = json!({ "notifications": { "taskIds": ids } });
    wire.spawn("subscriptions/listen", with_meta(params, true));
    let (method, params) = wire.incoming().await;
    assert_eq!(method, "notifications/subscriptions/acknowledged");
    params["notifications"]["taskIds"].clone()
}

#[tokio::test]
async fn a_listener_is_told_each_state() {
    let (server, _signals) = tools::server();
    let mut wire = Wire::new(server);
    let task = wire.begin("ask").await;
    wire.until(&task, "input_required").await;
    assert_eq!(listen(&mut wire, &[&task, "unknown"]).await, json!([task]));
    let (method, state) = wire.incoming().await;
    assert_eq!(method, "notifications/tasks");
    assert_eq!(state["status"], "input_required");
    let mut asked = wire.state(&task).await;
    for member in ["_meta", "resultType"] {
        asked.as_object_mut().unwrap().remove(member);
    }
    let mut told = state.clone();
    let meta = told.as_object_mut().unwrap().remove("_meta").unwrap();
    assert_eq!(told, asked);
    assert!(meta["io.modelcontextprotocol/subscriptionId"].is_i64());
    let answer = json!({ "sure": { "action": "cancel" } });
    let params = json!({ "taskId": task, "inputResponses": answer });
    wire.modern("tasks/update", params).await.unwrap();
    loop {
        let (method, state) = wire.incoming().await;
        assert_eq!((method.as_str(), &state["taskId"]), ("notifications/tasks", &json!(task)));
        if state["status"] == "completed" {
            assert_eq!(state["result"]["content"][0]["text"], "sure=cancel");
            return;
        }
    }
}

#[tokio::test]
async fn other_tasks_are_not_told() {
    let (server, signals) = tools::server();
    let mut wire = Wire::new(server);
    let other = wire.begin("wait").await;
    let task = wire.begin("wait").await;
    listen(&mut wire, &[&task]).await;
    wire.modern("tasks/cancel", json!({ "taskId": other })).await.unwrap();
    wire.modern("tasks/cancel", json!({ "taskId": task })).await.unwrap();
    signals.dropped(0).await;
    loop {
        let (_, state) = wire.incoming().await;
        assert_eq!(state["taskId"], json!(task));
        if state["status"] == "cancelled" {
            return;
        }
    }
}

#[tokio::test]
async fn a_listener_without_the_extension_is_refused() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let params = with_meta(json!({ "notifications": { "taskIds": ["x"] } }), false);
    let error = wire.call("subscriptions/listen", params).await.unwrap_err();
    assert_eq!(error.code.0, -32021);
}

#[tokio::test]
async fn progress_of_a_task_is_its_status_message() {
    let (server, signals) = tools::server();
    let mut wire = Wire::new(server);
    let params = json!({ "name": "report", "_meta": { "progressToken": 1 } });
    let created = wire.modern("tools/call", params).await.unwrap();
    let task = created["taskId"].as_str().unwrap().to_owned();
    wire.until_state(&task, |state| state["statusMessage"] == "half").await;
    signals.gate.notify_one();
    wire.until(&task, "completed").await;
    assert_eq!(wire.waiting(), []);
}
