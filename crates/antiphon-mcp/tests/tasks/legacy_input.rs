//! Questions of tasks of 2025-11-25: they are asked while `tasks/result` waits.

use std::time::Duration;

use antiphon::ErrorObject;
use antiphon_mcp::types::TaskSupport;
use antiphon_mcp::{McpServer, RequestContext, ServerTool, ToolError};
use serde_json::{Value, json};

use crate::support::{Wire, within};
use crate::tools;

fn accept() -> Result<Value, ErrorObject> {
    Ok(json!({ "action": "accept", "content": { "ok": true } }))
}

/// A session whose task waits for input.
async fn asking(tool: &str) -> (Wire, String) {
    let (server, _signals) = tools::server();
    let (mut wire, _) = Wire::legacy(server, "2025-11-25").await;
    let task = wire.begin_legacy(tool).await;
    wire.until_legacy(&task, "input_required").await;
    // Nothing is asked before the client waits for the result.
    for (method, state) in wire.waiting() {
        assert_eq!(method, "notifications/tasks/status", "{state}");
    }
    (wire, task)
}

/// The next question.
async fn question(wire: &mut Wire) -> Value {
    loop {
        let (method, params) = wire.incoming().await;
        if method == "elicitation/create" {
            return params;
        }
        assert_eq!(method, "notifications/tasks/status");
    }
}

#[tokio::test]
async fn a_question_is_asked_on_the_way_to_the_result() {
    let (mut wire, task) = asking("ask").await;
    wire.answer(accept());
    let result = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
    assert_eq!(result["content"][0]["text"], "sure=accept");
    let params = question(&mut wire).await;
    assert_eq!(params["message"], "sure?");
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": task } });
    assert_eq!(params["_meta"], related);
}

#[tokio::test]
async fn questions_are_asked_as_they_come() {
    for tool in ["ask_twice", "ask_in_turn"] {
        let (wire, task) = asking(tool).await;
        wire.answer(accept());
        wire.answer(Ok(json!({ "action": "decline" })));
        let result = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "one=accept two=decline");
    }
}

#[tokio::test]
async fn a_refused_question_fails_in_the_handler() {
    let (wire, task) = asking("ask").await;
    wire.answer(Err(ErrorObject::new(-32099, "nobody is here")));
    let result = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("nobody is here"), "{text}");
}

#[tokio::test]
async fn a_question_that_has_failed_can_be_asked_again() {
    let ask = |(): (), cx: RequestContext| async move {
        let first = tools::confirm(&cx, "sure").await;
        let second = tools::confirm(&cx, "sure").await?;
        Ok::<_, ToolError>(format!("{} {second}", first.is_err()))
    };
    let tool = ServerTool::new("insist", ask).task(TaskSupport::Optional);
    let server = McpServer::builder("insist", "1").tool(tool).build();
    let (wire, _) = Wire::legacy(server, "2025-11-25").await;
    let task = wire.begin_legacy("insist").await;
    wire.answer(Err(ErrorObject::new(-32099, "nobody is here")));
    wire.answer(accept());
    let result = wire.spawn("tasks/result", json!({ "taskId": task }));
    let result = within(result).await.unwrap().unwrap();
    assert_eq!(result["content"][0]["text"], "true sure=accept");
}

#[tokio::test]
async fn the_latest_stream_asks() {
    let (mut wire, task) = asking("ask").await;
    let first = wire.spawn("tasks/result", json!({ "taskId": task }));
    question(&mut wire).await;
    wire.answer(accept());
    let second = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
    assert_eq!(second["content"][0]["text"], "sure=accept");
    assert_eq!(first.await.unwrap().unwrap(), second);
}

#[tokio::test]
async fn an_abandoned_stream_asks_again_on_the_next() {
    let (mut wire, task) = asking("ask").await;
    let abandoned = wire.spawn("tasks/result", json!({ "taskId": task }));
    question(&mut wire).await;
    abandoned.abort();
    wire.until_legacy(&task, "input_required").await;
    wire.answer(accept());
    let result = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
    assert_eq!(result["content"][0]["text"], "sure=accept");
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_fails_in_time() {
    let (builder, _signals) = tools::builder();
    let server = builder.ask_timeout(Duration::from_secs(5)).build();
    let (wire, _) = Wire::legacy(server, "2025-11-25").await;
    let task = wire.begin_legacy("ask").await;
    // The time before the client waits for the result does not count.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let result = wire.call("tasks/result", json!({ "taskId": task })).await.unwrap();
    assert_eq!(result["isError"], true);
}
