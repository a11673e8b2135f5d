//! A progress line on the terminal during a round. It is erased when the round ends.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use super::config::BenchConfig;
use super::table::{grouped, per_second};
use crate::output;

/// The progress line of one round.
pub(super) struct ProgressLine {
    pub(super) is_on: bool,
    what: String,
}

impl ProgressLine {
    pub(super) fn new(what: String) -> Self {
        Self { is_on: io::stderr().is_terminal(), what }
    }

    pub(super) fn draw(&self, calls: u64, elapsed: Duration, config: &BenchConfig) {
        let measured = elapsed.saturating_sub(Duration::from_nanos(config.window.start));
        let speed = match measured {
            Duration::ZERO => "warming up".to_owned(),
            _ => format!("{} calls/s", grouped(per_second(calls, measured.as_secs_f64()))),
        };
        let left = config.window.end.map(|end| Duration::from_nanos(end).saturating_sub(elapsed));
        let left = left.map(|left| format!(", {:.0}s left", left.as_secs_f64().ceil()));
        let text = format!("{}: {speed}{}", self.what, left.unwrap_or_default());
        output::draw(&format!("\r\x1b[K{}", output::dim(&text)));
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_on {
            output::draw("\r\x1b[K");
        }
    }
}
