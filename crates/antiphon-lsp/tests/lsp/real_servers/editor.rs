//! An editor without a screen, and its session with a server of another project.

use std::path::Path;
use std::time::Duration;

use antiphon::{Context, Endpoint, ErrorObject};
use antiphon_lsp::types::{
    ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, CompletionParams, CompletionResponse,
    ConfigurationParams, Contents, Diagnostic, HoverParams, LspAny, Message, Position, Range,
    RegistrationParams, TextDocumentPositionParams, WorkDoneProgressCreateParams,
};
use antiphon_lsp::{
    LanguageClient, OpenDocument, RemoteServer, ServerProgressStream, ServerSession, file_uri,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::raw_editor::within;
use crate::scratch::Scratch;

/// The limit of each wait.
const LIMIT: Duration = Duration::from_secs(60);

/// What a server has sent: the method and the params.
type Seen = (&'static str, Value);

/// Answers what a server asks its editor, and passes it on. Diagnostics and progress are streams of the session.
struct Headless(mpsc::UnboundedSender<Seen>);

impl Headless {
    fn seen(&self, method: &'static str, params: impl serde::Serialize) {
        // Nobody looks any more at the end of a test.
        let _ = self.0.send((method, serde_json::to_value(params).unwrap()));
    }
}

impl LanguageClient for Headless {
    async fn work_done_progress_create(
        &self,
        params: WorkDoneProgressCreateParams,
        _: Context,
    ) -> Result<(), ErrorObject> {
        self.seen("window/workDoneProgress/create", params);
        Ok(())
    }

    async fn register_capability(
        &self,
        params: RegistrationParams,
        _: Context,
    ) -> Result<(), ErrorObject> {
        self.seen("client/registerCapability", params);
        Ok(())
    }

    async fn configuration(
        &self,
        params: ConfigurationParams,
        _: Context,
    ) -> Result<Vec<LspAny>, ErrorObject> {
        let answers = vec![LspAny::Null; params.items.len()];
        self.seen("workspace/configuration", params);
        Ok(answers)
    }

    async fn apply_edit(
        &self,
        params: ApplyWorkspaceEditParams,
        _: Context,
    ) -> Result<ApplyWorkspaceEditResult, ErrorObject> {
        self.seen("workspace/applyEdit", params);
        Ok(ApplyWorkspaceEditResult { applied: true, ..Default::default() })
    }

    async fn semantic_tokens_refresh(&self, _: Context) -> Result<(), ErrorObject> {
        self.seen("workspace/semanticTokens/refresh", ());
        Ok(())
    }
}

/// A session with a server, in a project folder of its own.
pub(super) struct Project {
    folder: Scratch,
    session: ServerSession,
    progress: ServerProgressStream,
    arriving: mpsc::UnboundedReceiver<Seen>,
    /// What has arrived and was not asked for yet.
    arrived: Vec<Seen>,
}

impl Project {
    /// Starts the server with these files in the folder of the project. `FOLDER` in a file is its path.
    pub(super) async fn start(command: &[&str], options: LspAny, files: &[(&str, &str)]) -> Self {
        let folder = Scratch::new();
        for (name, text) in files {
            let text = text.replace("FOLDER", &folder.folder().display().to_string());
            std::fs::write(folder.path(name), text).unwrap();
        }
        let (seen, arriving) = mpsc::unbounded_channel();
        let command = command.iter().map(|&word| word.to_owned()).collect();
        let session = ServerSession::builder()
            .client_info("antiphon-lsp tests", None)
            .root(folder.folder())
            .unwrap()
            .initialization_options(options)
            .capabilities(capabilities())
            // The machine may be busy with other tests.
            .shutdown_timeout(LIMIT)
            .start(Endpoint::Exec { command, framing: None }, Headless(seen))
            .await
            .unwrap_or_else(|error| panic!("{}: run interop/setup", antiphon::ErrorChain(&error)));
        let progress = session.progress();
        Self { folder, session, progress, arriving, arrived: Vec::new() }
    }

    pub(super) fn session(&self) -> &ServerSession {
        &self.session
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.folder()
    }

    pub(super) fn server(&self) -> &RemoteServer {
        self.session.server()
    }

    /// Opens a document that need not be a file.
    pub(super) async fn open(&self, name: &str, language: &str, text: &str) -> OpenDocument {
        let uri = file_uri(self.folder.path(name)).unwrap();
        self.session.open(uri, language.to_owned(), text).await.unwrap()
    }

    /// The text of the hover at a line and a character.
    pub(super) async fn hover(&self, document: &OpenDocument, at: (u32, u32)) -> String {
        let params = HoverParams::new(Default::default(), place(document, at));
        let hover = within(self.server().hover(params).into_future()).await.unwrap();
        match hover.unwrap_or_else(|| panic!("no hover at {at:?}")).contents {
            Contents::MarkupContent(markup) => markup.value,
            other => panic!("{other:?}"),
        }
    }

    /// The labels of the completions at a line and a character.
    pub(super) async fn completions(&self, document: &OpenDocument, at: (u32, u32)) -> Vec<String> {
        let (done, partial) = Default::default();
        let params = CompletionParams::new(None, done, partial, place(document, at));
        let completions = within(self.server().completion(params).into_future()).await.unwrap();
        let items = match completions {
            Some(CompletionResponse::CompletionItemList(items)) => items,
            Some(CompletionResponse::CompletionList(list)) => list.items,
            None => Vec::new(),
        };
        items.into_iter().map(|item| item.label).collect()
    }

    /// Waits for a request of this name. It may have arrived before.
    pub(super) async fn asked(&mut self, method: &str) -> Value {
        loop {
            if let Some(index) = self.arrived.iter().position(|seen| seen.0 == method) {
                return self.arrived.remove(index).1;
            }
            let next = timeout(LIMIT, self.arriving.recv()).await.ok().flatten();
            self.arrived.push(next.unwrap_or_else(|| panic!("no {method}: {:?}", self.arrived)));
        }
    }

    /// Waits for diagnostics of this document whose messages fulfil the condition.
    pub(super) async fn diagnostics(
        &self,
        document: &OpenDocument,
        condition: impl Fn(&[String]) -> bool,
    ) -> Vec<Diagnostic> {
        let mut all = self.session.diagnostics();
        let mut last = None;
        while let Ok(Some(published)) = timeout(LIMIT, all.next()).await {
            if document.has_uri(&published.uri) && condition(&messages(&published.diagnostics)) {
                return published.diagnostics;
            }
            last = Some(published);
        }
        panic!("no such diagnostics, the last ones are {last:?}")
    }

    /// Waits until the server has created progress and ended it. Returns the token.
    pub(super) async fn progress(&mut self) -> Value {
        let progress = within(self.progress.next()).await;
        let mut progress = progress.unwrap();
        let token = serde_json::to_value(progress.token()).unwrap();
        while let Some(state) = within(progress.next()).await {
            if state.ended {
                return token;
            }
        }
        panic!("the progress has no end")
    }

    /// Ends the server, which exits with 0.
    pub(super) async fn shutdown(self) {
        self.session.shutdown().await.unwrap();
    }
}

/// What diagnostics say.
pub(super) fn messages(diagnostics: &[Diagnostic]) -> Vec<String> {
    let message = |it: &Diagnostic| match &it.message {
        Message::String(text) => text.clone(),
        Message::MarkupContent(markup) => markup.value.clone(),
    };
    diagnostics.iter().map(message).collect()
}

fn place(document: &OpenDocument, (line, character): (u32, u32)) -> TextDocumentPositionParams {
    document.at(Position::new(line, character))
}

/// The characters `from..to` of a line.
pub(super) fn range(line: u32, from: u32, to: u32) -> Range {
    Range::new(Position::new(line, from), Position::new(line, to))
}

/// The capabilities that make servers ask their editor.
fn capabilities() -> antiphon_lsp::types::ClientCapabilities {
    parsed(json!({
        "workspace": {
            "applyEdit": true,
            "configuration": true,
            "workspaceFolders": true,
            "didChangeConfiguration": {"dynamicRegistration": true},
            "didChangeWatchedFiles": {"dynamicRegistration": true, "relativePatternSupport": true},
            "semanticTokens": {"refreshSupport": true},
        },
        "textDocument": {
            "hover": {"contentFormat": ["plaintext"]},
            "completion": {"completionItem": {"snippetSupport": false}},
        },
    }))
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}
