//! The limits of a connection, a server or a client, in one struct.
//!
//! This module does not enforce any limit.
//!
//! Invariant: each limit is enforced in one place. The doc of its field names that place. Layers and pools have
//! limits of their own.

use std::time::Duration;

use crate::decode::Rules;
use crate::members::ValueSpan;
use crate::version::Versions;

/// The limits of a connection, a server or a client.
///
/// The defaults bound the memory and work of one connection. They set no idle timeout, because editors and
/// subscribers are often silent. On a public network, set `idle_timeout` too.
///
/// ```
/// use antiphon_core::Limits;
///
/// let limits = Limits { batch_entries: 50, ..Limits::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a received message, in bytes. Enforced where messages are framed: by
    /// `framing`, for the HTTP body, and for the WebSocket message; see
    /// [`longest_frame`](Self::longest_frame).
    pub frame_bytes: usize,
    /// The maximum number of entries in a batch. Enforced by `decode`.
    pub batch_entries: usize,
    /// The maximum nesting of Arrays and Objects. Enforced by `decode`.
    pub depth: usize,
    /// The maximum number of requests of one connection in flight. Over HTTP it applies to each message, so
    /// one message may start this many requests: an HTTP/2 connection serves several messages at once.
    /// `Context::spawn` of the crate `antiphon` has the same limit for its tasks. Enforced by the dispatcher.
    pub in_flight: usize,
    /// The maximum number of messages that one connection queues while the handler of a notification runs, the
    /// in-flight limit is reached, or the peer does not read its replies.
    /// The queue accepts messages until it holds `frame_bytes`, so with its last message it may hold almost
    /// twice as much. Items behind a slow subscriber are limited only by their bytes. Enforced by the
    /// connection, while it must go on reading.
    pub queued_messages: usize,
    /// The maximum number of outgoing calls on one connection that wait for a response. Enforced by
    /// `session`.
    pub pending_calls: usize,
    /// The maximum number of subscriptions of one connection. Enforced by the connection.
    pub subscriptions: usize,
    /// The maximum size of a response, or of all responses of a batch together, in bytes. Enforced by
    /// the dispatcher.
    pub response_bytes: usize,
    /// The maximum size in bytes of the write queue of one connection, or of one event stream. Senders wait
    /// while it is full. Enforced by the writer, and by the queue of the stream.
    pub write_queue_bytes: usize,
    /// The maximum number of open connections of a server. Enforced by the acceptor.
    pub connections: usize,
    /// The maximum run time of a handler, or of a whole batch. Enforced by the dispatcher.
    pub request_timeout: Option<Duration>,
    /// The maximum time for the start of a connection: the TLS and WebSocket handshakes and the HTTP
    /// headers. Enforced by the transport.
    pub handshake_timeout: Duration,
    /// The maximum time without progress inside a message, in both directions. Enforced by the
    /// connection.
    pub stall_timeout: Duration,
    /// The idle time after which a connection closes. A connection with running requests or pending calls is
    /// not idle. `None` means no limit, except between two HTTP requests: 75 seconds. Enforced by the
    /// connection.
    pub idle_timeout: Option<Duration>,
    /// The idle time before a keep-alive probe. A WebSocket sends a ping, and closes if nothing arrives
    /// within the same time after it. TCP uses the keep-alive of the system. Enforced by the transport.
    pub keep_alive: Option<Duration>,
    /// The maximum time that a shutdown waits for running handlers. Enforced by the server.
    pub shutdown_timeout: Duration,
}

impl Limits {
    /// The maximum size of a received message, in bytes: `frame_bytes`, but less than 4 GiB, since
    /// positions in a message have 32 bits.
    pub fn longest_frame(&self) -> usize {
        self.frame_bytes.min(ValueSpan::MAX)
    }

    /// The limits that the decoder enforces, with no deviation from the specification.
    pub fn rules(&self) -> Rules {
        Rules {
            depth: self.depth,
            batch_entries: self.batch_entries,
            batch_answers: self.batch_entries.max(self.pending_calls),
            null_params: false,
            versions: Versions::V2,
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
            queued_messages: 16_384,
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
