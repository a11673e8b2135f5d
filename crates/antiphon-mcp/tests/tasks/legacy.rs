//! The life of a task of 2025-11-25.

use std::time::Duration;

use antiphon_mcp::types::TaskSupport;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::{Value, json};

use crate::support::{Wire, id};
use crate::tools;

const RELATED: &str = "io.modelcontextprotocol/related-task";

async fn wire() -> (Wire, std::sync::Arc<tools::Signals>) {
    let (server, signals) = tools::server();
    (Wire::legacy(server, "2025-11-25").await.0, signals)
}

#[tokio::test]
async fn a_task_is_created_polled_and_fetched() {
    let (wire, signals) = wire().await;
    let params = json!({ "name": "wait", "arguments": {}, "task": { "ttl": 60_000 } });
    let created = wire.call("tools/call", params).await.unwrap();
    assert!(created.get("content").is_none() && created.get("resultType").is_none());
    let state = &created["task"];
    let mut members: Vec<_> = state.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected = ["createdAt", "lastUpdatedAt", "pollInterval", "status", "taskId", "ttl"];
    assert_eq!(members, expected);
    assert_eq!((&state["status"], &state["ttl"]), (&json!("working"), &json!(60_000)));
    let task = state["taskId"].as_str().unwrap();
    let polled = wire.call("tasks/get", json!({ "taskId": task })).await.unwrap();
    assert_eq!(&polled, state);
    let result = wire.spawn("tasks/result", json!({ "taskId": task }));
    wire.call("ping", json!({})).await.unwrap();
    assert!(!result.is_finished());
    signals.gate.notify_one();
    let result = result.await.unwrap().unwrap();
    assert_eq!(result["content"], json!([{ "type": "text", "text": "waited" }]));
    assert_eq!(result["_meta"], json!({ RELATED: { "taskId": task } }));
    let polled = wire.call("tasks/get", json!({ "taskId": task })).await.unwrap();
    assert_eq!(polled["status"], "completed");
    // The result can be fetched again.
    let again = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
    assert_eq!(again, result);
}

#[tokio::test]
async fn task_support_is_declared_and_enforced() {
    let (server, signals) = tools::server();
    let (wire, initialized) = Wire::legacy(server, "2025-11-25").await;
    let declared = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(initialized["capabilities"]["tasks"], declared);
    assert!(initialized["capabilities"].get("extensions").is_none());
    let tools = wire.call("tools/list", json!({})).await.unwrap();
    let support = |name: &str| {
        let tools = tools["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    assert_eq!(support("wait"), "optional");
    assert_eq!(support("must_wait"), "required");
    assert_eq!(support("plain"), Value::Null);
    let forbidden = json!({ "name": "plain", "task": {} });
    let required = json!({ "name": "must_wait" });
    for params in [forbidden, required] {
        let error = wire.call("tools/call", params).await.unwrap_err();
        assert_eq!(error.code.0, -32601, "{error}");
    }
    let error = wire.call("tools/call", json!({ "name": "wait", "task": 7 })).await.unwrap_err();
    assert_eq!(error.code.0, -32602);
    signals.gate.notify_one();
    let result = wire.call("tools/call", json!({ "name": "wait" })).await.unwrap();
    assert_eq!(result["content"][0]["text"], "waited");
    let error = wire.call("tasks/update", json!({ "taskId": "x" })).await.unwrap_err();
    assert_eq!(error.code.0, -32601);
}

#[tokio::test]
async fn older_revisions_have_no_tasks() {
    let (server, signals) = tools::server();
    let (wire, initialized) = Wire::legacy(server, "2025-06-18").await;
    assert!(initialized["capabilities"].get("tasks").is_none());
    let tools = wire.call("tools/list", json!({})).await.unwrap();
    assert!(tools["tools"].as_array().unwrap().iter().all(|it| it.get("execution").is_none()));
    signals.gate.notify_one();
    let result = wire.call("tools/call", json!({ "name": "wait", "task": {} })).await.unwrap();
    assert_eq!(result["content"][0]["text"], "waited");
    let error = wire.call("tasks/get", json!({ "taskId": "x" })).await.unwrap_err();
    assert_eq!(error.code.0, -32601);
    let error = wire.call("tools/call", json!({ "name": "must_wait" })).await.unwrap_err();
    assert_eq!(error.code.0, -32601);
}

#[tokio::test]
async fn a_tool_error_and_a_protocol_error_fail() {
    let (wire, _signals) = wire().await;
    let task = wire.begin_legacy("fail").await;
    assert!(wire.until_legacy(&task, "failed").await["statusMessage"].is_string());
    let result = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
    assert_eq!(
        (&result["isError"], &result["content"][0]["text"]),
        (&json!(true), &json!("no paper"))
    );
    let task = wire.begin_legacy("error").await;
    let state = wire.until_legacy(&task, "failed").await;
    assert_eq!(state["statusMessage"], "no printer");
    let error = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap_err();
    assert_eq!((error.code.0, &*error.message), (-32050, "no printer"));
}

#[tokio::test]
async fn a_task_is_cancelled_once() {
    let (wire, signals) = wire().await;
    let task = wire.begin_legacy("wait").await;
    let result = wire.spawn("tasks/result", json!({ "taskId": task }));
    signals.has_begun().await;
    let state = wire.call("tasks/cancel", json!({ "taskId": task })).await.unwrap();
    assert_eq!((&state["status"], &state["taskId"]), (&json!("cancelled"), &json!(task)));
    signals.dropped(1).await;
    assert!(result.await.unwrap().is_err());
    let error = wire.call("tasks/cancel", json!({ "taskId": task })).await.unwrap_err();
    assert_eq!(error.code.0, -32602);
    wire.until_legacy(&task, "cancelled").await;
}

#[tokio::test]
async fn the_list_has_pages() {
    let (builder, _signals) = tools::builder();
    let (wire, _) = Wire::legacy(builder.page_size(2).build(), "2025-11-25").await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(wire.begin_legacy("wait").await);
    }
    let (mut listed, mut params) = (Vec::new(), json!({}));
    loop {
        let page = wire.call("tasks/list", params).await.unwrap();
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2);
        listed.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!(listed, expected);
    for cursor in ["", "x", "k", "k6", "k-1", "k99999999999999999999"] {
        let error = wire.call("tasks/list", json!({ "cursor": cursor })).await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{cursor}");
    }
}

#[tokio::test]
async fn each_status_is_told_to_the_session() {
    let (mut wire, signals) = wire().await;
    let task = wire.begin_legacy("wait").await;
    signals.gate.notify_one();
    let (method, state) = wire.incoming().await;
    assert_eq!(method, "notifications/tasks/status");
    assert_eq!((&state["status"], &state["taskId"]), (&json!("completed"), &json!(task)));
    assert!(state.get("_meta").is_none() && state.get("result").is_none());
}

#[tokio::test]
async fn progress_goes_on_in_a_task() {
    let (mut wire, signals) = wire().await;
    let params = json!({ "name": "report", "task": {}, "_meta": { "progressToken": "p" } });
    let created = wire.call("tools/call", params).await.unwrap();
    let related = json!({ RELATED: { "taskId": created["task"]["taskId"] } });
    for progress in [1, 2] {
        let (method, params) = wire.incoming().await;
        assert_eq!(method, "notifications/progress");
        assert_eq!(
            (&params["progress"], &params["progressToken"]),
            (&json!(progress), &json!("p"))
        );
        assert_eq!(params["_meta"], related);
        signals.gate.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_expires_with_its_handler() {
    let (wire, signals) = wire().await;
    let params = json!({ "name": "wait", "task": { "ttl": 30_000 } });
    let created = wire.call("tools/call", params).await.unwrap();
    let task = created["task"]["taskId"].clone();
    let result = wire.spawn("tasks/result", json!({ "taskId": task }));
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert!(!result.is_finished());
    tokio::time::sleep(Duration::from_secs(2)).await;
    signals.dropped(1).await;
    assert!(result.await.unwrap().is_err());
    let error = wire.call("tasks/get", json!({ "taskId": task })).await.unwrap_err();
    assert_eq!(error.code.0, -32602);
    let list = wire.call("tasks/list", json!({})).await.unwrap();
    assert_eq!(list["tasks"], json!([]));
}

#[tokio::test]
async fn progress_stops_with_the_task() {
    let (sender, mut contexts) = tokio::sync::mpsc::unbounded_channel();
    let tool = ServerTool::new("leave", move |(): (), cx: RequestContext| {
        sender.send(cx).unwrap();
        async { "left" }
    });
    let server = McpServer::builder("tasks", "1").tool(tool.task(TaskSupport::Optional)).build();
    let (mut wire, _) = Wire::legacy(server, "2025-11-25").await;
    let params = json!({ "name": "leave", "task": {}, "_meta": { "progressToken": "p" } });
    let created = wire.call("tools/call", params).await.unwrap();
    wire.until_legacy(&id(&created["task"]), "completed").await;
    contexts.recv().await.unwrap().progress(1.0, None, None).await;
    wire.call("ping", json!({})).await.unwrap();
    let told = wire.waiting();
    assert!(told.iter().all(|(method, _)| method != "notifications/progress"), "{told:?}");
}
