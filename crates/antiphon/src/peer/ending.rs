//! How a connection ends: asked to, left by the other side, or out of time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon_core::ErrorObject;
use tokio::time::sleep;

use super::connection::Connection;
use super::reader::{self, Received};
use super::shared::Shared;
use super::wire::{AtEof, Transport};
use crate::call::Stop;

/// Why a connection ends that the other side has ended.
const GONE: &str = "the other side closed it";
/// Why a connection ends that we have ended.
const CLOSED: &str = "closed";
/// The ends that are no failures.
pub(crate) const ENDED_WELL: [&str; 2] = [GONE, CLOSED];
/// How long the other side has to take our goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// How far the end has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// We were asked to stop: answers are read, requests are refused.
    Stopping,
    /// Nothing comes in any more; what runs is finished.
    Draining,
    /// Time is up: what ran has been told to answer.
    Expiring,
    /// The transport is being closed.
    Closing(Arc<str>),
}

/// Ends the session however the future ends, dropped in the middle included.
pub(super) struct EndGuard(pub(super) Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let ended = self.0.state().ended.is_some();
        if !ended {
            self.0.end("dropped".into());
        }
    }
}

impl<T: Transport> Connection<T> {
    pub(super) fn heed(&mut self, stop: Option<Stop>) {
        match (stop, &self.phase) {
            (Some(Stop::Now), Phase::Open | Phase::Stopping | Phase::Draining) => self.expire(),
            (Some(Stop::Gracefully), Phase::Open) => {
                self.phase = Phase::Stopping;
                self.drain = Some(Box::pin(sleep(self.shared.settings.limits.shutdown_timeout)));
            }
            _ => {}
        }
    }

    /// Time is up: whatever waits for an answer gets one now.
    pub(super) fn expire(&mut self) {
        let busy = ErrorObject::server_busy("shutting down");
        self.phase = Phase::Expiring;
        self.drain = Some(Box::pin(sleep(GOODBYE)));
        self.shared.expire_running();
        if let Some(mut head) = self.head.take() {
            self.writer.answer(head.expire(&busy));
        }
        while let Some(held) = self.backlog.pop() {
            self.writer.answer(self.dispatcher.refuse(held.payload, &busy));
        }
        while let Some(incoming) = self.ahead.pop() {
            let Ok(frame) = incoming else { continue };
            match reader::receive(&frame, self.lines.is_on(), &self.shared) {
                Received::Payload(payload) => {
                    self.writer.answer(self.dispatcher.refuse(payload, &busy));
                }
                Received::Texts(texts) => self.ahead.split(texts),
                Received::Nothing | Received::Cancel(_) | Received::Lost(_) => {}
            }
        }
    }

    /// Nothing more will come, and all that came is taken in: what was accepted is finished.
    pub(super) fn at_end(&mut self) {
        self.hear_end();
        self.phase = match self.at_eof {
            AtEof::Cancel => Phase::Closing(GONE.into()),
            AtEof::Drain(_) => Phase::Draining,
        };
    }

    /// The other side has said its last: no call can be answered any more, and the time to finish
    /// what was accepted begins.
    pub(super) fn hear_end(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.shared.end_calls(&GONE.into());
        self.shared.subscriptions.close("the other side closed its end");
        self.shared.subscriptions.drain();
        if let AtEof::Drain(Some(limit)) = self.at_eof {
            self.drain = Some(Box::pin(sleep(limit)));
        }
    }

    /// True when the last thing to be done was just done.
    pub(super) fn close_when_done(&mut self) -> bool {
        let ending = matches!(self.phase, Phase::Stopping | Phase::Draining | Phase::Expiring);
        let done = ending
            && self.head.is_none()
            && self.backlog.is_empty()
            && self.ahead.is_empty()
            && self.writer.is_idle()
            && self.shared.is_done();
        if !done {
            return false;
        }
        let reason = match self.phase {
            Phase::Draining => GONE,
            _ => CLOSED,
        };
        self.drain = None;
        self.phase = Phase::Closing(reason.into());
        true
    }

    pub(super) fn poll_close(&mut self, poller: &mut Poller<'_>) -> Poll<()> {
        let drain = self.drain.get_or_insert_with(|| Box::pin(sleep(GOODBYE)));
        if drain.as_mut().poll(poller).is_ready() {
            return Poll::Ready(());
        }
        // How the close goes no longer matters to anybody.
        Pin::new(&mut self.transport).poll_close(poller).map(drop)
    }
}
