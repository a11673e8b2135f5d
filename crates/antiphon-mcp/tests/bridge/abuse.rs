//! Upstreams that answer nothing or garbage, and change without end.

use std::time::Duration;

use antiphon_mcp::McpServer;
use antiphon_mcp::bridge::Bridge;
use serde_json::{Value, json};

use crate::fake::{Fake, answer_list, expect, hello, tool as described};
use crate::support::duplex::Duplex;
use crate::support::{names, text, tool, within};
use crate::upstreams::bridge;

#[tokio::test]
async fn calls_that_wait_for_a_connection_fail_together() {
    let fake = Fake::new().await;
    let upstream = fake.upstream().timeout(Duration::from_millis(500));
    let built = async { within(Bridge::new().upstream(upstream).build()).await.unwrap() };
    let (bridge, mut wire) = tokio::join!(built, fake.offer(json!([described("a")])));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    client.begin("tools/call", tool("a", json!({}))).await;
    expect(&mut wire, "tools/call").await;
    drop(wire);
    client.next().await;
    // The upstream accepts connections, and never says anything.
    let calls = 20;
    for _ in 0..calls {
        client.begin("tools/call", tool("a", json!({}))).await;
    }
    let mut silent = vec![fake.accept().await];
    for _ in 0..calls {
        let failed = client.next().await;
        assert!(text(&failed).contains("the upstream tcp://127.0.0.1:"), "{failed}");
    }
    // One attempt for all.
    assert!(tokio::time::timeout(Duration::ZERO, fake.accept()).await.is_err());
    // The next call tries again.
    client.begin("tools/call", tool("a", json!({}))).await;
    silent.push(fake.accept().await);
}

#[tokio::test]
async fn a_log_level_that_is_never_confirmed_stops_no_call() {
    let fake = Fake::new().await;
    let upstream = fake.upstream().timeout(Duration::from_millis(300));
    let built = async { within(Bridge::new().upstream(upstream).build()).await.unwrap() };
    let offered = async {
        let mut wire = fake.accept().await;
        hello(&mut wire, json!({ "tools": {}, "logging": {} })).await;
        answer_list(&mut wire, "tools/list", json!({ "tools": [described("a")] })).await;
        wire
    };
    let (bridge, mut wire) = tokio::join!(built, offered);
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    for is_first in [true, false] {
        client.begin("tools/call", tool("a", json!({}))).await;
        if is_first {
            assert_eq!(wire.next().await["method"], "logging/setLevel");
            assert_eq!(wire.next().await["method"], "notifications/cancelled");
        }
        let request = wire.next().await;
        assert_eq!(request["method"], "tools/call", "{request}");
        wire.answer(&request, json!({ "content": [{ "type": "text", "text": "ok" }] })).await;
        assert_eq!(text(&client.next().await), "ok");
    }
}

async fn started(fake: &Fake) -> (McpServer, Duplex, Duplex) {
    let tools = json!([described("a")]);
    let (bridge, wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    (bridge, client, wire)
}

#[tokio::test]
async fn garbage_fails_its_call_only() {
    let fake = Fake::new().await;
    let (_bridge, mut client, mut wire) = started(&fake).await;
    for garbage in [
        r#""result":[]"#,
        r#""result":7"#,
        r#""result":null"#,
        r#""result":{"content":[]},"error":{"code":1,"message":"both"}"#,
        r#""error":{"code":"x"}"#,
    ] {
        client.begin("tools/call", tool("a", json!({}))).await;
        let request = expect(&mut wire, "tools/call").await;
        let id = &request["id"];
        wire.send_text(r#"{"jsonrpc":"2.0","id":"nobody","result":{}}"#).await;
        wire.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},{garbage}}}"#)).await;
        let failed = client.next().await;
        let is_failed = failed["result"]["isError"] == true || failed["error"].is_object();
        assert!(is_failed, "{garbage} {failed}");
    }
    client.begin("tools/call", tool("a", json!({}))).await;
    let request = expect(&mut wire, "tools/call").await;
    wire.answer(&request, json!({ "content": [{ "type": "text", "text": "ok" }] })).await;
    assert_eq!(text(&client.next().await), "ok");
}

fn changed() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
}

#[tokio::test]
async fn a_list_that_is_garbage_changes_nothing() {
    let fake = Fake::new().await;
    let (_bridge, mut client, mut wire) = started(&fake).await;
    for garbage in [json!({ "tools": 7 }), json!({ "tools": [{ "name": "b" }] }), json!({})] {
        wire.send(&changed()).await;
        answer_list(&mut wire, "tools/list", garbage).await;
    }
    wire.send(&changed()).await;
    let tools = json!([described("a"), described("c")]);
    answer_list(&mut wire, "tools/list", json!({ "tools": tools })).await;
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(names(&client.call("tools/list", json!({})).await, "tools"), ["a", "c"]);
}

#[tokio::test]
async fn changes_without_end_hold_no_call_back() {
    let fake = Fake::new().await;
    let (_bridge, mut client, mut wire) = started(&fake).await;
    let id = client.begin("tools/call", tool("a", json!({}))).await;
    let call = expect(&mut wire, "tools/call").await;
    for round in 0..50 {
        // Many changes are one: the list is read once for all that have arrived.
        for _ in 0..20 {
            wire.send(&changed()).await;
        }
        let name = format!("b{round}");
        let request = expect(&mut wire, "tools/list").await;
        wire.answer(&request, json!({ "tools": [described("a"), described(&name)] })).await;
    }
    wire.answer(&call, json!({ "content": [] })).await;
    // Answers the lists that are still read.
    let upstream = tokio::spawn(async move {
        loop {
            let request = wire.next().await;
            wire.answer(&request, json!({ "tools": [described("last")] })).await;
        }
    });
    while client.next().await["id"] != id {}
    upstream.abort();
}
