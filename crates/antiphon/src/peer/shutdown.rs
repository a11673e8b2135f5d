//! The end of a connection: on request, by the end of input, or by a timeout.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::ErrorObject;
use tokio::time::sleep;

use super::connection_task::ConnectionTask;
use super::reader::{self, Received};
use super::shared::Shared;
use super::transport::{AtEof, Transport};
use crate::call::Stop;
use crate::error::CloseReason;

/// The time limit for the last messages and for the close of the transport.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The steps of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// A graceful stop was requested: responses are read, requests are rejected.
    Stopping,
    /// The input has ended: accepted requests are finished.
    Draining,
    /// The time limit is over: running calls must answer now.
    Expiring,
    /// The transport is being closed.
    Closing(CloseReason),
}

/// Ends the shared state of the connection when the future is dropped before its end.
pub(super) struct EndGuard(pub(super) Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let ended = self.0.state().ended.is_some();
        if !ended {
            self.0.end("the server or client that drove the connection was dropped".into());
        }
    }
}

impl<T: Transport> ConnectionTask<T> {
    /// Begins the shutdown that a handle has requested, if there is one.
    pub(super) fn apply_stop(&mut self, stop: Option<Stop>) {
        match (stop, &self.phase) {
            (Some(Stop::Now), Phase::Open | Phase::Stopping | Phase::Draining) => self.expire(),
            (Some(Stop::Gracefully), Phase::Open) => {
                self.phase = Phase::Stopping;
                self.drain = Some(Box::pin(sleep(self.shared.settings.limits.shutdown_timeout)));
            }
            _ => {}
        }
    }

    /// Answers every unfinished request now, because the time limit is over.
    pub(super) fn expire(&mut self) {
        let busy = ErrorObject::server_busy("shutting down");
        self.phase = Phase::Expiring;
        self.drain = Some(Box::pin(sleep(CLOSE_TIMEOUT)));
        self.shared.expire_running();
        if let Some(mut head) = self.head.take() {
            self.writer.answer(head.expire(&busy));
        }
        while let Some(held) = self.backlog.pop() {
            self.writer.answer(self.dispatcher.refuse(held.payload, &busy));
        }
        while let Some(incoming) = self.read_ahead.pop() {
            let Ok(frame) = incoming else { continue };
            match reader::receive(&frame, self.lines.is_on(), &self.shared) {
                Received::Payload(payload) => {
                    self.writer.answer(self.dispatcher.refuse(payload, &busy));
                }
                Received::Texts(texts) => self.read_ahead.split(texts),
                Received::Nothing
                | Received::Cancel(_)
                | Received::Overtaking(_)
                | Received::Unreadable(_) => {}
            }
        }
    }

    /// The input has ended and every frame of it was handled. Accepted requests are finished, unless
    /// the end of input means that the peer is gone.
    pub(super) fn input_exhausted(&mut self) {
        self.eof_received();
        self.phase = match self.at_eof {
            AtEof::Cancel => Phase::Closing(self.end_of_input.clone()),
            AtEof::Drain(_) => Phase::Draining,
        };
    }

    /// The transport has reported the end of input. No response can arrive any more, so every pending
    /// call fails. The time limit for accepted requests begins.
    pub(super) fn eof_received(&mut self) {
        if self.eof {
            return;
        }
        self.eof = true;
        self.shared.end_calls(&self.end_of_input);
        self.shared.subscriptions.close("the peer ended its side of the connection");
        self.shared.subscriptions.drain();
        if let AtEof::Drain(Some(limit)) = self.at_eof {
            self.drain = Some(Box::pin(sleep(limit)));
        }
    }

    /// Begins to close the transport once nothing is left to do. Returns true when it begins.
    pub(super) fn close_when_done(&mut self) -> bool {
        let ending = matches!(self.phase, Phase::Stopping | Phase::Draining | Phase::Expiring);
        let done = ending
            && self.head.is_none()
            && self.backlog.is_empty()
            && self.read_ahead.is_empty()
            && self.writer.is_idle()
            && self.shared.is_done();
        if !done {
            return false;
        }
        let reason = match self.phase {
            Phase::Draining => self.end_of_input.clone(),
            _ => CloseReason::ByUs,
        };
        self.drain = None;
        self.phase = Phase::Closing(reason);
        true
    }

    pub(super) fn poll_close(&mut self, poller: &mut Poller<'_>) -> Poll<()> {
        let drain = self.drain.get_or_insert_with(|| Box::pin(sleep(CLOSE_TIMEOUT)));
        if drain.as_mut().poll(poller).is_ready() {
            return Poll::Ready(());
        }
        // An error of the close has no effect: the connection has ended anyway.
        Pin::new(&mut self.transport).poll_close(poller).map(drop)
    }
}
