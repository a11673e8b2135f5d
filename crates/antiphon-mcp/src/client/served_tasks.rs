//! Tasks that a server of 2025-11-25 asks this client to run: questions to its user or its model (experimental).
//!
//! The handlers of the application do not see the difference. The tasks are bounded in number, in the bytes of their
//! results, and in time; all of them end with the client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, SystemTime};

use antiphon::{BoxFuture, CancellationToken, ErrorObject, Outcome, RawJson};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::handlers::{Handlers, encoded, read};
use super::inbox::locked;
use crate::server::{iso_8601, random_id, related};
use crate::types::meta::RELATED_TASK;
use crate::types::tasks::legacy::{ListTasksResult, Task};
use crate::types::tasks::{TaskMetadata, TaskParams, TaskStatus};
use crate::types::{ClientCapabilities, ClientTasks, JsonObject, methods};

/// The most tasks, running or ended.
const MAX_TASKS: usize = 64;
/// The most bytes of the results of all tasks.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// How long a task is kept after its creation, if the server does not say it.
const TTL: Duration = Duration::from_secs(600);
const MAX_TTL: Duration = Duration::from_secs(3600);
/// How often a server should ask for the state.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The tasks of one client.
pub(super) struct ServedTasks {
    kept: Arc<Mutex<Kept>>,
    /// Cancelled when all tasks end.
    end: Mutex<CancellationToken>,
}

#[derive(Default)]
struct Kept {
    tasks: BTreeMap<String, Arc<ServedTask>>,
    /// The bytes of all results.
    bytes: usize,
}

struct ServedTask {
    id: String,
    created: SystemTime,
    ttl: Duration,
    state: watch::Sender<State>,
    cancelled: CancellationToken,
}

struct State {
    status: TaskStatus,
    updated: SystemTime,
    /// The outcome of the request; `None` while it runs.
    outcome: Option<Outcome>,
}

impl Default for ServedTasks {
    fn default() -> Self {
        Self { kept: Arc::default(), end: Mutex::new(CancellationToken::new()) }
    }
}

/// The capability for the requests that a client answers.
pub(super) fn capability(client: &ClientCapabilities) -> Option<ClientTasks> {
    let mut requests = JsonObject::new();
    if client.sampling.is_some() {
        requests.insert("sampling".to_owned(), json!({ "createMessage": {} }));
    }
    if client.elicitation.is_some() {
        requests.insert("elicitation".to_owned(), json!({ "create": {} }));
    }
    let operation = JsonObject::new;
    (!requests.is_empty()).then(|| {
        ClientTasks::default()
            .with_list(operation())
            .with_cancel(operation())
            .with_requests(requests)
    })
}

impl ServedTasks {
    /// Serves a request if it concerns tasks.
    pub(super) fn serve(
        &self,
        handlers: &Arc<Handlers>,
        method: &str,
        params: Option<&RawJson>,
    ) -> Option<BoxFuture<'static, Outcome>> {
        let text = params.map_or("{}", RawJson::as_str);
        let served = match method {
            methods::CREATE_MESSAGE | methods::ELICIT => match asked(text).transpose()? {
                Ok(asked) => self.create(handlers, method, params, &asked),
                Err(error) => Err(error),
            },
            methods::LIST_TASKS => self.list(text),
            methods::GET_TASK => self.find(text).and_then(|task| encoded(&task.described())),
            methods::CANCEL_TASK => self.find(text).and_then(|task| self.cancel(&task)),
            methods::TASK_RESULT => match self.find(text) {
                Ok(task) => return Some(Box::pin(async move { task.result().await })),
                Err(error) => Err(error),
            },
            _ => return None,
        };
        Some(Box::pin(std::future::ready(served)))
    }

    /// Ends all tasks.
    pub(super) fn clear(&self) {
        std::mem::take(&mut *locked(&self.end)).cancel();
        *locked(&self.kept) = Kept::default();
    }

    fn create(
        &self,
        handlers: &Arc<Handlers>,
        method: &str,
        params: Option<&RawJson>,
        asked: &TaskMetadata,
    ) -> Outcome {
        let id = random_id().map_err(ErrorObject::internal)?;
        let created = SystemTime::now();
        let state = State { status: TaskStatus::Working, updated: created, outcome: None };
        let task = Arc::new(ServedTask {
            id: id.clone(),
            created,
            ttl: asked.ttl.map_or(TTL, Duration::from_millis).min(MAX_TTL),
            state: watch::Sender::new(state),
            cancelled: CancellationToken::new(),
        });
        // Before the task is kept, so that `clear` ends every task that it does not keep.
        let end = locked(&self.end).clone();
        let mut kept = locked(&self.kept);
        if kept.tasks.len() >= MAX_TASKS {
            return Err(ErrorObject::server_busy("too many tasks of this client"));
        }
        kept.tasks.insert(id.clone(), task.clone());
        drop(kept);
        let result =
            json!({ "task": task.described(), "_meta": { RELATED_TASK: { "taskId": id } } });
        let (handlers, method, params) = (handlers.clone(), method.to_owned(), params.cloned());
        let running = async move { handlers.serve(&method, params.as_ref()).await };
        tokio::spawn(task.run(running, end, Arc::downgrade(&self.kept)));
        encoded(&result)
    }

    fn find(&self, text: &str) -> Result<Arc<ServedTask>, ErrorObject> {
        let params: TaskParams = read(text)?;
        let found = locked(&self.kept).tasks.get(&params.task_id).cloned();
        found.ok_or_else(|| ErrorObject::invalid_params().with_data("there is no such task"))
    }

    fn cancel(&self, task: &Arc<ServedTask>) -> Outcome {
        let error = ErrorObject::new(-32603, "the task was cancelled");
        if !task.finish(&self.kept, TaskStatus::Cancelled, Err(error)) {
            let reason = "the task cannot be cancelled: it has ended already";
            return Err(ErrorObject::invalid_params().with_data(reason));
        }
        encoded(&task.described())
    }

    /// All tasks fit on one page.
    fn list(&self, text: &str) -> Outcome {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            cursor: Option<String>,
        }
        if read::<Page>(text)?.cursor.is_some() {
            return Err(ErrorObject::invalid_params().with_data("not a cursor of this list"));
        }
        let kept = locked(&self.kept);
        encoded(&ListTasksResult::new(kept.tasks.values().map(|it| it.described()).collect()))
    }
}

impl Drop for ServedTasks {
    fn drop(&mut self) {
        self.clear();
    }
}

impl ServedTask {
    /// Runs the handler, and keeps its outcome until the time to live ends.
    async fn run(
        self: Arc<Self>,
        running: impl Future<Output = Outcome>,
        end: CancellationToken,
        kept: Weak<Mutex<Kept>>,
    ) {
        let life = async {
            let expired = tokio::time::sleep(self.ttl);
            let served = async {
                let outcome = tokio::select! {
                    outcome = running => outcome,
                    () = self.cancelled.cancelled() => return,
                };
                let status = match outcome {
                    Ok(_) => TaskStatus::Completed,
                    Err(_) => TaskStatus::Failed,
                };
                if let Some(kept) = kept.upgrade() {
                    self.finish(&kept, status, outcome);
                }
            };
            let mut expired = std::pin::pin!(expired);
            tokio::select! {
                () = &mut expired => return,
                () = served => {}
            }
            expired.await;
        };
        tokio::select! {
            () = life => {}
            () = end.cancelled() => {}
        }
        if let Some(kept) = kept.upgrade() {
            let error = ErrorObject::new(-32603, "the time to live of the task has ended");
            self.finish(&kept, TaskStatus::Failed, Err(error));
            self.remove(&kept);
        }
    }

    /// Ends the task. Returns false if it has ended already.
    fn finish(&self, kept: &Mutex<Kept>, status: TaskStatus, outcome: Outcome) -> bool {
        let mut kept = locked(kept);
        let bytes = kept.bytes.saturating_add(bytes_of(Some(&outcome)));
        let (status, outcome) = match bytes > MAX_BYTES {
            true => (TaskStatus::Failed, Err(ErrorObject::new(-32603, "the result is too large"))),
            false => (status, outcome),
        };
        let size = bytes_of(Some(&outcome));
        let has_ended = self.state.send_if_modified(|state| {
            let ends = !state.status.is_final();
            if ends {
                *state = State { status, updated: SystemTime::now(), outcome: Some(outcome) };
            }
            ends
        });
        if has_ended && kept.tasks.contains_key(&self.id) {
            kept.bytes += size;
        }
        self.cancelled.cancel();
        has_ended
    }

    fn remove(&self, kept: &Mutex<Kept>) {
        let mut kept = locked(kept);
        if kept.tasks.remove(&self.id).is_some() {
            let bytes = bytes_of(self.state.borrow().outcome.as_ref());
            kept.bytes = kept.bytes.saturating_sub(bytes);
        }
    }

    /// Waits for the outcome.
    async fn result(&self) -> Outcome {
        let mut changes = self.state.subscribe();
        let ended = changes.wait_for(|state| state.status.is_final()).await;
        let outcome = ended.ok().and_then(|state| state.outcome.clone());
        let outcome = outcome.unwrap_or_else(|| Err(ErrorObject::internal_error()))?;
        related(&outcome, &self.id).map_err(ErrorObject::internal)
    }

    fn described(&self) -> Task {
        let state = self.state.borrow();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut task = Task::new(&self.id, iso_8601(self.created))
            .with_ttl(millis(self.ttl))
            .with_poll_interval(millis(POLL_INTERVAL));
        task.status = state.status;
        task.last_updated_at = iso_8601(state.updated);
        if let Some(Err(error)) = &state.outcome {
            task.status_message = Some(error.message.to_string());
        }
        task
    }
}

/// What a request says about a task; `None` if it asks for none.
fn asked(text: &str) -> Result<Option<TaskMetadata>, ErrorObject> {
    #[derive(Deserialize)]
    struct Asked {
        #[serde(default)]
        task: Option<TaskMetadata>,
    }
    read::<Asked>(text).map(|asked| asked.task)
}

fn bytes_of(outcome: Option<&Outcome>) -> usize {
    match outcome {
        Some(Ok(result)) => result.as_bytes().len(),
        Some(Err(error)) => {
            error.message.len() + error.data.as_ref().map_or(0, |data| data.as_bytes().len())
        }
        None => 0,
    }
}
