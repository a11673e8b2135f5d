//! A server whose tools become tasks.
//!
//! Usage: `tasks_server ENDPOINT`, for example `http://127.0.0.1:8652/mcp` or `stdio:`.

use std::process::ExitCode;

use antiphon_mcp::McpServer;

#[path = "everything/tasks.rs"]
mod tasks;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(endpoint) = std::env::args().nth(1) else {
        eprintln!("usage: tasks_server ENDPOINT (for example http://127.0.0.1:8652/mcp)");
        return ExitCode::from(2);
    };
    let server = tasks::add(McpServer::builder("tasks", "1.0.0")).build();
    match server.serve(&endpoint).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tasks_server: {error}");
            ExitCode::FAILURE
        }
    }
}
