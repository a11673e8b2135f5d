//! What the bridge offers, made of what an upstream offers: each handler passes its request on.

use std::sync::Arc;

use antiphon::{BoxFuture, Code, ErrorChain, ErrorObject, RawJson};
use serde::Serialize;

use super::connected_upstream::{ConnectedUpstream, Connection};
use super::open_calls::{self, OpenCall, Signal};
use super::questions::without_tasks;
use super::sync::follow_resource;
use crate::client::{McpCall, McpError};
use crate::server::{
    RequestContext, RequestError, ResultMembers, ServerPrompt, ServerResource, ServerTemplate,
    ServerTool, ToolError, ToolOutput,
};
use crate::types::{
    CallToolParams, CompleteParams, GetPromptParams, Meta, Prompt, ReadResourceParams, Reference,
    Resource, ResourceTemplate, Tool, error_codes, methods,
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
    let calling = async |open: OpenCall| {
        let signals = open.clone();
        let outcome = upstream.run(async |connection| {
            if let Some(level) = level {
                upstream.log_at(&connection, level).await;
            }
            let call = call(&connection, meta(cx, &connection));
            match cx.wants_progress() {
                true => call.on_progress(move |it| signals.signal(Signal::Progress(it))).await,
                false => call.await,
            }
        });
        let outcome = outcome.await;
        let required = outcome.as_ref().err().and_then(McpError::url_elicitations);
        let ids = required.iter().flatten().filter_map(|it| it.elicitation_id.as_ref());
        upstream.calls.elicitations.note(&open, ids);
        outcome
    };
    upstream.calls.run(cx, calling).await
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
        |connection: &Connection, meta| connection.client.forward(method, Some(name), params, meta);
    forward(upstream, cx, call).await.map_err(|error| failed(upstream, &error))
}

/// The error of the upstream, or the reason why there is none.
fn failed(upstream: &ConnectedUpstream, error: &McpError) -> RequestError {
    let internal = || ErrorObject::new(Code::INTERNAL_ERROR.0, unreachable(upstream, error));
    RequestError(error.as_rpc().cloned().unwrap_or_else(internal))
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
    match upstream.capabilities().completions {
        Some(_) => template.completed_by(completer(upstream, reference)),
        None => template,
    }
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
    let reference = Reference::prompt(&name);
    let offered = ServerPrompt::forwarded(described, move |arguments, cx| {
        let upstream = getter.clone();
        let mut params = GetPromptParams::new(&name);
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        async move { forward_as(&upstream, &cx, methods::GET_PROMPT, &params.name, &params).await }
    });
    match upstream.capabilities().completions {
        Some(_) => offered.completed_by(completer(upstream, reference)),
        None => offered,
    }
}

/// Completes arguments at an upstream, which knows the prompt or the template as `reference`.
fn completer(
    upstream: &Arc<ConnectedUpstream>,
    reference: Reference,
) -> impl Fn(CompleteParams, RequestContext) -> Completing + Send + Sync + 'static {
    let upstream = upstream.clone();
    move |params, cx| {
        let (upstream, reference) = (upstream.clone(), reference.clone());
        Box::pin(async move {
            let params = CompleteParams { reference, meta: Meta::new(), ..params };
            let completing = upstream.run(async |connection| {
                let meta = meta(&cx, &connection);
                connection.client.forward(methods::COMPLETE, None, &params, meta).await
            });
            // Nobody can be asked for an argument.
            let completed = open_calls::without_call(completing).await;
            completed.map_err(|error| failed(&upstream, &error))
        })
    }
}

type Completing = BoxFuture<'static, Result<ResultMembers, RequestError>>;

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

/// The metadata of a request that goes on to the upstream: all members that the protocol does not define. A modern
/// upstream also learns what the client can do, and which log messages it wants.
fn meta(cx: &RequestContext, connection: &Connection) -> Meta {
    let mut meta = cx.meta();
    meta.0
        .retain(|name, _| name != "progressToken" && !name.starts_with("io.modelcontextprotocol/"));
    if !connection.client.revision().is_modern() {
        return meta;
    }
    meta.set_client_capabilities(&without_tasks(cx.client_capabilities()));
    if let Some(level) = cx.log_level() {
        meta.set_log_level(level);
    }
    meta
}
