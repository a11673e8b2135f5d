//! The future that is a connection: it reads, dispatches and writes, in one task and without a lock
//! of its own.
//!
//! One turn: collect what tasks have queued, write what is ready, read what has come, dispatch it.
//! Answers gather while there is something to read, and go out in one write.
//!
//! When does the reader pause? Only while nobody here waits for the other side: a handler that waits
//! for an answer would otherwise wait for us, and we for it. While calls wait and there is no room,
//! requests are held or refused instead (contract 4). A paused reader still looks a little ahead, so
//! that it sees the other side go.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::{ErrorObject, Limits, Payload, Rules};
use tokio::time::{Sleep, sleep};

use super::backlog::{Ahead, Backlog, Held, Incoming, is_requests_only};
use super::dispatcher::{Dispatcher, Gate, Origin, Progress, Run};
use super::leash::{Leash, Pull};
use super::reader::{self, Received};
use super::shared::{NeedsReader, Running, Shared, Stop};
use super::watchdog::{Meter, Waiting, Watchdog};
use super::writer::Writer;
use super::{Peer, Tap};
use crate::context::Connection as Facts;
use crate::handler::Handler;
use crate::transport::{Transport, TransportError};

/// Frames taken before the writer gets a turn, so that answers do not wait for an endless stream.
const BURST: usize = 1_024;
/// Why a connection ends that the other side has ended.
const GONE: &str = "the other side closed it";
/// Why a connection ends that we have ended.
const CLOSED: &str = "closed";
/// The ends that are no failures.
pub(crate) const ENDED_WELL: [&str; 2] = [GONE, CLOSED];
/// How long the other side has to take our goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// A transport and what is known of it.
pub(crate) struct Wire<T> {
    pub(crate) transport: T,
    pub(crate) facts: Facts,
    pub(crate) meter: Arc<Meter>,
    pub(crate) at_end: AtEnd,
}

/// What the end of the incoming stream means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtEnd {
    /// The other side may still read: finish what was accepted, for at most this long.
    Drain(Option<Duration>),
    /// The other side is gone.
    Cancel,
}

/// What a side of a connection does with it.
pub(crate) struct Side {
    /// Serves what the other side calls; without it, whatever comes in is an answer.
    pub(crate) handler: Option<Arc<dyn Handler>>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) rules: Rules,
    pub(crate) tap: Option<Tap>,
}

/// Makes a connection of a wire; the future must be driven for anything to happen.
pub(crate) fn connect<T: Transport>(
    wire: Wire<T>,
    side: Side,
) -> (Peer, impl Future<Output = Arc<str>> + Send) {
    let Side { handler, limits, rules, tap } = side;
    let watchdog = Watchdog::new(wire.meter, &limits);
    let shared = Shared::new(wire.facts, limits.clone(), tap, handler.is_none());
    let shared = Arc::new(shared);
    let peer = Peer { shared: shared.clone() };
    let handler = handler.unwrap_or_else(|| Arc::new(crate::Router::new()));
    let connection = Connection {
        transport: wire.transport,
        at_end: wire.at_end,
        rules,
        gate: Gate::new(limits.in_flight),
        dispatcher: Dispatcher { handler, limits },
        writer: Writer::default(),
        write_blocked: false,
        watchdog,
        head: None,
        backlog: Backlog::default(),
        ahead: Ahead::default(),
        ended: false,
        received: 0,
        phase: Phase::Open,
        drain: None,
        guard: EndGuard(shared.clone()),
        shared,
    };
    (peer, connection)
}

struct Connection<T> {
    transport: T,
    at_end: AtEnd,
    rules: Rules,
    shared: Arc<Shared>,
    gate: Arc<Gate>,
    dispatcher: Dispatcher,
    writer: Writer,
    write_blocked: bool,
    watchdog: Watchdog,
    /// The run that nothing may overtake.
    head: Option<Run>,
    /// What came behind it, while the reader had to go on.
    backlog: Backlog,
    /// What was read while the reader paused.
    ahead: Ahead,
    /// Behind that, nothing more will come.
    ended: bool,
    received: u64,
    phase: Phase,
    drain: Option<Pin<Box<Sleep>>>,
    guard: EndGuard,
}

/// How far the end has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// We were asked to stop: answers are read, requests are refused.
    Stopping,
    /// Nothing comes in any more; what runs is finished.
    Draining,
    /// Time is up: what ran has been told to answer.
    Expiring,
    /// The transport is being closed.
    Closing(Arc<str>),
}

/// Ends the session however the future ends, dropped in the middle included.
struct EndGuard(Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let ended = self.0.state().ended.is_some();
        if !ended {
            self.0.end("dropped".into());
        }
    }
}

impl<T: Transport> Future for Connection<T> {
    type Output = Arc<str>;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Arc<str>> {
        let this = &mut *self;
        match this.turns(poller) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(reason) => {
                tracing::debug!(%reason, transport = this.shared.facts.transport, "connection ended");
                this.head = None;
                this.guard.0.end(reason.clone());
                Poll::Ready(reason)
            }
        }
    }
}

impl<T: Transport> Connection<T> {
    fn turns(&mut self, poller: &mut Poller<'_>) -> Poll<Arc<str>> {
        // Under a flood there is always something to do, and `wait` would never look at the clock.
        if let Poll::Ready(Some(reason)) = self.wait(poller) {
            return Poll::Ready(reason);
        }
        loop {
            self.writer.collect(&self.shared, poller.waker());
            self.heed_stop();
            let sent = self.writer.poll_send(poller, &mut self.transport, &self.shared);
            if let Poll::Ready(Err(error)) = sent {
                return Poll::Ready(error.to_string().into());
            }
            self.write_blocked = sent.is_pending();
            if let Phase::Closing(reason) = &self.phase {
                let reason = reason.clone();
                return self.poll_close(poller).map(|()| reason);
            }
            let advanced = self.advance_head(poller);
            let read = match self.read(poller) {
                Ok(read) => read,
                Err(reason) => return Poll::Ready(reason),
            };
            let closed = self.close_when_done();
            if !(advanced || read || closed || self.writer.owes_room(&self.shared)) {
                match self.wait(poller) {
                    Poll::Ready(Some(reason)) => return Poll::Ready(reason),
                    Poll::Ready(None) => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
    }

    /// Nothing can be done now: the clock may still say that it is over, or that it is time to
    /// answer.
    fn wait(&mut self, poller: &mut Poller<'_>) -> Poll<Option<Arc<str>>> {
        if let Some(drain) = &mut self.drain
            && drain.as_mut().poll(poller).is_ready()
        {
            if self.phase == Phase::Expiring {
                return Poll::Ready(Some("what ran did not finish in time".into()));
            }
            self.expire();
            return Poll::Ready(None);
        }
        let waiting = Waiting {
            write_blocked: self.write_blocked,
            reading: self.may_read(),
            busy: !self.gate.is_idle() || self.head.is_some() || self.shared.awaits_answers(),
            received: self.received,
            sent: self.writer.sent,
        };
        self.watchdog.poll(poller, waiting).map(|reason| Some(reason.into()))
    }

    fn heed_stop(&mut self) {
        let stop = self.shared.state().stop;
        match (stop, &self.phase) {
            (Some(Stop::Now), Phase::Open | Phase::Stopping | Phase::Draining) => self.expire(),
            (Some(Stop::Gracefully), Phase::Open) => {
                self.phase = Phase::Stopping;
                self.drain = Some(Box::pin(sleep(self.shared.limits.shutdown_timeout)));
            }
            _ => {}
        }
    }

    /// Time is up: whatever waits for an answer gets one now.
    fn expire(&mut self) {
        let busy = ErrorObject::server_busy("shutting down");
        self.phase = Phase::Expiring;
        self.drain = Some(Box::pin(sleep(GOODBYE)));
        self.shared.expire_running();
        if let Some(mut head) = self.head.take() {
            self.writer.answer(head.expire(&busy));
        }
        while let Some(payload) = self.backlog.pop() {
            self.writer.answer(self.dispatcher.refuse(payload, &busy));
        }
        while let Some(incoming) = self.ahead.pop() {
            if let Ok(frame) = incoming
                && let Received::Payload(payload) =
                    reader::receive(&frame, &self.rules, &self.shared)
            {
                self.writer.answer(self.dispatcher.refuse(payload, &busy));
            }
        }
    }

    /// Reads and dispatches until nothing more has come. True when anything was done.
    fn read(&mut self, poller: &mut Poller<'_>) -> Result<bool, Arc<str>> {
        let mut read = false;
        for _ in 0..BURST {
            if !self.may_read() {
                read |= self.look_ahead(poller);
                break;
            }
            // Full, and perhaps only for want of a turn: the writer goes first.
            if self.writer.is_full(&self.shared) && !self.write_blocked {
                return Ok(true);
            }
            let incoming = match self.ahead.pop() {
                Some(incoming) => Some(incoming),
                None if self.ended => None,
                None => match Pin::new(&mut self.transport).poll_next(poller) {
                    Poll::Pending => break,
                    Poll::Ready(incoming) => incoming,
                },
            };
            read = true;
            match incoming {
                None => {
                    self.at_end();
                    break;
                }
                Some(incoming) => self.receive(incoming, poller)?,
            }
        }
        Ok(read)
    }

    /// Takes one frame in.
    fn receive(&mut self, incoming: Incoming, poller: &mut Poller<'_>) -> Result<(), Arc<str>> {
        self.received += 1;
        let (received, bytes) = match incoming {
            Ok(frame) => (reader::receive(&frame, &self.rules, &self.shared), frame.len()),
            Err(TransportError::Frame(error)) => (reader::untaken(&error, &self.shared), 0),
            Err(error) => return Err(error.to_string().into()),
        };
        match received {
            Received::Nothing => Ok(()),
            Received::Payload(payload) => self.dispatch(Held { payload, bytes }, poller),
            Received::Lost(reason) => Err(reason.into()),
        }
    }

    fn may_read(&self) -> bool {
        if !matches!(self.phase, Phase::Open | Phase::Stopping) {
            return false;
        }
        let room =
            self.head.is_none() && self.backlog.is_empty() && !self.writer.is_full(&self.shared);
        room || match self.shared.needs_reader() {
            NeedsReader::ForAnswers => true,
            NeedsReader::ForRoom => self.backlog.has_room(&self.shared.limits),
            NeedsReader::No => false,
        }
    }

    /// Reads a little for later: a reader that pauses must still see the other side go. True when
    /// it has gone.
    fn look_ahead(&mut self, poller: &mut Poller<'_>) -> bool {
        let open = matches!(self.phase, Phase::Open | Phase::Stopping) && !self.ended;
        while open
            && self.ahead.has_room()
            && let Poll::Ready(incoming) = Pin::new(&mut self.transport).poll_next(poller)
        {
            match incoming {
                Some(incoming) => self.ahead.push(incoming),
                None if matches!(self.at_end, AtEnd::Cancel) => {
                    self.at_end();
                    return true;
                }
                // What was read ahead is still to be served.
                None => {
                    self.hear_end();
                    break;
                }
            }
        }
        false
    }

    /// Nothing more will come, and all that came is taken in: what was accepted is finished.
    fn at_end(&mut self) {
        self.hear_end();
        self.phase = match self.at_end {
            AtEnd::Cancel => Phase::Closing(GONE.into()),
            AtEnd::Drain(_) => Phase::Draining,
        };
    }

    /// The other side has said its last: no call can be answered any more, and the time to finish
    /// what was accepted begins.
    fn hear_end(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.shared.end_calls(&GONE.into());
        if let AtEnd::Drain(Some(limit)) = self.at_end {
            self.drain = Some(Box::pin(sleep(limit)));
        }
    }

    /// One payload in arrival order: started, held, or refused.
    ///
    /// Behind a full writer it is held: the other side is being read, so it can read us. Behind a
    /// full house it is refused: what runs may be waiting for the very thing that asks to come in.
    fn dispatch(&mut self, held: Held, poller: &mut Poller<'_>) -> Result<(), Arc<str>> {
        if self.phase == Phase::Stopping {
            return self.refuse(held.payload, "shutting down");
        }
        match &self.head {
            None if self.backlog.is_empty() && !self.writer.is_full(&self.shared) => {
                self.start(held.payload, poller);
                return Ok(());
            }
            Some(head) if !head.keeps_order() => {
                return self.refuse(held.payload, "too many requests in flight");
            }
            Some(_) if self.order_gives_way() && is_requests_only(&held.payload) => {
                self.start(held.payload, poller);
                return Ok(());
            }
            _ => {}
        }
        if self.backlog.has_room(&self.shared.limits) {
            self.backlog.push(held);
            Ok(())
        } else if is_requests_only(&held.payload) {
            self.refuse(held.payload, "too many messages wait")
        } else {
            Err("too many notifications wait for one that does not finish".into())
        }
    }

    /// While the handler of a notification waits for the other side, requests overtake it: one of
    /// them may be what the other side needs to answer.
    fn order_gives_way(&self) -> bool {
        self.shared.ordered_calls.load(Ordering::Acquire) > 0
    }

    fn start(&mut self, payload: Payload, poller: &mut Poller<'_>) {
        let connection = self.shared.facts.clone();
        let origin = Origin { connection, peer: Some(self.shared.clone()) };
        let (progress, run) = self.dispatcher.start(payload, &self.gate, origin, poller);
        self.settle(progress, run, poller);
    }

    fn settle(&mut self, progress: Progress, mut run: Run, poller: &mut Poller<'_>) {
        match progress {
            Progress::Done(answer) => self.writer.answer(answer),
            Progress::Detached => self.detach(run),
            Progress::Blocked if self.head.is_none() => self.head = Some(run),
            // Requests that overtook the head, and there is no room for all of them.
            Progress::Blocked => {
                run.refuse_rest(&ErrorObject::server_busy("too many requests in flight"));
                match run.poll(poller) {
                    Progress::Done(answer) => self.writer.answer(answer),
                    Progress::Detached | Progress::Blocked => self.detach(run),
                }
            }
        }
    }

    /// Polls the run that others wait behind, and lets them follow when it is through. True when
    /// anything was done.
    fn advance_head(&mut self, poller: &mut Poller<'_>) -> bool {
        let mut advanced = false;
        if let Some(mut head) = self.head.take() {
            if !head.keeps_order() && self.gate.is_full() && self.shared.awaits_answers() {
                head.refuse_rest(&ErrorObject::server_busy("too many requests in flight"));
            }
            let progress = head.poll(poller);
            advanced = !matches!(progress, Progress::Blocked);
            self.settle(progress, head, poller);
        }
        if self.head.is_some() {
            return self.let_requests_pass(poller);
        }
        while self.head.is_none()
            && !self.writer.is_full(&self.shared)
            && let Some(payload) = self.backlog.pop()
        {
            self.start(payload, poller);
            advanced = true;
        }
        advanced
    }

    /// Starts the requests of the backlog when the order gives way.
    fn let_requests_pass(&mut self, poller: &mut Poller<'_>) -> bool {
        if self.backlog.is_empty() || !self.order_gives_way() {
            return false;
        }
        let requests = self.backlog.take_requests();
        let any = !requests.is_empty();
        for payload in requests {
            self.start(payload, poller);
        }
        any
    }

    /// Answers without running anything. A peer that goes on asking while it reads nothing is gone.
    fn refuse(&mut self, payload: Payload, reason: &'static str) -> Result<(), Arc<str>> {
        self.writer.answer(self.dispatcher.refuse(payload, &ErrorObject::server_busy(reason)));
        if self.writer.overflows(&self.shared) {
            return Err("the other side does not read its answers".into());
        }
        Ok(())
    }

    /// Makes a run that waits into a task, on a leash.
    fn detach(&mut self, mut run: Run) {
        let leash = Arc::new(Leash::default());
        let mut state = self.shared.state();
        let tickets: Vec<_> = run
            .running()
            .map(|(id, context)| {
                let running = Running { context: context.clone(), leash: leash.clone() };
                (id.clone(), state.session.start(id.clone(), running))
            })
            .collect();
        drop(state);
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let answer = std::future::poll_fn(|poller| match leash.pulled(poller) {
                Some(Pull::Abort) => Poll::Ready(None),
                Some(Pull::Expire) => {
                    Poll::Ready(run.expire(&ErrorObject::server_busy("shutting down")))
                }
                None => match run.poll(poller) {
                    Progress::Done(answer) => Poll::Ready(answer),
                    Progress::Detached | Progress::Blocked => Poll::Pending,
                },
            })
            .await;
            shared.finish(&tickets, answer);
        });
    }

    /// True when the last thing to be done was just done.
    fn close_when_done(&mut self) -> bool {
        let ending = matches!(self.phase, Phase::Stopping | Phase::Draining | Phase::Expiring);
        let done = self.head.is_none()
            && self.backlog.is_empty()
            && self.ahead.is_empty()
            && self.writer.is_idle()
            && self.shared.is_done();
        if !(ending && done) {
            return false;
        }
        let reason = match self.phase {
            Phase::Draining => GONE,
            _ => CLOSED,
        };
        self.drain = None;
        self.phase = Phase::Closing(reason.into());
        true
    }

    fn poll_close(&mut self, poller: &mut Poller<'_>) -> Poll<()> {
        let drain = self.drain.get_or_insert_with(|| Box::pin(sleep(GOODBYE)));
        if drain.as_mut().poll(poller).is_ready() {
            return Poll::Ready(());
        }
        // How the close goes no longer matters to anybody.
        Pin::new(&mut self.transport).poll_close(poller).map(drop)
    }
}
