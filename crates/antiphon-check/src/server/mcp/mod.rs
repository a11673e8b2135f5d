//! The profile `mcp`: servers of the Model Context Protocol, in both eras.
//!
//! A server may speak both eras. The run checks one after the other: [`find_eras`] finds them, [`run_cases`] runs the
//! cases of each. [`Monitor`] watches every message of the run; the cases with `@ watch` report what it has seen.

mod connection;
mod eras;
mod features;
mod headers;
mod lists;
mod monitor;
mod run;
mod tool;
mod violations;

pub(crate) use self::connection::{McpClient, McpConnection};
pub(super) use self::eras::{FoundEra, find_eras};
pub(crate) use self::features::McpFeatures;
pub(super) use self::run::run_cases;
pub(crate) use self::violations::Violations;

use crate::transcript::McpEra;

/// The version that the run speaks with a modern server.
const MODERN: &str = "2026-07-28";
/// The version that the run proposes to a legacy server.
const NEWEST_LEGACY: &str = "2025-11-25";
/// The legacy versions.
const LEGACY: [&str; 4] = [NEWEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision that removed batches and added the header `MCP-Protocol-Version`.
const WITHOUT_BATCHES: &str = "2025-06-18";

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

const CLIENT_INFO: &str = r#"{"name":"antiphon-check","version":"1"}"#;

/// Returns the `_meta` of a modern request.
fn meta() -> String {
    format!(
        r#"{{"{PROTOCOL_VERSION}":"{MODERN}","io.modelcontextprotocol/clientInfo":{CLIENT_INFO},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    )
}

/// Returns params with these members, written as `"name":value`, and with the metadata of the era.
fn params(era: McpEra, members: &[&str]) -> String {
    let meta = (era == McpEra::Modern).then(|| format!(r#""_meta":{}"#, meta()));
    let members: Vec<&str> = members.iter().copied().chain(meta.as_deref()).collect();
    format!("{{{}}}", members.join(","))
}
