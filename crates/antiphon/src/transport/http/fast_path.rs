//! The fast path: a plain POST on a connection that stays open, served without hyper.
//!
//! Every other request (another method, version or path, an upgrade, a chunked body, `Expect`,
//! `Origin`, a malformed head, a refusal) is left to hyper: the connection is handed over with the
//! bytes that were read, and stays there. So the fast path decides only that a request is plain, and
//! hyper and `service_state.rs` keep every rule. With a policy, the request takes the way of `policy_exchange.rs`, as
//! behind hyper (`fast_path_exchange.rs`). Rejected: hyper for all requests, which took more
//! instructions per call than everything else together.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::decode;
use bytes::Bytes;
use http::Extensions;
use tokio::io::{AsyncRead, AsyncWrite};

use super::activity::ActiveRequest;
use super::fast_path_exchange::{FastPathExchange, Progress};
use super::fast_path_head::{MAX_HEAD, NotOnFastPath, RequestLength, parse_head, read_head};
use super::fast_path_response::{write_refusal, write_reply};
use super::refusal::HttpRefusal;
use super::response::{Dispatched, tap_reply};
use super::service::HttpService;
use crate::BoxFuture;
use crate::connection::HttpHead;
use crate::context::Origin;
use crate::endpoint::HTTP;
use crate::engine::{Drive, ReplyBuffer, ReplyTail};
use crate::io::WakeGated;
use crate::io::linger::Linger;
use crate::io::read_buffer::ReadBuffer;
use crate::io::write_buffer::WriteBuffer;
use crate::io::{Meter, Metered};
use crate::tap::{Direction, Taps};

/// The bytes that are read ahead while a request runs.
const AHEAD: usize = 64 * 1024;
/// Requests that are served before other tasks get a turn.
const BURST: usize = 256;

/// A connection that hyper has not taken over.
pub(super) struct FastPath<S> {
    stream: S,
    meter: Arc<Meter>,
    service: HttpService,
    incoming: ReadBuffer,
    outgoing: WriteBuffer,
    scratch: ReplyBuffer,
    /// The head at the front of the buffer, once it is complete.
    head: Option<RequestLength>,
    /// The expected length of the next request, if the last one was large.
    expected: usize,
    /// A request whose body has not arrived.
    awaited: Option<ActiveRequest>,
    running: Option<RunningRequest>,
    /// The request in flight, if there is a policy.
    exchange: Option<FastPathExchange>,
    /// The request in flight is the last one.
    last: bool,
    /// The last response is written.
    over: bool,
    /// The connection was idle when it ended, so no request can be lost.
    was_idle: bool,
    /// Discards bytes that still arrive.
    linger: Option<Linger>,
}

/// A request that waits for its handler.
struct RunningRequest {
    drive: Drive,
    dispatched: Dispatched,
    expired: WakeGated<BoxFuture<'static, ()>>,
    _active: ActiveRequest,
}

/// How the fast path ends.
pub(super) enum FastPathEnd {
    Closed,
    /// hyper serves the rest.
    HandOver,
}

/// The front of the buffer.
enum Front {
    Complete(RequestLength),
    /// A part of a request, and the bytes to read next.
    Partial(usize),
    HandOver,
}

/// The client has disconnected.
struct Disconnected;

impl<S: AsyncRead + AsyncWrite + Unpin> FastPath<S> {
    pub(super) fn new(stream: S, meter: Arc<Meter>, service: HttpService) -> Self {
        Self {
            stream,
            meter,
            service,
            incoming: ReadBuffer::new(&[]),
            outgoing: WriteBuffer::default(),
            scratch: ReplyBuffer::splitting_large(),
            head: None,
            expected: 0,
            awaited: None,
            running: None,
            exchange: None,
            last: false,
            over: false,
            was_idle: false,
            linger: None,
        }
    }

    /// The stream, and the bytes that were read and not served.
    pub(super) fn into_parts(self) -> (Metered<S>, Bytes) {
        self.service.activity.set_partial_head(false);
        (Metered::new(self.stream, self.meter), self.incoming.into_unread())
    }

    /// Accepts no request after the one in flight.
    pub(super) fn stop(&mut self) {
        self.last = true;
    }

    pub(super) fn poll(&mut self, cx: &mut Poller<'_>) -> Poll<FastPathEnd> {
        match self.turns(cx) {
            Poll::Ready(Ok(ended)) => Poll::Ready(ended),
            Poll::Ready(Err(Disconnected)) => Poll::Ready(FastPathEnd::Closed),
            Poll::Pending => Poll::Pending,
        }
    }

    fn turns(&mut self, cx: &mut Poller<'_>) -> Poll<Result<FastPathEnd, Disconnected>> {
        for _ in 0..BURST {
            if self.running.is_some() {
                ready!(self.poll_running(cx))?;
            }
            if self.exchange.is_some() {
                ready!(self.poll_exchange(cx))?;
            }
            if self.over {
                return self.poll_over(cx);
            }
            if self.outgoing.is_full() {
                ready!(self.poll_flush(cx))?;
            }
            match self.front() {
                Front::Complete(head) => match self.service.state.http.policy {
                    None => self.serve(head, cx),
                    Some(_) => self.serve_by_policy(head),
                },
                // A partial head is not a request yet.
                Front::Partial(_) if self.last && self.head.is_none() => {
                    self.over = true;
                    self.was_idle = self.incoming.buf.is_empty();
                }
                Front::Partial(wanted) => {
                    // Responses leave before more is read: a client that does not read is not read
                    // either.
                    ready!(self.poll_flush(cx))?;
                    ready!(self.poll_more(wanted, cx))?;
                }
                Front::HandOver => {
                    ready!(self.poll_flush(cx))?;
                    return Poll::Ready(Ok(FastPathEnd::HandOver));
                }
            }
        }
        cx.waker().wake_by_ref();
        ready!(self.poll_flush(cx))?;
        Poll::Pending
    }

    fn front(&mut self) -> Front {
        let buf = &self.incoming.buf;
        let head = match self.head {
            Some(head) => head,
            None if buf.is_empty() => return Front::Partial(self.expected),
            None => match read_head(buf, &self.service.state) {
                Ok(Some(head)) => *self.head.insert(head),
                Ok(None) if buf.len() < MAX_HEAD => return Front::Partial(0),
                Ok(None) | Err(NotOnFastPath) => return Front::HandOver,
            },
        };
        let wanted = head.wanted(buf.len());
        self.expected = self.incoming.front_is(head.whole());
        match wanted {
            0 => Front::Complete(head),
            // A policy may refuse the request before its body arrives.
            _ if self.service.state.http.policy.is_some() => Front::HandOver,
            wanted => Front::Partial(wanted),
        }
    }

    /// Takes the head and the body of a request out of the buffer.
    fn take(&mut self, RequestLength { head, body }: RequestLength) -> (Bytes, Bytes) {
        let buf = &mut self.incoming.buf;
        let large = buf.is_large();
        let mut text = buf.split_to(head + body).freeze();
        let body = text.split_off(head);
        self.head = None;
        // A handler keeps the head while it runs. That must not keep a large buffer alive.
        let text = if large { Bytes::copy_from_slice(&text) } else { text };
        (text, body)
    }

    /// Serves a request that a policy decides.
    fn serve_by_policy(&mut self, request: RequestLength) {
        let (head, body) = self.take(request);
        match parse_head(&head) {
            Some(head) => {
                self.exchange = Some(FastPathExchange::new(&self.service, head, body));
            }
            None => self.refuse(&HttpRefusal::Failed),
        }
    }

    fn serve(&mut self, request: RequestLength, cx: &mut Poller<'_>) {
        let (text, body) = self.take(request);
        let state = &*self.service.state;
        let head = HttpHead::unparsed(text, parse_head);
        let mut connection = self.service.remote.connection(HTTP, head, Extensions::new());
        if state.dispatcher.settings.complete(&mut connection).is_err() {
            return self.refuse(&HttpRefusal::Failed);
        }
        state.dispatcher.settings.tap.message(Direction::Received, &body, &connection);
        let payload = decode(&body, &state.dispatcher.settings.rules);
        let dispatched = Dispatched::new(connection, &payload, None);
        let awaited = self.awaited.take().inspect(|_| self.service.activity.resume());
        let out = &mut self.scratch;
        let started = state.dispatcher.start(payload, None, &dispatched.origin, out, cx);
        match started.or_drive() {
            Ok(reply) => {
                if awaited.is_none() {
                    self.service.activity.count_served();
                }
                let tail = self.scratch.take_tail();
                self.reply(reply, tail, &dispatched);
            }
            Err(drive) => {
                let expired: BoxFuture<'static, ()> = Box::pin(state.expired());
                let active = awaited.unwrap_or_else(|| self.service.activity.begin());
                let expired = WakeGated::new(expired);
                let running = RunningRequest { drive, dispatched, expired, _active: active };
                self.running = Some(running);
            }
        }
    }

    fn reply(
        &mut self,
        reply: Option<Bytes>,
        tail: Option<Box<ReplyTail>>,
        dispatched: &Dispatched,
    ) {
        let tap = &self.service.state.dispatcher.settings.tap;
        if !tap.is_none() {
            tap_whole_reply(tap, reply.as_ref(), tail.as_deref(), &dispatched.origin);
        }
        write_reply(reply, tail, dispatched, self.last, &mut self.outgoing);
        self.over = self.last;
    }

    fn refuse(&mut self, refusal: &HttpRefusal) {
        write_refusal(refusal, self.outgoing.tail());
        self.over = true;
    }

    /// Ready when the running request has its response.
    fn poll_running(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), Disconnected>> {
        let Some(running) = &mut self.running else { return Poll::Ready(Ok(())) };
        if let Poll::Ready(reply) = running.drive.poll(cx) {
            if let Some(RunningRequest { dispatched, .. }) = self.running.take() {
                self.reply(reply, None, &dispatched);
            }
            return Poll::Ready(Ok(()));
        }
        if running.expired.poll(cx).is_ready() {
            self.running = None;
            self.refuse(&HttpRefusal::ShuttingDown);
            return Poll::Ready(Ok(()));
        }
        self.poll_disconnect(cx)
    }

    /// Ready when the response to the exchange is in the output.
    fn poll_exchange(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), Disconnected>> {
        while let Some(exchange) = &mut self.exchange {
            match exchange.poll(cx, &mut self.last, &mut self.outgoing) {
                Progress::Done => {
                    self.exchange = None;
                    self.over = self.last;
                }
                Progress::Full => ready!(self.poll_flush(cx))?,
                Progress::Waiting => return self.poll_disconnect(cx),
                Progress::Aborted => return Poll::Ready(Err(Disconnected)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads ahead while a request runs. Ready only when the client has disconnected.
    fn poll_disconnect(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), Disconnected>> {
        // Earlier responses do not wait for this one, and a disconnect must be seen.
        ready!(self.poll_flush(cx))?;
        while self.incoming.buf.len() < AHEAD {
            match self.poll_read(0, cx) {
                Poll::Ready(read) => read?,
                Poll::Pending => {
                    self.release();
                    break;
                }
            }
        }
        Poll::Pending
    }

    /// Returns unused buffers to the pool, when there is nothing to read.
    fn release(&mut self) {
        // First, since it keeps the last call, which keeps the read buffer.
        self.scratch.release();
        self.incoming.release();
        self.outgoing.release();
    }

    fn poll_flush(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), Disconnected>> {
        let Self { stream, outgoing, meter, .. } = self;
        ready!(outgoing.poll_drain(stream, cx, meter)).map_err(|_| Disconnected)?;
        // A socket takes everything that is written; TLS may keep a part.
        let flushed = Pin::new(stream).poll_flush(cx);
        meter.flushed(&flushed);
        flushed.map_err(|_| Disconnected)
    }

    fn poll_read(&mut self, wanted: usize, cx: &mut Poller<'_>) -> Poll<Result<(), Disconnected>> {
        match ready!(self.incoming.poll_read(&mut self.stream, cx, wanted, &self.meter)) {
            Ok(0) | Err(_) => Poll::Ready(Err(Disconnected)),
            Ok(_) => Poll::Ready(Ok(())),
        }
    }

    /// Reads, or returns the buffers until there is something to read.
    fn poll_more(&mut self, wanted: usize, cx: &mut Poller<'_>) -> Poll<Result<(), Disconnected>> {
        if let Poll::Ready(read) = self.poll_read(wanted, cx) {
            return Poll::Ready(read);
        }
        self.release();
        let activity = &self.service.activity;
        activity.set_partial_head(self.head.is_none() && !self.incoming.buf.is_empty());
        if self.head.is_none() {
            return Poll::Pending;
        }
        self.awaited.get_or_insert_with(|| activity.begin());
        ready!(activity.poll_stalled(cx));
        self.awaited = None;
        self.refuse(&HttpRefusal::BodyTimedOut);
        Poll::Ready(Ok(()))
    }

    fn poll_over(&mut self, cx: &mut Poller<'_>) -> Poll<Result<FastPathEnd, Disconnected>> {
        ready!(self.poll_flush(cx))?;
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx)).map_err(|_| Disconnected)?;
        if self.was_idle {
            return Poll::Ready(Ok(FastPathEnd::Closed));
        }
        let linger = self.linger.get_or_insert_with(Linger::new);
        linger.poll(&mut self.stream, cx, &self.meter).map(|()| Ok(FastPathEnd::Closed))
    }
}

/// Shows a reply to the tap as one message, even if its result is a separate tail.
#[cold]
fn tap_whole_reply(tap: &Taps, reply: Option<&Bytes>, tail: Option<&ReplyTail>, origin: &Origin) {
    match tail {
        None => tap_reply(tap, reply, origin),
        Some(ReplyTail { result, end }) => {
            let reply = [reply.map_or(&[][..], |reply| reply), result, end].concat();
            tap_reply(tap, Some(&reply.into()), origin);
        }
    }
}
