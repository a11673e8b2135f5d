//! One task: its state, and how it changes.
//!
//! A task ends once, and never changes again. Everybody who waits for it, and every client that is told about it, learns
//! each change after it has happened.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use antiphon::{CallError, Code, ErrorObject, Outcome, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::owner::Owner;
use super::store::TaskStore;
use crate::server::changes::Change;
use crate::server::questions::{Asked, Questions};
use crate::server::{RequestContext, ServerState, Session};
use crate::types::tasks::TaskStatus;

/// One task.
pub(crate) struct Task {
    id: Arc<str>,
    /// Its place in the list of tasks.
    number: u64,
    owner: Owner,
    created: SystemTime,
    ttl: Duration,
    poll_interval: Duration,
    questions: Arc<Questions>,
    server: Weak<ServerState>,
    /// The legacy session that has created it, which is told its changes.
    session: Option<Weak<Session>>,
    state: Mutex<TaskState>,
    changed: watch::Sender<()>,
    /// Cancelled when the task ends, so that the handler is dropped.
    ended: CancellationToken,
}

struct TaskState {
    status: TaskStatus,
    message: Option<String>,
    updated: SystemTime,
    /// The version of the questions that the status reflects.
    seen: u64,
    end: Option<TaskEnd>,
    /// The bytes that the result takes from the limit of the store.
    bytes: usize,
    /// The requests that deliver its questions to a legacy client. Only the last one does.
    deliveries: Vec<u64>,
    last_delivery: u64,
}

/// How a task has ended.
#[derive(Clone, Debug)]
pub(super) enum TaskEnd {
    /// With a result, which may say that the tool failed.
    Completed {
        result: RawJson,
        is_error: bool,
    },
    Failed(ErrorObject),
    Cancelled,
}

/// The state of a task at one moment.
pub(super) struct Snapshot {
    pub(super) status: TaskStatus,
    pub(super) message: Option<String>,
    pub(super) updated: SystemTime,
    pub(super) end: Option<TaskEnd>,
}

impl Task {
    /// Creates a task for the call of a context.
    pub(super) fn new(
        id: Arc<str>,
        number: u64,
        owner: Owner,
        ttl: Duration,
        cx: &RequestContext,
    ) -> Arc<Self> {
        let (created, server) = (SystemTime::now(), cx.server());
        let state = TaskState {
            status: TaskStatus::Working,
            message: None,
            updated: created,
            seen: cx.questions().open().0,
            end: None,
            bytes: 0,
            deliveries: Vec::new(),
            last_delivery: 0,
        };
        Arc::new(Self {
            id,
            number,
            owner,
            created,
            ttl,
            poll_interval: server.settings().tasks.poll_interval,
            questions: cx.questions().clone(),
            server: Arc::downgrade(&server.state),
            session: cx.session().map(Arc::downgrade),
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
            ended: CancellationToken::new(),
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(super) fn created(&self) -> SystemTime {
        self.created
    }

    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(super) fn poll_interval(&self) -> Duration {
        self.poll_interval
    }

    pub(super) fn questions(&self) -> &Questions {
        &self.questions
    }

    /// The questions that the client has to answer.
    pub(super) fn open_questions(&self) -> Vec<Asked> {
        self.questions.open().1
    }

    /// How the task has ended; `None` while it runs.
    pub(super) fn end(&self) -> Option<TaskEnd> {
        self.state().end.clone()
    }

    /// Wakes at each change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(super) fn is_running(&self) -> bool {
        !self.ended.is_cancelled()
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(super) fn snapshot(self: &Arc<Self>) -> Snapshot {
        self.refresh();
        let state = self.state();
        Snapshot {
            status: state.status,
            message: state.message.clone(),
            updated: state.updated,
            end: state.end.clone(),
        }
    }

    /// Sets the message of the status.
    pub(crate) fn say(self: &Arc<Self>, message: &str) {
        let mut state = self.state();
        if state.end.is_some() {
            return;
        }
        state.message = Some(message.to_owned());
        state.updated = SystemTime::now();
        drop(state);
        // Legacy clients are told only changes of the status.
        if self.owner.is_modern() {
            self.publish();
        }
    }

    /// Brings the status up to date with the questions.
    pub(super) fn refresh(self: &Arc<Self>) {
        let (version, open) = self.questions.open();
        let status = match open.is_empty() {
            true => TaskStatus::Working,
            false => TaskStatus::InputRequired,
        };
        let mut state = self.state();
        if state.end.is_some() || version <= state.seen {
            return;
        }
        state.seen = version;
        if status == TaskStatus::Working && state.status == status {
            return;
        }
        (state.status, state.updated) = (status, SystemTime::now());
        drop(state);
        self.publish();
    }

    /// Ends the task. Returns false if it has ended already.
    pub(super) fn finish(self: &Arc<Self>, store: &TaskStore, end: TaskEnd) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        let bytes = end.bytes();
        let (end, bytes) = match store.reserve(bytes) {
            true => (end, bytes),
            false => (TaskEnd::Failed(too_large(bytes)), 0),
        };
        state.status = end.status(self.owner.is_modern());
        state.message = end.message();
        (state.updated, state.bytes, state.end) = (SystemTime::now(), bytes, Some(end));
        drop(state);
        self.questions.clear();
        self.ended.cancel();
        self.publish();
        true
    }

    /// The bytes that the store gets back when the task is removed.
    pub(super) fn take_bytes(&self) -> usize {
        std::mem::take(&mut self.state().bytes)
    }

    /// Fails a question that the client of a legacy task cannot answer.
    pub(super) fn fail_question(self: &Arc<Self>, key: &str, error: CallError) {
        self.questions.fail_open(key, error);
        self.refresh();
    }

    /// Answers a question.
    pub(super) fn answer(
        self: &Arc<Self>,
        answers: impl IntoIterator<Item = (String, Box<RawValue>)>,
    ) {
        self.questions.answer_open(answers.into_iter().collect());
        self.refresh();
    }

    /// Begins to deliver questions, in place of whoever has delivered them before.
    pub(super) fn deliver(self: &Arc<Self>) -> Delivery {
        let mut state = self.state();
        state.last_delivery += 1;
        let number = state.last_delivery;
        state.deliveries.push(number);
        drop(state);
        self.changed.send_replace(());
        Delivery { task: self.clone(), number }
    }

    fn publish(self: &Arc<Self>) {
        self.changed.send_replace(());
        let change = Change::Task(self.clone());
        match &self.session {
            Some(session) => {
                if let Some(session) = session.upgrade() {
                    session.link().tell(&change);
                }
            }
            None => {
                if let Some(server) = self.server.upgrade() {
                    server.listeners.publish(&change);
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskEnd {
    pub(super) fn of(outcome: Outcome) -> Self {
        #[derive(Deserialize)]
        struct Read {
            #[serde(default, rename = "isError")]
            is_error: Option<bool>,
        }
        match outcome {
            Ok(result) => {
                let read = result.decode::<Read>().ok();
                let is_error = read.and_then(|read| read.is_error).unwrap_or_default();
                Self::Completed { result, is_error }
            }
            Err(error) => Self::Failed(error),
        }
    }

    /// In 2025-11-25 a task whose tool reports an error has failed; in the extension it is completed.
    fn status(&self, is_modern: bool) -> TaskStatus {
        match self {
            Self::Completed { is_error: true, .. } if !is_modern => TaskStatus::Failed,
            Self::Completed { .. } => TaskStatus::Completed,
            Self::Failed(_) => TaskStatus::Failed,
            Self::Cancelled => TaskStatus::Cancelled,
        }
    }

    fn message(&self) -> Option<String> {
        match self {
            Self::Completed { is_error: false, .. } => None,
            Self::Completed { is_error: true, .. } => {
                Some("the tool has reported an error".to_owned())
            }
            Self::Failed(error) => Some(error.message.to_string()),
            Self::Cancelled => Some("the task was cancelled".to_owned()),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Completed { result, .. } => result.as_bytes().len(),
            Self::Failed(error) => {
                let data = error.data.as_ref().map_or(0, |data| data.as_bytes().len());
                error.message.len() + data
            }
            Self::Cancelled => 0,
        }
    }
}

fn too_large(bytes: usize) -> ErrorObject {
    let reason = format!("the result of {bytes} bytes does not fit into the limit of all results");
    ErrorObject::new(Code::INTERNAL_ERROR.0, reason)
}

/// One request that delivers the questions of a task to a legacy client, until it is dropped.
pub(super) struct Delivery {
    task: Arc<Task>,
    number: u64,
}

impl Delivery {
    /// Whether no later request delivers them instead: the client may have left this one.
    pub(super) fn is_current(&self) -> bool {
        self.task.state().deliveries.last() == Some(&self.number)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.task.state().deliveries.retain(|number| *number != self.number);
        self.task.changed.send_replace(());
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Task {}

impl fmt::Debug for Task {
    /// Does not print the id, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("number", &self.number).finish_non_exhaustive()
    }
}
