//! The life of a task of 2026-07-28.

use serde_json::{Value, json};

use crate::support::{EXTENSION, Wire, id, with_meta};
use crate::tools;

#[tokio::test]
async fn a_call_becomes_a_task_whose_result_is_kept() {
    let (server, signals) = tools::server();
    let wire = Wire::new(server);
    let created = wire.modern("tools/call", json!({ "name": "wait" })).await.unwrap();
    let mut members: Vec<_> = created.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected =
        ["_meta", "createdAt", "lastUpdatedAt", "pollIntervalMs", "resultType", "status"];
    assert_eq!(members, [&expected[..], &["taskId", "ttlMs"]].concat());
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(3_600_000), &json!(1_000)));
    let task = id(&created);
    let state = wire.state(&task).await;
    assert_eq!((&state["resultType"], &state["status"]), (&json!("complete"), &json!("working")));
    signals.gate.notify_one();
    let state = wire.until(&task, "completed").await;
    assert_eq!(state["result"]["content"], json!([{ "type": "text", "text": "waited" }]));
    assert_eq!(state["result"]["resultType"], "complete");
    assert_eq!(state["createdAt"], created["createdAt"]);
    assert!(state.get("error").is_none() && state.get("inputRequests").is_none());
    // The result can be fetched again.
    assert_eq!(wire.state(&task).await["result"], state["result"]);
}

#[tokio::test]
async fn timestamps_are_iso_8601() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let created = wire.modern("tools/call", json!({ "name": "wait" })).await.unwrap();
    let time = created["createdAt"].as_str().unwrap();
    let shape: String = time.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z");
}

#[tokio::test]
async fn a_large_number_in_a_result_stays_exact() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("number").await;
    wire.until(&task, "completed").await;
    let text = wire.raw("tasks/get", with_meta(json!({ "taskId": task }), true)).await;
    assert!(text.contains(r#""structuredContent":{"number":18446744073709551615}"#), "{text}");
}

#[tokio::test]
async fn a_tool_error_completes_and_a_protocol_error_fails() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("fail").await;
    let state = wire.until(&task, "completed").await;
    assert_eq!(state["result"]["isError"], true);
    let task = wire.begin("error").await;
    let state = wire.until(&task, "failed").await;
    assert_eq!(state["error"], json!({ "code": -32050, "message": "no printer" }));
    assert_eq!(state["statusMessage"], "no printer");
    assert!(state.get("result").is_none());
    let task = wire.begin("panic").await;
    assert_eq!(wire.until(&task, "failed").await["error"]["code"], -32603);
}

#[tokio::test]
async fn without_the_extension_there_are_no_tasks() {
    let (server, signals) = tools::server();
    let wire = Wire::new(server);
    signals.gate.notify_one();
    let call = |name: &str| with_meta(json!({ "name": name, "task": { "ttl": 1 } }), false);
    let result = wire.call("tools/call", call("wait")).await.unwrap();
    assert_eq!(result["resultType"], "complete");
    let methods = [
        ("tools/call", call("must_wait")),
        ("tasks/get", with_meta(json!({ "taskId": "x" }), false)),
        ("tasks/update", with_meta(json!({ "taskId": "x", "inputResponses": {} }), false)),
        ("tasks/cancel", with_meta(json!({ "taskId": "x" }), false)),
    ];
    for (method, params) in methods {
        let error = wire.call(method, params).await.unwrap_err();
        assert_eq!(error.code.0, -32021, "{method}");
        let data: Value = serde_json::from_str(error.data.unwrap().as_str()).unwrap();
        assert_eq!(data, json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }));
    }
}

#[tokio::test]
async fn the_legacy_request_for_a_task_is_ignored() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    let params = json!({ "name": "plain", "task": { "ttl": 1 } });
    let result = wire.modern("tools/call", params).await.unwrap();
    assert_eq!(result["content"][0]["text"], "plain");
    for method in ["tasks/result", "tasks/list"] {
        let error = wire.modern(method, json!({ "taskId": "x" })).await.unwrap_err();
        assert_eq!(error.code.0, -32601, "{method}");
    }
}

#[tokio::test]
async fn cancellation_ends_the_handler_once() {
    let (server, signals) = tools::server();
    let wire = Wire::new(server);
    let task = wire.begin("wait").await;
    signals.has_begun().await;
    let token = signals.token.borrow().clone();
    assert!(!token.is_cancelled());
    for _ in 0..2 {
        let ack = wire.modern("tasks/cancel", json!({ "taskId": task })).await.unwrap();
        let mut members: Vec<_> = ack.as_object().unwrap().keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, ["_meta", "resultType"]);
    }
    signals.dropped(1).await;
    assert!(token.is_cancelled());
    let state = wire.state(&task).await;
    assert_eq!(state["status"], "cancelled");
    assert!(state.get("result").is_none() && state.get("error").is_none());
    // A finished task keeps its result.
    let task = wire.begin("number").await;
    wire.until(&task, "completed").await;
    wire.modern("tasks/cancel", json!({ "taskId": task })).await.unwrap();
    assert_eq!(wire.state(&task).await["status"], "completed");
}

#[tokio::test]
async fn an_unknown_task_is_an_invalid_param() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server);
    for (method, params) in [
        ("tasks/get", json!({ "taskId": "x" })),
        ("tasks/get", json!({})),
        ("tasks/update", json!({ "taskId": "x", "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": "x" })),
    ] {
        let error = wire.modern(method, params).await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{method}");
    }
    let task = wire.begin("wait").await;
    for responses in [json!(7), json!([])] {
        let params = json!({ "taskId": task, "inputResponses": responses });
        let error = wire.modern("tasks/update", params).await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{responses}");
    }
}

#[tokio::test]
async fn capabilities_are_those_of_the_era() {
    let (server, _signals) = tools::server();
    let wire = Wire::new(server.clone());
    let discovered = wire.modern("server/discover", json!({})).await.unwrap();
    assert_eq!(discovered["capabilities"]["extensions"][EXTENSION], json!({}));
    assert!(discovered["capabilities"].get("tasks").is_none());
    let tools = wire.modern("tools/list", json!({})).await.unwrap();
    let tools = tools["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool.get("execution").is_none()));
    let plain =
        antiphon_mcp::ServerTool::new("plain", |(): (), _cx: antiphon_mcp::RequestContext| async {
        });
    let wire = Wire::new(antiphon_mcp::McpServer::builder("none", "1").tool(plain).build());
    let discovered = wire.modern("server/discover", json!({})).await.unwrap();
    assert!(discovered["capabilities"].get("extensions").is_none());
    let error = wire.modern("tasks/get", json!({ "taskId": "x" })).await.unwrap_err();
    assert_eq!(error.code.0, -32601);
}
