//! Receives what a server sends on its own: notifications, and the requests of legacy servers.
//!
//! Every wire delivers here. A notification is handled at once and never waits: queues are bounded, and a
//! subscriber that does not read loses the oldest notifications.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::{CancellationToken, ErrorObject, Id, Outcome, RawJson};
use tokio::sync::{Notify, broadcast};

use super::cache::Cache;
use super::handlers::Handlers;
use super::login_clock::LoginClock;
use super::served_tasks::ServedTasks;
use crate::server::related;
use crate::types::tasks::extension::DetailedTask;
use crate::types::{
    CancelledParams, ElicitationCompleteParams, LoggingMessageParams, NotificationParams,
    ProgressParams, ProgressToken, RequestId, ResourceUpdatedParams, SubscriptionFilter,
    SubscriptionsAcknowledgedParams, from_object, methods,
};

/// The notifications that one subscriber may be behind.
const BACKLOG: usize = 256;

/// A notification of a server that belongs to no call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerNotification {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// A resource has changed.
    ResourceUpdated {
        /// The URI of the resource.
        uri: String,
    },
    /// A task has changed (the extension `io.modelcontextprotocol/tasks`).
    TaskChanged(Box<DetailedTask>),
    /// The user has completed an elicitation by URL (2025-11-25).
    ElicitationComplete {
        /// The id of the elicitation.
        elicitation_id: String,
    },
    /// The subscriber read too slowly and has lost this many notifications.
    Lagged(u64),
    /// The subscription was interrupted and is open again. Notifications in between are lost.
    Resumed,
    /// A notification that this crate does not know.
    Other {
        /// The method.
        method: String,
        /// The params.
        params: Option<RawJson>,
    },
}

/// The state of one subscription.
pub(super) struct Subscribed {
    pub(super) events: broadcast::Sender<ServerNotification>,
    /// What the server has agreed to send.
    pub(super) acknowledged: Mutex<Option<SubscriptionFilter>>,
    pub(super) changed: Notify,
    /// Cancelled when the server ends the subscription.
    pub(super) ended: CancellationToken,
}

/// The receiver of the progress of one call.
pub(super) struct ProgressSink {
    pub(super) receive: Option<Arc<dyn Fn(ProgressParams) + Send + Sync>>,
    /// Wakes the timeout of the call.
    pub(super) arrived: Notify,
}

/// Receives what a server sends on its own.
pub(super) struct Inbox {
    pub(super) handlers: Arc<Handlers>,
    /// The tasks that a legacy server has asked for.
    pub(super) tasks: ServedTasks,
    /// Whether the server may send requests.
    pub(super) is_asked: AtomicBool,
    /// Whether the session has tasks of this client.
    pub(super) serves_tasks: AtomicBool,
    pub(super) cache: Cache,
    /// Stands still while the user logs in.
    pub(super) clock: LoginClock,
    /// The notifications of a legacy server, which has no subscriptions by id.
    pub(super) events: broadcast::Sender<ServerNotification>,
    progress: Mutex<HashMap<ProgressToken, Arc<ProgressSink>>>,
    next_token: AtomicU64,
    subscribed: Mutex<HashMap<RequestId, Arc<Subscribed>>>,
    running: Mutex<HashMap<RequestId, CancellationToken>>,
}

impl Inbox {
    pub(super) fn new(handlers: Handlers) -> Self {
        Self {
            handlers: Arc::new(handlers),
            tasks: ServedTasks::default(),
            is_asked: AtomicBool::new(true),
            serves_tasks: AtomicBool::new(false),
            cache: Cache::default(),
            clock: LoginClock::default(),
            events: broadcast::Sender::new(BACKLOG),
            progress: Mutex::default(),
            next_token: AtomicU64::new(1),
            subscribed: Mutex::default(),
            running: Mutex::default(),
        }
    }

    /// Registers a receiver of progress, and returns its token. The guard removes it.
    pub(super) fn watch(self: &Arc<Self>, sink: Arc<ProgressSink>) -> WatchedProgress {
        let token = ProgressToken::from(self.next_token.fetch_add(1, Ordering::Relaxed));
        locked(&self.progress).insert(token.clone(), sink);
        WatchedProgress { inbox: self.clone(), token }
    }

    /// Registers a subscription under the id of its request.
    pub(super) fn subscribe(&self, id: RequestId) -> Arc<Subscribed> {
        let subscribed = Arc::new(Subscribed {
            events: broadcast::Sender::new(BACKLOG),
            acknowledged: Mutex::default(),
            changed: Notify::new(),
            ended: CancellationToken::new(),
        });
        locked(&self.subscribed).insert(id, subscribed.clone());
        subscribed
    }

    pub(super) fn unsubscribe(&self, id: &RequestId) {
        locked(&self.subscribed).remove(id);
    }

    /// Whether there is a subscription. If not, cancellations of subscriptions need not be looked for.
    pub(super) fn has_subscriptions(&self) -> bool {
        !locked(&self.subscribed).is_empty()
    }

    /// Handles a notification. `origin` is the id of the request whose response stream carries it.
    pub(super) fn notification(&self, method: &str, params: Option<&RawJson>, origin: Option<u64>) {
        let text = params.map_or("{}", RawJson::as_str);
        match method {
            methods::PROGRESS => self.progress(text),
            methods::LOG_MESSAGE => self.log(text),
            methods::CANCELLED => self.cancelled(text),
            methods::SUBSCRIPTIONS_ACKNOWLEDGED => self.acknowledged(text, origin),
            _ => match event(method, params) {
                Some(event) => self.publish(event, text, origin),
                None => tracing::debug!(method, "a notification cannot be read and is ignored"),
            },
        }
    }

    /// Serves a request of a legacy server, until the server cancels it.
    pub(super) async fn request(
        &self,
        id: &Id,
        method: &str,
        params: Option<&RawJson>,
    ) -> Option<Outcome> {
        let cancelled = CancellationToken::new();
        let key = RequestId::of(id)?;
        match locked(&self.running).entry(key.clone()) {
            Entry::Vacant(place) => drop(place.insert(cancelled.clone())),
            Entry::Occupied(_) => return Some(Err(ErrorObject::invalid_request())),
        }
        let _running = RunningRequest { inbox: self, key };
        tokio::select! {
            outcome = self.serve(method, params) => Some(outcome),
            () = cancelled.cancelled() => None,
        }
    }

    /// Serves a request of a legacy server. A modern server must not send requests (2026-07-28, message patterns).
    pub(super) async fn serve(&self, method: &str, params: Option<&RawJson>) -> Outcome {
        if !self.is_asked.load(Ordering::Acquire) {
            tracing::warn!(method, "a modern server must not send requests");
            return Err(ErrorObject::method_not_found());
        }
        if self.serves_tasks.load(Ordering::Acquire)
            && let Some(served) = self.tasks.serve(&self.handlers, method, params)
        {
            return served.await;
        }
        let outcome = self.handlers.serve(method, params).await?;
        // The answer belongs to the task of the question (2025-11-25, tasks, "Associating Task-Related Messages").
        let asked =
            params.and_then(|params| from_object::<NotificationParams>(params.as_str()).ok());
        match asked.as_ref().and_then(|asked| asked.meta.related_task()) {
            Some(id) => related(&outcome, id).map_err(ErrorObject::internal),
            None => Ok(outcome),
        }
    }

    fn progress(&self, text: &str) {
        let Ok(progress) = from_object::<ProgressParams>(text) else { return };
        let Some(sink) = locked(&self.progress).get(&progress.progress_token).cloned() else {
            tracing::debug!(token = %progress.progress_token, "progress of no call");
            return;
        };
        sink.arrived.notify_one();
        if let Some(receive) = &sink.receive {
            receive(progress);
        }
    }

    fn log(&self, text: &str) {
        match (&self.handlers.log, from_object::<LoggingMessageParams>(text)) {
            (Some(receive), Ok(message)) => receive(message),
            (_, Err(error)) => tracing::debug!(%error, "a log message cannot be read"),
            (None, Ok(_)) => {}
        }
    }

    /// Cancels a request of the server, or a subscription that the server has ended.
    pub(super) fn cancelled(&self, text: &str) {
        let Ok(CancelledParams { request_id: Some(id), .. }) = from_object(text) else { return };
        if let Some(running) = locked(&self.running).get(&id) {
            running.cancel();
        }
        if let Some(subscribed) = locked(&self.subscribed).get(&id) {
            subscribed.ended.cancel();
        }
    }

    fn acknowledged(&self, text: &str, origin: Option<u64>) {
        let Ok(params) = from_object::<SubscriptionsAcknowledgedParams>(text) else { return };
        let Some(subscribed) = self.subscribed(params.meta.subscription_id(), origin) else {
            return;
        };
        *locked(&subscribed.acknowledged) = Some(params.notifications);
        subscribed.changed.notify_one();
    }

    /// Passes a notification to its subscription, or to all subscribers if it names none.
    fn publish(&self, event: ServerNotification, text: &str, origin: Option<u64>) {
        self.cache.invalidate(&event);
        let named = from_object::<NotificationParams>(text).ok();
        let named = named.and_then(|params| params.meta.subscription_id());
        let sender = self.subscribed(named, origin);
        let _ = match &sender {
            Some(subscribed) => subscribed.events.send(event.clone()),
            None => self.events.send(event.clone()),
        };
        if let Some(receive) = &self.handlers.notified {
            receive(event);
        }
    }

    fn subscribed(&self, named: Option<RequestId>, origin: Option<u64>) -> Option<Arc<Subscribed>> {
        let id = named.or_else(|| origin.map(RequestId::from))?;
        locked(&self.subscribed).get(&id).cloned()
    }
}

fn event(method: &str, params: Option<&RawJson>) -> Option<ServerNotification> {
    let text = params.map_or("{}", RawJson::as_str);
    Some(match method {
        methods::TOOLS_CHANGED => ServerNotification::ToolsChanged,
        methods::PROMPTS_CHANGED => ServerNotification::PromptsChanged,
        methods::RESOURCES_CHANGED => ServerNotification::ResourcesChanged,
        methods::RESOURCE_UPDATED => {
            let params: ResourceUpdatedParams = from_object(text).ok()?;
            ServerNotification::ResourceUpdated { uri: params.uri }
        }
        methods::TASKS => ServerNotification::TaskChanged(Box::new(from_object(text).ok()?)),
        methods::ELICITATION_COMPLETE => {
            let params: ElicitationCompleteParams = from_object(text).ok()?;
            ServerNotification::ElicitationComplete { elicitation_id: params.elicitation_id }
        }
        _ => ServerNotification::Other { method: method.to_owned(), params: params.cloned() },
    })
}

/// Removes a request of the server on drop.
struct RunningRequest<'a> {
    inbox: &'a Inbox,
    key: RequestId,
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        locked(&self.inbox.running).remove(&self.key);
    }
}

/// Removes a receiver of progress on drop.
pub(super) struct WatchedProgress {
    inbox: Arc<Inbox>,
    pub(super) token: ProgressToken,
}

impl Drop for WatchedProgress {
    fn drop(&mut self) {
        locked(&self.inbox.progress).remove(&self.token);
    }
}

/// A poisoned lock is used: each holder makes one change.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
