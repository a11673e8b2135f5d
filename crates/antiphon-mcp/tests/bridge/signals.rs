//! Progress, logs and cancellations across the bridge.

use serde_json::{Value, json};

use crate::fake::{Fake, expect, tool as described};
use crate::support::duplex::Duplex;
use crate::support::gate::Gate;
use crate::support::http::Http;
use crate::support::{modern, text, tool};
use crate::upstreams::{Way, asker, bridge, process};

/// The params of a call with a token for progress.
fn counted(token: Value) -> Value {
    let mut params = tool("count", json!({}));
    params["_meta"] = json!({ "progressToken": token });
    params
}

fn check(messages: &[Value], token: &Value, way: Way) {
    let of = |method: &str| messages.iter().filter(|it| it["method"] == method).collect::<Vec<_>>();
    let progress = of("notifications/progress");
    let steps: Vec<_> = progress.iter().map(|it| it["params"]["progress"].clone()).collect();
    assert_eq!(steps, [json!(1), json!(2), json!(3)], "{way:?}");
    for one in progress {
        assert_eq!(one["params"]["progressToken"], *token, "{way:?}");
        assert_eq!(
            (&one["params"]["total"], &one["params"]["message"]),
            (&json!(3), &json!("step"))
        );
    }
    let logs = of("notifications/message");
    let logs: Vec<_> = logs.iter().map(|it| &it["params"]).collect();
    let expected = [1, 2, 3].map(|n| json!({ "level": "info", "logger": "counter", "data": n }));
    assert_eq!(logs, expected.iter().collect::<Vec<_>>(), "{way:?}");
    assert_eq!(text(messages.last().unwrap()), "counted", "{way:?}");
    assert_eq!(messages.len(), 7, "{way:?}");
}

#[tokio::test]
async fn a_modern_client_gets_progress_and_logs() {
    for way in Way::ALL {
        let (_server, upstream) = way.serve(asker(&Gate::new())).await;
        let http = Http::serve(&bridge([upstream]).await).await;
        let mut params = modern(counted(json!("t")));
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
        let mut reply = http.modern(1, "tools/call", params).send().await;
        let mut messages = Vec::new();
        while let Some(event) = reply.event().await {
            messages.push(event.json());
        }
        check(&messages, &json!("t"), way);
    }
}

#[tokio::test]
async fn a_legacy_client_gets_progress_and_logs() {
    for way in Way::ALL {
        let (_server, upstream) = way.serve(asker(&Gate::new())).await;
        let mut client = Duplex::start(&bridge([upstream]).await, "2025-06-18", json!({})).await;
        let id = client.begin("tools/call", counted(json!(7))).await;
        let mut messages = Vec::new();
        while messages.last().is_none_or(|last: &Value| last["id"] != id) {
            messages.push(client.next().await);
        }
        check(&messages, &json!(7), way);
    }
}

#[tokio::test]
async fn a_client_chooses_the_level_of_the_logs() {
    let (_server, upstream) = Way::LegacyTcp.serve(asker(&Gate::new())).await;
    let bridge = bridge([upstream]).await;
    let count = async |level: Option<&str>| {
        let mut client = Duplex::start(&bridge, "2025-06-18", json!({})).await;
        if let Some(level) = level {
            client.call("logging/setLevel", json!({ "level": level })).await;
        }
        let id = client.begin("tools/call", tool("count", json!({}))).await;
        let mut logs = 0;
        while client.next().await["id"] != id {
            logs += 1;
        }
        logs
    };
    assert_eq!(count(None).await, 3);
    assert_eq!(count(Some("debug")).await, 6);
    // Another client has asked the upstream for more.
    assert_eq!(count(Some("error")).await, 0);
    assert_eq!(count(Some("info")).await, 3);
}

#[tokio::test]
async fn a_cancellation_reaches_the_upstream() {
    for way in Way::ALL {
        let gate = Gate::new();
        let (_server, upstream) = way.serve(asker(&gate)).await;
        let bridge = bridge([upstream]).await;
        let mut client = Duplex::start(&bridge, "2025-11-25", json!({})).await;
        let id = client.begin("tools/call", tool("wait", json!({}))).await;
        gate.begun(1).await;
        let cancel = json!({ "requestId": id, "reason": "enough" });
        client
            .send(
                &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }),
            )
            .await;
        gate.ended(1).await;
        // The next message is the response of the next request: the cancelled one has none.
        assert_eq!(client.call("ping", json!({})).await["result"], json!({}), "{way:?}");

        let http = Http::serve(&bridge).await;
        let request = http.modern(1, "tools/call", tool("wait", json!({})));
        let call = tokio::spawn(request.send());
        gate.begun(2).await;
        call.abort();
        gate.ended(2).await;
    }
}

#[tokio::test]
async fn a_process_serves_modern_clients_over_http() {
    let http = Http::serve(&bridge([process()]).await).await;
    let mut params = modern(tool("test_tool_with_progress", json!({})));
    params["_meta"]["progressToken"] = json!(1);
    let mut reply = http.modern(1, "tools/call", params).send().await;
    let mut steps = Vec::new();
    while let Some(event) = reply.event().await {
        let message = event.json();
        steps.extend(message["params"]["progress"].as_f64());
    }
    assert_eq!(steps, [0.0, 50.0, 100.0]);
    let discovered = http.modern_call("server/discover", json!({})).await;
    assert_eq!(
        discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "everything"
    );
    assert!(discovered["result"]["instructions"].as_str().unwrap().starts_with("Tools"));
}

#[tokio::test]
async fn equal_ids_and_tokens_of_two_clients_do_not_mix() {
    let fake = Fake::new().await;
    let tools = json!([described("count")]);
    let (bridge, mut wire) = tokio::join!(bridge([fake.upstream()]), fake.offer(tools));
    let mut clients = [
        Duplex::start(&bridge, "2025-11-25", json!({})).await,
        Duplex::start(&bridge, "2025-11-25", json!({})).await,
    ];
    let (mut ids, mut calls) = (Vec::new(), Vec::new());
    for client in &mut clients {
        ids.push(client.begin("tools/call", counted(json!("same"))).await);
        calls.push(expect(&mut wire, "tools/call").await);
    }
    assert_eq!(ids[0], ids[1]);
    let token = |call: &Value| call["params"]["_meta"]["progressToken"].clone();
    assert_ne!(token(&calls[0]), token(&calls[1]));
    // In the other order, so that neither the newest call nor the oldest one is meant.
    for (progress, call) in [(2, &calls[1]), (1, &calls[0]), (3, &calls[1])] {
        let params = json!({ "progressToken": token(call), "progress": progress });
        let method = "notifications/progress";
        wire.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }
    for (name, call) in [("second", &calls[1]), ("first", &calls[0])] {
        wire.answer(call, json!({ "content": [{ "type": "text", "text": name }] })).await;
    }
    for (client, progress, name) in [(0, [1].as_slice(), "first"), (1, [2, 3].as_slice(), "second")]
    {
        for progress in progress {
            let told = clients[client].next().await;
            let expected = json!({ "progressToken": "same", "progress": progress });
            assert_eq!(told["params"], expected);
        }
        let response = clients[client].next().await;
        assert_eq!((&response["id"], text(&response)), (&json!(ids[client]), name));
    }
}
