//! The tasks of a server. Their number and the bytes of their results are limited.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon::ErrorObject;

use super::owner::Owner;
use super::settings::TaskSettings;
use super::task::Task;
use crate::server::request::invalid_params;
use crate::server::{RequestContext, random_id};

/// The tasks of a server, in memory.
pub(crate) struct TaskStore {
    settings: TaskSettings,
    state: Mutex<StoreState>,
}

#[derive(Default)]
struct StoreState {
    tasks: BTreeMap<u64, Arc<Task>>,
    numbers: HashMap<Arc<str>, u64>,
    last: u64,
    bytes: usize,
}

/// One page of the tasks of an owner.
pub(super) struct TaskPage {
    pub(super) tasks: Vec<Arc<Task>>,
    pub(super) next: Option<String>,
}

impl TaskStore {
    pub(crate) fn new(settings: TaskSettings) -> Arc<Self> {
        Arc::new(Self { settings, state: Mutex::default() })
    }

    /// Creates a task.
    ///
    /// # Errors
    /// Fails with -32009 if there are too many.
    pub(super) fn create(
        &self,
        ttl: Option<Duration>,
        cx: &RequestContext,
    ) -> Result<Arc<Task>, ErrorObject> {
        let id: Arc<str> = random_id().map_err(ErrorObject::internal)?.into();
        let owner = Owner::of(cx);
        let mut state = self.state();
        self.check_limits(&state, &owner).map_err(ErrorObject::server_busy)?;
        state.last += 1;
        let number = state.last;
        let task = Task::new(id.clone(), number, owner, self.settings.ttl_of(ttl), cx);
        state.tasks.insert(number, task.clone());
        state.numbers.insert(id, number);
        Ok(task)
    }

    /// Checks whether there may be one more task. The error is the reason.
    fn check_limits(&self, state: &StoreState, owner: &Owner) -> Result<(), &'static str> {
        let running = || state.tasks.values().filter(|task| task.is_running());
        if state.tasks.len() >= self.settings.max_tasks {
            return Err("too many tasks; try again later");
        }
        if running().count() >= self.settings.max_running {
            return Err("too many tasks are running; try again later");
        }
        let of_caller = running().filter(|task| owner.is_known() && task.owner() == owner);
        match of_caller.count() >= self.settings.running_per_caller.max(1) {
            true => Err("too many tasks of this caller are running; wait for one of them"),
            false => Ok(()),
        }
    }

    /// Returns the task with this id.
    ///
    /// # Errors
    /// Fails with -32602 if there is none, or if it belongs to somebody else.
    pub(super) fn get(&self, id: &str, owner: &Owner) -> Result<Arc<Task>, ErrorObject> {
        let state = self.state();
        let task = state.numbers.get(id).and_then(|number| state.tasks.get(number));
        let task = task.filter(|task| task.owner() == owner).cloned();
        task.ok_or_else(|| {
            invalid_params("taskId", "task not found: the id is wrong, or the task has expired")
        })
    }

    /// Returns the page of the tasks of an owner that follows a cursor; `None` if the cursor was never issued.
    pub(super) fn page(
        &self,
        owner: &Owner,
        cursor: Option<&str>,
        size: usize,
    ) -> Option<TaskPage> {
        let state = self.state();
        let after = match cursor {
            None => 0,
            Some(cursor) => {
                cursor.strip_prefix('k')?.parse().ok().filter(|it| *it <= state.last)?
            }
        };
        let mut rest = state.owned_by(owner).filter(|task| task.number() > after);
        let tasks: Vec<_> = rest.by_ref().take(size.max(1)).cloned().collect();
        let next = tasks.last().filter(|_| rest.next().is_some());
        let next = next.map(|last| format!("k{}", last.number()));
        Some(TaskPage { tasks, next })
    }

    /// Takes bytes from the limit of all results. Returns false if they do not fit.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let mut state = self.state();
        let fits = bytes <= self.settings.max_bytes.saturating_sub(state.bytes);
        if fits {
            state.bytes += bytes;
        }
        fits
    }

    /// Removes a task and frees its memory.
    pub(super) fn remove(&self, task: &Task) {
        let bytes = task.take_bytes();
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        state.numbers.remove(task.id());
        state.tasks.remove(&task.number());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().tasks.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreState {
    fn owned_by(&self, owner: &Owner) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks.values().filter(move |task| task.owner() == owner)
    }
}
