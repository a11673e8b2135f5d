//! The editor, as a server sees it.

use antiphon::{Call, CallError, Peer};
use serde::Serialize;

use crate::types::{LogMessageParams, MessageType, Notification, Request, ShowMessageParams};

/// A typed handle of the editor: one method for each request and notification that a server sends. Cheap to
/// clone.
///
/// A request is a [`Call`]: it is sent when it is awaited, and has a timeout, a progress stream and the other
/// options of a call. A notification returns when it is queued.
///
/// ```
/// use antiphon::CallError;
/// use antiphon_lsp::Editor;
/// use antiphon_lsp::types::{ConfigurationItem, ConfigurationParams, MessageType};
///
/// async fn read_settings(editor: &Editor) -> Result<(), CallError> {
///     let item = ConfigurationItem { section: Some("toml".into()), ..Default::default() };
///     let settings = editor.configuration(ConfigurationParams { items: vec![item] }).await?;
///     editor.log(MessageType::Info, format!("settings: {settings:?}")).await
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Editor {
    peer: Peer,
}

impl Editor {
    /// Creates the handle of the editor at the other end of a connection.
    pub fn new(peer: Peer) -> Self {
        Self { peer }
    }

    /// The connection to the editor, for methods that are not part of the protocol.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Writes a line to the log that the editor shows for this server.
    pub async fn log(
        &self,
        kind: MessageType,
        message: impl Into<String>,
    ) -> Result<(), CallError> {
        self.log_message(LogMessageParams { kind, message: message.into() }).await
    }

    /// Shows a message to the user.
    pub async fn show(
        &self,
        kind: MessageType,
        message: impl Into<String>,
    ) -> Result<(), CallError> {
        self.show_message(ShowMessageParams { kind, message: message.into() }).await
    }

    /// Calls a typed request, also one of your own that implements [`Request`].
    pub fn request<R: Request>(&self, params: R::Params) -> Call<R::Result> {
        self.call(R::METHOD.as_str(), params)
    }

    /// Sends a typed notification, also one of your own that implements [`Notification`].
    pub async fn notification<N: Notification>(&self, params: N::Params) -> Result<(), CallError> {
        self.notify(N::METHOD.as_str(), params).await
    }

    pub(crate) fn call<R>(&self, method: &str, params: impl Serialize) -> Call<R> {
        self.peer.call(method, params)
    }

    pub(crate) async fn notify(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<(), CallError> {
        self.peer.notify(method, params).await
    }
}
