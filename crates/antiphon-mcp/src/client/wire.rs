//! The interface between the client and its transports.
//!
//! A wire sends one request and returns its response. Notifications and requests of the server go to the inbox. A wire
//! knows nothing about revisions, except for what its transport must tell the server.

use antiphon::{BoxFuture, RawJson};

use super::error::McpError;
use crate::types::Revision;

/// One request.
pub(super) struct WireCall {
    /// The id, unique on this client.
    pub(super) id: u64,
    /// The method.
    pub(super) method: String,
    /// The params, an Object.
    pub(super) params: RawJson,
    /// What HTTP repeats in headers.
    pub(super) headers: RoutingHeaders,
}

/// What HTTP repeats in headers (2026-07-28, Streamable HTTP, "Request Metadata").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RoutingHeaders {
    /// `Mcp-Name`: the tool, prompt, resource or task.
    pub(super) name: Option<String>,
    /// `mcp-param-*`: names and values.
    pub(super) params: Vec<(String, String)>,
}

/// A transport to one server.
pub(super) trait Wire: Send + Sync + 'static {
    /// Sends a request. Dropping the future cancels it at the server.
    fn request(&self, call: WireCall) -> BoxFuture<'_, Result<RawJson, McpError>>;

    /// Sends a notification.
    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: Option<RawJson>,
    ) -> BoxFuture<'a, Result<(), McpError>>;

    /// Sets the revision of the next requests; `None` before the handshake.
    fn speak(&self, revision: Option<Revision>);

    /// The handshake of a legacy revision is complete. Completes when messages of the server can arrive.
    fn initialized(&self) -> BoxFuture<'_, ()>;

    /// Whether a lost connection can be opened again.
    fn can_reopen(&self) -> bool {
        false
    }

    /// Opens a lost connection again. Until it is [`ready`](Self::ready), it carries only the handshake.
    fn reopen(&self) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The handshake of any revision is complete.
    fn ready(&self) {}

    /// Completes when the connection is lost, and may be opened again.
    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Whether requests have HTTP headers.
    fn has_headers(&self) -> bool;

    /// Completes when the connection is closed for good, by this side or because it cannot be opened again.
    fn closed(&self) -> BoxFuture<'_, ()>;

    /// Closes the connection and waits until it is closed.
    fn close(&self) -> BoxFuture<'_, ()>;
}
