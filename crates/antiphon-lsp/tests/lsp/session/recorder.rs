//! A server that keeps the documents of its client, and tells a test which notifications arrive.

use antiphon::{Context, ErrorObject};
use antiphon_lsp::documents::Documents;
use antiphon_lsp::types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, InitializeParams, InitializeResult, PublishDiagnosticsParams,
    ServerCapabilities,
};
use antiphon_lsp::{Editor, LanguageServer, ServerSession, SessionBuilder};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::raw_editor::within;
use crate::support::Silent;

pub(super) struct Recorder {
    editor: Editor,
    documents: Documents,
    sync: Value,
    told: mpsc::UnboundedSender<(&'static str, Value)>,
}

/// What a server with this `textDocumentSync` has heard.
pub(super) struct Told(mpsc::UnboundedReceiver<(&'static str, Value)>);

impl Told {
    /// The params of the next notification, which has this name.
    pub(super) async fn next(&mut self, name: &str) -> Value {
        let (told, params) = within(self.0.recv()).await.unwrap();
        assert_eq!(told, name, "{params}");
        params
    }

    /// Fails if there is another notification. All have arrived when a session has shut down.
    pub(super) fn nothing_else(&mut self) {
        assert!(self.0.try_recv().is_err());
    }
}

/// Starts a session with a server that wants to be told this.
pub(super) async fn start(settings: SessionBuilder, sync: Value) -> (ServerSession, Told) {
    let (told, heard) = mpsc::unbounded_channel();
    let make = move |editor| {
        let documents = Documents::new();
        Recorder { editor, documents, sync, told }
    };
    (settings.in_process(make, Silent).await.unwrap(), Told(heard))
}

impl Recorder {
    fn tell(&self, name: &'static str, params: impl Serialize) {
        self.told.send((name, json!(params))).unwrap();
    }
}

impl LanguageServer for Recorder {
    async fn initialize(
        &self,
        params: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        let text_document_sync = serde_json::from_value(self.sync.clone()).unwrap();
        let own = self.documents.capabilities(&params);
        let capabilities = ServerCapabilities { text_document_sync, ..own };
        Ok(InitializeResult { capabilities, ..Default::default() })
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams, _: Context) {
        self.documents.open(&params).unwrap();
        self.tell("didOpen", params);
    }

    /// Tells the text that the server has then.
    async fn did_change(&self, params: DidChangeTextDocumentParams, _: Context) {
        let document = self.documents.change(&params).unwrap();
        let text = document.as_str();
        self.tell("didChange", json!({"params": params, "text": text}));
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams, _: Context) {
        self.documents.save(&params).unwrap();
        self.tell("didSave", params);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams, _: Context) {
        self.documents.close(&params).unwrap();
        self.tell("didClose", params);
    }

    /// Publishes diagnostics that a test sends with this notification.
    async fn did_change_configuration(
        &self,
        params: antiphon_lsp::types::DidChangeConfigurationParams,
        _: Context,
    ) {
        let all: Vec<PublishDiagnosticsParams> = serde_json::from_value(params.settings).unwrap();
        for diagnostics in all {
            self.editor.publish_diagnostics(diagnostics).await.unwrap();
        }
    }
}
