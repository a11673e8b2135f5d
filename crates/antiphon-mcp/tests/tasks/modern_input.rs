//! Questions of tasks of 2026-07-28.

use serde_json::{Value, json};

use crate::support::Wire;
use crate::tools;

fn accept() -> Value {
    json!({ "action": "accept", "content": { "ok": true } })
}

fn keys(state: &Value) -> Vec<&str> {
    state["inputRequests"].as_object().unwrap().keys().map(String::as_str).collect()
}

async fn update(wire: &Wire, task: &str, responses: Value) {
    let params = json!({ "taskId": task, "inputResponses": responses });
    let ack = wire.modern("tasks/update", params).await.unwrap();
    assert_eq!(ack["resultType"], "complete");
    assert!(ack.get("taskId").is_none() && ack.get("status").is_none());
}

#[tokio::test]
async fn a_question_is_asked_and_answered() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("ask").await;
    let state = wire.until(&task, "input_required").await;
    let request = &state["inputRequests"]["sure"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "sure?");
    assert_eq!(wire.state(&task).await["inputRequests"], state["inputRequests"]);
    update(&wire, &task, json!({ "sure": accept() })).await;
    let state = wire.until(&task, "completed").await;
    assert_eq!(state["result"]["content"][0]["text"], "sure=accept");
    assert!(state.get("inputRequests").is_none());
}

#[tokio::test]
async fn a_part_of_the_answers_leaves_the_rest_open() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("ask_twice").await;
    assert_eq!(keys(&wire.until(&task, "input_required").await), ["one", "two"]);
    update(&wire, &task, json!({ "two": accept() })).await;
    let state = wire.state(&task).await;
    assert_eq!((&state["status"], keys(&state)), (&json!("input_required"), vec!["one"]));
    // The first answer to a question counts.
    update(&wire, &task, json!({ "two": { "action": "decline" } })).await;
    update(&wire, &task, json!({ "one": { "action": "decline" } })).await;
    let state = wire.until(&task, "completed").await;
    assert_eq!(state["result"]["content"][0]["text"], "one=decline two=accept");
}

#[tokio::test]
async fn answers_to_nothing_are_ignored() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("ask_in_turn").await;
    wire.until(&task, "input_required").await;
    // `two` is not asked yet, and 7 is no answer.
    update(&wire, &task, json!({ "two": accept(), "unknown": accept(), "one": 7 })).await;
    assert_eq!(keys(&wire.state(&task).await), ["one"]);
    update(&wire, &task, json!({ "one": accept() })).await;
    wire.until_state(&task, |state| state["inputRequests"].get("two").is_some()).await;
    update(&wire, &task, json!({ "two": accept() })).await;
    wire.until(&task, "completed").await;
    update(&wire, &task, json!({ "two": accept() })).await;
}

#[tokio::test]
async fn an_answer_that_the_form_does_not_allow_fails_the_call() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("ask").await;
    wire.until(&task, "input_required").await;
    let wrong = json!({ "action": "accept", "content": { "ok": "yes" } });
    update(&wire, &task, json!({ "sure": wrong })).await;
    assert_eq!(wire.until(&task, "failed").await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_task_that_waits_for_an_answer_can_be_cancelled() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("ask").await;
    wire.until(&task, "input_required").await;
    wire.modern("tasks/cancel", json!({ "taskId": task })).await.unwrap();
    let state = wire.state(&task).await;
    assert_eq!(state["status"], "cancelled");
    assert!(state.get("inputRequests").is_none());
}
