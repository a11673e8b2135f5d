//! The calls on one connection: as many as may go are written at once, and one read takes many
//! replies.
//!
//! Nothing is allocated for a call, and one clock reading serves a whole burst. Who is answered is
//! the ledger's matter, when to send is the pace's, and how it looks on the wire the codec's.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use antiphon_check::raw::codec::{Codec, Decoded, ProtocolViolation};
use antiphon_check::raw::{RawConnection, RawSocket};
use tokio::time::{Sleep, sleep_until};

use super::check::Checker;
use super::input::Input;
use super::ledger::Ledger;
use super::outgoing::Outgoing;
use super::pace::Pace;
use super::plan::Plan;
use super::request::Ids;
use super::tally::{Fault, Kind, Tally};

/// A timer is a millisecond late at times: before a call is due, this long is spent looking at the
/// clock instead.
const SPIN: u64 = 2_000_000;
/// How much of a refusal is looked at.
const SAMPLE: usize = 400;
/// The longest that a timer is set for.
const LONG: u64 = 3_600_000_000_000;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All is sent and answered.
    Done,
    /// The peer ended it, in good order.
    Closed,
    /// The peer broke it, or the protocol, or did not answer.
    Broken,
}

/// One connection in use.
pub(super) struct Talk<'a> {
    plan: &'a Plan,
    pace: &'a mut Pace,
    tally: &'a Mutex<Tally>,
    /// Times are nanoseconds from here.
    epoch: Instant,
    socket: RawSocket,
    codec: Codec,
    ledger: Ledger,
    ids: Ids,
    input: Input,
    outgoing: Outgoing,
    /// Since when nothing was answered, while something waits.
    since: u64,
    alarm: Pin<Box<Sleep>>,
    /// When it rings; in the past once it has.
    rings: u64,
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        link: RawConnection,
        plan: &'a Plan,
        pace: &'a mut Pace,
        tally: &'a Mutex<Tally>,
        epoch: Instant,
    ) -> Self {
        let RawConnection { socket, codec, early } = link;
        let request = &plan.request;
        let checker = Checker::new(request.calls, request.is_batch, plan.expected.clone());
        let ledger = Ledger::new(checker, request.calls, codec.is_ordered());
        let alarm = Box::pin(sleep_until(epoch.into()));
        let (outgoing, since, rings) = (Outgoing::default(), 0, 0);
        let (ids, input) = (Ids::new(), Input::new(&early));
        Self {
            plan,
            pace,
            tally,
            epoch,
            socket,
            codec,
            ledger,
            ids,
            input,
            outgoing,
            since,
            alarm,
            rings,
        }
    }

    /// Calls until all is done or the connection is; says how it went, and whether anything was
    /// answered.
    pub(super) async fn run(mut self) -> (End, bool) {
        let end = std::future::poll_fn(|cx| self.poll(cx)).await;
        let mut goodbye = Vec::new();
        if end == End::Done {
            self.codec.close_message(&mut goodbye);
        }
        self.socket.close(&goodbye).await;
        (end, self.ledger.answers > 0)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let mut now = None;
        loop {
            match self.socket.poll_read(cx, self.input.room()) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Poll::Ready(self.hang_up()),
                Poll::Ready(Err(error)) => return Poll::Ready(self.lose(&error.to_string())),
                Poll::Ready(Ok(length)) => {
                    self.input.add(length);
                    let time = *now.insert(self.now());
                    if let Some(end) = self.take(time) {
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
        self.rest(time, cx)
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Takes all replies that are there.
    fn take(&mut self, now: u64) -> Option<End> {
        let mut tally = lock(self.tally);
        let answers = self.ledger.answers;
        let fault = loop {
            match self.codec.next(self.input.unused(), &mut self.outgoing.bytes) {
                Ok(Decoded::Starved) => break None,
                Ok(Decoded::Pass(used)) => {
                    self.input.pass(used);
                    continue;
                }
                Ok(Decoded::Reply(text, used)) => {
                    if let Err(fault) = self.ledger.reply(text, now, &mut tally) {
                        break Some(fault);
                    }
                    self.input.pass(used);
                }
                Ok(Decoded::Refusal(status, body, used)) => {
                    self.ledger.refusal(refusal(status, body), now, &mut tally);
                    self.input.pass(used);
                }
                Ok(Decoded::Closing(why)) => break Some(Fault::new(Kind::Lost, 0, why)),
                Err(ProtocolViolation(why)) => {
                    break Some(Fault::new(Kind::Protocol, self.plan.request.calls, why));
                }
            }
            if self.codec.is_closing() {
                break Some(Fault::new(Kind::Lost, 0, "the server closes after an answer"));
            }
        };
        if self.ledger.answers > answers {
            self.since = now;
        }
        drop(tally);
        fault.map(|fault| self.end_with(fault, now))
    }

    /// Ends the connection: one message is to blame, the others that wait are lost.
    fn end_with(&mut self, fault: Fault, now: u64) -> End {
        let lost = self.ledger.give_up().saturating_sub(fault.calls);
        let mut tally = lock(self.tally);
        let end = if fault.calls == 0 && lost == 0 { End::Closed } else { End::Broken };
        if lost > 0 {
            let why =
                if fault.kind == Kind::Lost { &fault.sample } else { "the connection is given up" };
            tally.fault(Fault::new(Kind::Lost, lost, why), now);
        }
        if fault.calls > 0 {
            tally.fault(fault, now);
        }
        end
    }

    /// The peer has closed: that may be how its last reply ends.
    fn hang_up(&mut self) -> End {
        let now = self.now();
        let mut tally = lock(self.tally);
        let last = match self.codec.last(self.input.unused()) {
            Some(Decoded::Reply(text, _)) => self.ledger.reply(text, now, &mut tally),
            Some(Decoded::Refusal(status, body, _)) => {
                self.ledger.refusal(refusal(status, body), now, &mut tally);
                Ok(())
            }
            _ => Ok(()),
        };
        drop(tally);
        let closed = Fault::new(Kind::Lost, 0, "the peer closed the connection");
        self.end_with(last.err().unwrap_or(closed), now)
    }

    fn lose(&mut self, why: &str) -> End {
        let now = self.now();
        self.end_with(Fault::new(Kind::Lost, 0, why), now)
    }

    /// Writes what may go now.
    fn send(&mut self, now: u64, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let is_full = self.fill(now);
            let shared = self.plan.request.shared();
            if !self.outgoing.send(shared, &mut self.socket, cx)? || !is_full {
                return Ok(());
            }
        }
    }

    /// Whether there is more to send than is gathered at once.
    fn fill(&mut self, now: u64) -> bool {
        while self.ledger.has_room() {
            if self.outgoing.is_full() {
                return true;
            }
            let waiting = self.ledger.waiting();
            let Some(from) = self.pace.take(now, waiting) else { break };
            if waiting == 0 {
                self.since = now;
            }
            let request = &self.plan.request;
            let out = &mut self.outgoing;
            let start = self.codec.begin(request.length(&self.ids), &mut out.bytes);
            if self.codec.transforms_payload() || request.shared().is_empty() {
                request.write(&mut self.ids, &mut out.bytes);
            } else {
                out.share();
                request.write_rest(&mut self.ids, &mut out.bytes);
            }
            self.codec.end(start, &mut out.bytes);
            self.ledger.push(from);
        }
        false
    }

    /// Nothing can be done now: is it all, is it too long, and when to look again?
    fn rest(&mut self, now: u64, cx: &mut Context<'_>) -> Poll<End> {
        let waiting = self.ledger.waiting();
        let is_over = self.pace.is_over(now);
        if waiting == 0 && is_over {
            return Poll::Ready(End::Done);
        }
        let patience = match waiting {
            0 => u64::MAX,
            _ => self.since.saturating_add(self.plan.timeout),
        };
        if now >= patience {
            return Poll::Ready(self.time_out(now));
        }
        let end = if is_over { u64::MAX } else { self.pace.end() };
        match self.pace.due(waiting) {
            Some(due) if !is_over && due < now + SPIN => cx.waker().wake_by_ref(),
            Some(due) if !is_over => self.ring(patience.min(end).min(due - SPIN), now, cx),
            _ => self.ring(patience.min(end), now, cx),
        }
        Poll::Pending
    }

    /// Nothing at all was answered for too long: nothing will be.
    fn time_out(&mut self, now: u64) -> End {
        let calls = self.ledger.give_up();
        let fault = Fault::new(Kind::Timeout, calls, "not answered within --timeout");
        lock(self.tally).fault(fault, now);
        End::Broken
    }

    /// Sees to it that this task looks again by then. Too early is no harm, so that an alarm which
    /// rings before is left as it is.
    fn ring(&mut self, at: u64, now: u64, cx: &mut Context<'_>) {
        if self.rings > now && self.rings <= at {
            return;
        }
        self.rings = at.min(now + LONG);
        let instant = self.epoch + Duration::from_nanos(self.rings);
        self.alarm.as_mut().reset(instant.into());
        if self.alarm.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}

fn refusal(status: u16, body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(&body[..body.len().min(SAMPLE)]);
    Fault::new(Kind::Http(status), 1, text)
}

pub(super) fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
