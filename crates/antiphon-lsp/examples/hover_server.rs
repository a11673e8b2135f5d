//! The smallest language server: it answers `textDocument/hover`.

use std::process::ExitCode;

use antiphon::{Context, ErrorObject};
use antiphon_lsp::types::{
    Hover, HoverParams, InitializeParams, InitializeResult, MarkupContent, MarkupKind, MessageType,
    ServerCapabilities,
};
use antiphon_lsp::{Editor, LanguageServer};

struct Hello {
    editor: Editor,
}

impl LanguageServer for Hello {
    async fn initialize(
        &self,
        _: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        let capabilities =
            ServerCapabilities { hover_provider: Some(true.into()), ..Default::default() };
        Ok(InitializeResult { capabilities, ..Default::default() })
    }

    async fn hover(&self, params: HoverParams, _: Context) -> Result<Option<Hover>, ErrorObject> {
        let at = params.text_document_position_params.position;
        self.editor.log(MessageType::Info, format!("hover in line {}", at.line)).await?;
        let text =
            MarkupContent::new(MarkupKind::PlainText, format!("hello from line {}", at.line));
        Ok(Some(Hover { contents: text.into(), range: None }))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    antiphon_lsp::serve_stdio(|editor| Hello { editor }).await
}
