//! Drives the handler of a modern request to its result, or to the questions that the client must answer first.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;

use antiphon::{BoxFuture, Context, ErrorObject, Outcome, Params};
use serde::Serialize;
use serde_json::value::RawValue;

use super::McpServer;
use super::builder::Rounds;
use super::context::RequestContext;
use super::kept_handlers::KeptHandler;
use super::questions::{Asked, Questions};
use super::reply::complete_value_as;
use super::request::{RequestMeta, RequestParams, decode, invalid_params};
use super::request_state::{self, RequestState, StateError};

/// The beginning of a round: the state of the earlier ones, and the answers of this one.
pub(crate) struct Round {
    method: &'static str,
    state: RequestState,
    answers: HashMap<String, Box<RawValue>>,
}

impl Round {
    /// Reads the state and the answers of a request.
    ///
    /// # Errors
    /// Fails with -32602 if the state was not issued for this request and this caller.
    pub(crate) fn read(
        server: &McpServer,
        method: &'static str,
        params: &RequestParams<'_>,
        rpc: &Context,
    ) -> Result<Self, ErrorObject> {
        let state = match &params.request_state {
            Some(sealed) => {
                let binding = binding(method, params, rpc);
                server.state.signer.open(sealed, &binding).map_err(refused)?
            }
            None => RequestState::default(),
        };
        let answers = match params.input_responses.map(RawValue::get) {
            None | Some("null") => HashMap::new(),
            Some(answers) => answers_of(answers)?,
        };
        Ok(Self { method, state, answers })
    }

    /// Takes the handler that this server has kept for the request. `None` if it keeps none for it.
    ///
    /// # Errors
    /// Fails with -32602 if the handler is gone: its time is over, or the client has sent its answers twice. It is not
    /// replayed, because a handler is kept where it cannot run twice.
    pub(crate) fn resume(
        &mut self,
        server: &McpServer,
        rpc: Context,
        params: Option<&Params>,
        meta: &RequestMeta<'_>,
    ) -> Result<Option<KeptHandler>, ErrorObject> {
        let Some(id) = &self.state.handler else { return Ok(None) };
        let kept = server.state.kept.take(id).ok_or_else(|| refused(StateError::Gone))?;
        kept.cx.continue_with(rpc, params.cloned(), meta);
        kept.cx.questions().answer_open(std::mem::take(&mut self.answers));
        Ok(Some(kept))
    }

    /// Returns what the questions of the request begin with.
    pub(crate) fn questions(&mut self) -> Questions {
        Questions::resumed(std::mem::take(&mut self.state), std::mem::take(&mut self.answers))
    }

    /// Runs a handler until it is done, or until it waits for the client.
    pub(crate) async fn run(
        self,
        mut running: BoxFuture<'static, Outcome>,
        cx: RequestContext,
    ) -> Outcome {
        let asked = poll_fn(|poller| {
            if let Poll::Ready(outcome) = running.as_mut().poll(poller) {
                return Poll::Ready(Err(outcome));
            }
            cx.questions().poll_open(poller).map(Ok)
        });
        match asked.await {
            Err(outcome) => outcome,
            Ok(asked) => self.ask(&asked, running, cx),
        }
    }

    /// Ends the round with the questions.
    pub(super) fn ask(
        self,
        asked: &[Asked],
        running: BoxFuture<'static, Outcome>,
        cx: RequestContext,
    ) -> Outcome {
        let server = cx.server().clone();
        let settings = server.settings();
        let rounds = cx.questions().next_round();
        if rounds > settings.max_rounds {
            let reason = format!("the request has asked more than {} times", settings.max_rounds);
            return Err(ErrorObject::new(antiphon::Code::INTERNAL_ERROR.0, reason));
        }
        let signer = &server.state.signer;
        let reply = cx.clone();
        let state = match settings.rounds {
            Rounds::Replay => cx.questions().learned(),
            Rounds::Keep => {
                let work = server.state.lifetime.work();
                let kept = KeptHandler { running, cx };
                let kept = server.state.kept.keep(kept, signer.lifetime(), work);
                let kept = kept.map_err(ErrorObject::internal)?;
                // The handler must not run twice, so it cannot be replayed instead.
                let busy = || ErrorObject::server_busy("too many requests wait for their clients");
                RequestState { handler: Some(kept.ok_or_else(busy)?), ..RequestState::default() }
            }
        };
        let has_state =
            state.handler.is_some() || !state.answers.is_empty() || !state.steps.is_empty();
        let sealed = match has_state {
            true => {
                let params = reply.params();
                let params = RequestParams::read(params.as_ref())?;
                let binding = binding(self.method, &params, &reply.rpc());
                Some(signer.seal(state, &binding).map_err(ErrorObject::internal)?)
            }
            false => None,
        };
        let requests = asked.iter().map(|asked| {
            (asked.key.as_str(), QuestionOnWire { method: asked.method, params: &asked.params })
        });
        let result =
            InputRequired { input_requests: requests.collect(), request_state: sealed.as_deref() };
        complete_value_as(&reply, "input_required", &result)
    }
}

/// What the state of a request is bound to. Computed only where there is a state, because most requests have none.
fn binding(method: &str, params: &RequestParams<'_>, rpc: &Context) -> String {
    let identity = rpc.identity();
    let principal = identity.as_ref().map(|identity| identity.name());
    let target = params.name.as_deref().or(params.uri.as_deref()).unwrap_or_default();
    let arguments = params.arguments.map_or("", |arguments| arguments.get());
    request_state::binding(principal, method, &[target, arguments])
}

/// The result of a request that asks.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    input_requests: HashMap<&'a str, QuestionOnWire<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
}

#[derive(Serialize)]
struct QuestionOnWire<'a> {
    method: &'a str,
    params: &'a RawValue,
}

pub(super) fn answers_of(text: &str) -> Result<HashMap<String, Box<RawValue>>, ErrorObject> {
    let answers: HashMap<String, Box<RawValue>> = decode(text)?;
    // An answer is always an Object. Anything else counts as no answer, so the question is asked again.
    Ok(answers.into_iter().filter(|(_, answer)| answer.get().starts_with('{')).collect())
}

fn refused(error: StateError) -> ErrorObject {
    tracing::debug!(%error, "a request state was refused");
    invalid_params("requestState", &error.to_string())
}
