//! Begins a new session, or opens a lost connection again.
//!
//! One caller does it, and the others wait for it. A server that ends its connections soon is asked less and less often.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use antiphon::{CallError, RawJson};
use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep_until};

use super::call::{CallOptions, encoded};
use super::core::Core;
use super::error::McpError;
use super::handshake::ServerState;
use super::inbox::{ServerNotification, locked};
use crate::types::{SetLevelParams, SubscribeParams, methods};

/// How often one call tries to open a connection. While a server is away longer, each call tries once.
const ATTEMPTS: u32 = 4;
/// The pause before the second attempt. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many connections in succession may end early until a subscription gives up.
const MAX_UNSTABLE: u32 = 8;
/// How long the server may take to answer a repeated request, if calls have no timeout.
const LONGEST_REPETITION: Duration = Duration::from_secs(60);
/// A connection that has lasted this long is opened again without a pause.
const STABLE: Duration = Duration::from_secs(10);

/// The sessions of a legacy server, or the connections to any server.
#[derive(Default)]
pub(super) struct Sessions {
    /// The number of those that have ended.
    ended: u64,
    /// The attempts since the last stable connection.
    attempts: u32,
    last_attempt: Option<Instant>,
    begun: Option<Instant>,
}

impl Sessions {
    /// Counts an attempt, after the pause that it needs.
    async fn attempt(&mut self) {
        let was_stable = self.begun.take().is_some_and(|begun| begun.elapsed() >= STABLE);
        if was_stable {
            self.attempts = 0;
        }
        if let Some(last) = self.last_attempt {
            sleep_until(last + self.pause()).await;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.last_attempt = Some(Instant::now());
    }

    /// The time between the last attempt and the next one.
    fn pause(&self) -> Duration {
        match self.attempts {
            0 => Duration::ZERO,
            more => FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(more - 1)).min(LONGEST_PAUSE),
        }
    }

    fn may_try_again(&self) -> bool {
        self.attempts < ATTEMPTS
    }

    /// Whether the connections end again and again.
    fn is_hopeless(&self) -> bool {
        let is_stable = self.begun.is_some_and(|begun| begun.elapsed() >= STABLE);
        self.attempts >= MAX_UNSTABLE && !is_stable
    }
}

impl Core {
    /// Begins a new session or connection, unless another call has done so since `ended`.
    pub(super) async fn renew_session(&self, ended: u64) -> Result<(), McpError> {
        let mut sessions = self.session.lock().await;
        if sessions.ended != ended {
            return Ok(());
        }
        tracing::info!("the session or the connection has ended; beginning a new one");
        self.inbox.cache.clear();
        tokio::select! {
            biased;
            () = self.wire.closed() => {
                return Err(CallError::Closed("the client was closed".into()).into());
            }
            begun = self.begin_again(&mut sessions) => begun?,
        }
        sessions.begun = Some(Instant::now());
        sessions.ended += 1;
        self.session_count.store(sessions.ended, Ordering::Release);
        self.wire.ready();
        // In a task: a call that is dropped now must not leave the session without its subscriptions.
        if let Some(core) = self.this.upgrade() {
            let _ = tokio::spawn(core.restore()).await;
        }
        Ok(())
    }

    async fn begin_again(&self, sessions: &mut Sessions) -> Result<(), McpError> {
        if !self.wire.can_reopen() {
            return self.handshake_again().await;
        }
        loop {
            sessions.attempt().await;
            let opened = async {
                self.wire.reopen().await?;
                self.handshake_again().await
            };
            match opened.await.map_err(McpError::in_handshake) {
                Err(error) if sessions.may_try_again() && may_pass(&error) => {
                    tracing::debug!(%error, "the connection could not be opened again");
                }
                outcome => return outcome,
            }
        }
    }

    /// Repeats the handshake of the revision. If it fails or is dropped, what was known about the server is still known.
    async fn handshake_again(&self) -> Result<(), McpError> {
        let revision = self.state().revision;
        let mut known = KnownState { core: self, state: Some(self.state()) };
        match revision.is_modern() {
            true => self.discover(revision).await.and_then(|found| self.adopt(&found))?,
            false => self.initialize(revision).await?,
        }
        known.state = None;
        self.is_half_begun.store(false, Ordering::Release);
        Ok(())
    }

    /// Repeats what a legacy server has kept for the session that has ended, and tells the subscribers.
    async fn restore(self: Arc<Self>) {
        tokio::select! {
            biased;
            () = self.wire.closed() => return,
            () = self.repeat_all() => {}
        }
        let _ = self.inbox.events.send(ServerNotification::Resumed);
    }

    async fn repeat_all(&self) {
        if self.is_modern() {
            return;
        }
        let level = *locked(&self.log_level);
        if let Some(level) = level {
            self.repeat(methods::SET_LEVEL, &SetLevelParams::new(level)).await;
        }
        let uris: Vec<String> = locked(&self.subscribed_uris).keys().cloned().collect();
        for uri in uris {
            self.repeat(methods::SUBSCRIBE, &SubscribeParams::new(uri)).await;
        }
    }

    async fn repeat(&self, method: &str, params: &impl serde::Serialize) {
        // Always limited, because nobody may wait for it.
        let limit = self.settings.timeout.unwrap_or(LONGEST_REPETITION);
        let options = CallOptions { timeout: Some(limit), ..CallOptions::default() };
        let outcome = async {
            let params = encoded(method, params)?;
            let decode = |source| McpError::Decode { method: method.to_owned(), source };
            let members = params.decode().map_err(decode)?;
            self.send(self.next_id(), method, &members, &options).await
        };
        if let Err(error) = outcome.await {
            tracing::warn!(%error, method, "a request of the last session cannot be repeated");
        }
    }

    /// Sends a notification, in a new session if the last one has ended.
    pub(super) async fn notify(
        &self,
        method: &str,
        params: Option<RawJson>,
    ) -> Result<(), McpError> {
        let session = self.session_count.load(Ordering::Acquire);
        match self.post(method, params.clone()).await {
            Err(McpError::SessionEnded) => {
                Box::pin(self.renew_session(session)).await?;
                self.post(method, params).await
            }
            outcome => outcome,
        }
    }

    /// Sends a notification once. A server that takes no message must not keep the client waiting.
    pub(super) async fn post(&self, method: &str, params: Option<RawJson>) -> Result<(), McpError> {
        let posting = self.wire.notify(method, params);
        CallOptions::default().within(&self.inbox.clock, self.settings.timeout, None, posting).await
    }

    /// Opens the connection if it is lost.
    pub(super) async fn reopen_if_lost(&self) -> Result<(), McpError> {
        let session = self.session_count.load(Ordering::Acquire);
        match self.wire.can_reopen() && self.wire.lost().now_or_never().is_some() {
            true => Box::pin(self.renew_session(session)).await,
            false => Ok(()),
        }
    }

    /// Keeps the connection open for a subscription. Returns when it is closed, and fails if it cannot be opened again.
    pub(super) async fn keep_open(self: Arc<Self>) -> Result<(), McpError> {
        loop {
            let session = self.session_count.load(Ordering::Acquire);
            tokio::select! {
                biased;
                () = self.wire.closed() => return Ok(()),
                () = self.wire.lost() => {
                    if self.session.lock().await.is_hopeless() {
                        let reason = "the server ends its connections again and again";
                        return Err(McpError::Interrupted(reason.to_owned()));
                    }
                    self.renew_session(session).await?;
                }
            }
        }
    }
}

/// Restores what was known about the server on drop. A session that has begun without the whole handshake is not used.
struct KnownState<'a> {
    core: &'a Core,
    /// `None` after a handshake.
    state: Option<Arc<ServerState>>,
}

impl Drop for KnownState<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.core.set_state((*state).clone());
            self.core.is_half_begun.store(true, Ordering::Release);
        }
    }
}

/// Whether another attempt may succeed.
fn may_pass(error: &McpError) -> bool {
    matches!(error, McpError::Connect(_) | McpError::Handshake(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pauses_grow_until_a_connection_is_stable() {
        let start = Instant::now();
        let mut sessions = Sessions::default();
        let mut at = Vec::new();
        for _ in 0..9 {
            sessions.attempt().await;
            at.push(start.elapsed().as_millis());
        }
        assert_eq!(at, [0, 100, 300, 700, 1500, 3100, 6300, 11_300, 16_300]);
        assert!(sessions.is_hopeless());
        sessions.begun = Some(Instant::now());
        tokio::time::advance(STABLE).await;
        let lost = Instant::now();
        assert!(!sessions.is_hopeless());
        sessions.attempt().await;
        assert_eq!(lost.elapsed(), Duration::ZERO);
    }
}
