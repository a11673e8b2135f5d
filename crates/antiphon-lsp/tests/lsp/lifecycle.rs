//! The lifecycle as an editor sees it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use antiphon::{Context, Dialect, ErrorObject, Limits, RawJson};
use antiphon_lsp::types::{
    ConfigurationParams, DidOpenTextDocumentParams, InitializeParams, InitializeResult, MessageType,
};
use antiphon_lsp::{Editor, LanguageServer};
use serde_json::{Value, json};

use crate::raw_editor::RawEditor;
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
    // Params have no effect. If they failed, the server could not be shut down any more.
    assert_eq!(call("shutdown", json!({"restart": true})).await, 0);
    for method in ["shutdown", "initialize", "$/unknown", "workspace/symbol"] {
        assert_eq!(call(method, capabilities()).await, -32600, "{method}");
    }
    client.notify("exit", ()).await.unwrap();
    client.peer().unwrap().closed().await;
}

/// A server whose `didOpen` and `exit` never end, unless `exit` panics.
struct Hanging {
    editor: Editor,
    panics: bool,
}

impl LanguageServer for Hanging {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams, _: Context) {
        if params.text_document.text == "ask" {
            let _ = self.editor.configuration(ConfigurationParams { items: vec![] }).await;
        }
        std::future::pending::<()>().await;
    }

    async fn exit(&self, _: Context) {
        assert!(!self.panics, "a handler that panics");
        std::future::pending::<()>().await;
    }
}

fn opened(text: &str) -> Value {
    let item = json!({"uri": "file:///a", "languageId": "a", "version": 1, "text": text});
    json!({ "textDocument": item })
}

#[tokio::test]
async fn exit_overtakes_a_notification_that_waits_for_the_editor() {
    for panics in [false, true] {
        let make = move |editor| Hanging { editor, panics };
        let mut editor = RawEditor::start(json!({}), make).await;
        editor.notify("textDocument/didOpen", opened("ask")).await;
        editor.expect("workspace/configuration").await;
        editor.request(1, "shutdown", json!(null)).await;
        editor.notify("exit", json!(null)).await;
        // The connection closes although the editor never answers.
        editor.closed().await;
    }
}

/// The time to finish of `exit` and of the other handlers does not add up.
#[tokio::test(start_paused = true)]
async fn a_server_with_hanging_handlers_ends_one_second_after_exit() {
    let client = connect(|editor| Hanging { editor, panics: false });
    client.call::<RawJson>("initialize", json!({"capabilities": {}})).await.unwrap();
    client.notify("textDocument/didOpen", opened("hang")).await.unwrap();
    let started = tokio::time::Instant::now();
    client.notify("exit", ()).await.unwrap();
    client.peer().unwrap().closed().await;
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_millis(1100), "{elapsed:?}");
}

/// A server whose `exit` calls the editor.
struct Leaving(Editor);

impl LanguageServer for Leaving {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn exit(&self, _: Context) {
        self.0.configuration(ConfigurationParams { items: vec![] }).await.unwrap();
        self.0.log(MessageType::Info, "bye").await.unwrap();
    }
}

#[tokio::test]
async fn exit_can_still_call_the_editor() {
    let mut editor = RawEditor::start(json!({}), Leaving).await;
    editor.notify("exit", json!(null)).await;
    let question = editor.expect("workspace/configuration").await;
    editor.answer(&question, json!([])).await;
    assert_eq!(editor.expect("window/logMessage").await["params"]["message"], "bye");
    editor.closed().await;
}

#[tokio::test]
async fn exit_overtakes_messages_that_the_server_has_no_room_for() {
    let limits = Limits { queued_messages: 1, ..Dialect::lsp().limits() };
    let make = |editor| Hanging { editor, panics: false };
    let mut editor = RawEditor::connect_with(limits, make).await.initialized(json!({})).await;
    for _ in 0..5 {
        editor.notify("textDocument/didOpen", opened("hang")).await;
    }
    editor.notify("exit", json!(null)).await;
    editor.closed().await;
}

/// Runs the server with this input. Returns its exit code and its output.
fn run(messages: &[Value]) -> (Option<i32>, String) {
    let (code, output, _) = run_example("hover_server", messages);
    (code, output)
}

/// Runs a server with this input. Returns its exit code, its output and its log.
fn run_example(name: &str, messages: &[Value]) -> (Option<i32>, String, String) {
    let mut server = Command::new(example(name));
    let server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = server.spawn().expect("the example starts");
    let mut input = server.stdin.take().unwrap();
    for message in messages {
        let text = message.to_string();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }
    drop(input);
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(server.wait_with_output().unwrap()));
    let output = told.recv_timeout(Duration::from_secs(60)).expect("the server ends");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// An editor that sends `shutdown` and `exit` without waiting for a response.
#[test]
fn a_shutdown_that_exit_overtakes_is_still_handled() {
    let server = &mut Command::new(example("asking_server"));
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut send = |message: Value| {
        let text = message.to_string();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    };
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut next = || {
        let mut header = String::new();
        while !header.ends_with("\r\n\r\n") {
            assert_ne!(output.read_line(&mut header).unwrap(), 0, "the server has ended");
        }
        let (_, length) = header.split_once("Content-Length: ").unwrap();
        let mut text = vec![0; length.lines().next().unwrap().parse().unwrap()];
        output.read_exact(&mut text).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()
    };
    send(initialize(None));
    assert_eq!(next()["id"], 0);
    send(json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": opened("")}));
    let question = next();
    assert_eq!(question["method"], "workspace/configuration");
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "shutdown"}));
    send(json!({"jsonrpc": "2.0", "method": "exit"}));
    send(json!({"jsonrpc": "2.0", "id": question["id"], "result": []}));
    assert_eq!(next(), json!({"jsonrpc": "2.0", "result": null, "id": 1}));
    assert_eq!(server.wait().unwrap().code(), Some(0));
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

#[test]
fn a_server_ends_with_its_stdin_while_a_handler_hangs() {
    let command = |id: u32, name: &str| {
        let params = json!({ "command": name });
        json!({"jsonrpc": "2.0", "id": id, "method": "workspace/executeCommand", "params": params})
    };
    for name in ["hang", "spawn"] {
        let (code, output, _) =
            run_example("asking_server", &[initialize(None), command(1, name), command(2, name)]);
        assert_eq!(code, Some(1), "{name}: {output}");
        assert_eq!(output.matches(r#""id":"#).count(), 3, "{name}: {output}");
    }
}

#[test]
fn the_first_notification_that_cannot_be_decoded_is_reported_on_stderr() {
    let change = |uri: &str, text: Value| {
        let changes = json!([{"range": text, "text": ""}]);
        let params = json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes});
        json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params})
    };
    let report = |change: Value| {
        let again = json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {}});
        let (_, _, log) = run_example("asking_server", &[initialize(None), change, again]);
        let line = log.strip_suffix('\n').unwrap().to_owned();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(
            line.starts_with("cannot decode `textDocument/didChange` of the editor: "),
            "{line}"
        );
        assert!(
            line.ends_with(
                " (further ones are not shown; install a `tracing` subscriber to see them)"
            ),
            "{line}"
        );
        line
    };
    // A document change without a version of JSON-RPC.
    let invalid = json!({"method": "textDocument/didChange", "params": {}});
    let (_, _, log) = run_example("asking_server", &[initialize(None), invalid.clone(), invalid]);
    let start = "a message of the editor is not valid JSON-RPC, a document change in it is lost: ";
    assert!(log.starts_with(start) && log.lines().count() == 1, "{log}");
    assert!(log.contains("`jsonrpc`"), "{log}");

    let line = report(change("file:///a", json!("a")));
    assert!(line.contains("file:///a is closed until the editor opens it again"), "{line}");
    // Texts of the editor are neither long nor do they reach a terminal.
    let text = "\n\u{1b}".repeat(1 << 16);
    let line = report(change(&text, json!(text)));
    assert!(line.len() < 1000 && !line.contains('\u{1b}'), "{line}");
}

/// The editor runs in another container, so its process is not visible.
#[cfg(unix)]
#[test]
fn a_server_does_not_end_for_a_process_that_it_has_never_seen() {
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    for process in [gone.id(), 0] {
        let shutdown = json!({"jsonrpc": "2.0", "id": 1, "method": "shutdown"});
        let messages = [initialize(Some(process)), shutdown];
        let (code, output, log) = run_example("hover_server", &messages);
        assert_eq!(code, Some(0), "{output}");
        let warning = format!("the process {process} of the editor (`processId`) is not visible");
        assert!(log.starts_with(&warning) && log.lines().count() == 1, "{log}");
    }
}

#[cfg(unix)]
#[test]
fn a_server_ends_with_the_process_of_its_editor() {
    let mut editor = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut server = Command::new(example("hover_server"));
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let text = initialize(Some(editor.id())).to_string();
    write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    let mut response = BufReader::new(server.stdout.take().unwrap());
    let mut header = String::new();
    response.read_line(&mut header).unwrap();
    assert!(header.starts_with("Content-Length: "), "{header}");
    assert_eq!(server.try_wait().unwrap(), None);
    drop(editor.stdin.take());
    // On Linux, the server notices the end although nobody has read the status of the editor.
    if !cfg!(target_os = "linux") {
        editor.wait().unwrap();
    }
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(server.wait().unwrap()));
    let status = told.recv_timeout(Duration::from_secs(60)).expect("the server ends");
    assert_eq!(status.code(), Some(1));
    editor.wait().unwrap();
    // The server has ended although its stdin is open.
    drop(input);
}
