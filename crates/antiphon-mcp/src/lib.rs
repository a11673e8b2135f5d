#![cfg_attr(feature = "macros", doc = include_str!("../docs/crate.md"))]
#![cfg_attr(not(feature = "macros"), doc = "The Model Context Protocol, built on Antiphon.")]

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "macro_support/mod.rs"]
pub mod __private;
#[cfg(feature = "auth")]
pub mod auth;
pub mod bridge;
pub mod client;
#[cfg(feature = "openrpc")]
pub mod from_openrpc;
pub mod http;
mod param_headers;
mod schema;
mod schema_expansion;
mod serve;
mod server;
mod service;
mod tool_names;
pub mod types;

pub use serve::ServeError;
pub use server::{
    Ask, AskError, Elicited, IntoPromptResult, IntoResourceContents, IntoToolResult,
    InvalidTemplate, InvalidTool, McpServer, NewSession, RequestContext, RequestError, Rounds,
    ServerBuilder, ServerPrompt, ServerResource, ServerTemplate, ServerTool, Structured,
    TaskSettings, ToolError, ToolOutput,
};
pub use service::McpService;

#[cfg(feature = "macros")]
#[doc = include_str!("../docs/server.md")]
pub use antiphon_macros::mcp_server as server;

/// Compiles and runs the examples of the documents as doctests.
#[cfg(all(doctest, feature = "auth", feature = "macros", feature = "openrpc"))]
mod pages {
    #[doc = include_str!("../../../docs/coming-from-rmcp.md")]
    struct ComingFromRmcp;
    #[doc = include_str!("../../../docs/mcp.md")]
    struct Mcp;
}
