//! Admission of incoming payloads: each one is started, queued or rejected, in arrival order.
//!
//! Nothing here waits. A payload that cannot start is queued or rejected, so that the connection can
//! continue to read (contract 4). A run that has started and waits becomes a task (contract 5).

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context as Poller;

use antiphon_core::{ErrorObject, Id, Intent, Invalid, Payload, decode};

use super::backlog::{QueuedPayload, is_requests_only};
use super::connection_task::ConnectionTask;
use super::read_ahead::Incoming;
use super::reader::{self, Received, Urgent};
use super::shared::{NeedsReader, RunningCall};
use super::shutdown::Phase;
use super::transport::Transport;
use crate::engine::{Drive, Run, RunControl, RunState, Started};
use crate::error::CloseReason;
use crate::subscription::Ended;

impl<T: Transport> ConnectionTask<T> {
    /// Starts, queues or rejects one payload. Payloads are passed in arrival order.
    ///
    /// While the write queue is full, the payload is queued: we read from the peer, so the peer is able
    /// to read from us. While the in-flight limit is reached, requests are rejected: a running handler
    /// may be waiting for exactly this request, and queueing it would be a deadlock. A notification has no
    /// response that could reject it, so it is never dropped before the shutdown.
    pub(super) fn dispatch(
        &mut self,
        mut payload: Payload,
        bytes: usize,
        poller: &mut Poller<'_>,
    ) -> Result<(), CloseReason> {
        if matches!(payload, Payload::Batch(_)) && !self.dispatcher.handler.accepts_batches() {
            payload = Payload::One(Err(batch_refused()));
        }
        if self.phase == Phase::Stopping {
            return self.refuse(payload, "shutting down");
        }
        if self.head.is_some() && self.head_is_refused() {
            self.advance_head(poller);
        }
        match &self.head {
            None if self.backlog.is_empty() && !self.writer.is_full(&self.shared) => {
                self.start(payload, poller);
                return Ok(());
            }
            // If we read on only to find cancellations, no handler waits for the peer: queue it.
            Some(head)
                if !head.keeps_order()
                    && is_requests_only(&payload)
                    && self.shared.needs_reader() != NeedsReader::ForCancellations =>
            {
                return self.refuse(payload, "too many requests in flight");
            }
            Some(_) if self.requests_may_overtake() && is_requests_only(&payload) => {
                self.shared.report_overtaking();
                self.start(payload, poller);
                return Ok(());
            }
            _ => {}
        }
        let follower = self.head.as_ref().and_then(|head| head.follower()).cloned();
        let limits = &self.shared.settings.limits;
        if self.backlog.has_room(limits) || (follower.is_some() && self.backlog.has_bytes(limits)) {
            self.backlog.push(QueuedPayload { payload, bytes, cancelled: Vec::new() });
            Ok(())
        } else if is_requests_only(&payload) {
            self.refuse(payload, "too many queued messages")
        } else if let Some(follower) = follower {
            // This subscriber is slow and blocks all messages behind it, so its subscription ends.
            follower.leave(Ended::TooSlow);
            self.backlog.push(QueuedPayload { payload, bytes, cancelled: Vec::new() });
            Ok(())
        } else if self.advance_head(poller) && self.backlog.has_room(&self.shared.settings.limits) {
            // The head has become ready since the beginning of this burst.
            self.backlog.push(QueuedPayload { payload, bytes, cancelled: Vec::new() });
            Ok(())
        } else {
            let reason = self.overflow();
            tracing::warn!(
                reason,
                transport = self.shared.facts.transport,
                "the connection is closed"
            );
            Err(reason.into())
        }
    }

    /// The reason of a connection that ends because a notification finds no room.
    fn overflow(&self) -> String {
        let limits = &self.shared.settings.limits;
        let (waits_for, remedy) = match &self.head {
            Some(head) if head.keeps_order() => (
                "behind a notification whose handler has not finished",
                "run its work with `Context::spawn`",
            ),
            Some(_) => ("for the in-flight limit", "raise `Limits::in_flight`"),
            None => ("for the peer to read its replies", "let the peer read while it sends"),
        };
        self.backlog.overflow(limits, waits_for, remedy)
    }

    /// Whether the head waits for the in-flight limit while a call of this side is pending. Then its
    /// requests are rejected: the running handlers may wait for the peer.
    fn head_is_refused(&self) -> bool {
        self.head.as_ref().is_some_and(|head| !head.keeps_order())
            && self.in_flight.is_full()
            && self.shared.awaits_answers()
    }

    /// Whether requests may overtake the head of the queue.
    ///
    /// They may while the handler of a notification waits for a call to the peer: the peer may need
    /// one of these requests before it can reply. In a strict order they never may. While the write queue
    /// is full they wait: their replies would find no room, and the peer would get none of them.
    fn requests_may_overtake(&self) -> bool {
        self.shared.ordered_calls.load(Ordering::Acquire) > 0
            && !self.shared.settings.is_order_strict()
            && !self.writer.is_full(&self.shared)
    }

    fn start(&mut self, payload: Payload, poller: &mut Poller<'_>) {
        let out = &mut self.writer.scratch;
        match self.dispatcher.start(payload, Some(&self.in_flight), &self.origin, out, poller) {
            Started::Done(answer) => {
                self.writer.answer_after(&self.shared, answer);
                self.writer.scratch.replied();
            }
            Started::Running(state, run) => self.after_poll(state, run, poller),
        }
    }

    /// Starts a payload from the queue. The peer may have cancelled some of its calls meanwhile.
    fn start_held(&mut self, held: QueuedPayload, poller: &mut Poller<'_>) {
        let QueuedPayload { payload, cancelled, .. } = held;
        match payload {
            Payload::Batch(entries) if !cancelled.is_empty() => {
                let mut run = self.dispatcher.batch(entries, &self.in_flight, &self.origin);
                cancelled.iter().for_each(|id| run.cancel_call(id));
                let state = run.poll(poller);
                self.after_poll(state, run, poller);
            }
            payload => self.start(payload, poller),
        }
    }

    /// Handles the state of a run after it was polled: replies, spawns it, or keeps it as the head.
    fn after_poll(&mut self, state: RunState, mut run: Box<Run>, poller: &mut Poller<'_>) {
        match state {
            // Queued before the run is dropped: the drop releases the items of subscriptions that the
            // run has opened, and they must follow the reply.
            RunState::Done(answer) => self.writer.answer_after(&self.shared, answer),
            RunState::Detached => self.detach(run),
            RunState::Blocked if self.head.is_none() => self.head = Some(run),
            // These requests have overtaken the head, and exceed the in-flight limit.
            RunState::Blocked => {
                run.refuse_rest(&ErrorObject::server_busy("too many requests in flight"));
                match run.poll(poller) {
                    RunState::Done(answer) => self.writer.answer_after(&self.shared, answer),
                    RunState::Detached | RunState::Blocked => self.detach(run),
                }
            }
        }
    }

    /// Polls the run at the head, and starts queued payloads once it no longer blocks them. Returns
    /// true if anything advanced.
    pub(super) fn advance_head(&mut self, poller: &mut Poller<'_>) -> bool {
        let mut advanced = false;
        let is_refused = self.head.is_some() && self.head_is_refused();
        if let Some(mut head) = self.head.take() {
            if is_refused {
                head.refuse_requests(&ErrorObject::server_busy("too many requests in flight"));
            }
            let state = head.poll(poller);
            advanced = !matches!(state, RunState::Blocked);
            self.after_poll(state, head, poller);
        }
        if self.head.is_some() {
            return self.start_queued_requests(poller);
        }
        while self.head.is_none()
            && !self.writer.is_full(&self.shared)
            && let Some(held) = self.backlog.pop()
        {
            self.start_held(held, poller);
            advanced = true;
        }
        advanced
    }

    /// Starts the queued requests, if requests may overtake the head.
    fn start_queued_requests(&mut self, poller: &mut Poller<'_>) -> bool {
        if !self.backlog.has_requests() || !self.requests_may_overtake() {
            return false;
        }
        // One pass: the queue may be long.
        let mut queued = std::mem::take(&mut self.backlog);
        while let Some(held) = queued.pop() {
            if is_requests_only(&held.payload) && self.requests_may_overtake() {
                self.shared.report_overtaking();
                self.start_held(held, poller);
            } else {
                self.backlog.push(held);
            }
        }
        true
    }

    /// Cancels the requests with this id: those that are queued, started, or spawned as tasks. A
    /// request that has finished is not affected.
    pub(super) fn cancel(&mut self, id: &Id) {
        for id in self.dispatcher.settings.cancelled_ids(id) {
            self.cancel_exactly(&id);
        }
    }

    fn cancel_exactly(&mut self, id: &Id) {
        if let Some(head) = &mut self.head {
            head.cancel_call(id);
        }
        self.shared.cancel_running(id);
        let Some(cancellation) = self.shared.cancellation() else { return };
        for payload in self.backlog.cancel(id) {
            if let Some(error) = cancellation.answer() {
                self.writer.answer(self.dispatcher.refuse(payload, &error));
            }
        }
    }

    /// Starts a notification that does not wait for the messages before it. If it waits itself, it becomes
    /// a task, like a request. Later ones wait, so a peer cannot start any number of tasks.
    pub(super) fn overtake(&mut self, notification: Payload, poller: &mut Poller<'_>) {
        self.shared.has_overtaken.store(true, Ordering::Relaxed);
        if self.phase == Phase::Stopping {
            return;
        }
        let out = &mut self.writer.scratch;
        let (in_flight, origin) = (Some(&self.in_flight), &self.origin);
        if let Started::Running(_, run) =
            self.dispatcher.start(notification, in_flight, origin, out, poller)
        {
            self.detach(run);
        }
    }

    /// Handles an overtaking message as soon as it is read ahead. The frame of a cancellation stays in the queue and is
    /// handled again in its turn, because requests before it may have been read ahead too. Any other frame is removed.
    /// Returns the frame if it stays, and whether it was handled.
    pub(super) fn overtake_read_ahead(
        &mut self,
        incoming: Incoming,
        poller: &mut Poller<'_>,
    ) -> (Option<Incoming>, bool) {
        let urgent = match &incoming {
            Ok(frame) if self.shared.settings.has_urgent_messages() => {
                reader::urgent(&decode(frame, &self.shared.settings.rules), &self.shared)
            }
            _ => None,
        };
        match (urgent, incoming) {
            (Some(Urgent::Cancellation(Some(id))), incoming) => {
                self.cancel(&id);
                (Some(incoming), true)
            }
            (Some(Urgent::Notification), Ok(frame)) => {
                let lines = self.lines.is_on();
                if let Received::Overtaking(it) = reader::receive(&frame, lines, &self.shared) {
                    self.overtake(*it, poller);
                }
                (None, true)
            }
            (_, incoming) => (Some(incoming), false),
        }
    }

    /// Answers every request of the payload with an error and runs nothing. Fails if the peer sends
    /// requests and does not read the replies.
    fn refuse(&mut self, payload: Payload, reason: &'static str) -> Result<(), CloseReason> {
        self.writer.answer(self.dispatcher.refuse(payload, &ErrorObject::server_busy(reason)));
        if self.writer.overflows(&self.shared) {
            return Err("the peer does not read its replies".into());
        }
        Ok(())
    }

    /// Spawns a waiting run as a task. The connection can still cancel its calls.
    fn detach(&mut self, run: Box<Run>) {
        let control = Arc::new(RunControl::default());
        let mut state = self.shared.state();
        // A notification that has overtaken others has no id, and ends with the connection too.
        let notification = run.notification().map(|context| (&Id::Null, context));
        let tickets: Vec<_> = run
            .running()
            .chain(notification)
            .map(|(id, context)| {
                let running = RunningCall { context: context.clone(), control: control.clone() };
                (id.clone(), state.session.start(id.clone(), running))
            })
            .collect();
        drop(state);
        let (shared, mut drive) = (self.shared.clone(), Drive::detached(run));
        tokio::spawn(async move {
            let answer = poll_fn(|poller| drive.poll_controlled(&control, poller)).await;
            shared.finish(&tickets, answer, drive.take_followers());
        });
    }
}

/// The entry that replaces a batch whose handler accepts none.
fn batch_refused() -> Invalid {
    let error = ErrorObject::invalid_request().with_data("batches are not accepted here");
    Invalid { id: Id::Null, error, intent: Intent::Request }
}
