//! What the server calls: the session looks at it first, then the application's [`LanguageClient`].

use std::sync::Arc;

use antiphon::{BoxFuture, Context, Handler, Invocation, Outcome, Router};

use crate::LanguageClient;
use crate::generated::language_client;

/// The handler of the connection of a session.
pub(super) struct SessionHandler {
    client: Router,
}

impl SessionHandler {
    pub(super) fn new(client: impl LanguageClient) -> Self {
        Self { client: language_client::router(&Arc::new(client)) }
    }
}

impl Handler for SessionHandler {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        self.client.call(call, cx)
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        self.client.notify(notification, cx)
    }
}
