//! This project's server, with default settings. `http` serves both eras on one endpoint, `stdio` on stdin and stdout.

use std::error::Error;

use antiphon_mcp::{McpServer, RequestContext, ServerTool, Structured};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let add = ServerTool::new("add", |Pair { a, b }: Pair, _cx: RequestContext| async move {
        Structured(Sum { sum: a + b })
    });
    let server =
        McpServer::builder("bench", "1.0.0").tool(add.description("Adds two numbers")).build();
    let endpoint = match std::env::args().nth(1).as_deref() {
        Some("http") => "http://127.0.0.1:0/mcp",
        Some("stdio") => "stdio:",
        _ => return Err("usage: bench-mcp-antiphon http|stdio".into()),
    };
    let bound = server.bind(endpoint).await?;
    if endpoint.starts_with("http") {
        println!("{}", bound.endpoint());
    }
    Ok(server.serve_until(bound, std::future::pending()).await?)
}
