//! The load to generate, equal for every endpoint and every round.

use std::sync::Arc;
use std::time::Duration;

use super::pacer::{Pacer, Schedule};
use super::reply_checker::ExpectedResult;
use super::request::RequestTemplate;
use super::stats::Window;
use antiphon_check::raw::{AddressProtocol, ResolvedTarget};

/// The default limit of messages in flight per connection with `--rate`. Over HTTP it is 1, since not
/// every server supports pipelining.
pub(super) const OPEN_IN_FLIGHT: usize = 1_024;

/// The request to send, its amount and its rate.
#[derive(Debug)]
pub(super) struct BenchConfig {
    pub(super) request: RequestTemplate,
    pub(super) expected: Option<Arc<ExpectedResult>>,
    pub(super) connections: usize,
    pub(super) threads: usize,
    pub(super) in_flight: Option<usize>,
    pub(super) window: Window,
    /// The total number of messages, with `--count`.
    pub(super) messages: Option<u64>,
    /// Calls per second over all connections, with `--rate`.
    pub(super) rate: Option<usize>,
    /// The timeout of a connection attempt.
    pub(super) connect_timeout: Option<Duration>,
    /// The timeout of a reply, in nanoseconds.
    pub(super) reply_timeout: u64,
}

impl BenchConfig {
    /// Returns the share of one connection.
    pub(super) fn pacer(&self, target: &ResolvedTarget, connection: usize) -> Pacer {
        let (all, connection) = (self.connections as u64, connection as u64);
        let left =
            self.messages.map(|messages| messages / all + u64::from(connection < messages % all));
        let schedule = self.rate.map(|rate| Schedule {
            next: connection,
            turns: all,
            period: 1e9 * self.request.calls as f64 / rate as f64,
        });
        let Window { start, end } = self.window;
        Pacer::new(self.cap(target), (start, end), left, schedule)
    }

    /// Returns the maximum number of messages in flight per connection.
    pub(super) fn cap(&self, target: &ResolvedTarget) -> usize {
        let open =
            self.rate.is_some() && !matches!(target.address.protocol, AddressProtocol::Http { .. });
        self.in_flight.unwrap_or(if open { OPEN_IN_FLIGHT } else { 1 })
    }
}
