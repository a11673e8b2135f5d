//! What all sessions of an endpoint share: the memory of their event logs, and the number of their running calls.
//!
//! Each session has limits of its own. With thousands of sessions, those alone would bound nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use super::options::StreamableHttp;

/// The limits of an endpoint.
#[derive(Clone)]
pub(super) struct EndpointLimits {
    /// One permit for each call that may run.
    pub(super) calls: Arc<Semaphore>,
    pub(super) log: Arc<LogBudget>,
}

/// The memory that the event logs of all sessions may take.
///
/// Below the limit, a session takes what its own limit allows. Beyond it, a session keeps no more than its share. So
/// the logs take at most twice the limit, and no session can take the share of another one.
pub(super) struct LogBudget {
    limit: usize,
    share: usize,
    used: AtomicUsize,
}

impl EndpointLimits {
    pub(super) fn new(options: &StreamableHttp) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(options.max_calls.clamp(1, Semaphore::MAX_PERMITS))),
            log: Arc::new(LogBudget::new(options.event_logs_bytes, options.max_sessions)),
        }
    }
}

impl LogBudget {
    pub(super) fn new(limit: usize, sessions: usize) -> Self {
        Self { limit, share: limit / sessions.max(1), used: AtomicUsize::new(0) }
    }

    pub(super) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether a session that has taken this much must give some of it back.
    pub(super) fn is_exceeded_by(&self, bytes: usize) -> bool {
        bytes > self.share && self.used.load(Ordering::Relaxed) > self.limit
    }
}
