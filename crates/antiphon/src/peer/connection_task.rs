//! The future of a connection. It reads, dispatches and writes in one task, and has no lock of its own.
//!
//! One turn of its loop collects the messages that tasks have queued, writes what is ready, reads the
//! frames that have arrived, and dispatches them. Replies accumulate while there are frames to read, and
//! are sent in one write.
//!
//! The reader pauses only while no call of this side is pending. Otherwise a handler that waits for a
//! reply would wait for the reader, and the reader for the handler. While calls are pending and the
//! limits are reached, requests are queued or rejected instead (contract 4). A paused reader still reads
//! a few frames ahead, so that it detects the end of the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use bytes::Bytes;
use tokio::time::Sleep;

use super::backlog::Backlog;
use super::read_ahead::{Incoming, ReadAhead};
use super::reader::{self, Received};
use super::shared::{NeedsReader, Shared};
use super::shutdown::{EndGuard, Phase};
use super::transport::{AtEof, LineFrames, Transport, TransportError, Wire};
use super::watchdog::{Activity, Liveness, Watchdog};
use super::writer::Writer;
use crate::call::{CallError, Peer, Stop};
use crate::catch_unwind::{Panicked, guarded};
use crate::context::Origin;
use crate::engine::{Dispatcher, InFlight, Run, Settings};
use crate::error::{CloseReason, ErrorChain};
use crate::router::Router;
use crate::service::Handler;

/// The maximum number of frames that are read before the writer gets a turn, so that replies do not
/// wait behind an endless stream of requests.
const READ_BURST: usize = 1_024;

/// The handler and the settings of one side of a connection.
pub(crate) struct ConnectionConfig {
    /// Serves the calls of the peer. Without a handler, every incoming message is taken as a response.
    pub(crate) handler: Option<Arc<dyn Handler>>,
    pub(crate) settings: Arc<Settings>,
}

/// Creates a connection over a wire. Returns the handle to the peer, and the future that drives the
/// connection and returns the reason of its end.
pub(crate) fn connect<T: Transport>(
    wire: Wire<T>,
    config: ConnectionConfig,
) -> (Peer, impl Future<Output = CloseReason> + Send) {
    let ConnectionConfig { handler, settings } = config;
    let watchdog = Watchdog::new(wire.meter, &settings.limits);
    // Assigned before anyone can clone the facts, so that every clone has the same number.
    let _ = wire.facts.id();
    let shared = Arc::new(Shared::new(wire.facts, settings.clone(), handler.is_none()));
    let peer = Peer::new(shared.clone());
    // Panics are caught here because an accept loop makes connections: it must go on.
    if settings.tap.opened(&shared.facts).is_err() {
        peer.stop(Stop::Now);
    }
    let handler = match handler {
        Some(handler) => for_connection(handler, &peer),
        None => Arc::new(Router::new()),
    };
    let connection = ConnectionTask {
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
        read_ahead: ReadAhead::default(),
        eof: false,
        end_of_input: CloseReason::ByPeer,
        received: 0,
        yielded: false,
        phase: Phase::Open,
        drain: None,
        guard: EndGuard(shared.clone()),
        shared,
    };
    (peer, connection)
}

/// Returns the handler of this connection. If creating it panics, the connection ends at once.
fn for_connection(handler: Arc<dyn Handler>, peer: &Peer) -> Arc<dyn Handler> {
    match guarded("creating the handler of a connection", || handler.for_connection(peer)) {
        Ok(own) => own.unwrap_or(handler),
        Err(Panicked) => {
            peer.stop(Stop::Now);
            Arc::new(Router::new())
        }
    }
}

pub(super) struct ConnectionTask<T> {
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
    /// The run that blocks the payloads behind it.
    pub(super) head: Option<Box<Run>>,
    /// Payloads behind the head, which arrived while the reader could not pause.
    pub(super) backlog: Backlog,
    /// Frames that were read while the reader paused.
    pub(super) read_ahead: ReadAhead,
    /// The transport has reported the end of input.
    pub(super) eof: bool,
    /// The reason of the end of input.
    pub(super) end_of_input: CloseReason,
    pub(super) received: u64,
    /// The connection has yielded once, so that other tasks could queue their messages.
    pub(super) yielded: bool,
    pub(super) phase: Phase,
    pub(super) drain: Option<Pin<Box<Sleep>>>,
    pub(super) guard: EndGuard,
}

impl<T: Transport> Future for ConnectionTask<T> {
    type Output = CloseReason;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<CloseReason> {
        let this = &mut *self;
        match this.poll_loop(poller) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(reason) => {
                let why = ErrorChain(&reason);
                tracing::debug!(reason = %why, transport = this.shared.facts.transport, "connection ended");
                this.head = None;
                this.guard.0.end(reason.clone());
                Poll::Ready(reason)
            }
        }
    }
}

impl<T: Transport> ConnectionTask<T> {
    fn poll_loop(&mut self, poller: &mut Poller<'_>) -> Poll<CloseReason> {
        // The timers are polled first. Under a flood of messages the loop below always has work, and
        // when it stops, the budget of the runtime is used up and timers would report `Pending`.
        if let Poll::Ready(Some(reason)) = self.poll_timers(poller) {
            return Poll::Ready(reason);
        }
        loop {
            if let Some(collected) = self.writer.collect(&self.shared, poller.waker()) {
                self.apply_stop(collected.stop);
                // A task that has queued a message is seldom the only one. Yield once, so that other
                // ready tasks queue theirs too and all messages are sent in one write.
                if collected.has_messages && !std::mem::replace(&mut self.yielded, true) {
                    poller.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            self.yielded = false;
            let sent = self.writer.poll_send(poller, &mut self.transport, &self.shared);
            if let Poll::Ready(Err(error)) = sent {
                return Poll::Ready(CloseReason::failed(error));
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
            if !(advanced || read || closed || self.writer.owes_wakeups(&self.shared)) {
                match self.poll_timers(poller) {
                    Poll::Ready(Some(reason)) => return Poll::Ready(reason),
                    Poll::Ready(None) => {}
                    Poll::Pending => {
                        self.writer.scratch.release();
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Polls the timers of the connection. Ready with a reason when the connection must end, and with
    /// `None` when the time to finish is over and every request was answered. The close of the transport
    /// has a timer of its own (`poll_close`).
    fn poll_timers(&mut self, poller: &mut Poller<'_>) -> Poll<Option<CloseReason>> {
        if let Phase::Closing(_) = self.phase {
            return Poll::Pending;
        }
        if let Some(drain) = &mut self.drain
            && drain.as_mut().poll(poller).is_ready()
        {
            if self.phase == Phase::Expiring {
                return Poll::Ready(Some("the running calls did not finish in time".into()));
            }
            self.expire();
            return Poll::Ready(None);
        }
        while self.watchdog.poll_due(poller).is_ready() {
            match self.watchdog.check(self.activity()) {
                Liveness::TimedOut(reason) => return Poll::Ready(Some(reason.into())),
                Liveness::Idle => self.writer.release(&self.shared),
                Liveness::Active => {}
            }
        }
        Poll::Pending
    }

    fn activity(&self) -> Activity {
        Activity {
            write_blocked: self.write_blocked,
            reading: self.may_read(),
            busy: !self.in_flight.is_idle()
                || self.head.is_some()
                || self.shared.awaits_answers()
                || self.shared.has_tasks(),
            received: self.received,
            sent: self.writer.sent,
        }
    }

    /// Reads and dispatches until no more frames have arrived. Returns true if a frame was handled.
    fn read(&mut self, poller: &mut Poller<'_>) -> Result<bool, CloseReason> {
        let mut read = false;
        for _ in 0..READ_BURST {
            if !self.may_read() {
                read |= self.fill_read_ahead(poller);
                break;
            }
            // The write queue is full, but the sink has not blocked yet: the writer gets a turn first.
            if self.writer.is_full(&self.shared) && !self.write_blocked {
                return Ok(true);
            }
            let incoming = match self.read_ahead.pop() {
                Some(incoming) => Some(incoming),
                None if self.eof => None,
                None => match Pin::new(&mut self.transport).poll_next(poller) {
                    Poll::Pending => break,
                    Poll::Ready(incoming) => incoming,
                },
            };
            read = true;
            match incoming {
                None => {
                    self.input_exhausted();
                    break;
                }
                Some(incoming) => self.receive(incoming, poller)?,
            }
        }
        Ok(read)
    }

    /// Decodes one frame, and delivers or dispatches its content.
    fn receive(&mut self, incoming: Incoming, poller: &mut Poller<'_>) -> Result<(), CloseReason> {
        self.received += 1;
        let (received, bytes) = match incoming {
            Ok(frame) => {
                let frame = if self.must_queue() { detached(frame) } else { frame };
                let received = reader::receive(&frame, self.lines.is_on(), &self.shared);
                (received, frame.len())
            }
            Err(TransportError::Frame(error)) => (reader::frame_failed(&error, &self.shared), 0),
            Err(TransportError::Ended(reason)) => {
                self.end_of_input = CloseReason::failed(reason);
                self.input_exhausted();
                return Ok(());
            }
            Err(error) => return Err(CloseReason::failed(error)),
        };
        match received {
            Received::Nothing => Ok(()),
            Received::Cancel(id) => {
                self.cancel(&id);
                Ok(())
            }
            Received::Texts(texts) => {
                self.read_ahead.split(texts);
                Ok(())
            }
            Received::Overtaking(notification) => {
                self.overtake(*notification, poller);
                Ok(())
            }
            Received::Payload(payload) => self.dispatch(payload, bytes, poller),
            Received::Unreadable(error) => self.receive_unreadable(&error, poller),
        }
    }

    /// Handles a message that cannot be read, on a side without a handler.
    ///
    /// It fails the one call that waits for a response. If it may belong to any of several calls, or may be
    /// an item of a subscription, the connection ends: one of them would otherwise miss it without a sign.
    fn receive_unreadable(
        &mut self,
        error: &CallError,
        poller: &mut Poller<'_>,
    ) -> Result<(), CloseReason> {
        if self.is_at_end(poller) {
            return Err("the connection broke inside a message".into());
        }
        if let Some(failure) = self.read_ahead.take_failure() {
            return Err(CloseReason::failed(failure));
        }
        let is_delivered = self.shared.fail_only_exchange(|| error.clone());
        if is_delivered
            || !(self.shared.awaits_answers() || self.shared.subscriptions.follows_some())
        {
            return Ok(());
        }
        Err(CloseReason::failed(error.clone()))
    }

    /// Whether the last frame was the last of the input. On a stream, the end of the input ends a frame too,
    /// complete or not.
    fn is_at_end(&mut self, poller: &mut Poller<'_>) -> bool {
        if self.eof || !self.read_ahead.is_empty() {
            return self.eof && self.read_ahead.is_empty();
        }
        match Pin::new(&mut self.transport).poll_next(poller) {
            Poll::Ready(Some(incoming)) => self.read_ahead.push(incoming),
            Poll::Ready(None) => self.eof = true,
            Poll::Pending => {}
        }
        self.eof
    }

    /// Whether a message that arrives now is queued.
    fn must_queue(&self) -> bool {
        self.head.is_some() || !self.backlog.is_empty()
    }

    fn may_read(&self) -> bool {
        if !matches!(self.phase, Phase::Open | Phase::Stopping) {
            return false;
        }
        let room =
            self.head.is_none() && self.backlog.is_empty() && !self.writer.is_full(&self.shared);
        room || match self.shared.needs_reader() {
            NeedsReader::ForReplies => true,
            // A cancelled call is answered, so do not read cancellations of a peer that does not read
            // its replies.
            NeedsReader::ForCancellations if self.writer.is_full(&self.shared) => false,
            NeedsReader::ForCapacity | NeedsReader::ForCancellations => {
                self.backlog.has_room(&self.shared.settings.limits)
            }
            NeedsReader::No => false,
        }
    }

    /// Reads a few frames for later, because a paused reader must still detect the end of the
    /// connection. Returns true if the connection has ended, or a message that does not wait was handled.
    fn fill_read_ahead(&mut self, poller: &mut Poller<'_>) -> bool {
        let open = matches!(self.phase, Phase::Open | Phase::Stopping) && !self.eof;
        let mut overtaken = false;
        while open
            && self.read_ahead.has_room()
            && let Poll::Ready(incoming) = Pin::new(&mut self.transport).poll_next(poller)
        {
            let incoming = match incoming {
                Some(Err(TransportError::Ended(reason))) => {
                    self.end_of_input = CloseReason::failed(reason);
                    None
                }
                incoming => incoming,
            };
            match incoming {
                Some(incoming) => {
                    let (left, is_handled) = self.overtake_read_ahead(incoming, poller);
                    overtaken |= is_handled;
                    left.into_iter().for_each(|incoming| self.read_ahead.push(incoming));
                }
                None if matches!(self.at_eof, AtEof::Cancel) => {
                    self.input_exhausted();
                    return true;
                }
                // The frames that were read ahead are still served.
                None => {
                    self.eof_received();
                    break;
                }
            }
        }
        overtaken
    }
}

/// Copies a small frame. A message that is queued would otherwise keep the whole read buffer that its frame
/// is a part of, and the queue would hold more memory than it counts.
fn detached(frame: Bytes) -> Bytes {
    const SMALL: usize = 16 * 1024;
    if frame.len() < SMALL { Bytes::copy_from_slice(&frame) } else { frame }
}
