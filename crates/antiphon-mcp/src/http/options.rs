//! The settings of Streamable HTTP.

use std::time::Duration;

use super::policy::McpPolicy;
use crate::McpServer;

/// The settings of Streamable HTTP. The defaults serve clients of every revision since 2025-03-26.
///
/// ```
/// use std::time::Duration;
///
/// use antiphon_mcp::http::StreamableHttp;
///
/// let http = StreamableHttp::new().session_idle(Duration::from_secs(300)).max_sessions(500);
/// # drop(http);
/// ```
#[derive(Clone, Debug)]
pub struct StreamableHttp {
    pub(super) sessions: bool,
    pub(super) session_idle: Duration,
    pub(super) max_sessions: usize,
    pub(super) session_calls: usize,
    pub(super) event_log_events: usize,
    pub(super) event_log_bytes: usize,
    pub(super) event_logs_bytes: usize,
    pub(super) max_calls: usize,
    pub(super) retry: Duration,
    pub(super) keep_alive: Duration,
    pub(super) http_sse: bool,
}

impl Default for StreamableHttp {
    fn default() -> Self {
        Self {
            sessions: true,
            session_idle: Duration::from_secs(30 * 60),
            max_sessions: 10_000,
            session_calls: 128,
            event_log_events: 256,
            event_log_bytes: 1 << 20,
            event_logs_bytes: 128 << 20,
            max_calls: 16_384,
            retry: Duration::from_secs(1),
            keep_alive: Duration::from_secs(15),
            http_sse: false,
        }
    }
}

impl StreamableHttp {
    /// Creates the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether legacy clients get sessions. The default is true. Without sessions, the server can neither ask legacy
    /// clients nor notify them of changes, but any replica can serve each of their requests.
    #[must_use]
    pub fn sessions(mut self, sessions: bool) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets the idle time after which a session ends. The default is 30 minutes. A session with an open stream or a
    /// running call is not idle.
    #[must_use]
    pub fn session_idle(mut self, idle: Duration) -> Self {
        self.session_idle = idle;
        self
    }

    /// Sets the largest number of sessions. The default is 10,000. Beyond it, a new session ends the one that has been idle
    /// for the longest time. If none is idle, the new one is refused with status 503.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets how many calls of a session may run at once. The default is 128. They continue when their client
    /// disconnects, because it can resume. It is also the limit of a stream of HTTP+SSE, whose calls end with it.
    #[must_use]
    pub fn session_calls(mut self, calls: usize) -> Self {
        self.session_calls = calls;
        self
    }

    /// Sets how many events, and how many bytes of them, a session keeps for clients that resume a stream. The default
    /// is 256 events and 1 MiB.
    #[must_use]
    pub fn event_log(mut self, events: usize, bytes: usize) -> Self {
        (self.event_log_events, self.event_log_bytes) = (events, bytes);
        self
    }

    /// Sets how many calls of all sessions may run at once. The default is 16,384. Beyond it, a call gets the error
    /// -32009.
    #[must_use]
    pub fn max_calls(mut self, calls: usize) -> Self {
        self.max_calls = calls;
        self
    }

    /// Sets how many bytes the events of all sessions take together. The default is 128 MiB. Beyond it, a session keeps
    /// only its share, which is the limit divided by [`max_sessions`](Self::max_sessions), so the events take at most
    /// twice as much.
    #[must_use]
    pub fn event_logs_bytes(mut self, bytes: usize) -> Self {
        self.event_logs_bytes = bytes;
        self
    }

    /// Sets how long a client waits before it resumes a stream that the server has closed. The default is one second.
    #[must_use]
    pub fn retry(mut self, delay: Duration) -> Self {
        self.retry = delay;
        self
    }

    /// Sets the idle time after which a stream gets a comment, so that proxies keep it open. The default is 15 seconds.
    #[must_use]
    pub fn keep_alive(mut self, period: Duration) -> Self {
        self.keep_alive = period;
        self
    }

    /// Sets whether the endpoint also serves the transport of 2024-11-05, HTTP+SSE. The default is false.
    ///
    /// A GET without a session then opens a stream, whose first event names the URL for messages.
    #[must_use]
    pub fn http_sse(mut self, serve: bool) -> Self {
        self.http_sse = serve;
        self
    }

    /// Creates the policy for a server.
    pub fn policy(self, server: &McpServer) -> McpPolicy {
        McpPolicy::new(server.clone(), self)
    }
}
