//! Whose tasks are visible to whom.

use serde_json::json;

use crate::support::{As, Wire};
use crate::tools;

#[tokio::test]
async fn a_task_belongs_to_its_identity() {
    let (server, _signals) = tools::server();
    let ada = Wire::new(As("ada", server.clone()));
    let task = ada.begin("wait").await;
    for foreign in [Wire::new(As("bob", server.clone())), Wire::new(server.clone())] {
        let unknown =
            foreign.modern("tasks/get", json!({ "taskId": "unknown" })).await.unwrap_err();
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let params = json!({ "taskId": task, "inputResponses": {} });
            let error = foreign.modern(method, params).await.unwrap_err();
            // Nothing tells a foreign task from one that does not exist.
            assert_eq!(error, unknown, "{method}");
        }
    }
    let other_connection = Wire::new(As("ada", server));
    assert_eq!(other_connection.state(&task).await["status"], "working");
}

#[tokio::test]
async fn a_legacy_task_belongs_to_its_session() {
    let (server, _signals) = tools::server();
    let (wire, _) = Wire::legacy(server.clone(), "2025-11-25").await;
    let task = wire.begin_legacy("wait").await;
    let (other, _) = Wire::legacy(server.clone(), "2025-11-25").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let error = other.call(method, json!({ "taskId": task })).await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{method}");
    }
    let list = other.call("tasks/list", json!({})).await.unwrap();
    assert_eq!(list, json!({ "tasks": [] }));
    // The forms of the eras differ, so a modern request does not see it.
    let error = wire.modern("tasks/get", json!({ "taskId": task })).await.unwrap_err();
    assert_eq!(error.code.0, -32602);
    let list = wire.call("tasks/list", json!({})).await.unwrap();
    assert_eq!(list["tasks"][0]["taskId"], json!(task));
}

#[tokio::test]
async fn a_legacy_task_of_an_identity_is_seen_in_its_other_sessions() {
    let (server, signals) = tools::server();
    let (wire, _) = Wire::legacy(As("ada", server.clone()), "2025-11-25").await;
    let task = wire.begin_legacy("wait").await;
    drop(wire);
    let (other, _) = Wire::legacy(As("ada", server.clone()), "2025-11-25").await;
    let result = other.spawn("tasks/result", json!({ "taskId": task }));
    signals.gate.notify_one();
    assert_eq!(result.await.unwrap().unwrap()["content"][0]["text"], "waited");
    let (foreign, _) = Wire::legacy(As("bob", server), "2025-11-25").await;
    assert!(foreign.call("tasks/get", json!({ "taskId": task })).await.is_err());
}

#[tokio::test]
async fn the_tasks_of_a_server_of_one_session_end_with_it() {
    let (own, signals) = tools::server();
    let server = antiphon_mcp::McpServer::builder("each", "1")
        .for_each_session(move |_| std::future::ready(Ok(own.clone())))
        .build();
    let (wire, _) = Wire::legacy(As("ada", server.clone()), "2025-11-25").await;
    let task = wire.begin_legacy("wait").await;
    let (other, _) = Wire::legacy(As("ada", server), "2025-11-25").await;
    assert!(other.call("tasks/get", json!({ "taskId": task })).await.is_err());
    wire.until_legacy(&task, "working").await;
    drop(wire);
    signals.dropped(1).await;
}

#[tokio::test]
async fn the_tasks_of_a_session_end_with_it() {
    let (server, signals) = tools::server();
    let (wire, _) = Wire::legacy(server, "2025-11-25").await;
    wire.begin_legacy("wait").await;
    signals.has_begun().await;
    drop(wire);
    signals.dropped(1).await;
    assert!(signals.token.borrow().is_cancelled());
}
