//! Results in parts, as a server sends them and as they arrive.

use antiphon::{Context, ErrorObject};
use antiphon_lsp::types::{
    DefinitionParams, DefinitionPartialResponse, DefinitionResponse, DocumentDiagnosticParams,
    DocumentDiagnosticReport, InitializeParams, InitializeResult, Location, Range, ReferenceParams,
    WorkspaceDiagnosticParams, WorkspaceDiagnosticReport,
};
use antiphon_lsp::{Editor, LanguageServer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::raw_editor::RawEditor;

/// A server that sends each result in parts.
struct Backend {
    editor: Editor,
}

fn parsed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn location(uri: &str) -> Location {
    Location { uri: uri.into(), range: Range::default() }
}

fn report(uri: &str) -> Value {
    json!({"uri": uri, "version": 1, "kind": "full", "items": []})
}

fn full(message: &str) -> Value {
    let start = json!({"line": 0, "character": 0});
    let item = json!({"range": {"start": start, "end": start}, "message": message});
    json!({"kind": "full", "items": [item]})
}

impl LanguageServer for Backend {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn references(
        &self,
        params: ReferenceParams,
        _: Context,
    ) -> Result<Option<Vec<Location>>, ErrorObject> {
        let mut results = self.editor.partial_results(&params);
        if params.text_document_position_params.position.line == 0 {
            results.send(vec![location("a"), location("b")]).await?;
            results.send(vec![]).await?;
            results.send(vec![location("c")]).await?;
        }
        results.finish()
    }

    async fn goto_definition(
        &self,
        params: DefinitionParams,
        _: Context,
    ) -> Result<Option<DefinitionResponse>, ErrorObject> {
        let mut results = self.editor.partial_results(&params);
        results.send(parsed::<DefinitionPartialResponse>(json!([location("a")]))).await?;
        let range = Range::default();
        let link = json!({"targetUri": "b", "targetRange": range, "targetSelectionRange": range});
        results.send(parsed::<DefinitionPartialResponse>(json!([link]))).await?;
        results.finish()
    }

    async fn diagnostic(
        &self,
        params: DocumentDiagnosticParams,
        _: Context,
    ) -> Result<DocumentDiagnosticReport, ErrorObject> {
        let mut results = self.editor.partial_results(&params);
        results.send(parsed(full("here"))).await?;
        for uri in ["a", "b"] {
            results.send(parsed(json!({"relatedDocuments": {uri: full(uri)}}))).await?;
        }
        results.finish()
    }

    async fn workspace_diagnostic(
        &self,
        params: WorkspaceDiagnosticParams,
        _: Context,
    ) -> Result<WorkspaceDiagnosticReport, ErrorObject> {
        let mut results = self.editor.partial_results(&params);
        for uri in ["a", "b"] {
            results.send(parsed(json!({"items": [report(uri)]}))).await?;
        }
        results.finish()
    }
}

/// Sends a request with a token, which gets these parts and this response, and then one without a token,
/// which gets `all`.
async fn check(method: &str, params: Value, parts: &[Value], empty: Value, all: Value) {
    let mut editor = RawEditor::start(json!({}), |editor| Backend { editor }).await;
    let mut streaming = params.clone();
    streaming["partialResultToken"] = json!("parts");
    editor.request(1, method, streaming).await;
    for part in parts {
        let message = editor.expect("$/progress").await;
        assert_eq!(message["params"], json!({"token": "parts", "value": part}));
    }
    assert_eq!(editor.response(1).await["result"], empty);
    editor.request(2, method, params).await;
    assert_eq!(editor.response(2).await["result"], all);
}

fn references(line: u32) -> Value {
    json!({"textDocument": {"uri": "a"}, "position": {"line": line, "character": 0},
        "context": {"includeDeclaration": true}})
}

#[tokio::test]
async fn the_parts_of_an_array_precede_an_empty_response() {
    let parts = [json!([location("a"), location("b")]), json!([]), json!([location("c")])];
    let all = json!([location("a"), location("b"), location("c")]);
    check("textDocument/references", references(0), &parts, Value::Null, all).await;
}

#[tokio::test]
async fn no_parts_are_an_empty_response_too() {
    check("textDocument/references", references(1), &[], Value::Null, Value::Null).await;
}

#[tokio::test]
async fn the_items_of_objects_are_collected() {
    let parts = ["a", "b"].map(|uri| json!({"items": [report(uri)]}));
    let all = json!({"items": [report("a"), report("b")]});
    let params = json!({"previousResultIds": []});
    check("workspace/diagnostic", params, &parts, json!({"items": []}), all).await;
}

#[tokio::test]
async fn related_documents_follow_the_report_of_a_document() {
    let related = |uri: &str| json!({"relatedDocuments": {uri: full(uri)}});
    let parts = [full("here"), related("a"), related("b")];
    let mut all = full("here");
    all["relatedDocuments"] = json!({"a": full("a"), "b": full("b")});
    let empty = json!({"kind": "full", "items": []});
    let params = json!({"textDocument": {"uri": "x"}});
    check("textDocument/diagnostic", params, &parts, empty, all).await;
}

#[tokio::test]
async fn parts_of_two_kinds_make_no_result() {
    let mut editor = RawEditor::start(json!({}), |editor| Backend { editor }).await;
    editor.request(1, "textDocument/definition", references(0)).await;
    assert_eq!(editor.response(1).await["error"]["code"], -32603);
}
