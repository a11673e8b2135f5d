//! What the server calls: the application's [`LanguageClient`] handles it, and the session keeps what it needs.

use std::sync::Arc;

use antiphon::{BoxFuture, Code, Context, Handler, Invocation, Outcome, Router};

use super::default_answers;
use super::diagnostics::Published;
use crate::LanguageClient;
use crate::generated::language_client;
use crate::types::WorkspaceFolders;

/// The handler of the connection of a session.
pub(super) struct SessionHandler {
    client: Router,
    folders: Option<WorkspaceFolders>,
    diagnostics: Arc<Published>,
}

impl SessionHandler {
    pub(super) fn new(
        client: impl LanguageClient,
        folders: Option<WorkspaceFolders>,
        diagnostics: Arc<Published>,
    ) -> Self {
        Self { client: language_client::router(&Arc::new(client)), folders, diagnostics }
    }
}

impl Handler for SessionHandler {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        let default = default_answers::answer(&call, self.folders.as_ref());
        let answer = self.client.call(call, cx);
        let Some(default) = default else { return answer };
        Box::pin(async move {
            match answer.await {
                Err(error) if error.code == Code::METHOD_NOT_FOUND => default,
                outcome => outcome,
            }
        })
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        if notification.method.as_str() == "textDocument/publishDiagnostics" {
            self.diagnostics.publish(notification.params.as_ref());
        }
        self.client.notify(notification, cx)
    }
}
