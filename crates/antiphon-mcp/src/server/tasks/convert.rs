//! Turns a running call into a task, and runs it to its end.
//!
//! The handler is not started again: the future that has begun in the request continues in the task.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;

use antiphon::{BoxFuture, Code, ErrorObject, Outcome};
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::slot::TaskSlot;
use super::store::TaskStore;
use super::task::{Task, TaskEnd};
use super::wire;
use crate::server::RequestContext;
use crate::server::era::without_legacy_codes;
use crate::server::questions::Asked;
use crate::server::rounds::Round;

type Serving = BoxFuture<'static, Outcome>;

/// Cancels the token of the context when the handler is dropped, in the request or in the task.
pub(in crate::server) fn guard(cx: &RequestContext, running: Serving) -> Serving {
    let Some(slot) = cx.task_slot() else { return running };
    let guard = slot.cancellation().clone().drop_guard();
    Box::pin(async move {
        let outcome = running.await;
        guard.disarm();
        outcome
    })
}

/// Runs the call of a legacy client, as a task if the client has asked for one.
pub(in crate::server) fn run_legacy(running: Serving, cx: &RequestContext) -> Serving {
    let Some(slot) = cx.task_slot() else { return running };
    let created = convert(cx, slot, running).unwrap_or_else(|(_, busy)| Err(busy));
    Box::pin(std::future::ready(created))
}

/// Runs the request of a modern client until it is done, asks, or becomes a task. `may_become_task` is what this
/// request allows: a handler that was kept may come from another one.
pub(in crate::server) fn run(
    round: Round,
    running: Serving,
    cx: RequestContext,
    may_become_task: bool,
) -> Serving {
    let Some(slot) = cx.task_slot().cloned() else { return Box::pin(round.run(running, cx)) };
    if !may_become_task {
        slot.settle(None);
    }
    match slot.is_settled() {
        true => Box::pin(round.run(running, cx)),
        false => Box::pin(run_in_slot(round, running, cx, slot)),
    }
}

/// What ends the first part of a call.
enum Step {
    Done(Outcome),
    Asked(Vec<Asked>),
    Begun,
}

async fn run_in_slot(
    round: Round,
    mut running: Serving,
    cx: RequestContext,
    slot: Arc<TaskSlot>,
) -> Outcome {
    let mut begins = Box::pin(slot.begins());
    let mut has_begun = false;
    let step = poll_fn(|poller| {
        // Before the handler runs, and again because the handler may have demanded the task.
        for is_polled in [false, true] {
            has_begun = has_begun || begins.as_mut().poll(poller).is_ready();
            if has_begun {
                return Poll::Ready(Step::Begun);
            }
            if !is_polled && let Poll::Ready(outcome) = running.as_mut().poll(poller) {
                return Poll::Ready(Step::Done(outcome));
            }
        }
        cx.questions().poll_open(poller).map(Step::Asked)
    });
    match step.await {
        Step::Done(outcome) => outcome,
        Step::Asked(asked) => round.ask(&asked, running, cx),
        Step::Begun => match convert(&cx, &slot, running) {
            Ok(created) => created,
            Err((_, busy)) if slot.is_required() => Err(busy),
            Err((running, _)) => round.run(running, cx).await,
        },
    }
}

/// Makes the call a task. Returns the result of the request, or the handler if there are too many tasks.
fn convert(
    cx: &RequestContext,
    slot: &TaskSlot,
    running: Serving,
) -> Result<Outcome, (Serving, ErrorObject)> {
    let store = &cx.server().state.tasks;
    let task = match store.create(slot.ttl(), cx) {
        Ok(task) => task,
        Err(busy) => {
            slot.settle(None);
            return Err((running, busy));
        }
    };
    let created = wire::created(cx, &task);
    slot.settle(Some(task.clone()));
    // Without a session of its own, a task outlives the connection.
    let session = cx.session().filter(|_| task.owner().is_session());
    let session_ended = session.and_then(|session| session.link().ended());
    let session_ended = session_ended.unwrap_or_else(|| Box::pin(std::future::pending()));
    let lifetime = &cx.server().state.lifetime;
    let ends = TaskEnds { session: session_ended, work: lifetime.work(), server: lifetime.ended() };
    let driving = drive(task, running, ends, Arc::downgrade(store));
    tokio::spawn(driving.in_current_span());
    Ok(created)
}

/// What ends a task besides its handler, its client and its time.
struct TaskEnds {
    session: BoxFuture<'static, ()>,
    /// The server ends its running tasks.
    work: CancellationToken,
    /// The server is gone.
    server: CancellationToken,
}

/// Runs the handler, keeps its result, and removes the task in the end.
async fn drive(task: Arc<Task>, running: Serving, mut ends: TaskEnds, store: Weak<TaskStore>) {
    let finish = |end| {
        // The server is gone only if nobody can ask for the result.
        if let Some(store) = store.upgrade() {
            task.finish(&store, end);
        }
    };
    let mut expired = pin!(tokio::time::sleep(task.ttl()));
    let is_over = tokio::select! {
        biased;
        () = task.ended() => false,
        () = &mut ends.session => true,
        () = &mut expired => true,
        () = ends.work.cancelled() => {
            finish(failed("the server has ended the task, because it stops"));
            false
        }
        end = run_watched(&task, running) => {
            finish(end);
            false
        }
    };
    if !is_over {
        tokio::select! {
            () = ends.session => {}
            () = expired => {}
            () = ends.server.cancelled() => {}
        }
    }
    finish(failed("the time to live of the task has ended"));
    if let Some(store) = store.upgrade() {
        store.remove(&task);
    }
}

fn failed(reason: &'static str) -> TaskEnd {
    TaskEnd::Failed(ErrorObject::new(Code::INTERNAL_ERROR.0, reason))
}

/// Runs the handler, and keeps the status up to date with its questions.
async fn run_watched(task: &Arc<Task>, running: Serving) -> TaskEnd {
    let mut running = AssertUnwindSafe(running).catch_unwind();
    let outcome = poll_fn(|poller| {
        let polled = Pin::new(&mut running).poll(poller);
        if polled.is_pending() {
            task.questions().watch(poller);
            task.refresh();
        }
        polled
    });
    match outcome.await {
        Ok(outcome) if task.owner().is_modern() => {
            TaskEnd::of(outcome.map_err(without_legacy_codes))
        }
        Ok(outcome) => TaskEnd::of(outcome),
        Err(_) => {
            tracing::error!("the handler of a task has panicked");
            TaskEnd::Failed(ErrorObject::internal_error())
        }
    }
}
