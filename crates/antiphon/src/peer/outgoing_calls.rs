//! The calls of this side: sending them, waiting for them, and abandoning them.

use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use antiphon_core::Id;
use bytes::BytesMut;
use tokio::sync::oneshot;

use super::shared::{Answer, Shared, State, Waiter};
use super::writer::Outgoing;
use crate::call::exchange::{count_calls, encode_batch, encode_counted_id, encode_id};
use crate::call::{BatchEntry, CallError, Invocation};
use crate::engine::notification_guard;

impl Shared {
    /// Registers a call and queues its message.
    pub(super) fn open(&self, call: &Invocation, waiter: Waiter) -> Result<Pending<'_>, CallError> {
        self.without_headers(call)?;
        let mut state = self.state();
        let ids = match &call.id {
            Some(id) => state.session.call_as(id.clone(), waiter).map(|()| 0..0),
            None => state.session.call(waiter).map(|id| id..id + 1),
        };
        let ids = ids.map_err(|refused| state.refused(refused))?;
        let id = ids.start;
        state.outbox.write(call.about_len(), |out| {
            call.encode_head(self.settings.calls(), out);
            match &call.id {
                Some(id) => encode_id(id, out),
                None => encode_counted_id(id, out),
            }
        });
        Ok(self.opened(state, self.pending(ids, call.id.clone())))
    }

    /// Queues a notification.
    pub(super) fn post(&self, notification: &Invocation) -> Result<(), CallError> {
        self.without_headers(notification)?;
        let mut state = self.state();
        if let Some(reason) = &state.ended {
            return Err(CallError::Closed(reason.clone()));
        }
        state
            .outbox
            .write(notification.about_len(), |out| self.encode_notification(notification, out));
        self.wake_connection(state);
        Ok(())
    }

    /// Appends a notification of this side.
    pub(super) fn encode_notification(&self, notification: &Invocation, out: &mut BytesMut) {
        let style = self.settings.calls();
        notification.encode_head(style, out);
        style.end_notification(out);
    }

    /// Registers the calls of a batch and queues its message.
    pub(super) fn open_batch(
        &self,
        entries: &[BatchEntry],
    ) -> Result<(Pending<'_>, Vec<oneshot::Receiver<Answer>>), CallError> {
        for entry in entries {
            self.without_headers(entry.invocation())?;
        }
        let open = |_| {
            let (waiter, answer) = oneshot::channel();
            (Waiter::Call(waiter), answer)
        };
        let (waiters, answers): (Vec<_>, Vec<_>) = (0..count_calls(entries)).map(open).unzip();
        let mut state = self.state();
        let ids = state.session.batch(waiters).map_err(|refused| state.refused(refused))?;
        let mut message = BytesMut::with_capacity(entries.len() * 96);
        encode_batch(entries, ids.clone(), self.settings.calls(), &mut message);
        state.outbox.push(Outgoing::Call(message.freeze()));
        Ok((self.opened(state, self.pending(ids, None)), answers))
    }

    /// Fails if the call has headers, because a message on a connection cannot carry any.
    pub(super) fn without_headers(&self, call: &Invocation) -> Result<(), CallError> {
        match call.headers() {
            Some(headers) if !headers.is_empty() => {
                Err(CallError::CannotSendHeaders(self.facts.transport))
            }
            _ => Ok(()),
        }
    }

    /// Wakes the connection after calls were registered and their message was queued.
    fn opened<'a>(&'a self, state: MutexGuard<'_, State>, pending: Pending<'a>) -> Pending<'a> {
        self.wake_connection(state);
        pending
    }

    fn pending(&self, ids: Range<u64>, named: Option<Id>) -> Pending<'_> {
        let in_order = notification_guard::is_polling(self);
        if in_order {
            self.ordered_calls.fetch_add(1, Ordering::AcqRel);
        }
        Pending { shared: self, ids, named, in_order }
    }
}

impl State {
    /// Removes and returns those of these calls that are still pending.
    fn abandon(&mut self, ids: Range<u64>, named: Option<&Id>) -> Vec<(Id, Waiter)> {
        let session = &mut self.session;
        let counted = ids.filter_map(|id| Some((Id::from(id), session.abandon(id)?)));
        let mut abandoned: Vec<_> = counted.collect();
        let named = named.and_then(|id| Some((id.clone(), session.abandon_named(id)?)));
        abandoned.extend(named);
        abandoned
    }
}

/// Registered calls whose caller waits for the responses.
///
/// When it is dropped early, it abandons the calls, and cancels them at the peer if the dialect has a
/// cancellation.
pub(super) struct Pending<'a> {
    shared: &'a Shared,
    ids: Range<u64>,
    named: Option<Id>,
    in_order: bool,
}

impl Pending<'_> {
    /// All calls have their responses: the drop abandons nothing.
    pub(super) fn answered(mut self) {
        self.disarm();
    }

    fn disarm(&mut self) {
        self.ids = 0..0;
        self.named = None;
    }

    /// Abandons the calls, and cancels them at the peer. A separate function, so that the drop of answered calls is
    /// inlined.
    #[cold]
    #[inline(never)]
    fn abandon(&mut self) {
        let mut state = self.shared.state();
        let abandoned = state.abandon(self.ids.clone(), self.named.as_ref());
        if let Some(cancellation) = self.shared.cancellation()
            && state.ended.is_none()
            && !abandoned.is_empty()
        {
            let style = self.shared.settings.calls();
            for (id, _) in &abandoned {
                state.outbox.write(64 + id.as_str().len(), |out| {
                    cancellation.encode(id.as_str(), style, out);
                });
            }
            self.shared.wake_connection(state);
        } else {
            drop(state);
        }
        // Dropping a waiter wakes its task, so the lock is released before.
        for (id, waiter) in abandoned {
            if let Waiter::Subscription(asked) = waiter {
                self.shared.subscriptions.remember_abandoned(id, asked);
            }
        }
    }

    /// Abandons the calls without a cancellation. Their responses will be ignored.
    pub(super) fn forget(mut self) {
        let abandoned = self.shared.state().abandon(self.ids.clone(), self.named.as_ref());
        self.disarm();
        drop(abandoned);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.in_order {
            self.shared.ordered_calls.fetch_sub(1, Ordering::AcqRel);
        }
        if !self.ids.is_empty() || self.named.is_some() {
            self.abandon();
        }
    }
}
