//! The usual request, served without hyper: a POST on a connection that stays open.
//!
//! Whatever else comes (another method or version, an upgrade, a body in chunks, `Expect`, a page's
//! `Origin`, a head that is no HTTP or is refused) is hyper's: the connection is handed over with what
//! was read, and stays there. So nothing is decided here but that a request is usual, and hyper,
//! `respond.rs` and `service.rs` keep every rule. Rejected: hyper for all, which took more instructions
//! a call than all the rest together.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::decode;
use bytes::Bytes;
use http::Extensions;
use tokio::io::{AsyncRead, AsyncWrite};

use super::activity::Busy;
use super::answer::{self, Asked};
use super::fast_path_head::{Head, MAX_HEAD, NotOnFastPath, read_head, read_headers};
use super::service::HttpService;
use crate::BoxFuture;
use crate::connection::Headers;
use crate::endpoint::HTTP;
use crate::engine::{Drive, ReplyBuffer, ReplyTail};
use crate::io::WakeGated;
use crate::io::linger::Linger;
use crate::io::read_buffer::ReadBuffer;
use crate::io::write_buffer::WriteBuffer;
use crate::io::{Meter, Metered};

/// What is read ahead while a request runs.
const AHEAD: usize = 64 * 1024;
/// Requests served before others get a turn.
const BURST: usize = 256;

/// A connection on which nothing unusual has come yet.
pub(super) struct FastPath<S> {
    stream: S,
    meter: Arc<Meter>,
    service: HttpService,
    incoming: ReadBuffer,
    outgoing: WriteBuffer,
    scratch: ReplyBuffer,
    /// The head at the front of the buffer, once it is whole.
    head: Option<Head>,
    /// How long the next request may be, where the last one was large.
    expected: usize,
    /// A request whose body is still to come.
    awaited: Option<Busy>,
    running: Option<Running>,
    /// No request is taken after the one under way.
    last: bool,
    /// All is said.
    over: bool,
    /// It was when the connection rested: nothing is on its way that could be lost.
    rested: bool,
    /// What still comes is let by.
    linger: Option<Linger>,
}

/// A request that waits for its handler.
struct Running {
    drive: Drive,
    asked: Asked,
    expired: WakeGated<BoxFuture<'static, ()>>,
    _busy: Busy,
}

/// How it ends.
pub(super) enum Ended {
    /// The connection is over.
    Over,
    /// What comes next is hyper's.
    Unusual,
}

/// What stands at the front of the buffer.
enum Next {
    Whole(Head),
    /// Not all of a request; this much more is worth a read.
    Partial(usize),
    Unusual,
}

/// The other side is gone.
struct Gone;

impl<S: AsyncRead + AsyncWrite + Unpin> FastPath<S> {
    pub(super) fn new(stream: S, meter: Arc<Meter>, service: HttpService) -> Self {
        Self {
            stream,
            meter,
            service,
            incoming: ReadBuffer::new(&[]),
            outgoing: WriteBuffer::default(),
            scratch: ReplyBuffer::in_pieces(),
            head: None,
            expected: 0,
            awaited: None,
            running: None,
            last: false,
            over: false,
            rested: false,
            linger: None,
        }
    }

    /// The stream, and what was read of it and not served.
    pub(super) fn into_parts(self) -> (Metered<S>, Bytes) {
        self.service.activity.set_asking(false);
        (Metered::new(self.stream, self.meter), self.incoming.into_unread())
    }

    /// Takes no request after the one under way.
    pub(super) fn stop(&mut self) {
        self.last = true;
    }

    pub(super) fn poll(&mut self, cx: &mut Poller<'_>) -> Poll<Ended> {
        match self.turns(cx) {
            Poll::Ready(Ok(ended)) => Poll::Ready(ended),
            Poll::Ready(Err(Gone)) => Poll::Ready(Ended::Over),
            Poll::Pending => Poll::Pending,
        }
    }

    fn turns(&mut self, cx: &mut Poller<'_>) -> Poll<Result<Ended, Gone>> {
        for _ in 0..BURST {
            if self.running.is_some() {
                ready!(self.poll_running(cx))?;
            }
            if self.over {
                return self.poll_over(cx);
            }
            if self.outgoing.is_full() {
                ready!(self.poll_flush(cx))?;
            }
            match self.next() {
                Next::Whole(head) => self.serve(head, cx),
                // Half a head is no request yet.
                Next::Partial(_) if self.last && self.head.is_none() => {
                    self.over = true;
                    self.rested = self.incoming.buf.is_empty();
                }
                Next::Partial(wanted) => {
                    // What is answered leaves before anything more is read: who does not read is
                    // not read either.
                    ready!(self.poll_flush(cx))?;
                    ready!(self.poll_more(wanted, cx))?;
                }
                Next::Unusual => {
                    ready!(self.poll_flush(cx))?;
                    return Poll::Ready(Ok(Ended::Unusual));
                }
            }
        }
        cx.waker().wake_by_ref();
        ready!(self.poll_flush(cx))?;
        Poll::Pending
    }

    fn next(&mut self) -> Next {
        let buf = &self.incoming.buf;
        let head = match self.head {
            Some(head) => head,
            None if buf.is_empty() => return Next::Partial(self.expected),
            None => match read_head(buf, &self.service.inner) {
                Ok(Some(head)) => *self.head.insert(head),
                Ok(None) if buf.len() < MAX_HEAD => return Next::Partial(0),
                Ok(None) | Err(NotOnFastPath) => return Next::Unusual,
            },
        };
        let wanted = head.wanted(buf.len());
        self.expected = self.incoming.front_is(head.whole());
        if wanted == 0 { Next::Whole(head) } else { Next::Partial(wanted) }
    }

    fn serve(&mut self, Head { head, body }: Head, cx: &mut Poller<'_>) {
        let buf = &mut self.incoming.buf;
        let large = buf.is_large();
        let mut text = buf.split_to(head + body).freeze();
        let body = text.split_off(head);
        self.head = None;
        // A handler keeps the head for as long as it runs, and not a large buffer with it.
        let text = if large { Bytes::copy_from_slice(&text) } else { text };
        let inner = &*self.service.inner;
        let headers = Headers::unread(text, read_headers);
        let mut connection = self.service.remote.connection(HTTP, headers, Extensions::new());
        if inner.dispatcher.settings.complete(&mut connection).is_err() {
            answer::write_failed(&mut self.outgoing);
            self.over = true;
            return;
        }
        let payload = decode(&body, &inner.dispatcher.settings.rules);
        let asked = Asked::new(connection, &payload);
        let awaited = self.awaited.take().inspect(|_| self.service.activity.moves_on());
        let started = inner.dispatcher.start(payload, None, &asked.origin, &mut self.scratch, cx);
        match started.or_drive() {
            Ok(answer) => {
                if awaited.is_none() {
                    self.service.activity.served_one();
                }
                let behind = self.scratch.take_behind();
                self.answer(answer, behind, &asked);
            }
            Err(drive) => {
                let expired: BoxFuture<'static, ()> = Box::pin(inner.expired());
                let busy = awaited.unwrap_or_else(|| self.service.activity.begin());
                let expired = WakeGated::new(expired);
                self.running = Some(Running { drive, asked, expired, _busy: busy });
            }
        }
    }

    fn answer(&mut self, answer: Option<Bytes>, behind: Option<Box<ReplyTail>>, asked: &Asked) {
        answer::write_answered(answer, behind, asked, self.last, &mut self.outgoing);
        self.over = self.last;
    }

    /// Ready when the request that runs is answered.
    fn poll_running(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), Gone>> {
        let Some(running) = &mut self.running else { return Poll::Ready(Ok(())) };
        if let Poll::Ready(answer) = running.drive.poll(cx) {
            if let Some(Running { asked, .. }) = self.running.take() {
                self.answer(answer, None, &asked);
            }
            return Poll::Ready(Ok(()));
        }
        if running.expired.poll(cx).is_ready() {
            self.running = None;
            answer::write_expired(&mut self.outgoing);
            self.over = true;
            return Poll::Ready(Ok(()));
        }
        // Answers before it do not wait for it, and whoever asks may go.
        ready!(self.poll_flush(cx))?;
        while self.incoming.buf.len() < AHEAD {
            match self.poll_read(0, cx) {
                Poll::Ready(read) => read?,
                Poll::Pending => {
                    self.rest();
                    break;
                }
            }
        }
        Poll::Pending
    }

    /// There is nothing to read: what is not in use goes back.
    fn rest(&mut self) {
        // First, since what it keeps of the last call keeps the buffer that the call was read into.
        self.scratch.rest();
        self.incoming.rest();
        self.outgoing.rest();
    }

    fn poll_flush(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), Gone>> {
        let Self { stream, outgoing, meter, .. } = self;
        ready!(outgoing.poll_drain(stream, cx, meter)).map_err(|_| Gone)?;
        // A socket takes all that is written; TLS may keep some of it.
        let flushed = Pin::new(stream).poll_flush(cx);
        meter.flushed(&flushed);
        flushed.map_err(|_| Gone)
    }

    fn poll_read(&mut self, wanted: usize, cx: &mut Poller<'_>) -> Poll<Result<(), Gone>> {
        match ready!(self.incoming.poll_read(&mut self.stream, cx, wanted, &self.meter)) {
            Ok(0) | Err(_) => Poll::Ready(Err(Gone)),
            Ok(_) => Poll::Ready(Ok(())),
        }
    }

    /// Reads, or rests until there is something to read.
    fn poll_more(&mut self, wanted: usize, cx: &mut Poller<'_>) -> Poll<Result<(), Gone>> {
        if let Poll::Ready(read) = self.poll_read(wanted, cx) {
            return Poll::Ready(read);
        }
        self.rest();
        let activity = &self.service.activity;
        activity.set_asking(self.head.is_none() && !self.incoming.buf.is_empty());
        if self.head.is_none() {
            return Poll::Pending;
        }
        self.awaited.get_or_insert_with(|| activity.begin());
        ready!(activity.poll_stalled(cx));
        self.awaited = None;
        answer::write_stalled(&mut self.outgoing);
        self.over = true;
        Poll::Ready(Ok(()))
    }

    fn poll_over(&mut self, cx: &mut Poller<'_>) -> Poll<Result<Ended, Gone>> {
        ready!(self.poll_flush(cx))?;
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx)).map_err(|_| Gone)?;
        if self.rested {
            return Poll::Ready(Ok(Ended::Over));
        }
        let linger = self.linger.get_or_insert_with(Linger::new);
        linger.poll(&mut self.stream, cx, &self.meter).map(|()| Ok(Ended::Over))
    }
}
