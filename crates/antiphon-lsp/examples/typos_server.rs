//! A language server that finds misspelled words: it marks them, explains them and corrects them.
//!
//! An editor starts it with `--stdio`, `--pipe=PATH` or `--socket=PORT`. In Neovim:
//! `:lua vim.lsp.start_client({ name = "typos", cmd = { "target/debug/examples/typos_server" } })`

use std::collections::HashMap;
use std::process::ExitCode;

use antiphon::{Context, ErrorObject};
use antiphon_lsp::documents::{Document, DocumentError, Documents};
use antiphon_lsp::types::*;
use antiphon_lsp::{Channel, Editor, InvalidChannel, LanguageServer, error};

const TYPOS: [(&str, &str); 4] =
    [("adress", "address"), ("recieve", "receive"), ("teh", "the"), ("untill", "until")];
const FIX_ALL: &str = "typos.fixAll";

type Reply<T> = Result<Option<T>, ErrorObject>;

struct Typos {
    editor: Editor,
    documents: Documents,
}

impl LanguageServer for Typos {
    async fn initialize(
        &self,
        params: InitializeParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorObject> {
        let commands = vec![FIX_ALL.to_owned()];
        let fix_all = ExecuteCommandOptions { commands, ..Default::default() };
        let capabilities = ServerCapabilities {
            hover_provider: Some(true.into()),
            completion_provider: Some(CompletionOptions::default()),
            code_action_provider: Some(true.into()),
            execute_command_provider: Some(fix_all),
            ..self.documents.capabilities(&params)
        };
        Ok(InitializeResult { capabilities, ..Default::default() })
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams, _: Context) {
        self.publish(self.documents.open(&params)).await;
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams, _: Context) {
        self.publish(self.documents.change(&params)).await;
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams, _: Context) {
        let _ = self.documents.close(&params);
        let nothing = PublishDiagnosticsParams::new(params.text_document.uri, None, vec![]);
        let _ = self.editor.publish_diagnostics(nothing).await;
    }

    async fn hover(&self, params: HoverParams, _: Context) -> Reply<Hover> {
        let at = params.text_document_position_params;
        let Some(document) = self.documents.get(&at.text_document.uri) else { return Ok(None) };
        let place = |typo: &TextEdit| typo.range.start..=typo.range.end;
        let typo = corrections(&document).find(|typo| place(typo).contains(&at.position));
        let text = |it: &TextEdit| MarkupContent::new(MarkupKind::PlainText, advice(it)).into();
        Ok(typo.map(|typo| Hover { contents: text(&typo), range: Some(typo.range) }))
    }

    async fn completion(&self, params: CompletionParams, _: Context) -> Reply<CompletionResponse> {
        let at = params.text_document_position_params;
        let Some(document) = self.documents.get(&at.text_document.uri) else { return Ok(None) };
        let before = &document.as_str()[..document.offset(at.position)];
        let prefix = before.rsplit(|char: char| !char.is_alphabetic()).next().unwrap_or_default();
        let words = TYPOS.iter().map(|&(_, right)| right).filter(|word| word.starts_with(prefix));
        let items = words.map(|word| CompletionItem { label: word.into(), ..Default::default() });
        Ok(Some(items.collect::<Vec<_>>().into()))
    }

    async fn code_action(
        &self,
        params: CodeActionParams,
        _: Context,
    ) -> Reply<Vec<CodeActionResponse>> {
        let Some(document) = self.documents.get(&params.text_document.uri) else { return Ok(None) };
        let Range { start, end } = params.range;
        let marked = |typo: &TextEdit| typo.range.start <= end && start <= typo.range.end;
        let actions = corrections(&document).filter(marked).map(|typo| CodeAction {
            title: advice(&typo),
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: Some(vec![diagnostic(&typo)]),
            edit: Some(edit(&document, [typo])),
            ..Default::default()
        });
        Ok(Some(actions.map(Into::into).collect()))
    }

    /// Corrects all open documents.
    async fn execute_command(&self, params: ExecuteCommandParams, _: Context) -> Reply<LspAny> {
        let FIX_ALL = &*params.command else {
            return Err(error::request_failed(format!("unknown command `{}`", params.command)));
        };
        let mut progress = self.editor.create_progress("Correcting").await?;
        for document in self.documents.all() {
            progress.report(&*document.uri().0, None).await?;
            let edit = edit(&document, corrections(&document));
            self.editor.apply_edit(ApplyWorkspaceEditParams { edit, ..Default::default() }).await?;
        }
        Ok(None)
    }
}

impl Typos {
    async fn publish(&self, document: Result<Document, DocumentError>) {
        // Editors show the server's stderr in their log.
        let Ok(document) = document.inspect_err(|error| eprintln!("{error}")) else { return };
        let diagnostics = corrections(&document).map(|typo| diagnostic(&typo)).collect();
        let (uri, version) = (document.uri().clone(), Some(document.version()));
        let params = PublishDiagnosticsParams { uri, version, diagnostics };
        let _ = self.editor.publish_diagnostics(params).await;
    }
}

/// Finds the misspelled words of a document.
fn corrections(document: &Document) -> impl Iterator<Item = TextEdit> {
    let mut next = 0;
    document.as_str().split_inclusive(|char: char| !char.is_alphabetic()).filter_map(move |piece| {
        let word = piece.trim_end_matches(|char: char| !char.is_alphabetic());
        let place = next..next + word.len();
        next += piece.len();
        let (_, right) = TYPOS.iter().find(|(wrong, _)| *wrong == word)?;
        Some(TextEdit::new(document.range(place), right.to_string()))
    })
}

fn advice(typo: &TextEdit) -> String {
    format!("Write `{}`", typo.new_text)
}

fn diagnostic(typo: &TextEdit) -> Diagnostic {
    Diagnostic { range: typo.range, message: advice(typo).into(), ..Default::default() }
}

fn edit(document: &Document, typos: impl IntoIterator<Item = TextEdit>) -> WorkspaceEdit {
    let changes = HashMap::from([(document.uri().clone(), typos.into_iter().collect())]);
    WorkspaceEdit { changes: Some(changes), ..Default::default() }
}

#[tokio::main]
async fn main() -> Result<ExitCode, InvalidChannel> {
    let channel = Channel::from_args(std::env::args())?;
    Ok(channel.serve(|editor| Typos { editor, documents: Documents::new() }).await)
}
