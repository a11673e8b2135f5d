//! Clients whose handlers call the server.

use antiphon::{Context, ErrorObject};
use antiphon_lsp::types::{
    ConfigurationParams, Contents, Hover, HoverParams, InitializeParams, InitializeResult,
    Location, LogMessageParams, LspAny, MarkupContent, MarkupKind, MessageType, Range,
    ReferenceParams, ShowMessageParams,
};
use antiphon_lsp::{Editor, LanguageClient, LanguageServer, RemoteServer, ServerSession};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::sync::mpsc;

use super::hover_at;
use crate::raw_editor::within;

struct Backend(Editor);

impl LanguageServer for Backend {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult::default())
    }

    async fn hover(&self, params: HoverParams, _: Context) -> Result<Option<Hover>, ErrorObject> {
        let line = params.text_document_position_params.position.line;
        let text = MarkupContent::new(MarkupKind::PlainText, format!("line {line}"));
        Ok(Some(Hover { contents: text.into(), range: None }))
    }

    async fn references(
        &self,
        params: ReferenceParams,
        _: Context,
    ) -> Result<Option<Vec<Location>>, ErrorObject> {
        let mut results = self.0.partial_results(&params);
        for uri in ["a", "b"] {
            results.send(vec![Location { uri: uri.into(), range: Range::default() }]).await?;
        }
        results.finish()
    }
}

/// Calls the server in each handler.
struct Calling {
    server: RemoteServer,
    hovers: mpsc::UnboundedSender<String>,
}

impl Calling {
    async fn hover(&self, server: &RemoteServer, line: u32) {
        let hover = server.hover(hover_at(line)).await.unwrap().unwrap();
        let Contents::MarkupContent(text) = hover.contents else { panic!("{hover:?}") };
        self.hovers.send(text.value).unwrap();
    }
}

impl LanguageClient for Calling {
    /// Returns the URIs of the parts of a result.
    async fn configuration(
        &self,
        _: ConfigurationParams,
        _: Context,
    ) -> Result<Vec<LspAny>, ErrorObject> {
        let params = json!({"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 0},
            "context": {"includeDeclaration": true}});
        let params: ReferenceParams = serde_json::from_value(params).unwrap();
        let parts: Vec<_> = self.server.partial_results(params).collect().await;
        Ok(parts.into_iter().map(|part| json!(part.unwrap()[0].uri)).collect())
    }

    async fn log_message(&self, _: LogMessageParams, _: Context) {
        self.hover(&self.server, 1).await;
    }

    async fn show_message(&self, _: ShowMessageParams, cx: Context) {
        self.hover(&RemoteServer::from(cx.peer().unwrap()), 2).await;
    }
}

#[tokio::test]
async fn handlers_call_the_server() {
    let (tell, mut editors) = mpsc::unbounded_channel();
    let make = move |editor: Editor| {
        tell.send(editor.clone()).unwrap();
        Backend(editor)
    };
    let (hovers, mut seen) = mpsc::unbounded_channel();
    let session = ServerSession::builder();
    let session = session.in_process_with(make, |server| Calling { server, hovers });
    let session = within(session).await.unwrap();
    let editor = editors.recv().await.unwrap();
    let items = ConfigurationParams { items: vec![] };
    let parts = within(editor.configuration(items).into_future()).await.unwrap();
    assert_eq!(parts, [json!("a"), json!("b")]);
    editor.log(MessageType::Info, "").await.unwrap();
    editor.show(MessageType::Info, "").await.unwrap();
    assert_eq!(within(seen.recv()).await.as_deref(), Some("line 1"));
    assert_eq!(within(seen.recv()).await.as_deref(), Some("line 2"));
    // The client's handle does not keep the connection open.
    drop(session);
    within(editor.peer().closed()).await;
}
