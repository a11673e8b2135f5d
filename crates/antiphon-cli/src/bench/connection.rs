//! The calls on one connection. One write sends all messages that may be sent, and one read receives
//! many replies.
//!
//! A call allocates nothing, and one clock reading serves a whole burst. `pending` matches replies,
//! `pacer` decides when to send, and the codec defines the bytes on the wire.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep_until};

use super::config::BenchConfig;
use super::pacer::Pacer;
use super::pending::PendingMessages;
use super::receive_buffer::ReceiveBuffer;
use super::reply_checker::ReplyChecker;
use super::request::Ids;
use super::send_buffer::SendBuffer;
use super::stats::{FailedCallKind, FailedCalls, RoundStats};
use antiphon_check::raw::codec::{Codec, Decoded, ProtocolViolation};
use antiphon_check::raw::{RawConnection, RawSocket};

/// The time before a due call in which the task polls the clock: a timer may be a millisecond late.
const SPIN: u64 = 2_000_000;
/// The number of bytes kept of an HTTP error body.
const SAMPLE: usize = 400;
/// The longest time that a timer is set for.
const LONG: u64 = 3_600_000_000_000;

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchEnd {
    /// All messages are sent and have replies.
    Done,
    /// The peer closed it cleanly.
    Closed,
    /// The connection broke, the peer violated the protocol, or the reply timed out.
    Broken,
}

/// An open connection.
pub(super) struct BenchConnection<'a> {
    config: &'a BenchConfig,
    pacer: &'a mut Pacer,
    stats: &'a Mutex<RoundStats>,
    /// The start of the round. Times are nanoseconds from here.
    epoch: Instant,
    socket: RawSocket,
    codec: Codec,
    pending: PendingMessages,
    ids: Ids,
    receive_buffer: ReceiveBuffer,
    send_buffer: SendBuffer,
    /// The time of the last reply, or of the first message that waits since then.
    since: u64,
    timer: Pin<Box<Sleep>>,
    /// The time that the timer is set for; in the past after it fired.
    wakes_at: u64,
}

impl<'a> BenchConnection<'a> {
    pub(super) fn new(
        link: RawConnection,
        config: &'a BenchConfig,
        pacer: &'a mut Pacer,
        stats: &'a Mutex<RoundStats>,
        epoch: Instant,
    ) -> Self {
        let RawConnection { socket, codec, early } = link;
        let request = &config.request;
        let checker = ReplyChecker::new(request.calls, request.is_batch, config.expected.clone());
        let pending = PendingMessages::new(checker, request.calls, codec.is_ordered());
        let timer = Box::pin(sleep_until(epoch.into()));
        let (send_buffer, since, wakes_at) = (SendBuffer::default(), 0, 0);
        let (ids, receive_buffer) = (Ids::new(), ReceiveBuffer::new(&early));
        Self {
            config,
            pacer,
            stats,
            epoch,
            socket,
            codec,
            pending,
            ids,
            receive_buffer,
            send_buffer,
            since,
            timer,
            wakes_at,
        }
    }

    /// Calls until everything is done or the connection ends. Returns the end, and whether there was
    /// any reply.
    pub(super) async fn run(mut self) -> (BenchEnd, bool) {
        let end = std::future::poll_fn(|cx| self.poll(cx)).await;
        let mut close = Vec::new();
        if end == BenchEnd::Done {
            self.codec.close_message(&mut close);
        }
        self.socket.close(&close).await;
        (end, self.pending.replies > 0)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<BenchEnd> {
        let mut now = None;
        loop {
            match self.socket.poll_read(cx, self.receive_buffer.room()) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Poll::Ready(self.peer_closed()),
                Poll::Ready(Err(error)) => return Poll::Ready(self.lose(&error.to_string())),
                Poll::Ready(Ok(length)) => {
                    self.receive_buffer.add(length);
                    let time = *now.insert(self.now());
                    if let Some(end) = self.read_replies(time) {
                        return Poll::Ready(end);
                    }
                    if let Err(error) = self.send(time, cx) {
                        return Poll::Ready(self.lose(&error.to_string()));
                    }
                }
            }
        }
        let time = match now {
            Some(now) => now,
            None => {
                let time = self.now();
                if let Err(error) = self.send(time, cx) {
                    return Poll::Ready(self.lose(&error.to_string()));
                }
                time
            }
        };
        self.poll_idle(time, cx)
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Processes all received replies.
    fn read_replies(&mut self, now: u64) -> Option<BenchEnd> {
        let mut stats = lock(self.stats);
        let replies = self.pending.replies;
        let failed = loop {
            match self.codec.next(self.receive_buffer.unread(), &mut self.send_buffer.bytes) {
                Ok(Decoded::Starved) => break None,
                Ok(Decoded::Pass(used)) => {
                    self.receive_buffer.consume(used);
                    continue;
                }
                Ok(Decoded::Reply(text, used)) => {
                    if let Err(failed) = self.pending.reply(text, now, &mut stats) {
                        break Some(failed);
                    }
                    self.receive_buffer.consume(used);
                }
                Ok(Decoded::Refusal(status, body, used)) => {
                    self.pending.refusal(refusal(status, body), now, &mut stats);
                    self.receive_buffer.consume(used);
                }
                Ok(Decoded::Closing(why)) => {
                    break Some(FailedCalls::new(FailedCallKind::Lost, 0, why));
                }
                Err(ProtocolViolation(why)) => {
                    break Some(FailedCalls::new(
                        FailedCallKind::Protocol,
                        self.config.request.calls,
                        why,
                    ));
                }
            }
            if self.codec.is_closing() {
                break Some(FailedCalls::new(
                    FailedCallKind::Lost,
                    0,
                    "the server closes after a reply",
                ));
            }
        };
        if self.pending.replies > replies {
            self.since = now;
        }
        drop(stats);
        failed.map(|failed| self.end_with(failed, now))
    }

    /// Ends the connection after a failure. The other pending messages are lost.
    fn end_with(&mut self, failed: FailedCalls, now: u64) -> BenchEnd {
        let lost = self.pending.give_up().saturating_sub(failed.calls);
        let mut stats = lock(self.stats);
        let end = if failed.calls == 0 && lost == 0 { BenchEnd::Closed } else { BenchEnd::Broken };
        if lost > 0 {
            let why = if failed.kind == FailedCallKind::Lost {
                &failed.sample
            } else {
                "the connection was abandoned"
            };
            stats.record_failure(FailedCalls::new(FailedCallKind::Lost, lost, why), now);
        }
        if failed.calls > 0 {
            stats.record_failure(failed, now);
        }
        end
    }

    /// Handles the end of the stream, which may also be the end of the last reply.
    fn peer_closed(&mut self) -> BenchEnd {
        let now = self.now();
        let mut stats = lock(self.stats);
        let last = match self.codec.last(self.receive_buffer.unread()) {
            Some(Decoded::Reply(text, _)) => self.pending.reply(text, now, &mut stats),
            Some(Decoded::Refusal(status, body, _)) => {
                self.pending.refusal(refusal(status, body), now, &mut stats);
                Ok(())
            }
            _ => Ok(()),
        };
        drop(stats);
        let closed = FailedCalls::new(FailedCallKind::Lost, 0, "the peer closed the connection");
        self.end_with(last.err().unwrap_or(closed), now)
    }

    fn lose(&mut self, why: &str) -> BenchEnd {
        let now = self.now();
        self.end_with(FailedCalls::new(FailedCallKind::Lost, 0, why), now)
    }

    /// Writes all messages that may be sent now.
    fn send(&mut self, now: u64, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let is_full = self.fill(now);
            let shared = self.config.request.shared();
            if !self.send_buffer.send(shared, &mut self.socket, cx)? || !is_full {
                return Ok(());
            }
        }
    }

    /// Fills the send buffer. Returns true if it is full and more messages may be sent.
    fn fill(&mut self, now: u64) -> bool {
        while self.pending.has_room() {
            if self.send_buffer.is_full() {
                return true;
            }
            let waiting = self.pending.waiting();
            let Some(from) = self.pacer.take(now, waiting) else { break };
            if waiting == 0 {
                self.since = now;
            }
            let request = &self.config.request;
            let out = &mut self.send_buffer;
            let start = self.codec.begin(request.length(&self.ids), &mut out.bytes);
            if self.codec.transforms_payload() || request.shared().is_empty() {
                request.write(&mut self.ids, &mut out.bytes);
            } else {
                out.share();
                request.write_rest(&mut self.ids, &mut out.bytes);
            }
            self.codec.end(start, &mut out.bytes);
            self.pending.push(from);
        }
        false
    }

    /// Decides what follows when there is nothing to read or send: the end, a timeout, or a timer.
    fn poll_idle(&mut self, now: u64, cx: &mut Context<'_>) -> Poll<BenchEnd> {
        let waiting = self.pending.waiting();
        let is_over = self.pacer.is_over(now);
        if waiting == 0 && is_over {
            return Poll::Ready(BenchEnd::Done);
        }
        let limit = match waiting {
            0 => u64::MAX,
            _ => self.since.saturating_add(self.config.reply_timeout),
        };
        if now >= limit {
            return Poll::Ready(self.time_out(now));
        }
        let end = if is_over { u64::MAX } else { self.pacer.end() };
        match self.pacer.due(waiting) {
            Some(due) if !is_over && due < now + SPIN => cx.waker().wake_by_ref(),
            Some(due) if !is_over => self.wake_by(limit.min(end).min(due - SPIN), now, cx),
            _ => self.wake_by(limit.min(end), now, cx),
        }
        Poll::Pending
    }

    /// Ends the connection after a time without any reply.
    fn time_out(&mut self, now: u64) -> BenchEnd {
        let calls = self.pending.give_up();
        let failed = FailedCalls::new(FailedCallKind::Timeout, calls, "no reply within --timeout");
        lock(self.stats).record_failure(failed, now);
        BenchEnd::Broken
    }

    /// Wakes this task at that time or earlier. A timer that is set for an earlier time stays.
    fn wake_by(&mut self, at: u64, now: u64, cx: &mut Context<'_>) {
        if self.wakes_at > now && self.wakes_at <= at {
            return;
        }
        self.wakes_at = at.min(now + LONG);
        let instant = self.epoch + Duration::from_nanos(self.wakes_at);
        self.timer.as_mut().reset(instant.into());
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}

fn refusal(status: u16, body: &[u8]) -> FailedCalls {
    let text = String::from_utf8_lossy(&body[..body.len().min(SAMPLE)]);
    FailedCalls::new(FailedCallKind::Http(status), 1, text)
}

pub(super) fn lock(stats: &Mutex<RoundStats>) -> MutexGuard<'_, RoundStats> {
    stats.lock().unwrap_or_else(PoisonError::into_inner)
}
