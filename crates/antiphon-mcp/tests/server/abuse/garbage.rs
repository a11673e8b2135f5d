//! Bytes that are no messages, and messages that are too large.

use serde_json::{Value, json};

use crate::support::duplex::Duplex;
use crate::support::{code, modern, names, request, tool};

/// The errors before the response to a ping.
async fn errors(client: &mut Duplex) -> Vec<Value> {
    let id = client.begin("ping", json!({})).await;
    let mut errors = Vec::new();
    loop {
        match client.next().await {
            pong if pong["id"] == id => return errors,
            error => errors.push(error),
        }
    }
}

#[tokio::test]
async fn each_line_of_garbage_gets_at_most_one_error() {
    let mut client = Duplex::child();
    client.initialize("2025-11-25", json!({})).await;
    let lines: [&[u8]; 6] = [
        b"garbage\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\n",
        b"\xff\xfe\xfd\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\",\"method\":\"ping\"}\n",
        b"\"\\ud800\"x\n",
        b"\x00\x01\x02\n",
    ];
    for _ in 0..20 {
        let storm: Vec<u8> = (0..500).flat_map(|n| lines[n % lines.len()].to_vec()).collect();
        client.send_bytes(&storm).await;
        let errors = errors(&mut client).await;
        assert_eq!(errors.len(), 500);
        assert!(errors.iter().all(|error| code(error) == -32700 && error["id"].is_null()));
    }
    if let Some(peak) = client.peak_memory() {
        assert!(peak < 200_000, "{peak} KiB");
    }
}

#[tokio::test]
async fn halves_of_surrogate_pairs_are_harmless() {
    let mut client = Duplex::child();
    client.initialize("2025-11-25", json!({})).await;
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\udfff"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"\ud800"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"\ud800"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"\ud800"}}"#,
    ] {
        client.send_text(message).await;
        assert!(client.next().await["error"].is_object(), "{message}");
    }
    let id = r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#;
    client.send_text(id).await;
    let line = client.next_line().await.unwrap();
    assert!(line.contains(r#""id":"\ud800""#) || line.contains("error"), "{line}");
    let token = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":
        {"name":"test_tool_with_progress","_meta":{"progressToken":"\ud800"}}}"#;
    client.send_text(&token.replace('\n', "")).await;
    while !client.next_line().await.unwrap().contains(r#""id":2"#) {}
    assert!(errors(&mut client).await.is_empty());
}

#[tokio::test]
async fn huge_values_are_served_or_refused() {
    let mut client = Duplex::child();
    client.initialize("2025-11-25", json!({})).await;
    let huge = "x".repeat(1 << 19);
    client.send(&request(huge.as_str(), "ping", json!({}))).await;
    let echoed = client.next().await;
    assert!(echoed["id"] == huge.as_str() || echoed["error"].is_object());
    for (method, params) in [
        ("tools/list", json!({ "cursor": huge })),
        ("tools/call", tool(&huge, json!({}))),
        ("resources/read", json!({ "uri": huge })),
        ("resources/subscribe", json!({ "uri": huge })),
        ("prompts/get", json!({ "name": huge })),
        (huge.as_str(), json!({})),
        ("logging/setLevel", json!({ "level": huge })),
    ] {
        for params in [params.clone(), modern(params)] {
            let response = client.call(method, params).await;
            assert!(response["error"].is_object());
            // The URI that was not found is a part of that error.
            let most = if method == "resources/read" { 1 << 20 } else { 1000 };
            assert!(response.to_string().len() < most, "{method:.20}");
        }
    }
    let wide: Value =
        (0..100_000).map(|n| (n.to_string(), json!(n))).collect::<serde_json::Map<_, _>>().into();
    let listed = client.call("tools/list", json!({ "_meta": wide })).await;
    assert!(names(&listed, "tools").len() > 10);
}

#[tokio::test]
#[ignore = "long: sends 200 MiB to a process"]
async fn a_line_without_an_end_takes_bounded_memory() {
    let mut client = Duplex::child();
    client.initialize("2025-11-25", json!({})).await;
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        client.send_bytes(&chunk).await;
    }
    client.send_bytes(b"\n").await;
    assert!(client.next().await["error"].is_object());
    assert!(errors(&mut client).await.is_empty());
    if let Some(peak) = client.peak_memory() {
        assert!(peak < 150_000, "{peak} KiB");
    }
}
