//! The changes that a server tells its clients: lists that have changed, and resources that were updated.
//!
//! Everybody who wants to know is a listener. A listener never blocks, and the server forgets it when it is dropped.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use antiphon::RawJson;
use serde::Serialize;
use tokio::sync::Notify;

use super::tasks::{Task, TaskNotification};
use crate::types::{Implementation, SubscriptionFilter};

/// One change of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    /// The resource with this URI was updated.
    Resource(Arc<str>),
    /// The state of this task. It is read when the client is told.
    Task(Arc<Task>),
}

impl Change {
    /// The notification of this change.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
            Self::Task(task) => task.notification_method(),
        }
    }

    /// The params of the notification. `subscription` is the id of the `subscriptions/listen` that gets it.
    pub(crate) fn params<'a>(&'a self, subscription: Option<&'a RawJson>) -> ChangeParams<'a> {
        let meta = subscription.map(SubscriptionMeta::new);
        match self {
            Self::Task(task) => ChangeParams::Task(task.notification(meta)),
            Self::Resource(uri) => ChangeParams::Plain { meta, uri: Some(uri) },
            Self::Tools | Self::Prompts | Self::Resources => {
                ChangeParams::Plain { meta, uri: None }
            }
        }
    }
}

/// The params of the notification of a change.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ChangeParams<'a> {
    Plain {
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<SubscriptionMeta<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
    },
    Task(TaskNotification<'a>),
}

/// The metadata that names a subscription. The id stays as the client has written it: a tree of JSON values would round
/// large numbers.
#[derive(Serialize)]
pub(crate) struct SubscriptionMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: &'a RawJson,
    #[serde(
        rename = "io.modelcontextprotocol/serverInfo",
        skip_serializing_if = "Option::is_none"
    )]
    server: Option<&'a Implementation>,
}

impl<'a> SubscriptionMeta<'a> {
    pub(crate) fn new(subscription: &'a RawJson) -> Self {
        Self { subscription, server: None }
    }

    /// Adds the name of the server, which results have.
    pub(crate) fn of(self, server: &'a Implementation) -> Self {
        Self { server: Some(server), ..self }
    }
}

/// Gets the changes of a server.
pub(crate) trait ChangeListener: Send + Sync {
    /// Takes note of a change. Must not block.
    fn changed(&self, change: &Change);

    /// Whether its client is told this change.
    fn wants(&self, change: &Change) -> bool;
}

/// The listeners of a server.
#[derive(Default)]
pub(crate) struct ChangeListeners(Mutex<Vec<Weak<dyn ChangeListener>>>);

impl ChangeListeners {
    /// Adds a listener, until it is dropped.
    pub(crate) fn add(&self, listener: Weak<dyn ChangeListener>) {
        let mut listeners = self.listeners();
        // Only when the vector is full, so that each addition costs little.
        if listeners.len() == listeners.capacity() {
            listeners.retain(|listener| listener.strong_count() > 0);
        }
        listeners.push(listener);
    }

    /// Tells all listeners.
    pub(crate) fn publish(&self, change: &Change) {
        self.alive().iter().for_each(|listener| listener.changed(change));
    }

    /// Whether any client is told this change.
    pub(crate) fn any_wants(&self, change: &Change) -> bool {
        self.alive().iter().any(|listener| listener.wants(change))
    }

    /// The listeners that are not dropped. Used outside of the lock, because a listener may end, and end others.
    fn alive(&self) -> Vec<Arc<dyn ChangeListener>> {
        let mut listeners = self.listeners();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.iter().filter_map(Weak::upgrade).collect()
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<dyn ChangeListener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changes that one client wants to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeFilter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    uris: BTreeSet<Arc<str>>,
    uri_bytes: usize,
    pub(crate) tasks: BTreeSet<Arc<str>>,
}

/// The largest number of resources that one client can subscribe to.
pub(crate) const MAX_SUBSCRIBED_URIS: usize = 1_000;
/// The largest size of their URIs together: a client must not make the server keep any number of bytes.
pub(crate) const MAX_SUBSCRIBED_BYTES: usize = 128 * 1024;

impl ChangeFilter {
    /// All changes of lists, and no resource: what a legacy client gets from the start.
    pub(crate) fn lists() -> Self {
        Self { tools: true, prompts: true, resources: true, ..Self::default() }
    }

    /// Adds a resource. Returns false if there are too many.
    pub(crate) fn subscribe(&mut self, uri: &str) -> bool {
        if self.uris.contains(uri) {
            return true;
        }
        let bytes = self.uri_bytes.saturating_add(uri.len());
        if self.uris.len() >= MAX_SUBSCRIBED_URIS || bytes > MAX_SUBSCRIBED_BYTES {
            return false;
        }
        self.uri_bytes = bytes;
        self.uris.insert(uri.into())
    }

    /// Removes a resource.
    pub(crate) fn unsubscribe(&mut self, uri: &str) {
        if self.uris.remove(uri) {
            self.uri_bytes -= uri.len();
        }
    }

    pub(crate) fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
            Change::Task(task) => self.tasks.contains(task.id()),
        }
    }
}

/// A client wants to know of more resources than it may.
#[derive(Debug)]
pub(crate) struct TooManyResources;

impl TryFrom<&SubscriptionFilter> for ChangeFilter {
    type Error = TooManyResources;

    fn try_from(filter: &SubscriptionFilter) -> Result<Self, TooManyResources> {
        let mut wanted = Self {
            tools: filter.tools_list_changed.unwrap_or_default(),
            prompts: filter.prompts_list_changed.unwrap_or_default(),
            resources: filter.resources_list_changed.unwrap_or_default(),
            tasks: filter.task_ids.iter().flatten().map(|id| Arc::from(id.as_str())).collect(),
            ..Self::default()
        };
        let mut uris = filter.resource_subscriptions.iter().flatten();
        match uris.all(|uri| wanted.subscribe(uri)) {
            true => Ok(wanted),
            false => Err(TooManyResources),
        }
    }
}

/// The changes that wait for one client. A change that already waits is not added again, so they are bounded by
/// the filter.
pub(crate) struct WaitingChanges {
    state: Mutex<WaitingState>,
    changed: Notify,
}

struct WaitingState {
    filter: ChangeFilter,
    waiting: Vec<Change>,
}

impl WaitingChanges {
    pub(crate) fn new(filter: ChangeFilter) -> Self {
        let state = WaitingState { filter, waiting: Vec::new() };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Adds a change whatever the filter says.
    pub(crate) fn push(&self, change: &Change) {
        let mut state = self.state();
        if !state.waiting.contains(change) {
            state.waiting.push(change.clone());
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Changes the filter.
    pub(crate) fn filter<T>(&self, change: impl FnOnce(&mut ChangeFilter) -> T) -> T {
        change(&mut self.state().filter)
    }

    /// Waits for changes and takes them, in the order of their first occurrence. Cancel safe.
    pub(crate) async fn next(&self) -> Vec<Change> {
        loop {
            let waiting = std::mem::take(&mut self.state().waiting);
            if !waiting.is_empty() {
                return waiting;
            }
            self.changed.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, WaitingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeListener for WaitingChanges {
    fn changed(&self, change: &Change) {
        let wants = self.state().filter.wants(change);
        if wants {
            self.push(change);
        }
    }

    fn wants(&self, change: &Change) -> bool {
        self.state().filter.wants(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn equal_changes_are_told_once() {
        let listeners = ChangeListeners::default();
        let waiting = Arc::new(WaitingChanges::new(ChangeFilter::lists()));
        assert!(waiting.filter(|filter| filter.subscribe("a:1")));
        let listener: Arc<dyn ChangeListener> = waiting.clone();
        listeners.add(Arc::downgrade(&listener));
        let resource = |uri: &str| Change::Resource(uri.into());
        for change in [Change::Tools, resource("a:1"), Change::Tools, resource("a:2")] {
            listeners.publish(&change);
        }
        assert_eq!(waiting.next().await, [Change::Tools, resource("a:1")]);
    }

    #[test]
    fn a_dropped_listener_is_forgotten() {
        let listeners = ChangeListeners::default();
        for _ in 0..1000 {
            let listener: Arc<dyn ChangeListener> =
                Arc::new(WaitingChanges::new(ChangeFilter::lists()));
            listeners.add(Arc::downgrade(&listener));
        }
        assert!(listeners.listeners().len() < 10);
        listeners.publish(&Change::Tools);
        assert!(listeners.listeners().is_empty());
    }
}
