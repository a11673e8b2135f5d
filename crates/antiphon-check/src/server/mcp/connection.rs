//! The client's state of one connection to an MCP server: the headers that it adds, and the monitor.

use std::sync::Arc;

use super::headers::McpHeaders;
use super::monitor::Monitor;
use super::{CLIENT_INFO, NEWEST_LEGACY, Violations, params};
use crate::raw::TargetLocation;
use crate::server::connection::{ServerConnection, ServerEvent};
use crate::server::server_access::{ServerAccess, quoted};
use crate::transcript::McpEra;
use crate::transcript::json::Json;

/// An MCP client of one era.
#[derive(Clone)]
pub(crate) struct McpClient {
    pub(super) era: McpEra,
    /// The capabilities of a modern server. A legacy server states them in each handshake.
    pub(super) capabilities: Option<Json>,
    pub(super) violations: Arc<Violations>,
}

impl McpClient {
    /// Reports whether a connection begins with a handshake.
    pub(crate) fn has_handshake(&self) -> bool {
        self.era == McpEra::Legacy
    }

    pub(crate) fn connection(&self) -> Box<McpConnection> {
        let monitor = Monitor::new(self.era, self.capabilities.clone(), &self.violations);
        Box::new(McpConnection { headers: McpHeaders::new(self.era), monitor })
    }
}

/// The state of one connection.
pub(crate) struct McpConnection {
    pub(crate) headers: McpHeaders,
    pub(crate) monitor: Monitor,
}

impl McpConnection {
    /// Observes a message that the client sends.
    pub(crate) fn sent(&mut self, message: &[u8]) {
        self.monitor.sent(message);
    }

    /// Observes an event, and learns the session and its version from a handshake.
    pub(crate) fn received(&mut self, event: &ServerEvent) {
        if let ServerEvent::Response(response) = event
            && self.monitor.is_initializing()
            && let Some(session) = response.header("mcp-session-id")
            // A server may repeat the id in every response.
            && self.headers.session.as_ref() != Some(&session)
        {
            self.monitor.check_session_id(&session);
            self.headers.session = Some(session);
        }
        if let Some(version) = self.monitor.received(event) {
            self.headers.version = Some(version);
        }
    }
}

impl ServerAccess {
    /// Performs the handshake of a legacy server. Returns the result of `initialize`.
    pub(crate) async fn mcp_handshake(
        &self,
        connection: &mut ServerConnection,
    ) -> Result<Json, String> {
        let params = format!(
            r#"{{"protocolVersion":"{NEWEST_LEGACY}","capabilities":{{}},"clientInfo":{CLIENT_INFO}}}"#
        );
        let reply = self.first_call(connection, "initialize", &params).await?;
        let Some(result) = reply.member("result") else {
            return Err(format!("`initialize` returns {reply}"));
        };
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let sending = async {
            match self.is_http() {
                true => drop(self.post(connection, initialized).await),
                false => connection.send(initialized).await,
            }
        };
        let _ = tokio::time::timeout(self.timing.reply_timeout(), sending).await;
        Ok(result.clone())
    }

    /// Begins a connection: with the handshake, or by waiting until a new process responds, so that its start does not
    /// count as the time of the first case.
    pub(crate) async fn begin_mcp(
        &self,
        connection: &mut ServerConnection,
        has_handshake: bool,
    ) -> Result<(), String> {
        if has_handshake {
            return self.mcp_handshake(connection).await.map(drop);
        }
        if let TargetLocation::Child(_) = self.target.location {
            let params = params(McpEra::Modern, &[]);
            self.first_call(connection, "server/discover", &params).await?;
        }
        Ok(())
    }

    /// Makes the first call of a connection. A process has more time for it.
    async fn first_call(
        &self,
        connection: &mut ServerConnection,
        method: &str,
        params: &str,
    ) -> Result<Json, String> {
        let reply_timeout = match self.target.location {
            TargetLocation::Child(_) => self.timing.start_timeout(),
            _ => self.timing.full_timeout(),
        };
        self.reply_within(connection, self.request(&quoted(method), params), reply_timeout).await
    }
}
