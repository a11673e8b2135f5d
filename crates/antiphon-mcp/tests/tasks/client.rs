//! The client of this crate, with tasks of 2025-11-25 on a server of this crate.

use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_mcp::client::{McpClient, McpClientBuilder, McpError};
use antiphon_mcp::types::tasks::TaskStatus;
use antiphon_mcp::types::{ElicitResult, Revision};
use antiphon_mcp::{McpServer, TaskSettings};

use crate::support::within;
use crate::tools::{self, Signals};

/// Serves over a connection and over HTTP.
const ENDPOINTS: [&str; 2] = ["tcp://127.0.0.1:0", "http://127.0.0.1:0/mcp"];

async fn serve(endpoint: &str) -> (String, Arc<Signals>) {
    let (builder, signals) = tools::builder();
    let settings = TaskSettings::new().poll_interval(Duration::from_millis(20));
    let server: McpServer = builder.tasks(settings).build();
    let bound = server.bind(endpoint).await.unwrap();
    let endpoint = bound.endpoint().to_string();
    tokio::spawn(bound.serve(server.clone()));
    (endpoint, signals)
}

async fn connect(endpoint: &str, builder: McpClientBuilder) -> McpClient {
    builder.revision(Revision::V2025_11_25).connect(endpoint).await.unwrap()
}

#[tokio::test]
async fn a_call_becomes_a_task_if_the_tool_and_the_application_allow_it() {
    for endpoint in ENDPOINTS {
        let (endpoint, signals) = serve(endpoint).await;
        let client = connect(&endpoint, McpClient::builder().tasks()).await;
        for (tool, text) in [("wait", "waited"), ("must_wait", "waited"), ("plain", "plain")] {
            signals.gate.notify_one();
            let call = client.call_tool(tool, ()).task_ttl(Duration::from_secs(9));
            assert_eq!(within(call.into_future()).await.unwrap().joined_text(), text);
        }
        let tasks = client.list_tasks().await.unwrap();
        let found: Vec<_> = tasks.iter().map(|task| (task.status, task.ttl)).collect();
        assert_eq!(found, [(TaskStatus::Completed, Some(9000)); 2]);
        client.close().await;

        let client = connect(&endpoint, McpClient::builder()).await;
        for tool in ["wait", "must_wait"] {
            signals.gate.notify_one();
            let call = client.call_tool(tool, ());
            assert_eq!(within(call.into_future()).await.unwrap().joined_text(), "waited");
        }
        let tasks = client.list_tasks().await.unwrap();
        assert_eq!(tasks.len(), 1, "only the tool that requires a task is called as one");
        client.close().await;
    }
}

#[tokio::test]
async fn a_task_that_fails_has_the_outcome_of_its_call() {
    let (endpoint, _signals) = serve(ENDPOINTS[0]).await;
    let client = connect(&endpoint, McpClient::builder().tasks()).await;
    let result = client.call_tool("fail", ()).await.unwrap();
    assert!(result.failed());
    assert_eq!(result.joined_text(), "no paper");
    let error = client.call_tool("error", ()).await.unwrap_err();
    assert_eq!(error.code(), Some(-32050), "{error}");
}

#[tokio::test]
async fn questions_of_a_task_are_answered() {
    for endpoint in ENDPOINTS {
        let (endpoint, _signals) = serve(endpoint).await;
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let builder = McpClient::builder().tasks().on_elicit_form(move |_| {
            *count.lock().unwrap() += 1;
            async { Ok(ElicitResult::decline()) }
        });
        let client = connect(&endpoint, builder).await;
        let result = within(client.call_tool("ask_in_turn", ()).into_future()).await.unwrap();
        assert_eq!(result.joined_text(), "one=decline two=decline");
        assert_eq!(*asked.lock().unwrap(), 2);
        client.close().await;
    }
}

#[tokio::test]
async fn a_dropped_call_cancels_its_task() {
    let (endpoint, signals) = serve(ENDPOINTS[0]).await;
    let client = connect(&endpoint, McpClient::builder().tasks()).await;
    let running = client.clone();
    let call = tokio::spawn(async move { running.call_tool("wait", ()).await });
    signals.has_begun().await;
    while client.list_tasks().await.unwrap().is_empty() {}
    client.ping().await.unwrap();
    call.abort();
    signals.dropped(1).await;
    assert_eq!(client.list_tasks().await.unwrap()[0].status, TaskStatus::Cancelled);
}

#[tokio::test]
async fn a_timeout_of_the_call_is_for_the_whole_task() {
    let (endpoint, signals) = serve(ENDPOINTS[0]).await;
    let client = connect(&endpoint, McpClient::builder().tasks()).await;
    let error = client.call_tool("wait", ()).timeout(Duration::from_millis(200)).await;
    assert!(matches!(error.unwrap_err(), McpError::TimedOut(_)));
    signals.dropped(1).await;
}

#[tokio::test]
async fn progress_arrives_until_the_task_ends() {
    let (endpoint, signals) = serve(ENDPOINTS[0]).await;
    let client = connect(&endpoint, McpClient::builder().tasks()).await;
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let call = client
        .call_tool("report", ())
        .on_progress(move |progress| sender.send(progress.progress).unwrap_or_default());
    let call = tokio::spawn(async move { call.await });
    assert_eq!(within(received.recv()).await.unwrap(), 1.0);
    signals.gate.notify_one();
    assert_eq!(within(received.recv()).await.unwrap(), 2.0);
    assert_eq!(within(call).await.unwrap().unwrap().joined_text(), "reported");
}

#[tokio::test]
async fn other_revisions_list_no_tasks() {
    let (endpoint, _signals) = serve(ENDPOINTS[0]).await;
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        let builder = McpClient::builder().revision(revision);
        let client = builder.connect(endpoint.as_str()).await.unwrap();
        let error = client.list_tasks().await.unwrap_err();
        assert!(matches!(error, McpError::Unsupported(_)), "{error}");
    }
}
