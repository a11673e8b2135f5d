//! Starts the handlers of what a server offers, by the name or the URI in a request.

use antiphon::{BoxFuture, ErrorObject, Outcome, RawJson};
use serde_json::value::RawValue;

use super::context::RequestContext;
use super::forwarding::{Reply, ResultMembers};
use super::reply::{complete, complete_members};
use super::request::{RequestParams, decode, invalid_params};
use super::{McpServer, ServerTool, lists, resource};
use crate::types::{Cacheable, GetPromptResult, methods};

type Serving = BoxFuture<'static, Outcome>;

impl McpServer {
    /// Starts a handler that can ask the client.
    pub(super) fn start(
        &self,
        method: &str,
        read: &RequestParams<'_>,
        cx: RequestContext,
    ) -> Result<Serving, ErrorObject> {
        match method {
            methods::CALL_TOOL => self.call_tool(read, cx),
            methods::READ_RESOURCE => self.read_resource(read.uri()?, cx),
            _ => self.get_prompt(read, cx),
        }
    }

    fn call_tool(
        &self,
        read: &RequestParams<'_>,
        cx: RequestContext,
    ) -> Result<Serving, ErrorObject> {
        let name = read.name()?;
        let tool = self.tool(name);
        let tool =
            tool.ok_or_else(|| invalid_params("name", &format!("unknown tool `{}`", short(name))))?;
        check_scopes(&tool, &cx)?;
        let arguments = read.arguments.map(RawValue::get).filter(|text| *text != "null");
        Ok(tool.call(arguments, cx))
    }

    fn read_resource(&self, uri: &str, cx: RequestContext) -> Result<Serving, ErrorObject> {
        let reading = match self.state.resources.get(uri) {
            Some(resource) => resource.read(uri, cx.clone()),
            None => match self.state.templates.find(|template| template.matches(uri)) {
                Some((template, values)) => template.read(uri, values, cx.clone()),
                None => match &self.settings().read_other {
                    Some(reader) => reader.read(uri, cx.clone()),
                    None => return Err(resource::not_found(&cx, uri)),
                },
            },
        };
        Ok(Box::pin(async move {
            let cache = lists::cache(&cx);
            match reading.await? {
                Reply::Result(result) => complete(&cx, resource::with_cache(result, &cache)),
                Reply::Members(mut members) => {
                    add_missing(&mut members, &cache)?;
                    complete_members(&cx, members)
                }
            }
        }))
    }

    fn get_prompt(
        &self,
        read: &RequestParams<'_>,
        cx: RequestContext,
    ) -> Result<Serving, ErrorObject> {
        let name = read.name()?;
        let prompt = self.state.prompts.get(name);
        let prompt = prompt
            .ok_or_else(|| invalid_params("name", &format!("unknown prompt `{}`", short(name))))?;
        let arguments = match read.arguments.map(RawValue::get) {
            None | Some("null") => std::collections::BTreeMap::new(),
            Some(arguments) => decode(arguments)?,
        };
        let prompting = prompt.get(arguments, cx.clone())?;
        Ok(Box::pin(async move {
            let mut result: GetPromptResult = match prompting.await? {
                Reply::Result(result) => result,
                Reply::Members(members) => return complete_members(&cx, members),
            };
            if result.description.is_none() {
                result.description.clone_from(&prompt.prompt().description);
            }
            complete(&cx, result)
        }))
    }
}

/// Checks that the token of the caller has the scopes of a tool. A caller without a token, as on stdio, has passed
/// whatever the server requires.
#[cfg(feature = "auth")]
fn check_scopes(tool: &ServerTool, cx: &RequestContext) -> Result<(), ErrorObject> {
    let Some(access) = cx.get::<crate::auth::server::Access>() else { return Ok(()) };
    let required: Vec<&str> = tool.scopes().iter().map(|scope| &**scope).collect();
    Ok(access.require(&required)?)
}

#[cfg(not(feature = "auth"))]
#[expect(clippy::unnecessary_wraps, reason = "without authorization, there are no scopes to check")]
fn check_scopes(_: &ServerTool, _: &RequestContext) -> Result<(), ErrorObject> {
    Ok(())
}

/// Adds how long a result may be cached, unless it says so itself.
fn add_missing(members: &mut ResultMembers, cache: &Cacheable) -> Result<(), ErrorObject> {
    let cache = RawJson::encode(cache).map_err(ErrorObject::internal)?;
    let cache: ResultMembers = cache.decode().map_err(ErrorObject::internal)?;
    for (name, value) in cache {
        members.entry(name).or_insert(value);
    }
    Ok(())
}

/// The beginning of a name that a client has sent, for an error.
pub(super) fn short(name: &str) -> String {
    name.chars().take(64).collect()
}
