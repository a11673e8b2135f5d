//! The client against servers of other projects.
//!
//! `server-everything` uses the TypeScript SDK and has legacy revisions. The servers of the Python SDK and of FastMCP have
//! both eras.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use antiphon_mcp::client::{McpClient, McpError, ServerEra};
use antiphon_mcp::types::{
    CreateMessageResult, ElicitResult, LoggingLevel, Reference, Revision, Root, SubscriptionFilter,
};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{Duration, sleep};

fn interop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop")
}

/// The command of `server-everything`.
fn everything() -> Vec<String> {
    let package = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    vec!["node".to_owned(), interop().join(package).display().to_string()]
}

/// The command of the server of the Python SDK.
fn python() -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client/python_server.py");
    let python = interop().join(".venv/bin/python");
    vec![python.display().to_string(), script.display().to_string()]
}

/// The command of the server on FastMCP.
fn fastmcp() -> Vec<String> {
    let python = interop().join(".venv/bin/python");
    let script = interop().join("mcp/fastmcp_server.py");
    vec![python.display().to_string(), script.display().to_string()]
}

/// Starts an HTTP server, and waits until it listens.
async fn serve(command: &[String], arguments: &[&str]) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let text = port.to_string();
    let arguments = arguments.iter().map(|it| if *it == "PORT" { &*text } else { *it });
    let child = Command::new(&command[0])
        .args(&command[1..])
        .args(arguments)
        .env("PORT", &text)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return (child, port);
        }
        // The process tells in no other way that it listens.
        sleep(Duration::from_millis(50)).await;
    }
    panic!("{command:?} does not listen");
}

async fn connect(endpoint: &str) -> McpClient {
    let builder = McpClient::builder()
        .roots(vec![Root::new("file:///work")])
        .on_sample(|_| async { Ok(CreateMessageResult::new("model", "sampled")) })
        .on_elicit(|_| async {
            let answer = json!({"name": "Ada", "value": "Ada", "check": true});
            Ok(ElicitResult::accept(answer.as_object().unwrap().clone()))
        });
    builder.connect(endpoint).await.unwrap()
}

/// Uses everything that `server-everything` has.
async fn use_everything(endpoint: &str, expected: ServerEra) {
    let client = connect(endpoint).await;
    assert_eq!(client.era(), expected);
    client.ping().await.unwrap();
    client.set_level(LoggingLevel::Debug).await.unwrap();
    assert!(client.list_tools().await.unwrap().len() > 10);
    let call = async |name: &str, arguments| {
        client.call_tool(name, arguments).await.unwrap().joined_text()
    };
    assert!(call("get-sum", json!({"a": 1, "b": 2})).await.contains("is 3"));
    assert!(
        call("get-structured-content", json!({"location": "Chicago"})).await.contains("humidity")
    );
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = steps.clone();
    let long = json!({"duration": 0.3, "steps": 3});
    let long = client.call_tool("trigger-long-running-operation", long);
    long.on_progress(move |it| seen.lock().unwrap().push(it.progress)).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0]);
    // Some tools exist only for a client with the capabilities, after `notifications/initialized`.
    assert!(
        call("trigger-sampling-request", json!({"prompt": "p", "maxTokens": 5}))
            .await
            .contains("sampled")
    );
    assert!(call("trigger-elicitation-request", json!({})).await.contains("Ada"));
    assert!(call("get-roots-list", json!({})).await.contains("file:///work"));
    let resources = client.list_resources().await.unwrap();
    assert_eq!(client.read_resource(&resources[0].uri).await.unwrap().contents.len(), 1);
    assert!(!client.list_resource_templates().await.unwrap().is_empty());
    assert!(!client.list_prompts().await.unwrap().is_empty());
    let filter = SubscriptionFilter::list_changes();
    assert_eq!(client.listen(filter.clone()).await.unwrap().acknowledged(), &filter);
    client.close().await;
}

/// Uses what the server of the Python SDK has.
async fn use_python(endpoint: &str, expected: ServerEra) {
    let client = connect(endpoint).await;
    assert_eq!(client.era(), expected);
    client.list_tools().await.unwrap();
    let sum: serde_json::Value = client.call_tool_as("add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(sum, json!({"result": 3}));
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = steps.clone();
    let work = client.call_tool("work", json!({"steps": 2}));
    work.on_progress(move |it| seen.lock().unwrap().push(it.progress)).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0]);
    // The SDK has no input requests behind this function in a modern revision.
    if !client.revision().is_modern() {
        assert_eq!(client.call_tool("greet", ()).await.unwrap().joined_text(), "hello Ada");
    }
    let note = client.read_resource("note://x").await.unwrap();
    assert_eq!(note.contents[0].text.as_deref(), Some("note x"));
    let prompt = client.get_prompt("review", [("code", "x")]).await.unwrap();
    assert_eq!(prompt.messages[0].content.as_text(), Some("Review x"));
    client.listen(SubscriptionFilter::list_changes()).await.unwrap();
    client.close().await;
}

/// Uses what the server on FastMCP has.
async fn use_fastmcp(endpoint: &str, revision: Revision) {
    let logs = Arc::new(Mutex::new(Vec::new()));
    let logged = logs.clone();
    let builder = McpClient::builder().revision(revision).on_log(move |message| {
        logged.lock().unwrap().push(message.data["msg"].as_str().unwrap().to_owned());
    });
    let builder = builder.on_elicit_form(|_| async {
        Ok(ElicitResult::accept(json!({"value": "Ada"}).as_object().unwrap().clone()))
    });
    let client = builder.connect(endpoint).await.unwrap();
    assert_eq!(client.revision(), revision);
    assert_eq!(client.server_info().unwrap().name, "interop-fastmcp");
    // Pages of two entries.
    assert_eq!(client.list_tools().await.unwrap().len(), 8);
    let sum: serde_json::Value = client.call_tool_as("add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(sum, json!({"sum": 3}));
    let error = client.call_tool("add", json!({"a": "x"})).await.unwrap_err();
    assert!(matches!(error, McpError::InvalidArguments { .. }), "{error}");
    assert_eq!(client.call_tool("greet", ()).await.unwrap().joined_text(), "Hello, nobody!");
    let failed = client.call_tool("fail", ()).await.unwrap();
    assert!(failed.failed() && failed.joined_text().contains("this tool fails"));
    client.set_level(LoggingLevel::Info).await.unwrap();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = steps.clone();
    let count = client.call_tool("count", json!({"to": 2}));
    count.on_progress(move |it| seen.lock().unwrap().push(it.progress)).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0]);
    assert_eq!(*logs.lock().unwrap(), ["number 1", "number 2"]);
    assert_eq!(client.call_tool("ask_name", ()).await.unwrap().joined_text(), "Hello, Ada!");
    cancel_a_call(&client).await;
    let note = client.read_resource("notes://monday/entry").await.unwrap();
    assert_eq!(note.contents[0].text.as_deref(), Some("Entry of monday."));
    let logo = client.read_resource("notes://logo").await.unwrap();
    assert_eq!(logo.contents[0].blob.as_deref(), Some("iVBORw0KGgo="));
    let prompt = client.get_prompt("review", [("code", "code")]).await.unwrap();
    assert_eq!(prompt.messages[0].content.as_text(), Some("Review this code."));
    let reference = Reference::prompt("review");
    let completed = client.complete(reference, "code", "ru", BTreeMap::new()).await.unwrap();
    assert_eq!(completed.completion.values, ["rust", "ruby"]);
    client.close().await;
}

/// Drops a call that has begun, and waits until the server has cancelled it.
async fn cancel_a_call(client: &McpClient) {
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let begun = Mutex::new(Some(begun));
    let call = client.call_tool("wait", ()).on_progress(move |_| {
        if let Some(begun) = begun.lock().unwrap().take() {
            begun.send(()).unwrap();
        }
    });
    let call = tokio::spawn(async move { call.await });
    has_begun.await.unwrap();
    call.abort();
    loop {
        let cancelled = client.call_tool("waits_cancelled", ()).await.unwrap().joined_text();
        if cancelled == "1" {
            return;
        }
        assert_eq!(cancelled, "0");
    }
}

fn http_sse(revision: Revision) -> ServerEra {
    let mut era = ServerEra::new(revision);
    era.http_sse = true;
    era
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn server_everything_over_stdio() {
    let command = everything().join(" ");
    use_everything(&format!("exec:{command} stdio"), ServerEra::new(Revision::V2025_11_25)).await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn server_everything_over_streamable_http() {
    let (_child, port) = serve(&everything(), &["streamableHttp"]).await;
    let era = ServerEra::new(Revision::V2025_11_25);
    use_everything(&format!("http://127.0.0.1:{port}/mcp"), era).await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn server_everything_over_http_sse() {
    let (_child, port) = serve(&everything(), &["sse"]).await;
    let era = http_sse(Revision::V2025_11_25);
    use_everything(&format!("http://127.0.0.1:{port}/sse"), era).await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn the_python_sdk_over_stdio() {
    let command = python().join(" ");
    use_python(&format!("exec:{command} stdio"), ServerEra::new(Revision::V2026_07_28)).await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn the_python_sdk_over_streamable_http() {
    let (_child, port) = serve(&python(), &["streamable-http", "PORT"]).await;
    let endpoint = format!("http://127.0.0.1:{port}/mcp");
    use_python(&endpoint, ServerEra::new(Revision::V2026_07_28)).await;
    let builder = McpClient::builder().revision(Revision::V2025_06_18);
    let client = builder.connect(&*endpoint).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
    assert!(client.call_tool("add", json!({"a": 1, "b": 2})).await.is_ok());
    client.close().await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn the_python_sdk_over_http_sse() {
    let (_child, port) = serve(&python(), &["sse", "PORT"]).await;
    let era = http_sse(Revision::V2025_11_25);
    use_python(&format!("http://127.0.0.1:{port}/sse"), era).await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn fastmcp_over_stdio() {
    let endpoint = format!("exec:{}", fastmcp().join(" "));
    use_fastmcp(&endpoint, Revision::V2026_07_28).await;
    use_fastmcp(&endpoint, Revision::V2025_11_25).await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn fastmcp_over_streamable_http() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let (_child, port) = serve(&fastmcp(), &["PORT"]).await;
        use_fastmcp(&format!("http://127.0.0.1:{port}/mcp"), revision).await;
    }
}
