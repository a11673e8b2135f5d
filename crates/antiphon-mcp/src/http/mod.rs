//! Streamable HTTP, as the policy of an [`antiphon::Server`] or of a mounted [`HttpService`].
//!
//! One endpoint serves both eras. A modern request states its revision in its body and its headers, and stands for
//! itself. A legacy request belongs to the session of its `Mcp-Session-Id`, which `initialize` has created.

mod accept;
mod cors;
mod endpoint_limits;
mod event_log;
mod headers;
mod http_session;
mod http_sse;
mod incoming;
mod legacy;
mod logged_streams;
mod notifications;
mod options;
mod outgoing_calls;
mod policy;
mod request;
mod responses;
mod resumable_stream;
mod sessions;

use antiphon::Dialect;
use antiphon::transport::http::HttpService;

pub use options::StreamableHttp;
pub use policy::McpPolicy;

pub(crate) use request::{HttpRequest, close_stream, may_be_modern};

use crate::McpServer;

impl McpServer {
    /// Creates a `tower` service for an application that has its own HTTP server, such as axum. Mount it at the path of
    /// the MCP endpoint.
    ///
    /// The service does not know the address of the application. If that is a loopback address, set
    /// [`Guard::loopback_only`](antiphon::transport::http::Guard::loopback_only), against DNS rebinding.
    ///
    /// ```no_run
    /// use antiphon::transport::http::Guard;
    /// use antiphon_mcp::McpServer;
    /// use antiphon_mcp::http::StreamableHttp;
    ///
    /// # async fn example(server: McpServer) -> std::io::Result<()> {
    /// let mcp = server.http_service(StreamableHttp::new()).guard(Guard::new().loopback_only());
    /// let app: axum::Router = axum::Router::new().route_service("/mcp", mcp);
    /// axum::serve(tokio::net::TcpListener::bind("127.0.0.1:0").await?, app).await
    /// # }
    /// ```
    pub fn http_service(&self, options: StreamableHttp) -> HttpService {
        HttpService::new(self.clone()).dialect(&Dialect::mcp()).policy(options.policy(self))
    }
}
