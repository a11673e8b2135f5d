//! The following side of one subscription: what has come and was not taken yet.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};

use antiphon_core::{ErrorObject, Id, RawJson};

use super::item_message::{ItemParams, SHUTTING_DOWN};
use super::item_queue::ItemQueue;
use super::topic::{Overflow, Topic};
use crate::BoxFuture;
use crate::error::CallError;

/// Bytes of items that wait, whatever their number.
const MAX_BYTES: usize = 1 << 20;

/// Where the items of a subscription go: what [`Caller::subscribe`](crate::Caller::subscribe) is given.
/// What wraps a `Caller` passes it on.
#[derive(Clone)]
pub struct Follower(pub(crate) Arc<Feed>);

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Follower").field(&self.0.topic).finish()
    }
}

pub(crate) struct Feed {
    pub(crate) topic: Topic,
    /// Its end is not the end of its connection: who follows will be subscribed anew.
    survives: AtomicBool,
    state: Mutex<FeedState>,
}

struct FeedState {
    queue: ItemQueue,
    /// What is to be said before the item at the front, and then before those behind it.
    notices: VecDeque<PlacedNotice>,
    /// Items that were taken or dropped so far.
    taken: u64,
    /// Items that came so far.
    come: u64,
    attached: Option<Attached>,
    /// Its connection is at its end: what has come is taken in, and nothing waits.
    is_draining: bool,
    ended: Option<Ended>,
    reader: Option<Waker>,
    /// Who waits for room.
    waiting: Vec<Waker>,
}

/// What is said between two items.
struct PlacedNotice {
    /// Items that came before it.
    after: u64,
    what: Notice,
}

/// What is to be known of the items that are not there.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// The side that serves had no room for so many.
    Lost(u64),
    /// The connection was lost for this reason, and there is a new one.
    Gap(Arc<str>),
}

/// The connection that the items of a feed come from.
pub(crate) trait FeedSource: Send + Sync {
    /// Takes no more items of this subscription.
    fn unfollow(&self, id: &Id, feed: &Feed);

    /// Unsubscribes without waiting for the answer.
    fn unsubscribe(&self, id: &Id, topic: &Topic);

    /// Unsubscribes and waits for the answer.
    fn unsubscribe_and_wait(&self, id: &Id, topic: &Topic) -> BoxFuture<'_, Result<(), CallError>>;
}

/// A subscription at the other side.
#[derive(Clone)]
pub(crate) struct Attached {
    pub(crate) source: Arc<dyn FeedSource>,
    pub(crate) id: Id,
}

/// Why there are no more items.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// We have unsubscribed.
    Left,
    /// The source has ended, for this reason.
    Over(String),
    Failed(ErrorObject),
    /// There was no room here.
    TooSlow,
    /// The connection has, for this reason.
    Disconnected(Arc<str>),
}

/// What comes next.
pub(crate) enum Next {
    Item(RawJson),
    Notice(Notice),
    Ended(Ended),
}

impl Feed {
    pub(crate) fn new(topic: Topic) -> Self {
        let state = FeedState {
            queue: ItemQueue::new(topic.buffer, MAX_BYTES),
            notices: VecDeque::new(),
            taken: 0,
            come: 0,
            attached: None,
            is_draining: false,
            ended: None,
            reader: None,
            waiting: Vec::new(),
        };
        Self { topic, survives: AtomicBool::new(false), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The items come from there now. False when nobody wants them any more.
    pub(crate) fn attach(&self, attached: Attached) -> bool {
        let mut state = self.state();
        if state.ended.is_some() {
            return false;
        }
        state.attached = Some(attached);
        state.is_draining = false;
        true
    }

    /// Lets it outlive its connection.
    pub(crate) fn survive(&self) {
        self.survives.store(true, Ordering::Release);
    }

    fn survives(&self) -> bool {
        self.survives.load(Ordering::Acquire)
    }

    pub(crate) fn attached(&self) -> Option<Attached> {
        self.state().attached.clone()
    }

    /// Takes in what has come; waits where there is no room and the topic says so.
    pub(crate) async fn deliver(self: Arc<Self>, arrived: ItemParams) {
        let ItemParams { lost, result, error, closed, .. } = arrived;
        if lost > 0 {
            self.tell(Notice::Lost(lost));
        }
        let mut item = result;
        poll_fn(|poller| self.poll_push(&mut item, poller)).await;
        match (error, closed) {
            (Some(error), _) => self.end(Ended::Failed(error.into())),
            // A restart is no end to who comes back: no more so than a crash.
            (None, Some(reason)) if reason == SHUTTING_DOWN && self.survives() => {
                self.disconnect(&reason.into());
            }
            (None, Some(reason)) => self.end(Ended::Over(reason)),
            (None, None) => {}
        }
    }

    /// Takes in an item that need not wait: the oldest goes where there is no room.
    pub(crate) fn offer(&self, item: RawJson) {
        let mut state = self.state();
        if state.ended.is_none() {
            state.push(item);
            state.wake_reader();
        }
    }

    /// The connection is at its end: nothing waits for room any more.
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
            // What there is no room for at the end is bounded by what the connection held.
            Overflow::Wait => state.append(next),
            _ => state.push(next),
        }
        state.wake_reader();
        Poll::Ready(())
    }

    /// Says something behind the items that have come so far.
    pub(crate) fn tell(&self, what: Notice) {
        let mut state = self.state();
        let after = state.come;
        // A second notice at the same place adds to the first: there are no more of them than items.
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

    /// There was a gap, for this reason.
    pub(crate) fn gap(&self, reason: Arc<str>) {
        self.tell(Notice::Gap(reason));
    }

    /// There is no more; what waits is still there to be taken. The first reason counts.
    pub(crate) fn end(&self, ended: Ended) {
        let mut state = self.state();
        if state.ended.is_none() {
            if matches!(ended, Ended::Left) {
                state.queue.clear();
            }
            state.ended = Some(ended);
        }
        state.wake_reader();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ends it from this side: the other side is told, unless it has ended already.
    pub(crate) fn leave(&self, ended: Ended) {
        let was_open = self.ended().is_none();
        self.end(ended);
        if was_open && let Some(attached) = self.attached() {
            attached.leave(self);
        }
    }

    /// Its connection has ended; there may be another.
    pub(crate) fn disconnect(&self, reason: &Arc<str>) {
        if self.survives() {
            self.state().attached = None;
        } else {
            self.end(Ended::Disconnected(reason.clone()));
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.state().ended.clone()
    }

    pub(crate) fn poll_next(&self, poller: &mut Poller<'_>) -> Poll<Next> {
        let mut state = self.state();
        if let Some(next) = state.next() {
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
            return Poll::Ready(next);
        }
        if let Some(ended) = &state.ended {
            return Poll::Ready(Next::Ended(ended.clone()));
        }
        state.reader = Some(poller.waker().clone());
        Poll::Pending
    }
}

impl Attached {
    /// Ends the subscription on both sides, without waiting for the other one.
    pub(crate) fn leave(&self, feed: &Feed) {
        self.source.unfollow(&self.id, feed);
        self.source.unsubscribe(&self.id, &feed.topic);
    }
}

impl FeedState {
    fn append(&mut self, item: RawJson) {
        self.queue.push(item);
        self.come += 1;
    }

    fn push(&mut self, item: RawJson) {
        self.taken += self.queue.push_over(item);
        self.come += 1;
        self.merge_notices();
    }

    /// What stood between items that are gone becomes one: there are no more notices than items.
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

    /// In the order in which it came: what was dropped here, what was said, the next item.
    fn next(&mut self) -> Option<Next> {
        let lost = self.queue.take_lost();
        if lost > 0 {
            return Some(Next::Notice(Notice::Lost(lost)));
        }
        if self.notices.front().is_some_and(|notice| notice.after <= self.taken) {
            return self.notices.pop_front().map(|notice| Next::Notice(notice.what));
        }
        let item = self.queue.pop()?;
        self.taken += 1;
        Some(Next::Item(item))
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
