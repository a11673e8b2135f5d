//! The part of `subscriptions/listen` that concerns tasks.

use antiphon::ErrorObject;

use super::capability::{missing_extension, offers_tasks, required};
use super::owner::Owner;
use crate::server::RequestContext;
use crate::server::changes::{Change, MAX_SUBSCRIBED_URIS, WaitingChanges};
use crate::server::request::invalid_params;

/// The tasks of a filter that the client may be told about. The ids of others are left out, as if they did not exist.
///
/// # Errors
/// Fails with -32021 if the client has not declared the extension.
pub(in crate::server) fn subscribed(
    cx: &RequestContext,
    ids: Option<Vec<String>>,
) -> Result<Option<Vec<String>>, ErrorObject> {
    let Some(mut ids) = ids.filter(|_| offers_tasks(cx)) else { return Ok(None) };
    if cx.require(required()).is_err() {
        return Err(missing_extension());
    }
    if ids.len() > MAX_SUBSCRIBED_URIS {
        let reason = format!("{} tasks, over the limit of {MAX_SUBSCRIBED_URIS}", ids.len());
        return Err(invalid_params("notifications.taskIds", &reason));
    }
    let owner = Owner::of(cx);
    ids.retain(|id| cx.server().state.tasks.get(id, &owner).is_ok());
    Ok(Some(ids))
}

/// Tells the present states, so that a client misses nothing that has happened before it listened.
pub(in crate::server) fn tell_states(
    cx: &RequestContext,
    changes: &WaitingChanges,
    ids: Option<&[String]>,
) {
    let owner = Owner::of(cx);
    let tasks =
        ids.into_iter().flatten().filter_map(|id| cx.server().state.tasks.get(id, &owner).ok());
    tasks.for_each(|task| changes.push(&Change::Task(task)));
}
