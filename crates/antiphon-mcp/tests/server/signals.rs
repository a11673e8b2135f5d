//! What a handler tells its client while it runs: progress and logs.

use antiphon_mcp::types::LoggingLevel;
use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::duplex::Duplex;
use crate::support::gate::Gate;
use crate::support::{code, modern, request, tool};

/// A tool that reports this progress.
pub(crate) fn progress(name: &str, steps: &'static [f64]) -> ServerTool {
    ServerTool::new(name, move |(): (), cx: RequestContext| async move {
        for step in steps {
            cx.progress(*step, Some(10.0), Some("going on")).await;
        }
        "done"
    })
}

pub(crate) fn logging() -> ServerTool {
    ServerTool::new("log", |(): (), cx: RequestContext| async move {
        let levels = [
            LoggingLevel::Debug,
            LoggingLevel::Info,
            LoggingLevel::Warning,
            LoggingLevel::Emergency,
        ];
        for level in levels {
            cx.log_of(Some("part"), level, json!({ "level": level })).await;
        }
        "logged"
    })
}

fn server() -> McpServer {
    McpServer::builder("test", "1")
        .tool(progress("work", &[1.0, 1.0, 0.5, f64::NAN, 2.5, f64::INFINITY, 3.0]))
        .tool(logging())
        .build()
}

/// Calls, and returns the notifications before the response.
async fn call(client: &mut Duplex, params: Value) -> Vec<Value> {
    let id = client.begin("tools/call", params).await;
    let mut told = Vec::new();
    loop {
        let message = client.next().await;
        if message["id"] == id {
            assert!(message["result"].is_object(), "{message}");
            return told;
        }
        told.push(message);
    }
}

fn levels(told: &[Value]) -> Vec<&str> {
    told.iter().map(|message| message["params"]["level"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn progress_grows() {
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    let mut params = tool("work", json!({}));
    assert!(call(&mut client, params.clone()).await.is_empty(), "no token, no progress");
    params["_meta"] = json!({ "progressToken": "p" });
    for params in [params.clone(), modern(params)] {
        let told = call(&mut client, params).await;
        let values: Vec<_> = told.iter().map(|it| it["params"]["progress"].clone()).collect();
        assert_eq!(values, [json!(1), json!(2.5), json!(3)]);
        assert_eq!(told[0]["method"], "notifications/progress");
        assert_eq!(told[0]["params"]["message"], "going on");
        assert_eq!(told[0]["params"]["total"], 10);
        assert_eq!(told[0]["params"]["progressToken"], "p");
    }
}

#[tokio::test]
async fn a_token_comes_back_byte_for_byte() {
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    for token in [r#""1""#, "1", "1e0", "-0", "12345678901234567890123", r#""\u0041\/""#, "1.50"] {
        for era in [tool("work", json!({})), modern(tool("work", json!({})))] {
            let mut params = era;
            params["_meta"]["progressToken"] = json!("TOKEN");
            let text = request(1, "tools/call", params).to_string();
            client.send_text(&text.replace(r#""TOKEN""#, token)).await;
            for _ in 0..3 {
                let told = client.next_line().await.unwrap();
                assert!(told.contains(&format!(r#""progressToken":{token},"#)), "{token}: {told}");
            }
            assert_eq!(client.next().await["id"], 1);
        }
    }
    for token in [json!(null), json!(true), json!({}), json!([])] {
        let mut params = tool("work", json!({}));
        params["_meta"] = json!({ "progressToken": token });
        assert!(call(&mut client, params).await.is_empty(), "{token}");
    }
}

#[tokio::test]
async fn nothing_is_told_after_the_response() {
    let gate = Gate::new();
    let (sender, mut contexts) = mpsc::unbounded_channel();
    let leak = ServerTool::new("leak", move |(): (), cx: RequestContext| {
        let _ = sender.send(cx);
        async { "done" }
    });
    let server = McpServer::builder("test", "1").tool(leak).tool(gate.tool("wait")).build();
    let mut client = Duplex::start(&server, "2025-11-25", json!({})).await;
    for params in [tool("leak", json!({})), modern(tool("leak", json!({})))] {
        let mut params = params;
        params["_meta"]["progressToken"] = json!(1);
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        assert!(call(&mut client, params).await.is_empty());
        let late = contexts.recv().await.unwrap();
        late.progress(1.0, None, None).await;
        late.log(LoggingLevel::Emergency, "late").await;
        let pong = client.call("ping", json!({})).await;
        assert_eq!(pong["result"], json!({}));
    }
}

#[tokio::test]
async fn a_legacy_client_sets_its_level() {
    let mut client = Duplex::start(&server(), "2025-03-26", json!({})).await;
    let told = call(&mut client, tool("log", json!({}))).await;
    assert_eq!(levels(&told), ["info", "warning", "emergency"], "`info` is the default");
    assert_eq!(told[0]["method"], "notifications/message");
    assert_eq!(told[0]["params"]["logger"], "part");
    assert_eq!(told[0]["params"]["data"], json!({ "level": "info" }));
    for (level, expected) in [
        ("emergency", vec!["emergency"]),
        ("notice", vec!["warning", "emergency"]),
        ("debug", vec!["debug", "info", "warning", "emergency"]),
    ] {
        let set = client.call("logging/setLevel", json!({ "level": level })).await;
        assert_eq!(set["result"], json!({}));
        assert_eq!(levels(&call(&mut client, tool("log", json!({}))).await), expected);
    }
    for level in [json!("loud"), json!(7), json!(null)] {
        let response = client.call("logging/setLevel", json!({ "level": level })).await;
        assert_eq!(code(&response), -32602, "{level}");
    }
    assert_eq!(call(&mut client, tool("log", json!({}))).await.len(), 4, "the level stays");
}

#[tokio::test]
async fn a_modern_request_sets_its_own_level() {
    let mut client = Duplex::start(&server(), "2025-11-25", json!({})).await;
    let mut params = modern(tool("log", json!({})));
    assert!(call(&mut client, params.clone()).await.is_empty(), "it does not ask for logs");
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
    let told = call(&mut client, params.clone()).await;
    assert_eq!(levels(&told), ["warning", "emergency"]);
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
    let refused = client.call("tools/call", params).await;
    assert_eq!(refused["error"]["code"], -32602, "an unknown level: {refused}");
    assert_eq!(call(&mut client, tool("log", json!({}))).await.len(), 3, "sessions differ");
}
