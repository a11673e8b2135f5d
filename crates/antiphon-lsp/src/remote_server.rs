//! The handle of a language server, for an editor.

use antiphon::{Call, CallError, Client, Peer};
use serde::Serialize;

use crate::types::{Notification, Request};

/// A typed handle of a language server: one method for each request and notification that an editor sends.
/// Cheap to clone.
///
/// The connection closes when the last clone is dropped. [`ServerSession`](crate::ServerSession) adds the
/// handshake and the shutdown.
///
/// A handle made from a [`Peer`] does not keep the connection open. The handlers of a
/// [`LanguageClient`](crate::LanguageClient) use such a handle: `RemoteServer::from(cx.peer()?)`, or the one that
/// [`SessionBuilder::start_with`](crate::SessionBuilder::start_with) passes to the client.
///
/// ```
/// use antiphon::CallError;
/// use antiphon_lsp::RemoteServer;
/// use antiphon_lsp::types::{HoverParams, Position, TextDocumentIdentifier, TextDocumentPositionParams};
///
/// async fn hover(server: &RemoteServer, uri: &str) -> Result<(), CallError> {
///     let document = TextDocumentIdentifier { uri: uri.into() };
///     let at = TextDocumentPositionParams::new(document, Position::new(3, 7));
///     let hover = server.hover(HoverParams::new(Default::default(), at)).await?;
///     println!("{hover:?}");
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct RemoteServer {
    client: Client,
}

impl RemoteServer {
    /// Creates the handle of the server at the other end of a connection.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the connection to the server, for methods that are not part of the protocol.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Calls a typed request. Implement [`Request`] for your own methods.
    pub fn request<R: Request>(&self, params: R::Params) -> Call<R::Result> {
        self.call(R::METHOD.as_str(), params)
    }

    /// Sends a typed notification. Implement [`Notification`] for your own methods.
    pub async fn notification<N: Notification>(&self, params: N::Params) -> Result<(), CallError> {
        self.notify(N::METHOD.as_str(), params).await
    }

    /// Returns the server as a peer; `None` if the server cannot send notifications to this client, as over HTTP.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.client.peer()
    }

    pub(crate) fn call<R>(&self, method: &str, params: impl Serialize) -> Call<R> {
        self.client.call(method, params)
    }

    pub(crate) async fn notify(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<(), CallError> {
        self.client.notify(method, params).await
    }
}

/// Does not keep the connection open.
impl From<Peer> for RemoteServer {
    fn from(peer: Peer) -> Self {
        Self::new(Client::from(peer))
    }
}

/// Does not keep the connection open.
impl From<&Peer> for RemoteServer {
    fn from(peer: &Peer) -> Self {
        Self::new(Client::from(peer))
    }
}
