//! The server of `docs/coming-from-tower-lsp.md` as tower-lsp has it; the page shows it from here on.

use std::collections::HashMap;

use tokio::sync::Mutex;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::lsp_types::*;
use tower_lsp::{Client, LanguageServer, LspService, Server};

struct Backend {
    client: Client,
    texts: Mutex<HashMap<Url, String>>,
}

impl Backend {
    async fn status(&self) -> Result<usize> {
        Ok(self.texts.lock().await.len())
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        let capabilities = ServerCapabilities {
            text_document_sync: Some(TextDocumentSyncKind::FULL.into()),
            hover_provider: Some(true.into()),
            ..Default::default()
        };
        Ok(InitializeResult { capabilities, ..Default::default() })
    }

    async fn initialized(&self, _: InitializedParams) {
        let settings = self.client.configuration(vec![ConfigurationItem::default()]).await;
        self.client.log_message(MessageType::INFO, format!("settings: {settings:?}")).await;
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        self.texts.lock().await.insert(document.uri, document.text);
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        for change in params.content_changes {
            self.texts.lock().await.insert(params.text_document.uri.clone(), change.text);
        }
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let uri = params.text_document_position_params.text_document.uri;
        let texts = self.texts.lock().await;
        let text = texts.get(&uri).ok_or_else(|| Error::invalid_params("not open"))?;
        let words = format!("{} words", text.split_whitespace().count());
        Ok(Some(Hover {
            contents: HoverContents::Scalar(MarkedString::String(words)),
            range: None,
        }))
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() {
    let (service, socket) = LspService::build(|client| Backend { client, texts: Mutex::default() })
        .custom_method("words/status", Backend::status)
        .finish();
    Server::new(tokio::io::stdin(), tokio::io::stdout(), socket).serve(service).await;
}
