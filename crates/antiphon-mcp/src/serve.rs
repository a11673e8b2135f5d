//! Serves a server on endpoints: stdio, HTTP, and every other transport of the library.

use std::io;

use antiphon::{BindError, Dialect, Endpoint, Server};

use crate::McpServer;
use crate::http::StreamableHttp;

/// The reason why a server could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The endpoint could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The endpoint has failed.
    #[error("the endpoint has failed")]
    Failed(#[from] io::Error),
}

impl McpServer {
    /// Serves on an endpoint: `stdio:`, `http://127.0.0.1:8651/mcp`, or another one of the library. On `stdio:`, returns
    /// when the client closes it. On other endpoints, returns only if the endpoint fails; use
    /// [`serve_until`](Self::serve_until) to end.
    ///
    /// ```no_run
    /// use antiphon_mcp::{McpServer, RequestContext, ServerTool};
    ///
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> Result<(), antiphon_mcp::ServeError> {
    ///     let ping = ServerTool::new("ping", |(): (), _cx: RequestContext| async { "pong" });
    ///     McpServer::builder("example", "1.0.0").tool(ping).build().serve("stdio:").await
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails if the endpoint cannot be bound, or if it fails later.
    pub async fn serve(&self, endpoint: &str) -> Result<(), ServeError> {
        Ok(self.bind(endpoint).await?.serve(self.clone()).await?)
    }

    /// Binds an endpoint for this server. The settings of the returned server can be changed, for example its limits or
    /// its accepted Hosts; serve it with this server as the handler.
    ///
    /// ```no_run
    /// use antiphon_mcp::McpServer;
    ///
    /// # async fn example(server: McpServer) -> Result<(), Box<dyn std::error::Error>> {
    /// let bound = server.bind("http://127.0.0.1:0/mcp").await?;
    /// println!("{}", bound.endpoint());
    /// bound.serve(server).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails if the endpoint cannot be bound.
    pub async fn bind(&self, endpoint: &str) -> Result<Server, BindError> {
        self.bind_with(endpoint, StreamableHttp::new()).await
    }

    /// Like [`bind`](Self::bind), with these settings for HTTP.
    ///
    /// # Errors
    /// Fails if the endpoint cannot be bound.
    pub async fn bind_with(
        &self,
        endpoint: &str,
        http: StreamableHttp,
    ) -> Result<Server, BindError> {
        let server = Server::bind(endpoint).await?.dialect(Dialect::mcp());
        // The policy would refuse the GET that opens a WebSocket.
        match server.endpoint() {
            Endpoint::Http { .. } => Ok(server.http_policy(http.policy(self))),
            _ => Ok(server),
        }
    }

    /// Serves a bound server until `stop` is ready. Streams of `subscriptions/listen` end with their results. At the end,
    /// running tasks fail, and handlers that wait for their clients are dropped, on all endpoints of this server.
    ///
    /// # Errors
    /// Fails if the endpoint has failed.
    pub async fn serve_until(
        &self,
        bound: Server,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let stopping = async {
            stop.await;
            self.begin_shutdown();
        };
        let _end = EndOfShutdown(self);
        Ok(bound.serve_until(self.clone(), stopping).await?)
    }
}

/// Ends the work of a server that is not served any more, even if serving it was cancelled.
struct EndOfShutdown<'a>(&'a McpServer);

impl Drop for EndOfShutdown<'_> {
    fn drop(&mut self) {
        self.0.end_shutdown();
    }
}
