//! Serves one request of either era.

use std::sync::Arc;

use antiphon::{BoxFuture, Code, Context, ErrorObject, Id, Invocation, Outcome, Params, RawJson};
use serde_json::value::RawValue;

use super::changes::{MAX_SUBSCRIBED_BYTES, MAX_SUBSCRIBED_URIS};
use super::context::{EndOnDrop, RequestContext};
use super::era::{Era, without_legacy_codes};
use super::forwarding::{Reply, ResultMembers};
use super::questions::Questions;
use super::reply::{complete, complete_members};
use super::request::{RequestMeta, RequestParams, decode, decode_params, invalid_params};
use super::rounds::Round;
use super::session::{Agreement, Session, subscribe, unsubscribe};
use super::session_servers::{NewSession, SessionServers};
use super::tasks::TaskSlot;
use super::{McpServer, RequestError, ServerTool, listen, lists, resource, tasks};
use crate::http::may_be_modern;
use crate::types::{
    Cacheable, CompleteParams, CompleteResult, Completion, EmptyResult, GetPromptResult,
    InitializeParams, InitializeResult, Reference, Revision, SetLevelParams, methods,
};

type Serving = BoxFuture<'static, Outcome>;

impl McpServer {
    /// Serves a request. `session` is the one of the connection, if it has one.
    pub(crate) fn serve_request(
        &self,
        call: Invocation,
        rpc: Context,
        session: Option<&Arc<Session>>,
    ) -> Serving {
        match self.route(call, rpc, session) {
            Ok(serving) => serving,
            Err(error) => ready(Err(error)),
        }
    }

    fn route(
        &self,
        call: Invocation,
        rpc: Context,
        session: Option<&Arc<Session>>,
    ) -> Result<Serving, ErrorObject> {
        // JSON-RPC allows null as an id, this protocol does not.
        if matches!(rpc.id(), Some(Id::Null)) {
            return Err(ErrorObject::invalid_request().with_data("the id must not be null"));
        }
        let Invocation { method, params, .. } = call;
        let method = method.as_str();
        let read = RequestParams::read(params.as_ref())?;
        let meta = RequestMeta::read(&read)?;
        if meta.is_modern() && !may_be_modern(&rpc) {
            let reason = "a request of 2026-07-28 needs a POST of its own, with its headers";
            return Err(ErrorObject::invalid_request().with_data(reason));
        }
        let era = Era::of(&meta, &self.settings().revisions, session)?;
        check_phase(&era, method)?;
        let own = era.session().and_then(|session| session.own_server()).cloned();
        let server = own.as_ref().unwrap_or(self);
        let asking = server.serve_asking(method, &read, params.as_ref(), &meta, &era, &rpc)?;
        if let Some(serving) = asking {
            return Ok(serving);
        }
        server.serve_other(method, &read, params.clone(), &meta, era, rpc)
    }

    /// Serves the methods whose handlers cannot ask the client.
    fn serve_other(
        &self,
        method: &str,
        read: &RequestParams<'_>,
        params: Option<Params>,
        meta: &RequestMeta<'_>,
        era: Era,
        rpc: Context,
    ) -> Result<Serving, ErrorObject> {
        let cx = RequestContext::new(self, era, rpc, params.clone(), meta, Questions::default());
        if let Some(served) = tasks::serve(&cx, method, read) {
            return served;
        }
        let is_modern = cx.era().is_modern();
        let cursor = read.cursor.as_deref();
        let outcome = match (method, is_modern) {
            (methods::LIST_TOOLS, _) if self.has_tools() => lists::tools(&cx, cursor),
            (methods::LIST_RESOURCES, _) if self.has_resources() => lists::resources(&cx, cursor),
            (methods::LIST_RESOURCE_TEMPLATES, _) if self.has_resources() => {
                lists::templates(&cx, cursor)
            }
            (methods::LIST_PROMPTS, _) if self.has_prompts() => lists::prompts(&cx, cursor),
            (methods::COMPLETE, _) if self.has_completions() => {
                let params = decode_params(params.as_ref())?;
                return Ok(Box::pin(complete_argument(cx, params)));
            }
            (methods::DISCOVER, true) => lists::discover(&cx),
            (methods::LISTEN, true) => return Ok(Box::pin(listen::listen(cx, params))),
            (methods::INITIALIZE, false) => {
                let params = decode_params(bounded(params.as_ref())?)?;
                return Ok(match self.settings().session_servers.clone() {
                    None => ready(initialize(&cx, &params)),
                    Some(servers) => Box::pin(initialize_own(servers, cx, params)),
                });
            }
            (methods::PING, false) => empty(&cx),
            (methods::SET_LEVEL, false) => set_level(&cx, &decode_params(params.as_ref())?),
            (methods::SUBSCRIBE, false) if self.has_resources() => subscribe_to(&cx, read.uri()?),
            (methods::UNSUBSCRIBE, false) if self.has_resources() => {
                unsubscribe_from(&cx, read.uri()?)
            }
            _ => Err(ErrorObject::method_not_found()),
        };
        Ok(ready(outcome))
    }

    /// Serves the methods whose handlers can ask the client. `None` for other methods.
    fn serve_asking(
        &self,
        method: &str,
        read: &RequestParams<'_>,
        params: Option<&Params>,
        meta: &RequestMeta<'_>,
        era: &Era,
        rpc: &Context,
    ) -> Result<Option<Serving>, ErrorObject> {
        let is_offered = match method {
            methods::CALL_TOOL => self.has_tools(),
            methods::READ_RESOURCE => self.has_resources(),
            methods::GET_PROMPT => self.has_prompts(),
            _ => return Ok(None),
        };
        if !is_offered {
            return Err(ErrorObject::method_not_found());
        }
        let slot = tasks::slot(self, method, read, meta, era)?;
        let context = |questions, slot: Option<Arc<TaskSlot>>| {
            let (era, rpc, params) = (era.clone(), rpc.clone(), params.cloned());
            let cx = RequestContext::new(self, era, rpc, params, meta, questions);
            slot.into_iter().for_each(|slot| cx.set_task_slot(slot));
            cx
        };
        if !era.is_modern() {
            let cx = context(Questions::default(), slot);
            let running = tasks::guard(&cx, self.start(method, read, cx.clone())?);
            return Ok(Some(until_response(tasks::run_legacy(running, &cx), cx)));
        }
        let mut round = Round::read(self, method, read, rpc)?;
        if let Some(kept) = round.resume(self, rpc.clone(), params, meta)? {
            let cx = kept.cx.clone();
            let serving = tasks::run(round, kept.running, kept.cx, slot.is_some());
            return Ok(Some(until_response(serving, cx)));
        }
        let may_become_task = slot.is_some();
        let cx = context(round.questions(), slot);
        let running = tasks::guard(&cx, self.start(method, read, cx.clone())?);
        let serving = tasks::run(round, running, cx.clone(), may_become_task);
        Ok(Some(until_response(serving, cx)))
    }

    /// Starts a handler that can ask the client.
    fn start(
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

    fn has_tools(&self) -> bool {
        self.settings().declared.tools.is_some() || !self.state.tools.is_empty()
    }

    fn has_resources(&self) -> bool {
        self.settings().declared.resources.is_some()
            || !self.state.resources.is_empty()
            || !self.state.templates.is_empty()
    }

    pub(super) fn has_completions(&self) -> bool {
        self.settings().declared.completions.is_some()
            || self.state.prompts.find(|it| it.has_completers().then_some(())).is_some()
            || self.state.templates.find(|it| it.has_completers().then_some(())).is_some()
    }

    fn has_prompts(&self) -> bool {
        self.settings().declared.prompts.is_some() || !self.state.prompts.is_empty()
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

/// Before `initialize`, a legacy client may only begin the session or ask for a sign of life.
fn check_phase(era: &Era, method: &str) -> Result<(), ErrorObject> {
    let Some(session) = era.session() else { return Ok(()) };
    let may_precede = [methods::INITIALIZE, methods::PING].contains(&method);
    if session.agreement().is_some() || may_precede {
        return Ok(());
    }
    // A modern client that has forgotten its metadata reads this too.
    let reason = "send `initialize` first, or the metadata that 2026-07-28 requires in `_meta`";
    if method == methods::DISCOVER {
        return Err(super::era::missing("protocolVersion"));
    }
    Err(ErrorObject::new(Code::INVALID_REQUEST.0, "the session is not initialized")
        .with_data(reason))
}

/// The largest size of the params of `initialize`, which live as long as the session.
const MAX_INITIALIZE_BYTES: usize = 64 * 1024;

fn bounded(params: Option<&Params>) -> Result<Option<&Params>, ErrorObject> {
    let bytes = params.map_or(0, |params| params.as_json().as_str().len());
    match bytes <= MAX_INITIALIZE_BYTES {
        true => Ok(params),
        false => {
            let reason = format!("{bytes} bytes, over the limit of {MAX_INITIALIZE_BYTES}");
            Err(invalid_params("", &reason))
        }
    }
}

fn initialize(cx: &RequestContext, params: &InitializeParams) -> Outcome {
    let server = cx.server();
    let legacy = server.settings().revisions.iter().filter(|revision| !revision.is_modern());
    let Some(latest) = legacy.clone().max() else {
        // The message may be all that a user of a legacy client sees.
        return Err(super::unsupported(&params.protocol_version, &server.settings().revisions));
    };
    let proposed = Revision::parse(&params.protocol_version);
    let known = proposed.filter(|proposed| legacy.clone().any(|known| known == proposed));
    let revision = known.unwrap_or(*latest);
    let agreement = Agreement::new(revision, params)?;
    let session = cx.session().ok_or_else(ErrorObject::method_not_found)?;
    if !session.begin(agreement, server.listeners()) {
        return Err(already_initialized());
    }
    let info = server.implementation().clone();
    let capabilities = tasks::with_legacy(cx, revision, server.capabilities());
    let mut result = InitializeResult::new(revision, capabilities, info);
    result.instructions.clone_from(&server.settings().instructions);
    RawJson::encode(&result).map_err(ErrorObject::internal)
}

/// Creates the server of a session, and begins the session with it.
async fn initialize_own(
    servers: SessionServers,
    cx: RequestContext,
    params: InitializeParams,
) -> Outcome {
    let session = cx.session().cloned().ok_or_else(ErrorObject::method_not_found)?;
    if session.agreement().is_some() {
        return Err(already_initialized());
    }
    let new = NewSession { initialize: params.clone(), rpc: cx.rpc() };
    let server = servers.create(new).await.map_err(|RequestError(error)| error)?;
    if !session.set_server(server.clone()) {
        return Err(already_initialized());
    }
    initialize(&cx.of_server(&server), &params)
}

fn already_initialized() -> ErrorObject {
    ErrorObject::invalid_request().with_data("the session is initialized already")
}

fn set_level(cx: &RequestContext, params: &SetLevelParams) -> Outcome {
    if let Some(session) = cx.session() {
        session.set_log_level(params.level);
    }
    empty(cx)
}

fn subscribe_to(cx: &RequestContext, uri: &str) -> Outcome {
    match cx.session() {
        Some(session) if !subscribe(session, uri) => Err(invalid_params(
            "uri",
            &format!(
                "over the limit of {MAX_SUBSCRIBED_URIS} subscriptions, whose URIs have \
                {MAX_SUBSCRIBED_BYTES} bytes together; unsubscribe from others"
            ),
        )),
        _ => {
            cx.server().begin_interest(uri);
            empty(cx)
        }
    }
}

fn unsubscribe_from(cx: &RequestContext, uri: &str) -> Outcome {
    if let Some(session) = cx.session() {
        unsubscribe(session, uri);
    }
    empty(cx)
}

async fn complete_argument(cx: RequestContext, params: CompleteParams) -> Outcome {
    let CompleteParams { reference, argument, context, .. } = params;
    let server = &cx.server().state;
    let completer = match &reference {
        Reference::Prompt { name, .. } => {
            let prompt = server.prompts.get(name);
            let prompt = prompt.ok_or_else(|| {
                invalid_params("ref.name", &format!("unknown prompt `{}`", short(name)))
            })?;
            prompt.completer(&argument.name).cloned()
        }
        Reference::Resource { uri } => {
            let template = server.templates.get(uri);
            if template.is_none() && server.resources.get(uri).is_none() {
                let reason = format!("unknown resource template `{}`", short(uri));
                return Err(invalid_params("ref.uri", &reason));
            }
            template.and_then(|template| template.completer(&argument.name).cloned())
        }
    };
    let known = context.and_then(|context| context.arguments).unwrap_or_default();
    let completion = match completer {
        Some(completer) => completer.complete(argument.value, known).await,
        None => Completion::default(),
    };
    complete(&cx, CompleteResult::new(completion))
}

fn empty(cx: &RequestContext) -> Outcome {
    complete(cx, EmptyResult::new())
}

/// Serves a request. Nothing is told to its client after the response.
fn until_response(serving: Serving, cx: RequestContext) -> Serving {
    let is_modern = cx.era().is_modern();
    let end = EndOnDrop(cx);
    Box::pin(async move {
        let _end = end;
        let outcome = serving.await;
        if is_modern { outcome.map_err(without_legacy_codes) } else { outcome }
    })
}

fn ready(outcome: Outcome) -> Serving {
    Box::pin(std::future::ready(outcome))
}

/// The beginning of a name that a client has sent, for an error.
fn short(name: &str) -> String {
    name.chars().take(64).collect()
}
