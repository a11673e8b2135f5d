//! The subscriptions of a connection: those that this side serves, and those that it follows.
//!
//! Most connections have none and allocate no table. A subscription that this side follows is entered
//! where the reader handles its response, before the next message is read. So no item can arrive for a
//! subscription that is not known yet.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll};

use antiphon_core::{ErrorObject, Id, Params, RawJson};
use bytes::BytesMut;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::link::DROPPED;
use super::shared::{Answer, Waiter};
use crate::BoxFuture;
use crate::call::{CallError, Invocation, Link};
use crate::error::CloseReason;
use crate::subscription::{
    Attached, Closing, FollowedSubscription, ItemParams, ItemWriter, ServedSubscription,
    SubscriptionSource, Topic,
};

/// The subscriptions of a connection.
#[derive(Default)]
pub(super) struct Subscriptions {
    table: Mutex<Option<Box<Table>>>,
    /// A subscription was followed. While it is false, incoming notifications are not inspected.
    follows_any: AtomicBool,
}

/// The maximum number of abandoned subscribe calls that are remembered.
const MAX_ABANDONED: usize = 64;

#[derive(Default)]
struct Table {
    served: HashMap<Id, Arc<ServedSubscription>>,
    followed: HashMap<Id, Arc<FollowedSubscription>>,
    /// Subscribe calls that were abandoned before their response, the oldest first.
    abandoned: VecDeque<(Id, Box<PendingSubscription>)>,
    /// A hasher and a counter, from which ids are made.
    ids: (RandomState, u64),
    /// New subscriptions are rejected.
    is_closed: bool,
}

impl Subscriptions {
    fn table(&self) -> MutexGuard<'_, Option<Box<Table>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers an abandoned subscribe call, so that a late response can be unsubscribed. The oldest
    /// one is forgotten when there are too many.
    pub(super) fn remember_abandoned(&self, id: Id, asked: Box<PendingSubscription>) {
        let mut table = self.table();
        let abandoned = &mut table.get_or_insert_default().abandoned;
        let oldest = if abandoned.len() == MAX_ABANDONED { abandoned.pop_front() } else { None };
        abandoned.push_back((id, asked));
        drop(table);
        drop(oldest);
    }

    /// Takes the abandoned subscribe call that a late response belongs to.
    pub(super) fn take_abandoned(&self, id: &Id) -> Option<Box<PendingSubscription>> {
        let mut table = self.table();
        let abandoned = &mut table.as_mut()?.abandoned;
        let at = abandoned.iter().position(|(other, _)| other == id)?;
        abandoned.remove(at).map(|(_, asked)| asked)
    }

    /// Whether this side follows a subscription.
    pub(super) fn follows_some(&self) -> bool {
        self.table().as_ref().is_some_and(|table| !table.followed.is_empty())
    }

    /// Whether this side serves no subscription.
    pub(super) fn serves_none(&self) -> bool {
        self.table().as_ref().is_none_or(|table| table.served.is_empty())
    }

    /// Ends the served subscriptions after their queued items, and rejects new ones.
    pub(super) fn close(&self, reason: &'static str) {
        for channel in self.take_served() {
            channel.close(Closing::Over(reason));
        }
    }

    /// Makes the followed subscriptions accept the items that have arrived, because the connection is
    /// about to end.
    pub(super) fn drain(&self) {
        let feeds: Vec<_> = match &*self.table() {
            Some(table) => table.followed.values().cloned().collect(),
            None => return,
        };
        feeds.iter().for_each(|feed| feed.drain());
    }

    fn take_served(&self) -> Vec<Arc<ServedSubscription>> {
        let mut table = self.table();
        let table = table.get_or_insert_default();
        table.is_closed = true;
        table.served.values().cloned().collect()
    }

    /// Ends all subscriptions, because the connection has ended.
    pub(super) fn end(&self, reason: &CloseReason) {
        let (served, followed, abandoned) = {
            let mut table = self.table();
            let table = table.get_or_insert_default();
            table.is_closed = true;
            let abandoned = std::mem::take(&mut table.abandoned);
            (std::mem::take(&mut table.served), std::mem::take(&mut table.followed), abandoned)
        };
        drop(abandoned);
        served.into_values().for_each(|channel| channel.end());
        followed.into_values().for_each(|feed| feed.disconnect(reason));
    }
}

impl Table {
    /// Returns an unused id that a client cannot predict, as in Ethereum.
    fn next_id(&mut self) -> Id {
        loop {
            self.ids.1 += 1;
            let id = Id::from(&*format!("0x{:016x}", self.ids.0.hash_one(self.ids.1)));
            if !self.served.contains_key(&id) {
                return id;
            }
        }
    }
}

/// A subscribe call whose response has not arrived.
pub(super) struct PendingSubscription {
    shared: Arc<Shared>,
    feed: Arc<FollowedSubscription>,
    /// The reason why items were missed, if this subscription replaces an earlier one.
    gap: Option<CloseReason>,
    answer: oneshot::Sender<Result<(), CallError>>,
}

impl PendingSubscription {
    /// Enters the subscription under the id of the response. The reader calls it before it reads the
    /// next message.
    pub(super) fn answered(self, answer: Answer) {
        let outcome = answer.and_then(|id| {
            let id = Id::from_json(id).filter(|id| *id != Id::Null);
            let id = id.ok_or_else(|| {
                let reason = "a subscribe call must be answered with its id, a String or a Number";
                CallError::protocol(reason)
            })?;
            self.follow(id)
        });
        let _ = self.answer.send(outcome);
    }

    fn follow(&self, id: Id) -> Result<(), CallError> {
        let attached = Attached { source: self.shared.clone(), id: id.clone() };
        let subscriptions = &self.shared.subscriptions;
        subscriptions.follows_any.store(true, Ordering::Release);
        let mut table = subscriptions.table();
        let taken = match table.get_or_insert_default().followed.entry(id) {
            Entry::Occupied(taken) => Some(taken.key().clone()),
            Entry::Vacant(entry) => {
                entry.insert(self.feed.clone());
                None
            }
        };
        drop(table);
        if let Some(id) = taken {
            let reason = format!("the subscription id {id} is already in use");
            return Err(CallError::protocol(reason));
        }
        if let Some(reason) = &self.gap {
            self.feed.gap(reason.clone());
        }
        // The subscriber was dropped meanwhile, so the subscription is ended at the peer.
        if !self.feed.attach(attached.clone()) {
            attached.leave(&self.feed);
        }
        Ok(())
    }
}

impl Shared {
    pub(super) fn serve_subscription(
        self: Arc<Self>,
        topic: Arc<Topic>,
        over: CancellationToken,
    ) -> Result<Arc<ServedSubscription>, ErrorObject> {
        let mut table = self.subscriptions.table();
        let table = table.get_or_insert_default();
        if table.is_closed {
            return Err(ErrorObject::server_busy("shutting down"));
        }
        let limit = self.settings.limits.subscriptions;
        if table.served.len() >= limit {
            return Err(ErrorObject::too_many_subscriptions(limit));
        }
        let id = table.next_id();
        let queue = self.settings.limits.write_queue_bytes;
        let channel =
            Arc::new(ServedSubscription::new(id.clone(), topic, self.clone(), queue, over));
        table.served.insert(id, channel.clone());
        Ok(channel)
    }

    pub(super) fn end_subscription(&self, id: &Id) -> bool {
        let mut table = self.subscriptions.table();
        let removed = table.as_mut().and_then(|table| table.served.remove(id));
        drop(table);
        removed.inspect(|channel| channel.end()).is_some()
    }

    /// Subscribes at the peer.
    pub(super) async fn follow(
        self: Arc<Self>,
        call: Invocation,
        feed: Arc<FollowedSubscription>,
        gap: Option<CloseReason>,
    ) -> Result<(), CallError> {
        self.capacity().await?;
        let (answer, answered) = oneshot::channel();
        let asked = PendingSubscription { shared: self.clone(), feed, gap, answer };
        // If this future is dropped, the call is remembered: a late response is unsubscribed.
        let pending = self.open(&call, Waiter::Subscription(Box::new(asked)))?;
        let answer = answered.await;
        pending.answered();
        answer.unwrap_or_else(|_| Err(CallError::Interrupted(DROPPED.into())))
    }

    /// Returns the followed subscription that an item belongs to, and the future that delivers the
    /// item; `None` for any other notification.
    pub(super) fn followed(
        &self,
        params: Option<&Params>,
    ) -> Option<(Arc<FollowedSubscription>, BoxFuture<'static, ()>)> {
        if !self.subscriptions.follows_any.load(Ordering::Acquire) {
            return None;
        }
        let arrived = ItemParams::read(params)?;
        let id = Id::from_json(arrived.subscription.clone())?;
        let feed = self.subscriptions.table().as_ref()?.followed.get(&id)?.clone();
        if arrived.is_last() {
            self.unfollow(&id, &feed);
        }
        let delivered = Box::pin(feed.clone().deliver(arrived));
        Some((feed, delivered))
    }
}

impl ItemWriter for Shared {
    fn poll_write(
        &self,
        len: usize,
        write: &mut dyn FnMut(&mut BytesMut),
        poller: Option<&mut Poller<'_>>,
    ) -> Poll<bool> {
        let mut state = self.state();
        if state.ended.is_some() {
            return Poll::Ready(false);
        }
        if state.outbox.has_room() {
            state.outbox.write(len, write);
            self.wake_connection(state);
            return Poll::Ready(true);
        }
        if let Some(poller) = poller
            && state.outbox.add_sender(poller.waker())
        {
            self.wake_connection(state);
        }
        Poll::Pending
    }

    fn forget(&self, id: &Id) {
        let removed = self.subscriptions.table().as_mut().map(|table| table.served.remove(id));
        drop(removed);
        // A closing connection waits until no subscription is served.
        self.wake_connection(self.state());
    }
}

impl SubscriptionSource for Shared {
    fn unfollow(&self, id: &Id, feed: &FollowedSubscription) {
        let mut table = self.subscriptions.table();
        let removed = table.as_mut().and_then(|table| {
            let is_it = table.followed.get(id).is_some_and(|other| std::ptr::eq(&**other, feed));
            if is_it { table.followed.remove(id) } else { None }
        });
        drop(table);
        drop(removed);
    }

    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        Link::send(self, call)
    }

    fn send_and_forget(&self, call: &Invocation) {
        Link::send_and_forget(self, call);
    }

    fn spawn(self: Arc<Self>, task: BoxFuture<'static, ()>) {
        // A subscription may be dropped outside of the runtime.
        if Handle::try_current().is_ok() {
            let _ = self.spawn_task(task);
        }
    }
}
