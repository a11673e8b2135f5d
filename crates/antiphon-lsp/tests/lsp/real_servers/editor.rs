//! An editor without a screen, and its session with a server of another project.

use std::path::Path;
use std::time::Duration;

use antiphon::{Context, Endpoint, ErrorObject};
use antiphon_lsp::types::{
    ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, CompletionParams, CompletionResponse,
    ConfigurationParams, Contents, DidChangeTextDocumentParams, DidOpenTextDocumentParams,
    HoverParams, LspAny, ProgressParams, PublishDiagnosticsParams, RegistrationParams,
    TextDocumentPositionParams, Uri, WorkDoneProgressCreateParams,
};
use antiphon_lsp::{LanguageClient, RemoteServer, ServerSession, file_uri};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::raw_editor::within;
use crate::scratch::Scratch;

/// The limit of each wait.
const LIMIT: Duration = Duration::from_secs(60);

/// What a server has sent: the method and the params.
type Seen = (&'static str, Value);

/// Answers every request as an editor does, and passes on what was asked.
struct Headless(mpsc::UnboundedSender<Seen>);

impl Headless {
    fn seen(&self, method: &'static str, params: impl serde::Serialize) {
        // Nobody looks any more at the end of a test.
        let _ = self.0.send((method, serde_json::to_value(params).unwrap()));
    }
}

impl LanguageClient for Headless {
    async fn publish_diagnostics(&self, params: PublishDiagnosticsParams, _: Context) {
        self.seen("textDocument/publishDiagnostics", params);
    }

    async fn progress(&self, params: ProgressParams, _: Context) {
        self.seen("$/progress", params);
    }

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
        Self { folder, session, arriving, arrived: Vec::new() }
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

    pub(super) fn uri(&self, name: &str) -> Uri {
        file_uri(self.folder.path(name)).unwrap()
    }

    /// Opens a document that need not be a file.
    pub(super) async fn open(&self, name: &str, language: &str, text: &str) {
        let document =
            json!({"uri": self.uri(name), "languageId": language, "version": 1, "text": text});
        let params: DidOpenTextDocumentParams = parsed(json!({"textDocument": document}));
        self.server().did_open(params).await.unwrap();
    }

    /// Replaces the characters `from..to` of a line.
    pub(super) async fn edit(
        &self,
        name: &str,
        version: i32,
        (line, from, to): (u32, u32, u32),
        text: &str,
    ) {
        let at = |character| json!({"line": line, "character": character});
        let change = json!({"range": {"start": at(from), "end": at(to)}, "text": text});
        let params: DidChangeTextDocumentParams = parsed(json!({
            "textDocument": {"uri": self.uri(name), "version": version},
            "contentChanges": [change]
        }));
        self.server().did_change(params).await.unwrap();
    }

    /// The text of the hover at a place.
    pub(super) async fn hover(&self, name: &str, line: u32, character: u32) -> String {
        let params = HoverParams::new(Default::default(), self.at(name, line, character));
        let hover = within(self.server().hover(params).into_future()).await.unwrap();
        match hover.unwrap_or_else(|| panic!("no hover at {name}:{line}:{character}")).contents {
            Contents::MarkupContent(markup) => markup.value,
            other => panic!("{other:?}"),
        }
    }

    /// The labels of the completions at a place.
    pub(super) async fn completions(&self, name: &str, line: u32, character: u32) -> Vec<String> {
        let (done, partial) = Default::default();
        let params = CompletionParams::new(None, done, partial, self.at(name, line, character));
        let completions = within(self.server().completion(params).into_future()).await.unwrap();
        let items = match completions {
            Some(CompletionResponse::CompletionItemList(items)) => items,
            Some(CompletionResponse::CompletionList(list)) => list.items,
            None => Vec::new(),
        };
        items.into_iter().map(|item| item.label).collect()
    }

    /// A place in a document.
    fn at(&self, name: &str, line: u32, character: u32) -> TextDocumentPositionParams {
        let position = json!({"line": line, "character": character});
        parsed(json!({"textDocument": {"uri": self.uri(name)}, "position": position}))
    }

    /// Waits for a message of this name that fulfils the condition. It may have arrived before.
    pub(super) async fn seen(&mut self, method: &str, condition: impl Fn(&Value) -> bool) -> Value {
        loop {
            let wanted = |seen: &Seen| seen.0 == method && condition(&seen.1);
            if let Some(index) = self.arrived.iter().position(wanted) {
                return self.arrived.remove(index).1;
            }
            let next = timeout(LIMIT, self.arriving.recv()).await.ok().flatten();
            self.arrived.push(next.unwrap_or_else(|| panic!("no {method}: {:?}", self.arrived)));
        }
    }

    /// Waits for diagnostics of this document that fulfil the condition. Returns the messages.
    pub(super) async fn diagnostics(
        &mut self,
        name: &str,
        condition: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let uri = self.uri(name).0;
        let published = self.seen("textDocument/publishDiagnostics", |params| {
            params["uri"] == *uri && condition(&messages(params))
        });
        messages(&published.await)
    }

    /// Ends the server, which exits with 0.
    pub(super) async fn shutdown(self) {
        self.session.shutdown().await.unwrap();
    }
}

fn messages(published: &Value) -> Vec<String> {
    let diagnostics = published["diagnostics"].as_array().unwrap();
    diagnostics.iter().map(|it| it["message"].as_str().unwrap().to_owned()).collect()
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
            "publishDiagnostics": {"versionSupport": true},
        },
        "window": {"workDoneProgress": true},
    }))
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}
