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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use tokio::time::Sleep;

use super::backlog::{Ahead, Backlog, Incoming};
use super::ending::{EndGuard, Phase};
use super::reader::{self, Received};
use super::shared::{NeedsReader, Shared};
use super::watchdog::{Look, Waiting, Watchdog};
use super::wire::{AtEof, LineFrames, Transport, TransportError, Wire};
use super::writer::Writer;
use crate::call::{Peer, Stop};
use crate::catch_unwind::end_panic;
use crate::context::Origin;
use crate::engine::{Dispatcher, InFlight, Run, Settings};
use crate::router::Router;
use crate::service::Handler;

/// Frames taken before the writer gets a turn, so that answers do not wait for an endless stream.
const BURST: usize = 1_024;

/// What a side of a connection does with it.
pub(crate) struct Side {
    /// Serves what the other side calls; without it, whatever comes in is an answer.
    pub(crate) handler: Option<Arc<dyn Handler>>,
    pub(crate) settings: Arc<Settings>,
}

/// Makes a connection of a wire; the future must be driven for anything to happen.
pub(crate) fn connect<T: Transport>(
    wire: Wire<T>,
    side: Side,
) -> (Peer, impl Future<Output = Arc<str>> + Send) {
    let Side { handler, settings } = side;
    let watchdog = Watchdog::new(wire.meter, &settings.limits);
    let shared = Arc::new(Shared::new(wire.facts, settings.clone(), handler.is_none()));
    let peer = Peer::new(shared.clone());
    settings.tap.opened(&shared.facts);
    let handler = match handler {
        Some(handler) => for_connection(handler, &peer),
        None => Arc::new(Router::new()),
    };
    let connection = Connection {
        transport: wire.transport,
        at_eof: wire.at_eof,
        lines: wire.lines,
        in_flight: InFlight::new(settings.limits.in_flight),
        origin: Origin::Peer(peer.clone()),
        dispatcher: Dispatcher { handler, settings },
        writer: Writer::new(),
        write_blocked: false,
        watchdog,
        head: None,
        backlog: Backlog::default(),
        ahead: Ahead::default(),
        ended: false,
        received: 0,
        gave_way: false,
        phase: Phase::Open,
        drain: None,
        guard: EndGuard(shared.clone()),
        shared,
    };
    (peer, connection)
}

/// The handler of this connection. One that cannot be made ends the connection at once.
fn for_connection(handler: Arc<dyn Handler>, peer: &Peer) -> Arc<dyn Handler> {
    match catch_unwind(AssertUnwindSafe(|| handler.for_connection(peer))) {
        Ok(own) => own.unwrap_or(handler),
        Err(panic) => {
            end_panic(panic, |text| tracing::error!(panic = text, "no handler for a connection"));
            peer.stop(Stop::Now);
            Arc::new(Router::new())
        }
    }
}

pub(super) struct Connection<T> {
    pub(super) transport: T,
    pub(super) at_eof: AtEof,
    pub(super) lines: LineFrames,
    pub(super) shared: Arc<Shared>,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) origin: Origin,
    pub(super) dispatcher: Dispatcher,
    pub(super) writer: Writer,
    pub(super) write_blocked: bool,
    pub(super) watchdog: Watchdog,
    /// The run that nothing may overtake.
    pub(super) head: Option<Box<Run>>,
    /// What came behind it, while the reader had to go on.
    pub(super) backlog: Backlog,
    /// What was read while the reader paused.
    pub(super) ahead: Ahead,
    /// Behind that, nothing more will come.
    pub(super) ended: bool,
    pub(super) received: u64,
    /// Others were let by, to queue what they have.
    pub(super) gave_way: bool,
    pub(super) phase: Phase,
    pub(super) drain: Option<Pin<Box<Sleep>>>,
    pub(super) guard: EndGuard,
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
        // First of all: under a flood there is always something to do, and at the end of it the
        // runtime lets nobody look at the clock.
        if let Poll::Ready(Some(reason)) = self.wait(poller) {
            return Poll::Ready(reason);
        }
        loop {
            if let Some(news) = self.writer.collect(&self.shared, poller.waker()) {
                self.heed(news.stop);
                // Who has queued a message is seldom alone: tasks that are ready to queue theirs
                // come first, and all leave in one write.
                if news.messages && !std::mem::replace(&mut self.gave_way, true) {
                    poller.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            self.gave_way = false;
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
                    Poll::Pending => {
                        self.writer.scratch.rest();
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// The clock may say that it is over, or that it is time to answer. A goodbye has its own
    /// (`poll_close`).
    fn wait(&mut self, poller: &mut Poller<'_>) -> Poll<Option<Arc<str>>> {
        if let Phase::Closing(_) = self.phase {
            return Poll::Pending;
        }
        if let Some(drain) = &mut self.drain
            && drain.as_mut().poll(poller).is_ready()
        {
            if self.phase == Phase::Expiring {
                return Poll::Ready(Some("what ran did not finish in time".into()));
            }
            self.expire();
            return Poll::Ready(None);
        }
        while self.watchdog.poll_due(poller).is_ready() {
            match self.watchdog.look(self.waiting()) {
                Look::End(reason) => return Poll::Ready(Some(reason.into())),
                Look::Still => self.writer.release(&self.shared),
                Look::Moving => {}
            }
        }
        Poll::Pending
    }

    fn waiting(&self) -> Waiting {
        Waiting {
            write_blocked: self.write_blocked,
            reading: self.may_read(),
            busy: !self.in_flight.is_idle() || self.head.is_some() || self.shared.awaits_answers(),
            received: self.received,
            sent: self.writer.sent,
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
            Ok(frame) => {
                let received = reader::receive(&frame, self.lines.is_on(), &self.shared);
                (received, frame.len())
            }
            Err(TransportError::Frame(error)) => (reader::untaken(&error, &self.shared), 0),
            Err(error) => return Err(error.to_string().into()),
        };
        match received {
            Received::Nothing => Ok(()),
            Received::Cancel(id) => {
                self.cancel(&id);
                Ok(())
            }
            Received::Texts(texts) => {
                self.ahead.split(texts);
                Ok(())
            }
            Received::Payload(payload) => self.dispatch(payload, bytes, poller),
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
            // What is cancelled is answered: not to who reads no answers.
            NeedsReader::ForCancels if self.writer.is_full(&self.shared) => false,
            NeedsReader::ForRoom | NeedsReader::ForCancels => {
                self.backlog.has_room(&self.shared.settings.limits)
            }
            NeedsReader::No => false,
        }
    }

    /// Reads a little for later: a reader that pauses must still see the other side go. True when
    /// it has gone, or has cancelled something.
    fn look_ahead(&mut self, poller: &mut Poller<'_>) -> bool {
        let open = matches!(self.phase, Phase::Open | Phase::Stopping) && !self.ended;
        let mut cancelled = false;
        while open
            && self.ahead.has_room()
            && let Poll::Ready(incoming) = Pin::new(&mut self.transport).poll_next(poller)
        {
            match incoming {
                Some(incoming) => {
                    cancelled |= self.cancel_ahead(&incoming);
                    self.ahead.push(incoming);
                }
                None if matches!(self.at_eof, AtEof::Cancel) => {
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
        cancelled
    }
}
