//! Serves one request of either era.

use std::sync::Arc;

use antiphon::{BoxFuture, Code, Context, ErrorObject, Id, Invocation, Outcome, Params};

use super::changes::{MAX_SUBSCRIBED_BYTES, MAX_SUBSCRIBED_URIS};
use super::completion::complete_argument;
use super::context::{EndOnDrop, RequestContext};
use super::era::{Era, without_legacy_codes};
use super::questions::Questions;
use super::reply::complete;
use super::request::{RequestMeta, RequestParams, decode_params, invalid_params};
use super::rounds::Round;
use super::session::{Session, subscribe, unsubscribe};
use super::tasks::TaskSlot;
use super::{McpServer, initialize, listen, lists, tasks};
use crate::http::may_be_modern;
use crate::types::{EmptyResult, SetLevelParams, methods};

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
            (methods::INITIALIZE, false) => return initialize::serve(cx, params.as_ref()),
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
        let (method, is_offered) = match method {
            methods::CALL_TOOL => (methods::CALL_TOOL, self.has_tools()),
            methods::READ_RESOURCE => (methods::READ_RESOURCE, self.has_resources()),
            methods::GET_PROMPT => (methods::GET_PROMPT, self.has_prompts()),
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
            || self.state.prompts.find(|it| (!it.completers().is_empty()).then_some(())).is_some()
            || self.state.templates.find(|it| (!it.completers().is_empty()).then_some(())).is_some()
    }

    fn has_prompts(&self) -> bool {
        self.settings().declared.prompts.is_some() || !self.state.prompts.is_empty()
    }
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
