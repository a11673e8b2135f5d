//! The handler for calls of the server. It passes them to the application's [`LanguageClient`], and stores diagnostics
//! and progress for the session.

use std::sync::Arc;

use antiphon::{BoxFuture, Code, Context, Handler, Invocation, Outcome, Router};

use super::{Received, default_answers};
use crate::LanguageClient;
use crate::generated::language_client;
use crate::types::WorkspaceFolders;

/// The handler of the connection of a session.
pub(super) struct SessionHandler {
    client: Router,
    folders: Option<WorkspaceFolders>,
    received: Received,
}

impl SessionHandler {
    pub(super) fn new(
        client: impl LanguageClient,
        folders: Option<WorkspaceFolders>,
        received: Received,
    ) -> Self {
        Self { client: language_client::router(&Arc::new(client)), folders, received }
    }
}

impl Handler for SessionHandler {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        let default = default_answers::answer(&call, self.folders.as_ref());
        let Some(default) = default else { return self.client.call(call, cx) };
        // Registers the token before the application responds, because the server may send reports without waiting.
        let is_create = call.method.as_str() == "window/workDoneProgress/create";
        let created = is_create.then(|| self.received.progress.create(call.params.as_ref()));
        let created = match created.transpose() {
            Ok(created) => created.flatten(),
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (answer, running) = (self.client.call(call, cx), self.received.progress.clone());
        Box::pin(async move {
            match answer.await {
                Err(error) if error.code == Code::METHOD_NOT_FOUND => default,
                Err(error) => {
                    created.iter().for_each(|token| running.forget(token));
                    Err(error)
                }
                outcome => outcome,
            }
        })
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        let params = notification.params.as_ref();
        match notification.method.as_str() {
            "textDocument/publishDiagnostics" => self.received.diagnostics.publish(params),
            "$/progress" => self.received.progress.report(params),
            _ => {}
        }
        self.client.notify(notification, cx)
    }
}
