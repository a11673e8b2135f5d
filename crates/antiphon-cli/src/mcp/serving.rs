//! Serves an MCP server until a signal, for `serve` and `bridge`.

use antiphon::{Endpoint, Server};
use antiphon_mcp::http::McpPolicy;
use antiphon_mcp::{McpServer, ServeError};
use tokio::sync::oneshot;

use crate::exit::{CommandError, Exit};
use crate::output;
use crate::serve::{Signals, failed};

/// Adds the policy of Streamable HTTP. All endpoints have the same policy, and this one refuses the GET that opens a
/// WebSocket.
pub(super) fn with_http(bound: Server, policy: McpPolicy) -> Result<Server, CommandError> {
    let endpoints = bound.endpoints();
    let has_ws = endpoints.iter().any(|it| matches!(it, Endpoint::Ws { .. }));
    let has_http = endpoints.iter().any(|it| matches!(it, Endpoint::Http { .. }));
    match (has_http, has_ws) {
        (true, true) => Err(CommandError::usage("HTTP and WebSocket cannot be served together")
            .hint("start the command once for each")),
        (true, false) => Ok(bound.http_policy(policy)),
        (false, _) => Ok(bound),
    }
}

/// Prints the endpoints, and serves until the first signal asks for a shutdown, and at most until the second.
pub(super) async fn serve(
    bound: Server,
    server: &McpServer,
    announce: impl FnOnce(),
) -> Result<Exit, CommandError> {
    let signals =
        Signals::new().map_err(|error| failed("cannot install signal handlers", &error))?;
    // A program that reads this line may send a signal at once.
    for endpoint in bound.endpoints() {
        output::note(&format!("listening on {endpoint}"));
    }
    announce();
    let (stop, stopped) = oneshot::channel();
    let serving = server.serve_until(bound, async { drop(stopped.await) });
    tokio::select! {
        served = serving => match served {
            Ok(()) => Ok(Exit::Success),
            Err(ServeError::Failed(error)) => Err(failed("the server failed", &error)),
            Err(error) => Err(CommandError::caused(Exit::Transport, &error)),
        },
        () = signals.twice(stop) => Ok(Exit::Interrupted),
    }
}
