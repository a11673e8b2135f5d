//! How much of everything.
//!
//! One struct for every bound there is. Each field names the one place that enforces it; nothing
//! else in the project counts or times on its own.

use std::time::Duration;

use crate::decode::Rules;
use crate::members::ValueSpan;

/// The bounds of a connection, a server or a client.
///
/// The defaults bound what any one connection can cost. A connection that is merely silent is kept,
/// as an editor's or a subscriber's is; on the open network, set `idle_timeout` too.
///
/// ```
/// use antiphon_core::Limits;
///
/// let limits = Limits { batch_entries: 50, ..Limits::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest message taken in, in bytes. Enforced where it is framed: `framing`, the HTTP
    /// body, the WebSocket message; see [`longest_frame`](Self::longest_frame).
    pub frame_bytes: usize,
    /// The most entries of a batch. Enforced by `decode`.
    pub batch_entries: usize,
    /// The deepest nesting of Arrays and Objects. Enforced by `decode`.
    pub depth: usize,
    /// Requests of one connection whose handlers run at once. Enforced by the dispatcher.
    pub in_flight: usize,
    /// Calls of one connection that wait for the other side. Enforced by `session`.
    pub pending_calls: usize,
    /// Subscriptions that one connection is served at once. Enforced by the connection.
    pub subscriptions: usize,
    /// The largest answer given, in bytes; of a batch, of the whole. Enforced by the dispatcher.
    pub response_bytes: usize,
    /// Bytes waiting to be written on one connection before senders wait. Enforced by the writer.
    pub write_queue_bytes: usize,
    /// Connections a server holds at once. Enforced by the acceptor.
    pub connections: usize,
    /// How long a handler, or a whole batch, may take. Enforced by the dispatcher.
    pub request_timeout: Option<Duration>,
    /// How long a connection may take to say what it is: HTTP headers, a WebSocket handshake.
    pub handshake_timeout: Duration,
    /// How long a message once begun, in or out, may make no progress. Enforced by the connection.
    pub stall_timeout: Duration,
    /// How long a connection may carry nothing at all. Enforced by the connection; between HTTP
    /// requests it is 75 seconds where none is set.
    pub idle_timeout: Option<Duration>,
    /// After what silence the other side is asked whether it is there: by ping on a WebSocket, which
    /// ends when it is silent for as long again, by the system on TCP. Enforced by the transport.
    pub keep_alive: Option<Duration>,
    /// How long a shutdown waits for what runs. Enforced by the server.
    pub shutdown_timeout: Duration,
}

impl Limits {
    /// The longest message that is taken, in bytes: `frame_bytes`, and never more than 4 GiB, since
    /// places in a message are told in 32 bits.
    pub fn longest_frame(&self) -> usize {
        self.frame_bytes.min(ValueSpan::MAX)
    }

    /// What of this the decoder enforces, strictly by the specification.
    pub fn rules(&self) -> Rules {
        Rules {
            depth: self.depth,
            batch_entries: self.batch_entries,
            batch_answers: self.batch_entries.max(self.pending_calls),
            null_params: false,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 32 << 20,
            batch_entries: 10_000,
            depth: 128,
            in_flight: 1_024,
            pending_calls: 16_384,
            subscriptions: 1_024,
            response_bytes: 32 << 20,
            write_queue_bytes: 1 << 20,
            connections: 16_384,
            request_timeout: None,
            handshake_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
            idle_timeout: None,
            keep_alive: None,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}
