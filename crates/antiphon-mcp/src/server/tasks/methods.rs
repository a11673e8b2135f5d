//! The methods of tasks.

use antiphon::{BoxFuture, ErrorObject, Outcome};

use super::capability::{missing_extension, offers_tasks, required};
use super::owner::Owner;
use super::task::TaskEnd;
use super::{result, wire};
use crate::server::RequestContext;
use crate::server::reply::{complete, complete_value};
use crate::server::request::{RequestParams, invalid_params};
use crate::server::rounds::answers_of;
use crate::types::tasks::legacy::ListTasksResult;
use crate::types::{EmptyResult, methods};

type Serving = BoxFuture<'static, Outcome>;

/// Serves a method of tasks. `None` for other methods, and for those that the era of the client does not have.
pub(in crate::server) fn serve(
    cx: &RequestContext,
    method: &str,
    params: &RequestParams<'_>,
) -> Option<Result<Serving, ErrorObject>> {
    let is_modern = cx.era().is_modern();
    let exists = match method {
        methods::GET_TASK | methods::CANCEL_TASK => true,
        methods::UPDATE_TASK => is_modern,
        methods::TASK_RESULT | methods::LIST_TASKS => !is_modern,
        _ => false,
    };
    if !exists || !offers_tasks(cx) {
        return None;
    }
    if is_modern && cx.require(required()).is_err() {
        return Some(Err(missing_extension()));
    }
    let owner = Owner::of(cx);
    Some(match method {
        // A caller that cannot be recognized has no list.
        methods::LIST_TASKS if !owner.is_known() => return None,
        methods::LIST_TASKS => list(cx, &owner, params.cursor.as_deref()).map(ready),
        _ => of_one(cx, &owner, method, params),
    })
}

/// Serves a method that concerns one task.
fn of_one(
    cx: &RequestContext,
    owner: &Owner,
    method: &str,
    params: &RequestParams<'_>,
) -> Result<Serving, ErrorObject> {
    let store = &cx.server().state.tasks;
    let task = store.get(params.task_id()?, owner)?;
    Ok(match method {
        methods::TASK_RESULT => Box::pin(result::result(cx.clone(), task)),
        methods::GET_TASK => ready(wire::state(cx, &task)),
        methods::UPDATE_TASK => {
            let missing = || invalid_params("", "missing param `inputResponses`");
            let answers = params.input_responses.ok_or_else(missing)?;
            task.answer(answers_of(answers.get())?);
            ready(complete(cx, EmptyResult::new()))
        }
        _ => {
            let is_cancelled = task.finish(store, TaskEnd::Cancelled);
            match cx.era().is_modern() {
                true => ready(complete(cx, EmptyResult::new())),
                false if is_cancelled => ready(wire::state(cx, &task)),
                false => {
                    let reason = "the task cannot be cancelled: it has ended already";
                    return Err(invalid_params("taskId", reason));
                }
            }
        }
    })
}

/// The tasks of a legacy caller.
fn list(cx: &RequestContext, owner: &Owner, cursor: Option<&str>) -> Result<Outcome, ErrorObject> {
    let server = cx.server();
    let page = server.state.tasks.page(owner, cursor, server.settings().page_size);
    let unknown = || invalid_params("cursor", "not a cursor of this list; begin without one");
    let page = page.ok_or_else(unknown)?;
    let mut list = ListTasksResult::new(page.tasks.iter().map(wire::legacy_task).collect());
    list.next_cursor = page.next;
    Ok(complete_value(cx, &list))
}

fn ready(outcome: Outcome) -> Serving {
    Box::pin(std::future::ready(outcome))
}
