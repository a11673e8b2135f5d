//! A server on rmcp, as its documentation recommends, with default settings, and with `TCP_NODELAY`.
//!
//! `http` keeps a session for each client of the legacy era, and answers with event streams, which are the defaults.
//! `http-stateless` keeps none, and answers with JSON. `stdio` serves on stdin and stdout.

use std::error::Error;
use std::sync::Arc;

use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Json, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
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

#[derive(Clone)]
struct Adder {
    tool_router: ToolRouter<Self>,
}

#[tool_router(router = tool_router)]
impl Adder {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Adds two numbers")]
    async fn add(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Adder {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("http") => http(StreamableHttpServerConfig::default()).await,
        Some("http-stateless") => {
            let mut config = StreamableHttpServerConfig::default();
            config.legacy_session_mode = false;
            config.json_response = true;
            http(config).await
        }
        Some("stdio") => {
            Adder::new().serve(stdio()).await?.waiting().await?;
            Ok(())
        }
        _ => Err("usage: bench-mcp-rmcp http|http-stateless|stdio".into()),
    }
}

async fn http(config: StreamableHttpServerConfig) -> Result<(), Box<dyn Error>> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Adder::new()), sessions, config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    // Not the default of axum: an event stream is several small writes, and each call would wait 40 ms for the
    // delayed acknowledgement of the first.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?)
}
