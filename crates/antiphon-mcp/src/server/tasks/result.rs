//! `tasks/result` of 2025-11-25: waits for the result, and asks the client on its stream until then.
//!
//! The client may leave the stream and open another one. So only the latest one asks, and a question whose stream is
//! gone is asked again on the next.

use std::collections::HashSet;
use std::sync::Arc;

use antiphon::{CallError, CloseReason, ErrorObject, Outcome, RawJson};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use serde_json::value::RawValue;

use super::task::Task;
use super::wire::{self, related};
use crate::server::RequestContext;
use crate::server::questions::Asked;

/// Serves `tasks/result`.
pub(super) async fn result(cx: RequestContext, task: Arc<Task>) -> Outcome {
    let mut changes = task.changes();
    let delivery = task.deliver();
    let stopping = cx.server().state.lifetime.listening();
    let (mut asking, mut asked) = (FuturesUnordered::new(), HashSet::new());
    loop {
        changes.mark_unchanged();
        if let Some(end) = task.end() {
            return wire::outcome(&task, end);
        }
        if delivery.is_current() {
            let open = task.open_questions().into_iter();
            let new = open.filter(|question| asked.insert(question.key.clone()));
            asking.extend(new.map(|question| ask(&cx, &task, question)));
        } else {
            asking.clear();
            asked.clear();
        }
        tokio::select! {
            _ = changes.changed() => {}
            Some((key, answer)) = asking.next() => {
                if let Conclusion::Failed(key) = conclude(&task, key, answer) {
                    // The handler may ask it once more.
                    asked.remove(&key);
                }
            }
            () = stopping.cancelled() => {
                return Err(ErrorObject::server_busy("shutting down"));
            }
        }
    }
}

/// Asks the client one question of a task.
fn ask(
    cx: &RequestContext,
    task: &Task,
    question: Asked,
) -> impl Future<Output = (String, Result<RawJson, CallError>)> + Send + use<> {
    let (cx, id) = (cx.clone(), task.id().to_owned());
    async move {
        let answer = call(&cx, &id, &question).await;
        (question.key, answer)
    }
}

async fn call(cx: &RequestContext, id: &str, question: &Asked) -> Result<RawJson, CallError> {
    let encoding = |error: serde_json::Error| CallError::Encode(error.into());
    let session = cx.session().ok_or(CallError::Unsupported("session"))?;
    let params = RawJson::encode(&question.params).map_err(encoding)?;
    let params = related(&params, id).map_err(encoding)?;
    let timeout = cx.server().settings().ask_timeout;
    let rpc = cx.rpc();
    let calling = session.link().call(question.method, params, Some(&rpc));
    tokio::time::timeout(timeout, calling).await.unwrap_or(Err(CallError::TimedOut(timeout)))
}

/// What has become of a question.
enum Conclusion {
    Answered,
    /// The handler knows that the question with this key has no answer.
    Failed(String),
    /// The question waits for another stream.
    Undelivered,
}

/// Hands the answer of the client to the handler.
fn conclude(task: &Arc<Task>, key: String, answer: Result<RawJson, CallError>) -> Conclusion {
    let error = match answer {
        Ok(answer) => match RawValue::from_string(answer.as_str().to_owned()) {
            Ok(answer) => {
                task.answer([(key, answer)]);
                return Conclusion::Answered;
            }
            Err(error) => CallError::Protocol(error.into()),
        },
        Err(
            CallError::CannotCallBack(_)
            | CallError::Closed(_)
            | CallError::Interrupted(_)
            | CallError::Unsupported(_),
        ) => return Conclusion::Undelivered,
        Err(error) => error,
    };
    task.fail_question(&key, error);
    Conclusion::Failed(key)
}

/// Sends a notification of the handler of a task.
pub(in crate::server) async fn notify(
    cx: &RequestContext,
    task: &Task,
    method: &str,
    params: &impl Serialize,
) -> Result<(), CallError> {
    let Some(session) = cx.session() else {
        return Err(CallError::Unsupported("notifications of a task"));
    };
    if !task.is_running() {
        return Err(CallError::Closed(CloseReason::from("the task has ended")));
    }
    let encoding = |error: serde_json::Error| CallError::Encode(error.into());
    let params = RawJson::encode(params).map_err(encoding)?;
    let params = related(&params, task.id()).map_err(encoding)?;
    session.link().notify(method, params).await
}
