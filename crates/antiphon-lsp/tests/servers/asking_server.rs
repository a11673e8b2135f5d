//! A server for tests with real editors: it asks its editor while it handles notifications, sends a result in
//! parts, and has commands that never end.

use std::process::ExitCode;

use antiphon::{Context, ErrorObject};
use antiphon_lsp::documents::Documents;
use antiphon_lsp::types::{
    ConfigurationParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, ExecuteCommandParams, Hover, HoverParams, InitializeParams,
    InitializeResult, Location, LspAny, MarkupContent, MarkupKind, Range, ReferenceParams,
    ServerCapabilities,
};
use antiphon_lsp::{Editor, LanguageServer, error};

struct Asking {
    editor: Editor,
    documents: Documents,
}

impl Asking {
    async fn ask(&self) {
        let answer = self.editor.configuration(ConfigurationParams { items: vec![] }).await;
        let _ = answer.inspect_err(|error| eprintln!("the editor does not answer: {error}"));
    }
}

impl LanguageServer for Asking {
    async fn initialize(
        &self,
        params: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        let capabilities = ServerCapabilities {
            hover_provider: Some(true.into()),
            references_provider: Some(true.into()),
            ..self.documents.capabilities(&params)
        };
        Ok(InitializeResult { capabilities, ..Default::default() })
    }

    /// Opens the document after the editor has answered.
    async fn did_open(&self, params: DidOpenTextDocumentParams, _: Context) {
        self.ask().await;
        let _ = self.documents.open(&params).inspect_err(|error| eprintln!("{error}"));
    }

    /// Applies each thousandth change after the editor has answered.
    async fn did_change(&self, params: DidChangeTextDocumentParams, _: Context) {
        if params.text_document.version % 1000 == 0 {
            self.ask().await;
        }
        let _ = self.documents.change(&params).inspect_err(|error| eprintln!("{error}"));
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams, _: Context) {
        let _ = self.documents.close(&params);
    }

    /// The whole document.
    async fn hover(&self, params: HoverParams, _: Context) -> Result<Option<Hover>, ErrorObject> {
        let at = params.text_document_position_params;
        let document = self.documents.get(&at.text_document.uri);
        let document = document.ok_or_else(|| error::request_failed("the document is not open"))?;
        let text = MarkupContent::new(MarkupKind::PlainText, document.as_str().to_owned());
        Ok(Some(Hover { contents: text.into(), range: None }))
    }

    /// Each line that has text: a part and a report for each.
    async fn references(
        &self,
        params: ReferenceParams,
        _: Context,
    ) -> Result<Option<Vec<Location>>, ErrorObject> {
        let uri = &params.text_document_position_params.text_document.uri;
        let document = self.documents.get(uri);
        let document = document.ok_or_else(|| error::request_failed("the document is not open"))?;
        let mut progress = self.editor.progress(&params, "Searching").await?;
        let mut results = self.editor.partial_results(&params);
        let mut start = 0;
        for line in document.as_str().split_inclusive('\n') {
            let range: Range = document.range(start..start + line.trim_end().len());
            start += line.len();
            results.send(vec![Location::new(uri.clone(), range)]).await?;
            progress.report(line.trim_end(), None).await?;
        }
        results.finish()
    }

    /// Never ends: `hang` as a request, any other command as a task.
    async fn execute_command(
        &self,
        params: ExecuteCommandParams,
        cx: Context,
    ) -> Result<Option<LspAny>, ErrorObject> {
        if params.command == "hang" {
            std::future::pending::<()>().await;
        }
        cx.spawn(std::future::pending())?;
        Ok(None)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    antiphon_lsp::serve_stdio(|editor| Asking { editor, documents: Documents::new() }).await
}
