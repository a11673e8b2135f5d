//! When the call of a modern client becomes a task.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_mcp::types::TaskSupport;
use antiphon_mcp::{McpServer, RequestContext, Rounds, ServerTool, ToolError};
use serde_json::{Value, json};

use crate::support::{Wire, id, with_meta};
use crate::tools::{self, confirm};

/// A server whose tool works, asks, and works again. Counts how often its handler has begun.
fn working(
    before: Duration,
    after: Duration,
    rounds: Rounds,
    setting: impl Fn(ServerTool) -> ServerTool,
) -> (McpServer, Arc<AtomicUsize>) {
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let tool = ServerTool::new("work", move |(): (), cx: RequestContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(before).await;
            let answer = confirm(&cx, "sure").await?;
            let is_task = cx.begin_task().await;
            tokio::time::sleep(after).await;
            Ok::<_, ToolError>(format!("{answer} task={is_task} id={}", cx.task_id().is_some()))
        }
    });
    let server = McpServer::builder("start", "1").tool(setting(tool)).rounds(rounds).build();
    (server, begun)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn answers() -> Value {
    json!({ "sure": { "action": "accept", "content": { "ok": true } } })
}

/// The params of the next round.
fn next_round(asked: &Value) -> Value {
    let mut params = json!({ "name": "work", "inputResponses": answers() });
    if let Some(state) = asked.get("requestState") {
        params["requestState"] = state.clone();
    }
    params
}

#[tokio::test(start_paused = true)]
async fn a_fast_call_needs_no_task() {
    let (builder, signals) = tools::builder();
    let tool = tools::wait("patient", &signals).task_after(seconds(2));
    let wire = Wire::new(builder.tool(tool).build());
    signals.gate.notify_one();
    let result = wire.modern("tools/call", json!({ "name": "patient" })).await.unwrap();
    assert_eq!(result["content"][0]["text"], "waited");
    let task = wire.begin("patient").await;
    assert_eq!(wire.state(&task).await["status"], "working");
    signals.gate.notify_one();
    let state = wire.until(&task, "completed").await;
    assert_eq!(state["result"]["content"][0]["text"], "waited");
    // The handler was not started again.
    assert_eq!(signals.begun(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_question_before_the_task_is_a_round() {
    for (rounds, begins) in [(Rounds::Replay, 2), (Rounds::Keep, 1)] {
        let (server, begun) = working(seconds(1), seconds(9), rounds, |tool| {
            tool.task(TaskSupport::Required).task_on_demand()
        });
        let wire = Wire::new(server);
        let asked = wire.modern("tools/call", json!({ "name": "work" })).await.unwrap();
        assert_eq!(asked["resultType"], "input_required");
        assert!(asked.get("taskId").is_none());
        let created = wire.modern("tools/call", next_round(&asked)).await.unwrap();
        assert_eq!(created["resultType"], "task");
        assert!(created.get("requestState").is_none() && created.get("inputRequests").is_none());
        let state = wire.until(&id(&created), "working").await;
        assert!(state.get("inputRequests").is_none());
        tokio::time::sleep(seconds(10)).await;
        let state = wire.state(&id(&created)).await;
        assert_eq!(state["result"]["content"][0]["text"], "sure=accept task=true id=true");
        assert_eq!(begun.load(Ordering::SeqCst), begins);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_after_the_task_is_asked_in_it() {
    let (server, begun) =
        working(seconds(3), seconds(0), Rounds::Replay, |tool| tool.task_after(seconds(2)));
    let wire = Wire::new(server);
    let task = wire.begin("work").await;
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(wire.state(&task).await["status"], "input_required");
    let params = json!({ "taskId": task, "inputResponses": answers() });
    wire.modern("tasks/update", params).await.unwrap();
    let state = wire.until(&task, "completed").await;
    assert_eq!(state["result"]["content"][0]["text"], "sure=accept task=true id=true");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_kept_handler_does_not_become_a_task_of_a_client_without_the_extension() {
    let (server, begun) = working(seconds(0), seconds(9), Rounds::Keep, ServerTool::task_on_demand);
    let wire = Wire::new(server);
    let asked = wire.modern("tools/call", json!({ "name": "work" })).await.unwrap();
    let params = with_meta(next_round(&asked), false);
    let result = wire.call("tools/call", params).await.unwrap();
    assert_eq!(result["content"][0]["text"], "sure=accept task=false id=false");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_is_abandoned_before_its_task_ends() {
    let (builder, signals) = tools::builder();
    let tool = tools::wait("patient", &signals).task_after(seconds(3600));
    let wire = Wire::new(builder.tool(tool).build());
    let call = wire.spawn("tools/call", with_meta(json!({ "name": "patient" }), true));
    signals.has_begun().await;
    let token = signals.token.borrow().clone();
    assert!(!token.is_cancelled());
    call.abort();
    signals.dropped(1).await;
    assert!(token.is_cancelled());
}
