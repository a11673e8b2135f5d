//! What the bridge offers, made of what an upstream offers: each handler passes its request on.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon::{Code, ErrorChain, ErrorObject, RawJson};
use serde::Serialize;

use super::sync::follow_resource;
use super::upstream::{ConnectedUpstream, Connection};
use crate::client::{McpCall, McpError};
use crate::server::{
    RequestContext, RequestError, ResultMembers, ServerPrompt, ServerResource, ServerTemplate,
    ServerTool, ToolError, ToolOutput,
};
use crate::types::{
    CallToolParams, GetPromptParams, Meta, Prompt, ReadResourceParams, Reference, Resource,
    ResourceTemplate, Tool, error_codes, methods,
};

/// The tool of an upstream, under its name at the bridge.
pub(super) fn tool(upstream: &Arc<ConnectedUpstream>, tool: Tool, offered: String) -> ServerTool {
    let (upstream, name) = (upstream.clone(), tool.name.clone());
    let mut described = tool;
    described.name = offered;
    // The bridge runs calls itself, not as tasks.
    described.execution = None;
    ServerTool::forwarded(described, move |arguments, cx| {
        let (upstream, name) = (upstream.clone(), name.clone());
        async move { call_tool(&upstream, name, arguments, cx).await }
    })
}

async fn call_tool(
    upstream: &Arc<ConnectedUpstream>,
    name: String,
    arguments: RawJson,
    cx: RequestContext,
) -> Result<ToolOutput, ToolError> {
    let params = CallToolParams::new(&name).with_arguments(arguments);
    let result =
        forward(upstream, &cx, |connection, meta| connection.client.forward_tool(&params, meta));
    match result.await {
        Ok(members) => Ok(ToolOutput::members(members)),
        Err(error) => Err(match error.as_rpc() {
            Some(error) => ToolError::request(error.clone()),
            None => ToolError::new(unreachable(upstream, &error)),
        }),
    }
}

/// Passes a request on, with its progress, its logs and its questions.
async fn forward(
    upstream: &Arc<ConnectedUpstream>,
    cx: &RequestContext,
    call: impl FnOnce(&Connection, Meta) -> McpCall<ResultMembers>,
) -> Result<ResultMembers, McpError> {
    let level = cx.log_level();
    upstream
        .calls
        .run(cx, async |signals| {
            upstream
                .run(async |connection| {
                    if let Some(level) = level {
                        upstream.log_at(&connection, level).await;
                    }
                    let call = call(&connection, meta(cx, &connection));
                    match cx.wants_progress() {
                        true => call.on_progress(move |it| signals.progress(it)).await,
                        false => call.await,
                    }
                })
                .await
        })
        .await
}

/// Like [`forward`], for a request other than a tool call.
async fn forward_as(
    upstream: &Arc<ConnectedUpstream>,
    cx: &RequestContext,
    method: &'static str,
    name: &str,
    params: &impl Serialize,
) -> Result<ResultMembers, RequestError> {
    let call =
        |connection: &Connection, meta| connection.client.forward(method, name, params, meta);
    forward(upstream, cx, call).await.map_err(|error| {
        let internal = || ErrorObject::new(Code::INTERNAL_ERROR.0, unreachable(upstream, &error));
        RequestError(error.as_rpc().cloned().unwrap_or_else(internal))
    })
}

/// The resource of an upstream.
pub(super) fn resource(upstream: &Arc<ConnectedUpstream>, resource: Resource) -> ServerResource {
    let (reader, uri) = (upstream.clone(), resource.uri.clone());
    let subscribed = upstream.clone();
    ServerResource::described(resource, move |cx| {
        let (upstream, uri) = (reader.clone(), uri.clone());
        async move { read(&upstream, &uri, &cx).await }
    })
    .on_subscribe(move |uri, server| follow_resource(&subscribed, uri, server))
}

/// The template of an upstream.
pub(super) fn template(
    upstream: &Arc<ConnectedUpstream>,
    template: ResourceTemplate,
) -> ServerTemplate {
    let (reader, subscribed) = (upstream.clone(), upstream.clone());
    let reference = Reference::resource(&template.uri_template);
    let template = ServerTemplate::described(template, move |uri, cx| {
        let upstream = reader.clone();
        async move { read(&upstream, &uri, &cx).await }
    });
    let template =
        template.on_subscribe(move |uri, server| follow_resource(&subscribed, uri, server));
    if upstream.capabilities().completions.is_none() {
        return template;
    }
    let variables = template.variables();
    variables.into_iter().fold(template, |template, variable| {
        let (upstream, reference, name) = (upstream.clone(), reference.clone(), variable.clone());
        template.complete(&variable, move |typed, known| {
            complete(upstream.clone(), reference.clone(), name.clone(), typed, known)
        })
    })
}

/// The prompt of an upstream, under its name at the bridge.
pub(super) fn prompt(
    upstream: &Arc<ConnectedUpstream>,
    prompt: Prompt,
    offered: String,
) -> ServerPrompt {
    let (getter, name) = (upstream.clone(), prompt.name.clone());
    let mut described = prompt;
    described.name = offered;
    let arguments: Vec<_> =
        described.arguments.iter().flatten().map(|argument| argument.name.clone()).collect();
    let reference = Reference::prompt(&name);
    let offered = ServerPrompt::forwarded(described, move |arguments, cx| {
        let upstream = getter.clone();
        let mut params = GetPromptParams::new(&name);
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        async move { forward_as(&upstream, &cx, methods::GET_PROMPT, &params.name, &params).await }
    });
    if upstream.capabilities().completions.is_none() {
        return offered;
    }
    arguments.into_iter().fold(offered, |offered, argument| {
        let (upstream, reference, name) = (upstream.clone(), reference.clone(), argument.clone());
        offered.complete(&argument, move |typed, known| {
            complete(upstream.clone(), reference.clone(), name.clone(), typed, known)
        })
    })
}

async fn complete(
    upstream: Arc<ConnectedUpstream>,
    reference: Reference,
    argument: String,
    typed: String,
    known: BTreeMap<String, String>,
) -> Vec<String> {
    let completing = upstream.run(async |connection| {
        connection.client.complete(reference, &argument, &typed, known).await
    });
    match completing.await {
        Ok(result) => result.completion.values,
        Err(error) => {
            tracing::debug!(%error, argument, "an upstream could not complete an argument");
            Vec::new()
        }
    }
}

/// Reads a resource that no upstream lists: the first upstream that knows it answers.
pub(super) async fn read_other(
    upstreams: Vec<Arc<ConnectedUpstream>>,
    uri: String,
    cx: RequestContext,
) -> Result<ResultMembers, RequestError> {
    for upstream in upstreams {
        if upstream.capabilities().resources.is_none() {
            continue;
        }
        match read(&upstream, &uri, &cx).await {
            Err(error) if is_not_found(&error.0) => {}
            outcome => return outcome,
        }
    }
    Err(RequestError::resource_not_found(&cx, &uri))
}

/// Before 2026-07-28, a resource that does not exist has a code of its own.
fn is_not_found(error: &ErrorObject) -> bool {
    error.code == error_codes::RESOURCE_NOT_FOUND || error.code == Code::INVALID_PARAMS
}

async fn read(
    upstream: &Arc<ConnectedUpstream>,
    uri: &str,
    cx: &RequestContext,
) -> Result<ResultMembers, RequestError> {
    let params = ReadResourceParams::new(uri);
    let result = forward_as(upstream, cx, methods::READ_RESOURCE, uri, &params).await;
    result.map_err(|RequestError(mut error)| {
        // The code of the client's revision.
        match (upstream.is_modern(), cx.revision().is_modern()) {
            (false, true) if error.code == error_codes::RESOURCE_NOT_FOUND => {
                error.code = Code::INVALID_PARAMS;
            }
            (true, false) if error.code == Code::INVALID_PARAMS => {
                error.code = Code(error_codes::RESOURCE_NOT_FOUND);
            }
            _ => {}
        }
        RequestError(error)
    })
}

/// The reason why an upstream has no result.
fn unreachable(upstream: &ConnectedUpstream, error: &McpError) -> String {
    format!("the upstream {} failed: {}", upstream.endpoint(), ErrorChain(error))
}

/// The metadata of a request that goes on to the upstream: all members that the protocol does not define, and the level
/// of the log messages.
fn meta(cx: &RequestContext, connection: &Connection) -> Meta {
    let mut meta = cx.meta();
    meta.0
        .retain(|name, _| name != "progressToken" && !name.starts_with("io.modelcontextprotocol/"));
    if let Some(level) = cx.log_level().filter(|_| connection.client.revision().is_modern()) {
        meta.set_log_level(level);
    }
    meta
}
