//! A server for each session: for servers that keep state for one client, such as a process that serves only one.

use std::fmt;
use std::sync::Arc;

use antiphon::{BoxFuture, Context};

use super::{McpServer, RequestError, ServerBuilder};
use crate::types::InitializeParams;

/// Creates the server of a session.
#[derive(Clone)]
pub(crate) struct SessionServers(Arc<Create>);

type Create =
    dyn Fn(NewSession) -> BoxFuture<'static, Result<McpServer, RequestError>> + Send + Sync;

/// A session that a legacy client begins.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewSession {
    /// What the client has sent with `initialize`: its name, its revision, its capabilities.
    pub initialize: InitializeParams,
    /// The request on the wire, with its headers and the identity of the caller.
    pub rpc: Context,
}

impl SessionServers {
    pub(super) async fn create(&self, session: NewSession) -> Result<McpServer, RequestError> {
        (self.0)(session).await
    }
}

impl fmt::Debug for SessionServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionServers")
    }
}

impl ServerBuilder {
    /// Creates a server of its own for each session of a legacy client. It is dropped when the session ends. If it cannot
    /// be created, `initialize` gets the error.
    ///
    /// Modern clients have no sessions: this server itself serves them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use antiphon_mcp::{McpServer, RequestContext, ServerTool};
    ///
    /// fn counter() -> McpServer {
    ///     let count = Arc::new(AtomicU64::new(0));
    ///     let next = ServerTool::new("next", move |(): (), _cx: RequestContext| {
    ///         let next = count.fetch_add(1, Ordering::Relaxed);
    ///         async move { next.to_string() }
    ///     });
    ///     McpServer::builder("counter", "1.0.0").tool(next).build()
    /// }
    ///
    /// let server = McpServer::builder("counter", "1.0.0")
    ///     .for_each_session(|_session| async { Ok(counter()) })
    ///     .build();
    /// ```
    pub fn for_each_session<F>(
        mut self,
        create: impl Fn(NewSession) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<McpServer, RequestError>> + Send + 'static,
    {
        let create: Arc<Create> = Arc::new(move |session| Box::pin(create(session)));
        self.settings.session_servers = Some(SessionServers(create));
        self
    }
}
