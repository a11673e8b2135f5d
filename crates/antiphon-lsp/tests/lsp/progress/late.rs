//! Progress and parts of a result after the response: nothing is sent.

use std::sync::Arc;

use antiphon::{Context, ErrorObject};
use antiphon_lsp::types::{InitializeParams, InitializeResult, Location, ReferenceParams};
use antiphon_lsp::{Editor, LanguageServer};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::raw_editor::{RawEditor, within};

/// A server with a task that uses the tokens of a request after its response.
struct Backend {
    editor: Editor,
    /// The response has arrived.
    answered: Arc<Notify>,
    finished: mpsc::UnboundedSender<()>,
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
        let mut early = self.editor.partial_results(&params);
        let (editor, answered) = (self.editor.clone(), self.answered.clone());
        let finished = self.finished.clone();
        tokio::spawn(async move {
            answered.notified().await;
            early.send(vec![]).await.unwrap();
            let mut late = editor.partial_results(&params);
            late.send(vec![]).await.unwrap();
            let mut progress = editor.progress(&params, "Too late").await.unwrap();
            assert!(!progress.is_shown());
            progress.percentage(7).await.unwrap();
            progress.end("never shown").await.unwrap();
            finished.send(()).unwrap();
        });
        Ok(None)
    }
}

#[tokio::test]
async fn nothing_with_the_tokens_of_a_request_follows_its_response() {
    let (finished, mut events) = mpsc::unbounded_channel();
    let answered: Arc<Notify> = Arc::default();
    let response = answered.clone();
    let make =
        move |editor| Backend { editor, answered: answered.clone(), finished: finished.clone() };
    let mut editor = RawEditor::start(json!({}), make).await;
    let params = json!({"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 0},
        "context": {"includeDeclaration": true}, "workDoneToken": 1, "partialResultToken": 2});
    editor.request(1, "textDocument/references", params).await;
    assert_eq!(editor.response(1).await["result"], Value::Null);
    response.notify_one();
    within(events.recv()).await.unwrap();
    // The next message is the next response.
    editor.request(2, "shutdown", json!(null)).await;
    assert_eq!(editor.response(2).await["result"], Value::Null);
}
