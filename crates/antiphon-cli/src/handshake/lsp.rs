//! The lifecycle of LSP: `initialize`, `initialized` and `didOpen` at the start, `shutdown` and `exit` at the
//! end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use antiphon::{CallError, Client, Code, Endpoint, Invocation, Params, RawJson};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::document::{TextDocument, file_uri, folder};
use super::params;
use crate::exit::CommandError;

/// The time limit of `shutdown`. If the server does not respond, the connection is closed
/// without `exit`.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The params of `initialize`.
pub(super) fn initialize_params(
    root: &Path,
    endpoint: &Endpoint,
    options: Option<&RawJson>,
) -> Result<Params, CommandError> {
    // `processId` must be the process that started the server, because the server exits when that process ends. So it
    // is sent only to a child process.
    let is_child = matches!(endpoint, Endpoint::Exec { .. });
    let initialize = Initialize {
        process_id: is_child.then(std::process::id),
        client_info: super::client_info(),
        root_uri: file_uri(root)?,
        workspace_folders: json!([folder(root)?]),
        capabilities: capabilities(),
        initialization_options: options,
    };
    params("initialize", &initialize)
}

/// The params as a struct, so the text of the user's options is sent unchanged.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialize<'a> {
    process_id: Option<u32>,
    client_info: Value,
    root_uri: String,
    workspace_folders: Value,
    capabilities: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    initialization_options: Option<&'a RawJson>,
}

/// The capabilities of this client. It only prints results, so it accepts the richest form of each.
fn capabilities() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "textDocument": {
            "hover": { "contentFormat": ["markdown", "plaintext"] },
            "signatureHelp": { "signatureInformation": { "documentationFormat": ["markdown", "plaintext"] } },
            "completion": { "completionItem": { "documentationFormat": ["markdown", "plaintext"] } },
            "definition": { "linkSupport": true },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [
                "", "quickfix", "refactor", "refactor.extract", "refactor.inline", "refactor.rewrite",
                "source", "source.organizeImports", "source.fixAll"
            ] } } },
            "rename": { "prepareSupport": true },
            "publishDiagnostics": { "relatedInformation": true, "versionSupport": true },
            "synchronization": {}
        },
        "window": { "workDoneProgress": true },
        "workspace": { "configuration": true, "workspaceFolders": true, "symbol": {} }
    })
}

/// Explains an error of `initialize`.
pub(super) fn refused(error: CallError) -> CommandError {
    let is_unknown =
        matches!(&error, CallError::Rpc(error) if error.code == Code::METHOD_NOT_FOUND);
    let failure = CommandError::from(error);
    if is_unknown { failure.hint("is it a language server?") } else { failure }
}

pub(super) async fn send_initialized(client: &Client) -> Result<(), CallError> {
    let params = Params::parse("{}").ok();
    client.caller().post(Invocation::new("initialized", params)).await
}

/// Sends `shutdown` and `exit`. Ignores failures.
pub(super) async fn shut_down(client: &Client) {
    let shutdown = client.caller().send(Invocation::new("shutdown", None));
    if let Ok(Ok(_)) = timeout(SHUTDOWN_TIMEOUT, shutdown).await {
        let exit = client.caller().post(Invocation::new("exit", None));
        let _ = timeout(SHUTDOWN_TIMEOUT, exit).await;
    }
}

/// The documents that are open on a connection.
#[derive(Debug, Default)]
pub(crate) struct OpenDocuments {
    /// The version and the text by URI.
    open: BTreeMap<String, (u64, String)>,
}

impl OpenDocuments {
    /// Opens a document, or sends its new text if it is open. Returns its identifier.
    pub(crate) async fn open(
        &mut self,
        client: &Client,
        document: &TextDocument,
    ) -> Result<Value, CommandError> {
        let TextDocument { uri, language, text } = document;
        let version = match self.open.get(uri) {
            Some((version, old)) if old == text => {
                return Ok(json!({ "uri": uri, "version": version }));
            }
            Some((version, _)) => version + 1,
            None => 1,
        };
        let identifier = json!({ "uri": uri, "version": version });
        let (method, sent) = if version == 1 {
            let item = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
            ("textDocument/didOpen", json!({ "textDocument": item }))
        } else {
            let changes = json!([{ "text": text }]);
            let changed = json!({ "textDocument": identifier, "contentChanges": changes });
            ("textDocument/didChange", changed)
        };
        client.caller().post(Invocation::new(method, Some(params(method, &sent)?))).await?;
        self.open.insert(uri.clone(), (version, text.clone()));
        Ok(identifier)
    }
}
