//! Messages of an editor that a server cannot handle: params that cannot be decoded, and the wrong kind of message.

use antiphon::{Context, ErrorObject};
use antiphon_lsp::documents::Documents;
use antiphon_lsp::types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, Hover,
    HoverParams, InitializeParams, InitializeResult, MarkupContent, MarkupKind,
};
use antiphon_lsp::{LanguageServer, error};
use serde_json::{Value, json};

use crate::raw_editor::RawEditor;

const URI: &str = "file:///a.txt";

/// A server that shows the text of a document in a hover.
#[derive(Default)]
struct Backend {
    documents: Documents,
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
        self.documents.open(&params).unwrap();
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams, _: Context) {
        let _ = self.documents.change(&params);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams, _: Context) {
        let _ = self.documents.close(&params);
    }

    async fn hover(&self, params: HoverParams, _: Context) -> Result<Option<Hover>, ErrorObject> {
        let uri = params.text_document_position_params.text_document.uri;
        let document = self.documents.get(&uri).ok_or_else(|| error::request_failed("not open"))?;
        let text = MarkupContent::new(MarkupKind::PlainText, document.as_str().to_owned());
        Ok(Some(Hover { contents: text.into(), range: None }))
    }
}

/// An editor with a document that is open.
async fn with_document() -> RawEditor {
    let mut editor = RawEditor::start(json!({}), |_| Backend::default()).await;
    open(&mut editor).await;
    editor
}

async fn open(editor: &mut RawEditor) {
    let document = json!({"uri": URI, "languageId": "plaintext", "version": 1, "text": "text"});
    editor.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
}

/// The text that the server shows, or the message of its error.
async fn text(editor: &mut RawEditor) -> Value {
    let at = json!({"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}});
    editor.request(7, "textDocument/hover", at).await;
    let mut response = editor.response(7).await;
    match response.pointer_mut("/result/contents/value") {
        Some(text) => text.take(),
        None => response["error"]["message"].take(),
    }
}

fn changes(changes: &Value) -> Value {
    json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": changes})
}

#[tokio::test]
async fn a_change_that_cannot_be_decoded_closes_its_document() {
    let over = 9_007_199_254_740_991_u64;
    let range = |end: Value| json!({"start": {"line": 0, "character": 0}, "end": end});
    for wrong in [
        json!([{"range": range(json!({"line": 0, "character": over})), "text": "wrong"}]),
        json!([{"range": range(json!({"line": 0, "character": -1})), "text": "wrong"}]),
        json!([{"range": range(json!(null)), "text": "wrong"}]),
        json!([{"text": "wrong"}, {"range": 1, "text": "wrong"}]),
        json!([{"text": 1}]),
        json!("wrong"),
    ] {
        let mut editor = with_document().await;
        assert_eq!(text(&mut editor).await, "text");
        editor.notify("textDocument/didChange", changes(&wrong)).await;
        assert_eq!(text(&mut editor).await, "not open", "{wrong}");
        open(&mut editor).await;
        assert_eq!(text(&mut editor).await, "text");
    }
}

#[tokio::test]
async fn a_document_that_cannot_be_opened_again_is_closed() {
    let mut editor = with_document().await;
    let document = json!({"uri": URI, "languageId": "plaintext", "version": "1", "text": "new"});
    editor.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
    assert_eq!(text(&mut editor).await, "not open");
}

#[tokio::test]
async fn a_null_range_is_the_whole_document() {
    let mut editor = with_document().await;
    let whole = json!([{"range": null, "text": "whole"}]);
    editor.notify("textDocument/didChange", changes(&whole)).await;
    assert_eq!(text(&mut editor).await, "whole");
}

#[tokio::test]
async fn a_message_of_the_wrong_kind_reaches_no_method() {
    let mut editor = RawEditor::connect(|_| Backend::default()).await;
    // Not a request, so the server is not initialized.
    editor.notify("initialize", json!({"capabilities": {}})).await;
    editor.request(1, "shutdown", json!(null)).await;
    assert_eq!(editor.response(1).await["error"]["code"], -32002);
    let mut editor = editor.initialized(json!({})).await;
    open(&mut editor).await;
    for (id, method) in ["exit", "textDocument/didClose", "initialized"].iter().enumerate() {
        let id = 10 + id as u32;
        editor.request(id, method, json!({"textDocument": {"uri": URI}})).await;
        assert_eq!(editor.response(id).await["error"]["code"], -32601, "{method}");
    }
    editor.notify("shutdown", json!(null)).await;
    assert_eq!(text(&mut editor).await, "text");
}
