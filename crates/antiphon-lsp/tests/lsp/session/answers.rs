//! The answers of a session to requests of the server.

use antiphon::{CallError, Context, ErrorObject};
use antiphon_lsp::types::{
    ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, ConfigurationParams, LspAny,
    ShowMessageRequestParams,
};
use antiphon_lsp::{Editor, LanguageClient, ServerSession};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::{Bare, Silent, code};

/// Starts a session, and returns the handle that its server has.
async fn start(client: impl LanguageClient) -> (ServerSession, Editor) {
    let (tell, told) = oneshot::channel();
    let make = move |editor| {
        tell.send(editor).unwrap();
        Bare
    };
    let settings = ServerSession::builder().root("/tmp/project").unwrap();
    let session = settings.in_process(make, client).await.unwrap();
    (session, told.await.unwrap())
}

async fn ask(editor: &Editor, method: &str, params: Value) -> Result<Value, CallError> {
    editor.peer().call(method, params).await
}

#[cfg(unix)]
#[tokio::test]
async fn a_client_that_implements_nothing_has_answers() {
    let (_session, editor) = start(Silent).await;
    let items = json!({"items": [{"section": "a"}, {}]});
    let edit = json!({"edit": {"changes": {}}});
    let refused = json!({"applied": false, "failureReason": "this client applies no edits"});
    let folders = json!([{"uri": "file:///tmp/project", "name": "project"}]);
    let question = json!({"type": 1, "message": "?", "actions": [{"title": "yes"}]});
    for (method, params, expected) in [
        ("workspace/configuration", items, json!([null, null])),
        ("workspace/applyEdit", edit, refused),
        ("workspace/workspaceFolders", json!(null), folders),
        ("window/showDocument", json!({"uri": "a"}), json!({"success": false})),
        ("window/showMessageRequest", question, json!(null)),
        ("window/workDoneProgress/create", json!({"token": 1}), json!(null)),
        ("client/registerCapability", json!({"registrations": []}), json!(null)),
        ("client/unregisterCapability", json!({"unregisterations": []}), json!(null)),
        ("workspace/codeLens/refresh", json!(null), json!(null)),
        ("workspace/diagnostic/refresh", json!(null), json!(null)),
        ("workspace/semanticTokens/refresh", json!(null), json!(null)),
        ("workspace/textDocumentContent/refresh", json!({"uri": "a"}), json!(null)),
    ] {
        assert_eq!(ask(&editor, method, params).await.unwrap(), expected, "{method}");
    }
    for unknown in ["own/method", "workspace/own/refresh"] {
        assert_eq!(code(ask(&editor, unknown, json!(null)).await), -32601, "{unknown}");
    }
    // Bad params stay an error.
    assert_eq!(code(ask(&editor, "workspace/configuration", json!({"items": 1})).await), -32602);
}

/// Implements a few requests, and fails one.
struct Own;

impl LanguageClient for Own {
    async fn configuration(
        &self,
        params: ConfigurationParams,
        _: Context,
    ) -> Result<Vec<LspAny>, ErrorObject> {
        Ok(vec![json!("own"); params.items.len()])
    }

    async fn apply_edit(
        &self,
        _: ApplyWorkspaceEditParams,
        _: Context,
    ) -> Result<ApplyWorkspaceEditResult, ErrorObject> {
        Err(ErrorObject::new(-32803, "read only"))
    }

    async fn show_message_request(
        &self,
        params: ShowMessageRequestParams,
        _: Context,
    ) -> Result<Option<antiphon_lsp::types::MessageActionItem>, ErrorObject> {
        Ok(params.actions.and_then(|actions| actions.into_iter().next()))
    }
}

#[tokio::test]
async fn the_answers_of_a_client_win() {
    let (_session, editor) = start(Own).await;
    let items = json!({"items": [{}]});
    assert_eq!(ask(&editor, "workspace/configuration", items).await.unwrap(), json!(["own"]));
    let edit = json!({"edit": {"changes": {}}});
    assert_eq!(code(ask(&editor, "workspace/applyEdit", edit).await), -32803);
    let question = json!({"type": 1, "message": "?", "actions": [{"title": "yes"}]});
    let chosen = ask(&editor, "window/showMessageRequest", question).await.unwrap();
    assert_eq!(chosen, json!({"title": "yes"}));
    assert_eq!(ask(&editor, "workspace/codeLens/refresh", json!(null)).await.unwrap(), json!(null));
}
