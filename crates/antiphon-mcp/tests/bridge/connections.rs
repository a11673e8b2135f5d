//! Upstreams that die, hang or flood, and the end of the bridge.

use std::time::Duration;

use antiphon_mcp::bridge::Bridge;
use serde_json::json;

use crate::fake::{Fake, expect, tool as described};
use crate::support::duplex::Duplex;
use crate::support::gate::Gate;
use crate::support::{names, text, tool, within};
use crate::upstreams::{Way, asker, bridge};

#[tokio::test]
async fn the_next_call_after_a_death_connects_again() {
    let fake = Fake::new().await;
    let (bridge, mut wire) =
        tokio::join!(bridge([fake.upstream()]), fake.offer(json!([described("a")])));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let call = || tool("a", json!({}));
    client.begin("tools/call", call()).await;
    expect(&mut wire, "tools/call").await;
    drop(wire);
    let failed = client.next().await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert!(text(&failed).starts_with("the upstream tcp://127.0.0.1:"), "{failed}");

    client.begin("tools/call", call()).await;
    let mut wire = fake.accept().await;
    crate::fake::hello(&mut wire, json!({ "tools": {} })).await;
    // The lists may have changed, and are read again. The call comes once.
    let mut calls = 0;
    let mut lists = 0;
    while calls == 0 || lists == 0 {
        let request = wire.next().await;
        match request["method"].as_str().unwrap() {
            "tools/list" => {
                lists += 1;
                wire.answer(&request, json!({ "tools": [described("a"), described("b")] })).await;
            }
            "tools/call" => {
                calls += 1;
                wire.answer(&request, json!({ "content": [{ "type": "text", "text": "ok" }] }))
                    .await;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(calls, 1);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let message = client.next().await;
        seen.push(
            message["method"].as_str().map_or_else(|| text(&message).to_owned(), str::to_owned),
        );
    }
    seen.sort();
    assert_eq!(seen, ["notifications/tools/list_changed", "ok"]);
    assert_eq!(names(&client.call("tools/list", json!({})).await, "tools"), ["a", "b"]);
}

#[tokio::test]
async fn a_death_between_calls_is_not_seen() {
    let fake = Fake::new().await;
    let (bridge, wire) =
        tokio::join!(bridge([fake.upstream()]), fake.offer(json!([described("a")])));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    drop(wire);
    // The end of the connection is noticed at some time before the next call, or by it.
    for _ in 0..100 {
        client.call("ping", json!({})).await;
    }
    client.begin("tools/call", tool("a", json!({}))).await;
    let mut wire = fake.accept().await;
    crate::fake::hello(&mut wire, json!({ "tools": {} })).await;
    let request = expect(&mut wire, "tools/call").await;
    wire.answer(&request, json!({ "content": [{ "type": "text", "text": "ok" }] })).await;
    assert_eq!(text(&client.next().await), "ok");
}

#[tokio::test]
async fn an_upstream_that_never_answers_is_given_up() {
    let fake = Fake::new().await;
    let upstream = fake.upstream().timeout(Duration::from_millis(300));
    let (built, _wire) = tokio::join!(Bridge::new().upstream(upstream).build(), fake.accept());
    let error = built.unwrap_err();
    assert!(error.to_string().starts_with("the upstream tcp://127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn a_list_that_never_comes_stops_nothing_else() {
    let fake = Fake::new().await;
    let (bridge, mut wire) =
        tokio::join!(bridge([fake.upstream()]), fake.offer(json!([described("a")])));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
    assert_eq!(wire.next().await["method"], "tools/list");
    client.begin("tools/call", tool("a", json!({}))).await;
    let request = expect(&mut wire, "tools/call").await;
    wire.answer(&request, json!({ "content": [{ "type": "text", "text": "ok" }] })).await;
    assert_eq!(text(&client.next().await), "ok");
}

#[tokio::test]
async fn a_flood_of_signals_holds_no_result_back() {
    let fake = Fake::new().await;
    let (bridge, mut wire) =
        tokio::join!(bridge([fake.upstream()]), fake.offer(json!([described("a")])));
    let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
    let id = client.begin("tools/call", tool("a", json!({}))).await;
    let request = expect(&mut wire, "tools/call").await;
    let log = json!({ "level": "error", "data": "flood" });
    let log =
        json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log }).to_string();
    let flood = tokio::spawn(async move {
        for _ in 0..1_000 {
            wire.send_text(&log).await;
        }
        wire.answer(&request, json!({ "content": [] })).await;
        for _ in 0..1_000 {
            wire.send_text(&log).await;
        }
        wire
    });
    while client.next().await["id"] != id {}
    drop(within(flood).await.unwrap());
}

#[tokio::test]
async fn the_end_of_the_bridge_closes_its_connections() {
    let fake = Fake::new().await;
    let (bridge, mut wire) =
        tokio::join!(bridge([fake.upstream()]), fake.offer(json!([described("a")])));
    // Also if a request of the bridge itself is open.
    wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
    assert_eq!(wire.next().await["method"], "tools/list");
    drop(bridge);
    while let Some(line) = wire.next_line().await {
        assert!(line.contains("notifications/cancelled"), "{line}");
    }
}

#[tokio::test]
async fn a_subscription_ends_with_its_client() {
    for way in Way::ALL {
        let (server, upstream) = way.serve(asker(&Gate::new()).with_resources()).await;
        let bridge = bridge([upstream]).await;
        let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
        client.call("resources/subscribe", json!({ "uri": "a:1" })).await;
        let is_subscribed = async |expected: bool| {
            within(async {
                while server.is_subscribed("a:1") != expected {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        };
        is_subscribed(true).await;
        drop(client);
        is_subscribed(false).await;
    }
}
