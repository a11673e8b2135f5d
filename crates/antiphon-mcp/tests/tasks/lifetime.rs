//! Tasks and kept handlers end with their server.

use std::sync::Arc;

use antiphon_mcp::{McpServer, Rounds};
use serde_json::json;
use tokio::sync::oneshot;

use crate::support::{As, Wire, with_meta, within};
use crate::tools::{self, Signals};

/// Waits until nothing holds the tools of a server any more: the server is freed.
async fn is_freed(signals: &Arc<Signals>) {
    let freed = async {
        while Arc::strong_count(signals) > 1 {
            tokio::task::yield_now().await;
        }
    };
    within(freed).await;
}

#[tokio::test]
async fn a_running_task_ends_with_the_last_handle() {
    let (server, signals) = tools::server();
    let wire = Wire::new(server.clone());
    let task = wire.begin("wait").await;
    signals.has_begun().await;
    drop(server);
    assert_eq!(wire.state(&task).await["status"], "working", "the connection is a handle");
    drop(wire);
    signals.dropped(1).await;
    is_freed(&signals).await;
}

#[tokio::test]
async fn a_running_task_of_an_identity_ends_with_the_last_handle() {
    let (server, signals) = tools::server();
    let (wire, _) = Wire::legacy(As("ada", server.clone()), "2025-11-25").await;
    wire.begin_legacy("wait").await;
    signals.has_begun().await;
    drop((server, wire));
    signals.dropped(1).await;
    is_freed(&signals).await;
}

#[tokio::test]
async fn a_task_that_has_ended_is_forgotten_with_the_last_handle() {
    let (server, _) = tools::server();
    let wire = Wire::new(server.clone());
    let task = wire.begin("number").await;
    wire.until(&task, "completed").await;
    drop((server, wire));
    let metrics = tokio::runtime::Handle::current().metrics();
    let ended = async {
        while metrics.num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    };
    within(ended).await;
}

#[tokio::test]
async fn a_kept_handler_ends_with_the_last_handle() {
    let (builder, signals) = tools::builder();
    let server = builder.rounds(Rounds::Keep).build();
    let wire = Wire::new(server.clone());
    let params = with_meta(json!({ "name": "ask" }), false);
    let asked = wire.call("tools/call", params).await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    drop((server, wire));
    is_freed(&signals).await;
}

/// Serves until `stop` is sent. Returns the end of serving.
async fn serve(server: &McpServer, stop: oneshot::Receiver<()>) -> tokio::task::JoinHandle<()> {
    let bound = server.bind("http://127.0.0.1:0/mcp").await.unwrap();
    let server = server.clone();
    tokio::spawn(
        async move { server.serve_until(bound, async { drop(stop.await) }).await.unwrap() },
    )
}

#[tokio::test]
async fn running_work_ends_when_serving_ends() {
    let (builder, signals) = tools::builder();
    let server = builder.rounds(Rounds::Keep).build();
    let wire = Wire::new(server.clone());
    let task = wire.begin("wait").await;
    signals.has_begun().await;
    let asking = with_meta(json!({ "name": "ask" }), false);
    let asked = wire.call("tools/call", asking.clone()).await.unwrap();
    let (stop, stopped) = oneshot::channel();
    let serving = serve(&server, stopped).await;
    stop.send(()).unwrap();
    within(serving).await.unwrap();
    signals.dropped(1).await;
    let state = wire.until(&task, "failed").await;
    assert!(state["error"]["message"].as_str().unwrap().contains("stops"), "{state}");
    let mut again = asking;
    again["requestState"] = asked["requestState"].clone();
    assert_eq!(wire.call("tools/call", again).await.unwrap_err().code.0, -32602);
    // The server can be served again.
    let task = wire.begin("number").await;
    wire.until(&task, "completed").await;
}

#[tokio::test]
async fn running_work_ends_when_serving_is_aborted() {
    let (server, signals) = tools::server();
    Wire::new(server.clone()).begin("wait").await;
    signals.has_begun().await;
    let (_stop, stopped) = oneshot::channel();
    let serving = serve(&server, stopped).await;
    tokio::task::yield_now().await;
    serving.abort();
    assert!(within(serving).await.unwrap_err().is_cancelled());
    signals.dropped(1).await;
}
