//! How a server declares its tasks: each era in its own way, and never in that of the other.

use antiphon::ErrorObject;
use serde_json::{Map, json};

use super::owner::Owner;
use crate::McpServer;
use crate::server::RequestContext;
use crate::server::error::missing_capability;
use crate::types::tasks::EXTENSION;
use crate::types::{ClientCapabilities, Revision, ServerCapabilities, ServerTasks, TaskSupport};

/// Whether the server has tools whose calls may become tasks, or has tasks of such tools.
pub(super) fn has_tasks(server: &McpServer) -> bool {
    let supports = |tool: &crate::ServerTool| tool.task_support() != TaskSupport::Forbidden;
    !server.state.tasks.is_empty()
        || server.state.tools.find(|tool| supports(tool).then_some(())).is_some()
}

/// Whether tasks exist for the client of this request.
pub(super) fn offers_tasks(cx: &RequestContext) -> bool {
    let has_form = cx.era().is_modern() || cx.revision() == Revision::V2025_11_25;
    has_form && has_tasks(cx.server())
}

/// Adds the extension to the capabilities that modern clients get.
pub(in crate::server) fn with_extension(
    server: &McpServer,
    capabilities: ServerCapabilities,
) -> ServerCapabilities {
    match has_tasks(server) {
        true => capabilities.with_extension(EXTENSION, Map::new()),
        false => capabilities,
    }
}

/// Adds tasks to the capabilities that the client of a new session of this revision gets.
pub(in crate::server) fn with_legacy(
    cx: &RequestContext,
    revision: Revision,
    mut capabilities: ServerCapabilities,
) -> ServerCapabilities {
    if revision != Revision::V2025_11_25 || !has_tasks(cx.server()) {
        return capabilities;
    }
    let requests = Map::from_iter([("tools".to_owned(), json!({ "call": {} }))]);
    let mut tasks = ServerTasks::default().with_cancel(Map::new()).with_requests(requests);
    // A list for a caller that cannot be recognized would be one of all callers.
    tasks.list = Owner::of(cx).is_known().then(Map::new);
    capabilities.tasks = Some(tasks);
    capabilities
}

/// What a modern client has to declare.
pub(super) fn required() -> ClientCapabilities {
    ClientCapabilities::new().with_extension(EXTENSION, Map::new())
}

/// The error -32021: the client has to declare the extension.
pub(super) fn missing_extension() -> ErrorObject {
    missing_capability(required())
}
