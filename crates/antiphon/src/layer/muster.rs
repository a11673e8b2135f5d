//! A batch whose entries pass through layers one by one, and travel together.
//!
//! Each entry takes its own way through the layers. At their end it waits until all the others have
//! come too, or have ended on the way; then those that are there leave as one batch, in their order. An
//! entry that a layer keeps waiting for room is not waited for: what it waits for may be what the
//! others hold. It leaves with whoever comes next. Not every wait can be seen, so who has come waits
//! only a moment when nobody else moves.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::RawJson;
use futures_core::Stream as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use crate::call::{BatchEntry, CallError, Caller, Invocation};

type Answer = Result<RawJson, CallError>;

/// How long who has come waits while nobody moves.
const PATIENCE: Duration = Duration::from_millis(10);

/// Sends a batch whose entries take that way first.
pub(super) async fn send<F>(
    entries: Vec<BatchEntry>,
    pass: impl Fn(BatchEntry, Arc<Seat>) -> F,
    caller: &dyn Caller,
) -> Result<Vec<Answer>, CallError>
where
    F: Future<Output = Answer>,
{
    let muster = Arc::new(Muster::new(entries.len()));
    let passes = entries.into_iter().enumerate().map(|(place, entry)| {
        let wants_answer = matches!(entry, BatchEntry::Call(_));
        let seat = Arc::new(Seat { place, muster: muster.clone() });
        let passed = pass(entry, seat.clone());
        async move {
            let answer = passed.await;
            seat.leave();
            (wants_answer, answer)
        }
    });
    let answers = drive(join_all(passes), &muster, caller).await;
    let failed = muster.state().failed.take();
    let answers: Vec<Answer> = answers.into_iter().filter_map(wanted).collect();
    match failed {
        // All of it failed, and not one by one.
        Some(error) if answers.iter().all(Result::is_err) => Err(error),
        _ => Ok(answers),
    }
}

/// The answer of a call. That a layer has refused a notification is told to nobody.
fn wanted((wants_answer, answer): (bool, Answer)) -> Option<Answer> {
    if let (false, Err(error)) = (wants_answer, &answer) {
        tracing::debug!(%error, "a notification of a batch was not sent");
    }
    wants_answer.then_some(answer)
}

/// Drives the entries on their ways, and those that have come on their common one.
async fn drive<T>(passes: impl Future<Output = T>, muster: &Muster, caller: &dyn Caller) -> T {
    let _closing = Closing(muster);
    let mut passes = pin!(passes);
    let mut trips = FuturesUnordered::new();
    let mut patience = Patience::default();
    poll_fn(|poller| {
        loop {
            // A step that is made in here wakes nobody: it is looked at below. One that a task of a
            // layer makes does, from when the waker is back.
            muster.waker.take();
            if let Poll::Ready(answers) = passes.as_mut().poll(poller) {
                return Poll::Ready(answers);
            }
            muster.waker.register(poller.waker());
            let mut moved = patience.is_over(muster, poller);
            if let Some(group) = muster.depart() {
                trips.push(travel(group, muster, caller));
                moved = true;
            }
            while let Poll::Ready(Some(())) = pin!(&mut trips).poll_next(poller) {
                moved = true;
            }
            if !moved {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Who waits for others that do not move, as long as they do not.
#[derive(Default)]
struct Patience(Option<([usize; 2], Pin<Box<Sleep>>)>);

impl Patience {
    /// True when it has just ended; then nobody is waited for any more.
    fn is_over(&mut self, muster: &Muster, poller: &mut Poller<'_>) -> bool {
        let Some(now) = muster.awaiting() else {
            self.0 = None;
            return false;
        };
        let waiting = self.0.take().filter(|(seen, _)| *seen == now);
        let (_, wait) = self.0.insert(waiting.unwrap_or_else(|| (now, Box::pin(sleep(PATIENCE)))));
        if wait.as_mut().poll(poller).is_pending() {
            return false;
        }
        muster.give_up_waiting();
        true
    }
}

/// Nobody drives the batch any more: a task of a layer may still hold an entry of it.
struct Closing<'a>(&'a Muster);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.closed = true;
        let left = std::mem::take(&mut state.arrived);
        drop(state);
        drop(left);
    }
}

/// Sends those that have come, and gives each its answer.
async fn travel(group: Vec<Arrived>, muster: &Muster, caller: &dyn Caller) {
    let (entries, waiting): (Vec<_>, Vec<_>) =
        group.into_iter().map(|arrived| (arrived.entry, arrived.answer)).unzip();
    let wants: Vec<_> = entries.iter().map(|entry| matches!(entry, BatchEntry::Call(_))).collect();
    match caller.send_batch(entries).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for (waiting, wants) in waiting.into_iter().zip(wants) {
                let answer = if wants { answers.next() } else { Some(Ok(RawJson::NULL)) };
                let _ = waiting.send(answer.unwrap_or_else(|| Err(gone())));
            }
        }
        Err(error) => {
            for waiting in waiting {
                let _ = waiting.send(Err(error.again()));
            }
            muster.state().failed = Some(error);
        }
    }
}

/// What an entry is told whose answer is lost.
pub(super) fn gone() -> CallError {
    CallError::Protocol("the answer to the batch lacks this call".to_owned())
}

/// Who has come, and who has not.
pub(super) struct Muster {
    state: Mutex<State>,
    /// Wakes who drives the batch.
    waker: AtomicWaker,
}

struct State {
    steps: Vec<Step>,
    /// Those that may come at any time.
    coming: usize,
    arrived: BTreeMap<usize, Arrived>,
    failed: Option<CallError>,
    /// Nobody leaves any more.
    closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Coming,
    /// A layer keeps it waiting.
    Held,
    /// It has come, or will not.
    Over,
}

struct Arrived {
    entry: BatchEntry,
    answer: oneshot::Sender<Answer>,
}

impl Muster {
    fn new(entries: usize) -> Self {
        let steps = vec![Step::Coming; entries];
        let arrived = BTreeMap::new();
        let state = State { steps, coming: entries, arrived, failed: None, closed: false };
        Self { state: Mutex::new(state), waker: AtomicWaker::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that leave now.
    fn depart(&self) -> Option<Vec<Arrived>> {
        let mut state = self.state();
        if state.coming > 0 || state.arrived.is_empty() {
            return None;
        }
        let arrived = std::mem::take(&mut state.arrived).into_values();
        // Who has given up meanwhile stays behind.
        let group: Vec<_> = arrived.filter(|arrived| !arrived.answer.is_closed()).collect();
        (!group.is_empty()).then_some(group)
    }

    /// How many are awaited by how many, where there are such.
    fn awaiting(&self) -> Option<[usize; 2]> {
        let state = self.state();
        let waiting = state.arrived.len();
        (state.coming > 0 && waiting > 0).then_some([state.coming, waiting])
    }

    /// Those that have not come are held up somewhere.
    fn give_up_waiting(&self) {
        let mut state = self.state();
        for step in state.steps.iter_mut().filter(|step| **step == Step::Coming) {
            *step = Step::Held;
        }
        state.coming = 0;
    }
}

impl State {
    /// True unless it was over before.
    fn step(&mut self, place: usize, next: Step) -> bool {
        let Some(step) = self.steps.get_mut(place) else { return false };
        let before = *step;
        if before == Step::Over {
            return false;
        }
        *step = next;
        if before == Step::Coming {
            self.coming -= 1;
        }
        true
    }
}

/// What awaits an entry at the end of the layers.
pub(super) enum Arrival {
    /// Its answer will come here.
    InTime(oneshot::Receiver<Answer>),
    /// It has been here before: a layer calls once more.
    Late(Invocation),
}

/// The place of one entry.
pub(super) struct Seat {
    place: usize,
    muster: Arc<Muster>,
}

impl Seat {
    /// It has come to the end of the layers. A second time, it is given back.
    pub(super) fn arrive(&self, call: Invocation, is_notification: bool) -> Arrival {
        let mut state = self.muster.state();
        if !state.step(self.place, Step::Over) {
            return Arrival::Late(call);
        }
        let (answer, answered) = oneshot::channel();
        let entry = if is_notification { BatchEntry::Notification } else { BatchEntry::Call };
        if !state.closed {
            state.arrived.insert(self.place, Arrived { entry: entry(call), answer });
        }
        drop(state);
        self.muster.waker.wake();
        Arrival::InTime(answered)
    }

    /// It has ended, wherever it was.
    fn leave(&self) {
        self.step(Step::Over);
    }

    /// A layer keeps it waiting.
    pub(super) fn hold_up(&self) {
        self.step(Step::Held);
    }

    fn step(&self, next: Step) {
        self.muster.state().step(self.place, next);
        self.muster.waker.wake();
    }
}
