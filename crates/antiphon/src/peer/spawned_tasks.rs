//! The tasks that handlers have spawned on a connection.
//!
//! A task has no place in the order of messages, and ends with the connection. A shutdown waits for it as
//! for a running request.

use std::future::poll_fn;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::BoxFuture;
use crate::catch_unwind::CatchUnwind;
use crate::error::SpawnError;
use crate::subscription::SHUTTING_DOWN;

/// The number of tasks of one connection, and their common end.
#[derive(Default)]
pub(super) struct SpawnedTasks {
    running: usize,
    over: CancellationToken,
}

impl SpawnedTasks {
    /// Counts one more task. Returns the token that ends it.
    fn start(&mut self, limit: usize) -> Result<CancellationToken, SpawnError> {
        if self.over.is_cancelled() {
            return Err(SpawnError::Closed(SHUTTING_DOWN.into()));
        }
        if self.running >= limit {
            return Err(SpawnError::Full(limit));
        }
        self.running += 1;
        Ok(self.over.clone())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running == 0
    }
}

impl Shared {
    /// Runs a task until it finishes or the connection ends.
    pub(super) fn spawn_task(
        self: Arc<Self>,
        task: BoxFuture<'static, ()>,
    ) -> Result<(), SpawnError> {
        let over = {
            let mut state = self.state();
            if let Some(reason) = &state.ended {
                return Err(SpawnError::Closed(reason.clone()));
            }
            let limit = self.settings.limits.in_flight.max(1);
            state.tasks.get_or_insert_default().start(limit)?
        };
        let (counted, task) = (CountedTask(self), CatchUnwind::new(task));
        tokio::spawn(async move {
            // Dropped after the task, whose destructors may still send messages.
            let _counted = counted;
            let mut task = task;
            tokio::select! {
                biased;
                () = over.cancelled() => {}
                _ = poll_fn(|poller| task.poll(poller)) => {}
            }
        });
        Ok(())
    }

    /// Ends all tasks, and lets no more start.
    pub(super) fn end_tasks(&self) {
        // Cancelled without the lock, because it wakes the tasks.
        let over = self.state().tasks.get_or_insert_default().over.clone();
        over.cancel();
    }

    /// Whether a task runs.
    pub(super) fn has_tasks(&self) -> bool {
        self.state().has_tasks()
    }
}

/// Counts a task as running until it is dropped.
struct CountedTask(Arc<Shared>);

impl Drop for CountedTask {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(tasks) = &mut state.tasks {
            tasks.running -= 1;
        }
        // A connection that is closing may wait for the last task.
        self.0.wake_connection(state);
    }
}
