//! The order of messages, and the errors of requests that it affects.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::transport::memory;
use antiphon::{Connection, Context, Dialect, ErrorObject, Limits, Server};
use antiphon_lsp::documents::Documents;
use antiphon_lsp::types::{
    ConfigurationParams, DidChangeTextDocumentParams, DidOpenTextDocumentParams, Hover,
    HoverParams, InitializeParams, InitializeResult, InitializedParams, MarkupContent, MarkupKind,
    MessageType,
};
use antiphon_lsp::{Editor, LanguageServer, LanguageService};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use crate::raw_editor::{RawEditor, within};

const URI: &str = "file:///a.txt";

/// A server that shows the text of a document in a hover, and asks for the configuration in `didOpen`, and
/// in each thousandth `didChange`.
struct Backend {
    editor: Editor,
    documents: Documents,
    /// The versions of all changes, in the order in which they were applied.
    versions: Arc<Mutex<Vec<i32>>>,
    /// Where the lines 1 and 2 wait for each other.
    meeting: Barrier,
    /// A hover in line 3 has started.
    entered: Arc<Notify>,
    /// The document has changed.
    changed: Notify,
}

impl Backend {
    fn new(editor: Editor) -> Self {
        Self {
            editor,
            documents: Documents::new(),
            versions: Arc::default(),
            meeting: Barrier::new(2),
            entered: Arc::default(),
            changed: Notify::new(),
        }
    }

    async fn ask_editor(&self) {
        self.editor.configuration(ConfigurationParams { items: vec![] }).await.unwrap();
    }
}

impl LanguageServer for Backend {
    async fn initialize(
        &self,
        params: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        let capabilities = self.documents.capabilities(&params);
        Ok(InitializeResult { capabilities, ..Default::default() })
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams, _: Context) {
        self.ask_editor().await;
        self.documents.open(&params).unwrap();
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams, _: Context) {
        if params.text_document.version % 1000 == 0 {
            self.ask_editor().await;
        }
        let document = self.documents.change(&params).unwrap();
        self.versions.lock().unwrap().push(document.version());
        self.changed.notify_one();
    }

    async fn hover(&self, params: HoverParams, _: Context) -> Result<Option<Hover>, ErrorObject> {
        let at = params.text_document_position_params;
        let Some(document) = self.documents.get(&at.text_document.uri) else { return Ok(None) };
        match at.position.line {
            0 => {}
            1 | 2 => {
                self.meeting.wait().await;
            }
            3 => {
                self.entered.notify_one();
                self.changed.notified().await;
            }
            _ => std::future::pending().await,
        }
        self.documents.ensure_current(&document)?;
        let text = MarkupContent::new(MarkupKind::PlainText, document.as_str().to_owned());
        Ok(Some(Hover { contents: text.into(), range: None }))
    }
}

fn document(version: i32) -> Value {
    json!({"uri": URI, "version": version, "languageId": "plaintext", "text": "start\n"})
}

/// Inserts the version as a line in front of everything.
fn change(version: i32) -> Value {
    let start = json!({"line": 0, "character": 0});
    let change = json!({"range": {"start": start, "end": start}, "text": format!("{version}\n")});
    json!({"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]})
}

fn hover(line: u32) -> Value {
    json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": 0}})
}

/// An editor with one open document.
async fn with_document() -> RawEditor {
    let mut editor = RawEditor::start(json!({}), Backend::new).await;
    editor.notify("textDocument/didOpen", json!({ "textDocument": document(1) })).await;
    let question = editor.expect("workspace/configuration").await;
    editor.answer(&question, json!([])).await;
    editor
}

#[tokio::test]
async fn two_thousand_changes_behind_a_waiting_handler_lose_nothing() {
    let versions: Arc<Mutex<Vec<i32>>> = Arc::default();
    let applied = versions.clone();
    let make = move |editor| Backend { versions: applied.clone(), ..Backend::new(editor) };
    let mut editor = RawEditor::start(json!({}), make).await;
    editor.notify("textDocument/didOpen", json!({ "textDocument": document(1) })).await;
    let first = editor.expect("workspace/configuration").await;
    for version in 2..=2001 {
        editor.notify("textDocument/didChange", change(version)).await;
    }
    editor.request(1, "textDocument/hover", hover(0)).await;
    editor.request(2, "textDocument/hover", hover(0)).await;
    editor.notify("$/cancelRequest", json!({"id": 2})).await;
    // Everything before the cancellation has arrived, and waits.
    assert_eq!(editor.response(2).await["error"]["code"], -32800);
    assert!(versions.lock().unwrap().is_empty());
    editor.answer(&first, json!([])).await;
    let second = editor.expect("workspace/configuration").await;
    assert!(versions.lock().unwrap().iter().copied().eq(2..1000));
    editor.answer(&second, json!([])).await;
    let third = editor.expect("workspace/configuration").await;
    editor.answer(&third, json!([])).await;
    let response = editor.response(1).await;
    let lines = (2..=2001).rev().map(|version| format!("{version}\n"));
    assert_eq!(response["result"]["contents"]["value"], lines.collect::<String>() + "start\n");
    assert!(versions.lock().unwrap().iter().copied().eq(2..=2001));
}

#[tokio::test]
async fn requests_run_concurrently() {
    let mut editor = with_document().await;
    editor.request(1, "textDocument/hover", hover(1)).await;
    editor.request(2, "textDocument/hover", hover(2)).await;
    let mut ids = [editor.next().await, editor.next().await].map(|message| message["id"].as_u64());
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2)]);
}

#[tokio::test]
async fn a_cancellation_overtakes_the_messages_that_wait() {
    let mut editor = RawEditor::start(json!({}), Backend::new).await;
    editor.notify("textDocument/didOpen", json!({ "textDocument": document(1) })).await;
    let question = editor.expect("workspace/configuration").await;
    editor.notify("textDocument/didChange", change(2)).await;
    editor.request(1, "textDocument/hover", hover(0)).await;
    editor.request(2, "textDocument/hover", hover(0)).await;
    editor.notify("$/cancelRequest", json!({"id": 1})).await;
    // The handler of `didOpen` still waits.
    assert_eq!(editor.response(1).await["error"]["code"], -32800);
    editor.answer(&question, json!([])).await;
    let response = editor.response(2).await;
    assert_eq!(response["result"]["contents"]["value"], "2\nstart\n");
}

#[tokio::test]
async fn a_running_request_is_cancelled() {
    let mut editor = with_document().await;
    editor.request(1, "textDocument/hover", hover(9)).await;
    editor.notify("$/cancelRequest", json!({"id": 1})).await;
    assert_eq!(editor.response(1).await["error"]["code"], -32800);
}

#[tokio::test]
async fn a_result_about_an_old_text_is_refused() {
    let entered: Arc<Notify> = Arc::default();
    let signal = entered.clone();
    let make = move |editor| Backend { entered: signal.clone(), ..Backend::new(editor) };
    let mut editor = RawEditor::start(json!({}), make).await;
    editor.notify("textDocument/didOpen", json!({ "textDocument": document(1) })).await;
    let question = editor.expect("workspace/configuration").await;
    editor.answer(&question, json!([])).await;
    editor.request(1, "textDocument/hover", hover(3)).await;
    within(entered.notified()).await;
    editor.notify("textDocument/didChange", change(2)).await;
    let error = &editor.response(1).await["error"];
    assert_eq!(error["code"], -32801, "{error}");
    editor.request(2, "textDocument/hover", hover(0)).await;
    assert_eq!(editor.response(2).await["result"]["contents"]["value"], "2\nstart\n");
}

#[tokio::test]
async fn null_params_are_absent_and_unknown_names_have_their_answers() {
    let mut editor = with_document().await;
    editor.request(1, "$/unknown", json!(null)).await;
    assert_eq!(editor.response(1).await["error"]["code"], -32601);
    editor.notify("$/unknown", json!(null)).await;
    editor.notify("$/unknown", json!({"any": [1]})).await;
    editor.request(2, "textDocument/hover", json!(null)).await;
    assert_eq!(editor.response(2).await["error"]["code"], -32602);
    editor.request(3, "shutdown", json!(null)).await;
    assert_eq!(editor.response(3).await["result"], json!(null));
}

/// Writes 1,000 lines to the log of the editor.
struct Talking {
    editor: Editor,
}

impl LanguageServer for Talking {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn initialized(&self, _: InitializedParams, _: Context) {
        for line in 0..1000 {
            self.editor.log(MessageType::Info, line.to_string()).await.unwrap();
        }
    }
}

/// A debugger stops the editor, or the user suspends it. The clock is paused.
#[tokio::test(start_paused = true)]
async fn a_suspended_editor_keeps_its_server() {
    let (ours, mut editor) = memory::pair();
    // A queue that is soon full, so that the server waits for the editor.
    let limits = Limits { write_queue_bytes: 1, ..Dialect::lsp().limits() };
    let server = Server::from_transport(ours, Connection::new("pair")).dialect(Dialect::lsp());
    let make = |_: &Connection, peer| LanguageService::for_peer(peer, |editor| Talking { editor });
    tokio::spawn(server.limits(limits).serve_with(make));
    let initialize =
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}"#;
    editor.send(initialize.into()).await.unwrap();
    editor.next().await.unwrap().unwrap();
    let initialized = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
    editor.send(initialized.into()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    for line in 0..1000 {
        let message = editor.next().await.unwrap().unwrap();
        let message: Value = serde_json::from_slice(&message).unwrap();
        assert_eq!(message["params"]["message"], line.to_string());
    }
}
