//! The subscribing side of one subscription: items that were received and not consumed yet.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};

use antiphon_core::{ErrorObject, Id, RawJson};

use super::item_message::{ItemParams, SHUTTING_DOWN};
use super::item_queue::ItemQueue;
use super::topic::{Overflow, Topic};
use super::unsubscription::{PassedLayers, UnsubscribeLayers};
use crate::BoxFuture;
use crate::error::{CallError, CloseReason};
use crate::invocation::Invocation;

/// The maximum number of bytes of waiting items.
const MAX_BYTES: usize = 1 << 20;

/// The receiver of the items of a subscription, an argument of
/// [`Caller::subscribe`](crate::Caller::subscribe). A `Caller` that wraps another passes it on.
#[derive(Clone)]
pub struct Follower {
    feed: Arc<FollowedSubscription>,
    /// The layers that the subscribe call has passed.
    layers: PassedLayers,
}

impl Follower {
    pub(crate) fn new(feed: Arc<FollowedSubscription>) -> Self {
        Self { feed, layers: PassedLayers::new() }
    }

    /// The subscribe call passes these layers next. So will the unsubscribe call.
    pub(crate) fn pass(&mut self, layers: Arc<dyn UnsubscribeLayers>) {
        self.layers.push(layers);
    }

    /// Ends the way of the subscribe call through layers.
    pub(crate) fn into_feed(self) -> Arc<FollowedSubscription> {
        self.feed.state().layers = self.layers;
        self.feed
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Follower").field(&self.feed.topic).finish()
    }
}

pub(crate) struct FollowedSubscription {
    pub(crate) topic: Topic,
    /// The client subscribes again after a lost connection, so the subscription does not end with it.
    resubscribes: AtomicBool,
    state: Mutex<FollowedState>,
}

struct FollowedState {
    queue: ItemQueue,
    /// The notices between the items, in order.
    notices: VecDeque<PlacedNotice>,
    /// The number of items that were consumed or dropped.
    taken: u64,
    /// The number of items that were received.
    received: u64,
    /// The layers of the client that has subscribed.
    layers: PassedLayers,
    attached: Option<Attached>,
    was_attached: bool,
    /// The connection is ending: received items are accepted without waiting for room.
    is_draining: bool,
    ended: Option<Ended>,
    reader: Option<Waker>,
    /// Deliveries that wait for room.
    waiting: Vec<Waker>,
}

/// A notice between two items.
struct PlacedNotice {
    /// The number of items received before it.
    after: u64,
    what: Notice,
}

/// Information about missing items.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// The server has dropped this many items.
    Lost(u64),
    /// The connection was lost for this reason, and the client has subscribed again.
    Gap(CloseReason),
}

/// The connection that delivers the items of a followed subscription.
pub(crate) trait SubscriptionSource: Send + Sync {
    /// Stops the delivery of items to this feed.
    fn unfollow(&self, id: &Id, feed: &FollowedSubscription);

    /// Sends a call, and waits for its response.
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>>;

    /// Sends a call, and ignores its response.
    fn send_and_forget(&self, call: &Invocation);

    /// Runs a task that ends with the connection. Drops it where no task can run.
    fn spawn(self: Arc<Self>, task: BoxFuture<'static, ()>);
}

/// The connection of a followed subscription, and the id of its subscription there.
#[derive(Clone)]
pub(crate) struct Attached {
    pub(crate) source: Arc<dyn SubscriptionSource>,
    pub(crate) id: Id,
}

/// The reason why there are no more items.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// We have unsubscribed.
    Unsubscribed,
    /// The source has ended, for this reason.
    Over(String),
    Failed(ErrorObject),
    /// The buffer of this feed was full.
    TooSlow,
    /// The connection has ended, for this reason.
    Disconnected(CloseReason),
}

/// The next event of a followed subscription.
pub(crate) enum FollowedEvent {
    Item(RawJson),
    Notice(Notice),
    Ended(Ended),
}

impl FollowedSubscription {
    pub(crate) fn new(topic: Topic) -> Self {
        let state = FollowedState {
            queue: ItemQueue::new(topic.buffer, MAX_BYTES),
            notices: VecDeque::new(),
            taken: 0,
            received: 0,
            layers: PassedLayers::new(),
            attached: None,
            was_attached: false,
            is_draining: false,
            ended: None,
            reader: None,
            waiting: Vec::new(),
        };
        Self { topic, resubscribes: AtomicBool::new(false), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, FollowedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the source of the items. Returns false if the subscription has ended.
    pub(crate) fn attach(&self, attached: Attached) -> bool {
        let mut state = self.state();
        if state.ended.is_some() {
            return false;
        }
        state.attached = Some(attached);
        state.was_attached = true;
        state.is_draining = false;
        true
    }

    /// Keeps the subscription open when its connection ends.
    pub(crate) fn set_resubscribes(&self) {
        self.resubscribes.store(true, Ordering::Release);
    }

    fn resubscribes(&self) -> bool {
        self.resubscribes.load(Ordering::Acquire)
    }

    pub(crate) fn attached(&self) -> Option<Attached> {
        self.state().attached.clone()
    }

    /// Whether it was subscribed at least once.
    pub(crate) fn was_attached(&self) -> bool {
        self.state().was_attached
    }

    pub(super) fn layers(&self) -> PassedLayers {
        self.state().layers.clone()
    }

    /// Accepts a message. Waits for room if the topic has [`Overflow::Wait`].
    pub(crate) async fn deliver(self: Arc<Self>, arrived: ItemParams) {
        let lost = arrived.lost();
        if lost > 0 {
            self.notice(Notice::Lost(lost));
        }
        let (error, closed) = (arrived.error(), arrived.closed());
        let mut item = arrived.result;
        poll_fn(|poller| self.poll_push(&mut item, poller)).await;
        match (error, closed) {
            (Some(error), _) => self.end(Ended::Failed(error)),
            // A client that reconnects subscribes again after a restart of the server, as after a
            // crash. So the subscription does not end.
            (None, Some(reason)) if reason == SHUTTING_DOWN && self.resubscribes() => {
                self.disconnect(&reason.into());
            }
            (None, Some(reason)) => self.end(Ended::Over(reason)),
            (None, None) => {}
        }
    }

    /// Accepts an item without waiting: drops the oldest if there is no room.
    pub(crate) fn offer(&self, item: RawJson) {
        let mut state = self.state();
        if state.ended.is_none() {
            state.push(item);
            state.wake_reader();
        }
    }

    /// The connection is ending: no delivery waits for room any more.
    pub(crate) fn drain(&self) {
        let mut state = self.state();
        state.is_draining = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll_push(&self, item: &mut Option<RawJson>, poller: &mut Poller<'_>) -> Poll<()> {
        let Some(next) = item.take() else { return Poll::Ready(()) };
        let mut state = self.state();
        if state.ended.is_some() {
            return Poll::Ready(());
        }
        let may_wait = !state.is_draining && self.topic.overflow == Overflow::Wait;
        if !state.queue.has_room(&next) && may_wait {
            *item = Some(next);
            if !state.waiting.iter().any(|waker| waker.will_wake(poller.waker())) {
                state.waiting.push(poller.waker().clone());
            }
            return Poll::Pending;
        }
        if !state.queue.has_room(&next) && self.topic.overflow == Overflow::Close {
            drop(state);
            self.leave(Ended::TooSlow);
            return Poll::Ready(());
        }
        match self.topic.overflow {
            // The queue may exceed its limit, by at most the items that the connection held.
            Overflow::Wait => state.append(next),
            _ => state.push(next),
        }
        state.wake_reader();
        Poll::Ready(())
    }

    /// Adds a notice after the items received so far.
    pub(crate) fn notice(&self, what: Notice) {
        let mut state = self.state();
        let after = state.received;
        // A second notice at the same position merges with the first, so there are never more notices
        // than items.
        match (state.notices.back_mut(), &what) {
            (Some(PlacedNotice { after: before, what: Notice::Lost(sum) }), Notice::Lost(more))
                if *before == after =>
            {
                *sum = sum.saturating_add(*more);
            }
            (Some(PlacedNotice { after: before, what: Notice::Gap(_) }), Notice::Gap(_))
                if *before == after => {}
            _ => state.notices.push_back(PlacedNotice { after, what }),
        }
        state.wake_reader();
    }

    /// Adds the notice of a gap.
    pub(crate) fn gap(&self, reason: CloseReason) {
        self.notice(Notice::Gap(reason));
    }

    /// Ends the subscription; waiting items can still be consumed. The first reason counts.
    pub(crate) fn end(&self, ended: Ended) {
        let mut state = self.state();
        if state.ended.is_none() {
            if matches!(ended, Ended::Unsubscribed) {
                state.queue.clear();
            }
            state.ended = Some(ended);
        }
        state.wake_reader();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ends the subscription and unsubscribes, unless it has ended already.
    pub(crate) fn leave(&self, ended: Ended) {
        let was_open = self.ended().is_none();
        self.end(ended);
        if was_open && let Some(attached) = self.attached() {
            attached.leave(self);
        }
    }

    /// The connection has ended; the client may reconnect.
    pub(crate) fn disconnect(&self, reason: &CloseReason) {
        if self.resubscribes() {
            self.state().attached = None;
        } else {
            self.end(Ended::Disconnected(reason.clone()));
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.state().ended.clone()
    }

    pub(crate) fn poll_next(&self, poller: &mut Poller<'_>) -> Poll<FollowedEvent> {
        let mut state = self.state();
        if let Some(next) = state.next() {
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
            return Poll::Ready(next);
        }
        if let Some(ended) = &state.ended {
            return Poll::Ready(FollowedEvent::Ended(ended.clone()));
        }
        state.reader = Some(poller.waker().clone());
        Poll::Pending
    }
}

impl FollowedState {
    fn append(&mut self, item: RawJson) {
        self.queue.push(item);
        self.received += 1;
    }

    fn push(&mut self, item: RawJson) {
        self.taken += self.queue.push_dropping_oldest(item);
        self.received += 1;
        self.merge_notices();
    }

    /// Merges the notices between dropped items, so that there are never more notices than items.
    fn merge_notices(&mut self) {
        let mut gap = None;
        while self.notices.front().is_some_and(|notice| notice.after <= self.taken)
            && let Some(notice) = self.notices.pop_front()
        {
            match notice.what {
                Notice::Lost(items) => self.queue.add_lost(items),
                Notice::Gap(_) => gap = Some(notice),
            }
        }
        if let Some(gap) = gap {
            self.notices.push_front(gap);
        }
    }

    /// The next event, in order: items dropped here, then a notice, then an item.
    fn next(&mut self) -> Option<FollowedEvent> {
        let lost = self.queue.take_lost();
        if lost > 0 {
            return Some(FollowedEvent::Notice(Notice::Lost(lost)));
        }
        if self.notices.front().is_some_and(|notice| notice.after <= self.taken) {
            return self.notices.pop_front().map(|notice| FollowedEvent::Notice(notice.what));
        }
        let item = self.queue.pop()?;
        self.taken += 1;
        Some(FollowedEvent::Item(item))
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
