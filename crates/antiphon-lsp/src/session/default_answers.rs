//! The answers of a session to requests of the server that the application does not implement.
//!
//! They are truthful: nobody looks at this session, so it applies no edit and shows no dialog. The bare contract
//! [`LanguageClient`](crate::LanguageClient) answers -32601 instead. The binary gives the same answers, as rules that a
//! user can replace.

use antiphon::{Invocation, Outcome, RawJson};
use serde::Serialize;
use serde_json::json;

use crate::types::{ConfigurationParams, WorkspaceFolders};

/// Returns the answer of a session that has these folders; `None` if a request of this name has no answer.
pub(super) fn answer(request: &Invocation, folders: Option<&WorkspaceFolders>) -> Option<Outcome> {
    match request.method.as_str() {
        "client/registerCapability"
        | "client/unregisterCapability"
        | "window/showMessageRequest"
        | "window/workDoneProgress/create" => encode(()),
        "window/showDocument" => encode(json!({ "success": false })),
        "workspace/applyEdit" => {
            encode(json!({ "applied": false, "failureReason": "this client applies no edits" }))
        }
        "workspace/configuration" => {
            let params = request.params.as_ref()?.as_json().decode::<ConfigurationParams>().ok()?;
            encode(vec![(); params.items.len()])
        }
        "workspace/workspaceFolders" => encode(folders),
        method if method.starts_with("workspace/") && method.ends_with("/refresh") => encode(()),
        _ => None,
    }
}

fn encode(value: impl Serialize) -> Option<Outcome> {
    RawJson::encode(&value).ok().map(Ok)
}
