//! What may start now? One payload after the other, in arrival order: started, held, or refused.
//!
//! It never waits: what cannot start is held or refused here, so that the reader can go on
//! (contract 4), and what has started and waits becomes a task (contract 5).

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context as Poller;

use antiphon_core::{ErrorObject, Id, Payload, decode};

use super::backlog::{Held, Incoming, is_requests_only};
use super::connection::Connection;
use super::ending::Phase;
use super::reader;
use super::shared::{NeedsReader, Running};
use super::wire::Transport;
use crate::engine::{Drive, Run, RunControl, RunState, Started};
use crate::subscription::Ended;

impl<T: Transport> Connection<T> {
    /// One payload in arrival order: started, held, or refused.
    ///
    /// Behind a full writer it is held: the other side is being read, so it can read us. Behind a
    /// full house it is refused: what runs may be waiting for the very thing that asks to come in.
    pub(super) fn dispatch(
        &mut self,
        payload: Payload,
        bytes: usize,
        poller: &mut Poller<'_>,
    ) -> Result<(), Arc<str>> {
        if self.phase == Phase::Stopping {
            return self.refuse(payload, "shutting down");
        }
        match &self.head {
            None if self.backlog.is_empty() && !self.writer.is_full(&self.shared) => {
                self.start(payload, poller);
                return Ok(());
            }
            // Where the reader goes on for cancellations only, it can wait.
            Some(head)
                if !head.keeps_order() && self.shared.needs_reader() != NeedsReader::ForCancels =>
            {
                return self.refuse(payload, "too many requests in flight");
            }
            Some(_) if self.order_gives_way() && is_requests_only(&payload) => {
                self.start(payload, poller);
                return Ok(());
            }
            _ => {}
        }
        let follower = self.head.as_ref().and_then(|head| head.follower()).cloned();
        let limits = &self.shared.settings.limits;
        if self.backlog.has_room(limits) || (follower.is_some() && self.backlog.has_bytes(limits)) {
            self.backlog.push(Held { payload, bytes, cancelled: Vec::new() });
            Ok(())
        } else if is_requests_only(&payload) {
            self.refuse(payload, "too many messages wait")
        } else if let Some(follower) = follower {
            // It holds up everybody else: it is the one to go.
            follower.leave(Ended::TooSlow);
            self.backlog.push(Held { payload, bytes, cancelled: Vec::new() });
            Ok(())
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
        let out = &mut self.writer.scratch;
        match self.dispatcher.start(payload, Some(&self.in_flight), &self.origin, out, poller) {
            Started::Done(answer) => {
                self.writer.answer_after(&self.shared, answer);
                self.writer.scratch.replied();
            }
            Started::Running(progress, run) => self.settle(progress, run, poller),
        }
    }

    /// The same for what was held, of which some may have been cancelled meanwhile.
    fn start_held(&mut self, held: Held, poller: &mut Poller<'_>) {
        let Held { payload, cancelled, .. } = held;
        match payload {
            Payload::Batch(entries) if !cancelled.is_empty() => {
                let mut run = self.dispatcher.batch(entries, &self.in_flight, &self.origin);
                cancelled.iter().for_each(|id| run.cancel_call(id));
                let progress = run.poll(poller);
                self.settle(progress, run, poller);
            }
            payload => self.start(payload, poller),
        }
    }

    fn settle(&mut self, progress: RunState, mut run: Box<Run>, poller: &mut Poller<'_>) {
        match progress {
            // Before the run is dropped, which lets follow what it has opened.
            RunState::Done(answer) => self.writer.answer_after(&self.shared, answer),
            RunState::Detached => self.detach(run),
            RunState::Blocked if self.head.is_none() => self.head = Some(run),
            // Requests that overtook the head, and there is no room for all of them.
            RunState::Blocked => {
                run.refuse_rest(&ErrorObject::server_busy("too many requests in flight"));
                match run.poll(poller) {
                    RunState::Done(answer) => self.writer.answer_after(&self.shared, answer),
                    RunState::Detached | RunState::Blocked => self.detach(run),
                }
            }
        }
    }

    /// Polls the run that others wait behind, and lets them follow when it is through. True when
    /// anything was done.
    pub(super) fn advance_head(&mut self, poller: &mut Poller<'_>) -> bool {
        let mut advanced = false;
        if let Some(mut head) = self.head.take() {
            if !head.keeps_order() && self.in_flight.is_full() && self.shared.awaits_answers() {
                head.refuse_rest(&ErrorObject::server_busy("too many requests in flight"));
            }
            let progress = head.poll(poller);
            advanced = !matches!(progress, RunState::Blocked);
            self.settle(progress, head, poller);
        }
        if self.head.is_some() {
            return self.let_requests_pass(poller);
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

    /// Starts the requests of the backlog when the order gives way.
    fn let_requests_pass(&mut self, poller: &mut Poller<'_>) -> bool {
        if self.backlog.is_empty() || !self.order_gives_way() {
            return false;
        }
        let requests = self.backlog.take_requests();
        let any = !requests.is_empty();
        for held in requests {
            self.start_held(held, poller);
        }
        any
    }

    /// Cancels the requests of this id, wherever they are: waiting to start, started, or a task. What
    /// is over is not cancelled any more.
    pub(super) fn cancel(&mut self, id: &Id) {
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

    /// The same for what is read ahead, so that a cancellation does not wait for what it cancels. It
    /// comes again in its turn, for what stands between. True where there was one.
    pub(super) fn cancel_ahead(&mut self, incoming: &Incoming) -> bool {
        if self.shared.cancellation().is_some()
            && let Ok(frame) = incoming
            && let Some(Some(id)) =
                reader::cancelled(&decode(frame, &self.shared.settings.rules), &self.shared)
        {
            self.cancel(&id);
            return true;
        }
        false
    }

    /// Answers without running anything. A peer that goes on asking while it reads nothing is gone.
    fn refuse(&mut self, payload: Payload, reason: &'static str) -> Result<(), Arc<str>> {
        self.writer.answer(self.dispatcher.refuse(payload, &ErrorObject::server_busy(reason)));
        if self.writer.overflows(&self.shared) {
            return Err("the other side does not read its answers".into());
        }
        Ok(())
    }

    /// Makes a run that waits into a task, which the connection can still cancel.
    fn detach(&mut self, run: Box<Run>) {
        let control = Arc::new(RunControl::default());
        let mut state = self.shared.state();
        let tickets: Vec<_> = run
            .running()
            .map(|(id, context)| {
                let running = Running { context: context.clone(), control: control.clone() };
                (id.clone(), state.session.start(id.clone(), running))
            })
            .collect();
        drop(state);
        let (shared, mut drive) = (self.shared.clone(), Drive::detached(run));
        tokio::spawn(async move {
            let answer = poll_fn(|poller| drive.poll_controlled(&control, poller)).await;
            shared.finish(&tickets, answer);
        });
    }
}
