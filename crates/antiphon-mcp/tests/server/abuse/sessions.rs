//! Sessions that are opened and left.

use std::sync::Arc;
use std::time::Duration;

use antiphon::Limits;
use antiphon_mcp::http::StreamableHttp;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::json;

use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{initialize, memory_of, request, within};

/// A server whose sessions each hold the returned value.
fn counted() -> (McpServer, Arc<()>) {
    let held = Arc::new(());
    let holds = held.clone();
    let server = McpServer::builder("test", "1").for_each_session(move |_session| {
        let held = holds.clone();
        let tool = ServerTool::new("t", move |(): (), _cx: RequestContext| {
            let _held = held.clone();
            async {}
        });
        async move { Ok(McpServer::builder("own", "1").tool(tool).build()) }
    });
    (server.build(), held)
}

/// How many sessions hold the value: the test and the server hold it too.
fn sessions(held: &Arc<()>) -> usize {
    Arc::strong_count(held) - 2
}

async fn flood(http: Http, count: usize) {
    let begin = request(1, "initialize", initialize("2025-11-25", json!({}))).to_string();
    for _ in 0..count {
        assert_eq!(http.post(begin.as_str()).status().await, 200);
    }
}

#[tokio::test]
async fn a_flood_of_sessions_keeps_no_more_than_the_limit() {
    let (server, held) = counted();
    let options = StreamableHttp::new().max_sessions(20);
    let http = Http::serve_with(&server, options, Limits::default()).await;
    let mut reading = HttpSession::begin(http, "2025-11-25", json!({})).await;
    let stream = reading.get().send().await;
    flood(http, 200).await;
    assert_eq!(sessions(&held), 20);
    assert_eq!(reading.call("ping", json!({})).await["result"], json!({}), "it was not idle");
    drop(stream);
}

#[tokio::test]
async fn sessions_that_are_left_are_forgotten() {
    let (server, held) = counted();
    let options = StreamableHttp::new().session_idle(Duration::from_millis(200));
    let http = Http::serve_with(&server, options, Limits::default()).await;
    flood(http, 200).await;
    within(async {
        while sessions(&held) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn deleted_sessions_are_forgotten() {
    let (server, held) = counted();
    let http = Http::serve(&server).await;
    for _ in 0..50 {
        let session = HttpSession::begin(http, "2025-11-25", json!({})).await;
        let stream = session.get().send().await;
        assert_eq!(session.delete().status().await, 204);
        drop(stream);
    }
    within(async {
        while sessions(&held) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The memory of 10,000 sessions comes back: the second flood needs no more than the first.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: opens 30,000 sessions; run it alone"]
async fn the_memory_of_10000_sessions_comes_back() {
    let (server, held) = counted();
    let options = StreamableHttp::new().session_idle(Duration::from_secs(2));
    let http = Http::serve_with(&server, options, Limits::default()).await;
    let mut peaks = Vec::new();
    for _ in 0..3 {
        flood(http, 10_000).await;
        while sessions(&held) > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        peaks.extend(memory_of(std::process::id(), "VmRSS"));
    }
    println!("KiB after each flood: {peaks:?}");
    if let [first, _, last] = peaks[..] {
        assert!(last < first + first / 4 + 10_000, "{peaks:?}");
    }
}
