//! Upstreams with a process for each session.

use antiphon::Limits;
use antiphon_mcp::McpServer;
use antiphon_mcp::bridge::{Bridge, Connect, Upstream};
use antiphon_mcp::http::StreamableHttp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::fake::{Fake, tool as described};
use crate::support::duplex::Duplex;
use crate::support::http::Http;
use crate::support::http_session::HttpSession;
use crate::support::{names, notification, text, tool, within};
use crate::upstreams::{bridge, process};

/// The processes of the example that this process has started.
fn processes() -> usize {
    let own = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    let is_child = |stat: &String| {
        let Some((name, rest)) = stat.rsplit_once(')') else { return false };
        let mut rest = rest.split_whitespace();
        let is_alive = rest.next() != Some("Z");
        is_alive && name.contains("everything") && rest.next() == Some(own.as_str())
    };
    stats.filter(is_child).count()
}

async fn until_processes(expected: usize) {
    within(async {
        while processes() != expected {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn build(upstream: Upstream) -> McpServer {
    within(Bridge::new().upstream(upstream).per_session(true).build()).await.unwrap()
}

/// One test, because it counts the processes of this process.
#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /proc")]
async fn each_session_has_a_process_until_it_ends() {
    let before = processes();
    let bridge = build(process()).await;
    let shared = before + 1;
    until_processes(shared).await;

    // Duplex: it ends with the connection.
    let mut one = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let two = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    until_processes(shared + 2).await;
    let called = one.call("tools/call", tool("test_simple_text", json!({}))).await;
    assert!(called["result"]["content"].is_array(), "{called}");
    drop(one);
    until_processes(shared + 1).await;
    drop(two);
    until_processes(shared).await;

    // HTTP: it ends with DELETE, or when it was idle for too long.
    let idle = StreamableHttp::new().session_idle(Duration::from_millis(500));
    let http = Http::serve_with(&bridge, idle, Limits::default()).await;
    let mut session = HttpSession::begin(http, "2025-11-25", json!({})).await;
    until_processes(shared + 1).await;
    let called = session.call("tools/call", tool("test_simple_text", json!({}))).await;
    assert!(called["result"]["content"].is_array(), "{called}");
    assert!([200, 202, 204].contains(&session.delete().status().await));
    until_processes(shared).await;
    let _abandoned = HttpSession::begin(http, "2025-11-25", json!({})).await;
    until_processes(shared).await;

    // Modern clients have no sessions.
    let listed = http.modern_call("tools/list", json!({})).await;
    assert!(!names(&listed, "tools").is_empty());
    assert_eq!(processes(), shared);
    // Only over a connection of the bridge that ends with the bridge.
    let other = build(process()).await;
    until_processes(shared + 1).await;
    drop(other);
    until_processes(shared).await;
}

#[tokio::test]
async fn an_upstream_of_a_session_sees_the_name_and_the_capabilities_of_its_client() {
    let fake = Fake::new().await;
    let (bridge, _shared) =
        tokio::join!(build(fake.upstream()), fake.offer(json!([described("a")])));
    let mut client = Duplex::connect(&bridge).await;
    let offered = json!({ "elicitation": { "url": {} }, "experimental": { "x": {} } });
    client.begin("initialize", crate::support::initialize("2025-11-25", offered.clone())).await;
    let mut wire = fake.accept().await;
    let request = crate::fake::expect(&mut wire, "initialize").await;
    assert_eq!(request["params"]["clientInfo"]["name"], "test");
    assert_eq!(request["params"]["capabilities"], offered);
}

#[tokio::test]
async fn a_session_without_an_upstream_is_refused() {
    let fake = Fake::new().await;
    let attempts = Arc::new(AtomicUsize::new(0));
    let (counted, endpoint) = (attempts.clone(), format!("{:?}", fake.upstream()));
    let endpoint = endpoint.split('"').nth(1).unwrap().to_owned();
    let connect = Connect::new(move |builder| {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let target = if is_first { endpoint.clone() } else { "tcp://127.0.0.1:1".to_owned() };
        async move { builder.connect(target.as_str()).await }
    });
    let (bridge, mut shared) = tokio::join!(
        build(Upstream::new("mine").connect_with(connect)),
        fake.offer(json!([described("a")]))
    );
    let mut client = Duplex::connect(&bridge).await;
    let refused =
        client.call("initialize", crate::support::initialize("2025-11-25", json!({}))).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("mine"), "{refused}");
    // Modern clients still use the shared connection.
    let mut modern = Duplex::connect(&bridge).await;
    modern.begin("tools/call", crate::support::modern(tool("a", json!({})))).await;
    let request = crate::fake::expect(&mut shared, "tools/call").await;
    shared.answer(&request, json!({ "content": [{ "type": "text", "text": "shared" }] })).await;
    assert_eq!(text(&modern.next().await), "shared");
}

/// Answers the question of the upstream `wire` for the roots, which `client` gets, and returns the answer.
async fn ask_roots(wire: &mut Duplex, client: &mut Duplex, root: &str) -> Value {
    wire.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" })).await;
    let question = client.next().await;
    assert_eq!(question["method"], "roots/list", "{question}");
    client.answer(&question, json!({ "roots": [{ "uri": root }] })).await;
    wire.next().await["result"]["roots"][0]["uri"].clone()
}

#[tokio::test]
async fn an_upstream_of_a_session_sees_the_roots_of_its_client_outside_of_calls() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, _shared) = tokio::join!(build(fake.upstream()), fake.offer(tools.clone()));
    let roots = json!({ "roots": { "listChanged": true } });
    let (mut client, mut wire) =
        tokio::join!(Duplex::start(&bridge, "2025-11-25", roots), fake.offer(tools));
    // The client can be asked now. What the upstream has asked before was refused, so it learns that.
    let changed = "notifications/roots/list_changed";
    assert_eq!(wire.next().await["method"], changed);
    assert_eq!(ask_roots(&mut wire, &mut client, "file:///a").await, "file:///a");
    client.send(&notification(changed, json!({}))).await;
    assert_eq!(wire.next().await["method"], changed);
    assert_eq!(ask_roots(&mut wire, &mut client, "file:///b").await, "file:///b");
}

#[tokio::test]
async fn an_upstream_of_a_session_over_http_asks_on_its_stream() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, _shared) = tokio::join!(build(fake.upstream()), fake.offer(tools.clone()));
    let roots = json!({ "roots": { "listChanged": true } });
    let (session, mut wire) = tokio::join!(HttpSession::start(&bridge, roots), fake.offer(tools));
    assert_eq!(wire.next().await["method"], "notifications/roots/list_changed");
    let mut stream = session.get().send().await;
    wire.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" })).await;
    let question = stream.next().await;
    assert_eq!(question["method"], "roots/list", "{question}");
    session.answer(&question, json!({ "roots": [{ "uri": "file:///a" }] })).await;
    assert_eq!(wire.next().await["result"]["roots"][0]["uri"], "file:///a");
}

#[tokio::test]
async fn changes_of_roots_end_at_upstreams_that_clients_share() {
    let fake = Fake::new().await;
    let tools = json!([described("a")]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({ "roots": {} })).await;
    client.send(&notification("notifications/roots/list_changed", json!({}))).await;
    client.begin("tools/call", tool("a", json!({}))).await;
    assert_eq!(wire.next().await["method"], "tools/call");
}

#[tokio::test]
async fn an_upstream_that_never_answers_the_probe_ends_with_its_session() {
    let fake = Fake::new().await;
    let (bridge, _shared) =
        tokio::join!(build(fake.upstream()), fake.offer(json!([described("a")])));
    let upstream = async {
        let mut wire = fake.accept().await;
        assert_eq!(wire.next().await["method"], "server/discover");
        crate::fake::hello(&mut wire, json!({})).await;
        wire
    };
    let (client, mut wire) =
        tokio::join!(Duplex::start(&bridge, "2025-11-25", json!({})), upstream);
    drop(client);
    // The probe is cancelled.
    while wire.next_line().await.is_some() {}
}
