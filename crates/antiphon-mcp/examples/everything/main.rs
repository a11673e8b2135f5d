//! A server with everything that the protocol has, for the conformance suite and for the clients of other projects.
//!
//! Usage: `everything_server ENDPOINT`, for example `http://127.0.0.1:8651/mcp` or `stdio:`.

mod asking;
mod content;
mod prompts;
mod resources;
mod signals;
mod tasks;

use std::process::ExitCode;

use antiphon_mcp::http::StreamableHttp;
use antiphon_mcp::{McpServer, ServerBuilder};

#[tokio::main]
async fn main() -> ExitCode {
    let Some(endpoint) = std::env::args().nth(1) else {
        eprintln!("usage: everything_server ENDPOINT (for example http://127.0.0.1:8651/mcp)");
        return ExitCode::from(2);
    };
    match serve(&endpoint).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everything_server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(endpoint: &str) -> Result<(), Box<dyn std::error::Error>> {
    let server = server().build();
    let bound = server.bind_with(endpoint, StreamableHttp::new().http_sse(true)).await?;
    eprintln!("listening on {}", bound.endpoint());
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    Ok(server.serve_until(bound, stop).await?)
}

pub(crate) fn server() -> ServerBuilder {
    let builder = McpServer::builder("everything", "1.0.0")
        .title("Everything")
        .instructions("Tools, resources and prompts for tests of clients.");
    let add: [fn(ServerBuilder) -> ServerBuilder; 6] =
        [content::add, signals::add, asking::add, resources::add, prompts::add, tasks::add];
    add.into_iter().fold(builder, |builder, add| add(builder))
}
