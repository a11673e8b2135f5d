//! The default responses of a session to requests that the application does not implement.
//!
//! They are truthful: a session has no user interface, so it applies no edits and shows no dialogs. Without a session,
//! [`LanguageClient`](crate::LanguageClient) returns -32601. The binary has the same responses. There they are rules,
//! and a user can replace them.

use antiphon::{Invocation, Outcome, RawJson};
use serde::Serialize;
use serde_json::json;

use crate::types::{ConfigurationParams, WorkspaceFolders};

/// Returns the default response of a session with these folders; `None` if the method has none.
pub(super) fn answer(request: &Invocation, folders: Option<&WorkspaceFolders>) -> Option<Outcome> {
    match request.method.as_str() {
        "client/registerCapability"
        | "client/unregisterCapability"
        | "window/showMessageRequest"
        | "window/workDoneProgress/create"
        | "workspace/codeLens/refresh"
        | "workspace/diagnostic/refresh"
        | "workspace/foldingRange/refresh"
        | "workspace/inlayHint/refresh"
        | "workspace/inlineValue/refresh"
        | "workspace/semanticTokens/refresh"
        | "workspace/textDocumentContent/refresh" => encode(()),
        "window/showDocument" => encode(json!({ "success": false })),
        "workspace/applyEdit" => {
            encode(json!({ "applied": false, "failureReason": "this client applies no edits" }))
        }
        "workspace/configuration" => {
            let params = request.params.as_ref()?.as_json().decode::<ConfigurationParams>().ok()?;
            encode(vec![(); params.items.len()])
        }
        "workspace/workspaceFolders" => encode(folders),
        _ => None,
    }
}

fn encode(value: impl Serialize) -> Option<Outcome> {
    RawJson::encode(&value).ok().map(Ok)
}
