//! The lifecycle as an editor sees it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use antiphon::RawJson;
use serde_json::{Value, json};

use crate::support::{Bare, code, connect, example};

#[tokio::test]
async fn every_phase_has_its_error() {
    let client = connect(|_| Bare);
    let call =
        async |method: &str, params: Value| code(client.call::<RawJson>(method, params).await);
    let capabilities = || json!({"capabilities": {}});
    assert_eq!(call("textDocument/hover", json!({})).await, -32002);
    assert_eq!(call("shutdown", json!({})).await, -32002);
    assert_eq!(call("initialize", json!({"capabilities": 1})).await, -32602);
    assert_eq!(call("initialize", capabilities()).await, 0);
    client.notify("initialized", json!({})).await.unwrap();
    assert_eq!(call("initialize", capabilities()).await, -32600);
    assert_eq!(call("$/unknown", json!({})).await, -32601);
    assert_eq!(call("workspace/symbol", json!({"query": ""})).await, -32601);
    client.notify("$/unknown", json!({})).await.unwrap();
    assert_eq!(call("shutdown", json!({})).await, 0);
    for method in ["shutdown", "initialize", "$/unknown", "workspace/symbol"] {
        assert_eq!(call(method, capabilities()).await, -32600, "{method}");
    }
    client.notify("exit", ()).await.unwrap();
    client.peer().unwrap().closed().await;
}

/// Runs the server with this input. Returns its exit code and its output.
fn run(messages: &[Value]) -> (Option<i32>, String) {
    let mut server = Command::new(example("hover_server"));
    let mut server =
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the example starts");
    let mut input = server.stdin.take().unwrap();
    for message in messages {
        let text = message.to_string();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }
    drop(input);
    let output = server.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn initialize(process: Option<u32>) -> Value {
    let params = json!({"processId": process, "capabilities": {}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[test]
fn the_exit_code_tells_whether_the_editor_has_shut_the_server_down() {
    let shutdown = json!({"jsonrpc": "2.0", "id": 1, "method": "shutdown"});
    let exit = json!({"jsonrpc": "2.0", "method": "exit"});
    let started = initialize(None);
    let (code, output) = run(&[started.clone(), shutdown.clone(), exit.clone()]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains(r#""result":null,"id":1"#), "{output}");
    assert_eq!(run(&[started.clone(), exit.clone()]).0, Some(1));
    assert_eq!(run(&[exit]).0, Some(1));
    // The editor is gone without `exit`.
    assert_eq!(run(&[started.clone(), shutdown]).0, Some(0));
    assert_eq!(run(&[started]).0, Some(1));
    assert_eq!(run(&[]).0, Some(1));
}
