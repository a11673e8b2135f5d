//! What a round is made of, the same for every endpoint and every round.

use std::sync::Arc;
use std::time::Duration;

use antiphon_check::raw::{AddressProtocol, Target};

use super::check::Expected;
use super::pace::{Pace, Schedule};
use super::request::Request;
use super::tally::Window;

/// The most messages in flight on a connection of an open loop, where no number is given. Over HTTP
/// it is one: pipelining is for servers that are known to bear it.
pub(super) const OPEN_IN_FLIGHT: usize = 1_024;

/// What is sent, how much of it, and how fast.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) request: Request,
    pub(super) expected: Option<Arc<Expected>>,
    pub(super) connections: usize,
    pub(super) threads: usize,
    pub(super) in_flight: Option<usize>,
    pub(super) window: Window,
    /// Messages in all, where they are counted.
    pub(super) messages: Option<u64>,
    /// Calls a second in all, where they are scheduled.
    pub(super) rate: Option<usize>,
    /// For connecting.
    pub(super) patience: Option<Duration>,
    /// The same in nanoseconds, for an answer.
    pub(super) timeout: u64,
}

impl Plan {
    /// The part of a connection, which is one of many.
    pub(super) fn pace(&self, target: &Target, connection: usize) -> Pace {
        let (all, connection) = (self.connections as u64, connection as u64);
        let left =
            self.messages.map(|messages| messages / all + u64::from(connection < messages % all));
        let schedule = self.rate.map(|rate| Schedule {
            next: connection,
            turns: all,
            period: 1e9 * self.request.calls as f64 / rate as f64,
        });
        let Window { start, end } = self.window;
        Pace::new(self.cap(target), (start, end), left, schedule)
    }

    /// The most messages in flight on a connection.
    pub(super) fn cap(&self, target: &Target) -> usize {
        let open =
            self.rate.is_some() && !matches!(target.address.protocol, AddressProtocol::Http { .. });
        self.in_flight.unwrap_or(if open { OPEN_IN_FLIGHT } else { 1 })
    }
}
