//! The lists of a server, page by page, and what it says about itself.

use antiphon::{ErrorObject, Outcome};

use super::context::RequestContext;
use super::registry::{Page, Registry};
use super::reply::complete;
use super::request::invalid_params;
use super::{McpServer, ServerTool, tasks};
use crate::types::{
    Cacheable, DiscoverResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, Revision, Tool,
};

/// The result of `server/discover`.
pub(crate) fn discover(cx: &RequestContext) -> Outcome {
    let server = cx.server();
    let settings = server.settings();
    let capabilities = tasks::with_extension(server, server.capabilities());
    let mut result = DiscoverResult::new(&settings.revisions, capabilities);
    result.instructions.clone_from(&settings.instructions);
    result.cache = settings.cache.clone();
    result.result_type = None;
    complete(cx, result)
}

/// The result of `tools/list`.
pub(crate) fn tools(cx: &RequestContext, cursor: Option<&str>) -> Outcome {
    let server = cx.server();
    let page = page(server, &server.state.tools, cursor)?;
    let tools = page.entries.iter().map(|tool| description(cx, tool)).collect();
    let mut result = ListToolsResult::new(tools);
    (result.next_cursor, result.cache) = (page.next, cache(cx));
    complete(cx, result)
}

/// The description of a tool in the revision of the client.
fn description(cx: &RequestContext, tool: &ServerTool) -> Tool {
    let mut description = tool.tool().clone();
    if cx.revision() != Revision::V2025_11_25 {
        // Neither older revisions nor the extension of 2026-07-28 have such a member.
        description.execution = None;
    }
    if cx.era().is_modern() {
        return description;
    }
    if let Some(schema) = &description.output_schema
        && schema.get("type").is_none_or(|kind| kind != "object")
    {
        description.output_schema = None;
    }
    description
}

/// The result of `resources/list`.
pub(crate) fn resources(cx: &RequestContext, cursor: Option<&str>) -> Outcome {
    let server = cx.server();
    let page = page(server, &server.state.resources, cursor)?;
    let resources = page.entries.iter().map(|entry| entry.resource().clone()).collect();
    let mut result = ListResourcesResult::new(resources);
    (result.next_cursor, result.cache) = (page.next, cache(cx));
    complete(cx, result)
}

/// The result of `resources/templates/list`.
pub(crate) fn templates(cx: &RequestContext, cursor: Option<&str>) -> Outcome {
    let server = cx.server();
    let page = page(server, &server.state.templates, cursor)?;
    let templates = page.entries.iter().map(|entry| entry.template().clone()).collect();
    let mut result = ListResourceTemplatesResult::new(templates);
    (result.next_cursor, result.cache) = (page.next, cache(cx));
    complete(cx, result)
}

/// The result of `prompts/list`.
pub(crate) fn prompts(cx: &RequestContext, cursor: Option<&str>) -> Outcome {
    let server = cx.server();
    let page = page(server, &server.state.prompts, cursor)?;
    let prompts = page.entries.iter().map(|entry| entry.prompt().clone()).collect();
    let mut result = ListPromptsResult::new(prompts);
    (result.next_cursor, result.cache) = (page.next, cache(cx));
    complete(cx, result)
}

fn page<T>(
    server: &McpServer,
    registry: &Registry<T>,
    cursor: Option<&str>,
) -> Result<Page<T>, ErrorObject> {
    registry
        .page(cursor, server.settings().page_size)
        .ok_or_else(|| invalid_params("cursor", "not a cursor of this list; begin without one"))
}

/// How long the client may keep a list. Legacy revisions have no such members.
pub(crate) fn cache(cx: &RequestContext) -> Cacheable {
    match cx.era().is_modern() {
        true => cx.server().settings().cache.clone(),
        false => Cacheable::default(),
    }
}
