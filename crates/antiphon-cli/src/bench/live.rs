//! A line on the terminal while a round runs, gone when it is done.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use super::plan::Plan;
use super::table::{grouped, per_second};
use crate::output;

/// The line of one round.
pub(super) struct Live {
    pub(super) is_on: bool,
    what: String,
}

impl Live {
    pub(super) fn new(what: String) -> Self {
        Self { is_on: io::stderr().is_terminal(), what }
    }

    pub(super) fn draw(&self, calls: u64, elapsed: Duration, plan: &Plan) {
        let measured = elapsed.saturating_sub(Duration::from_nanos(plan.window.start));
        let speed = match measured {
            Duration::ZERO => "warming up".to_owned(),
            _ => format!("{} calls/s", grouped(per_second(calls, measured.as_secs_f64()))),
        };
        let left = plan.window.end.map(|end| Duration::from_nanos(end).saturating_sub(elapsed));
        let left = left.map(|left| format!(", {:.0}s left", left.as_secs_f64().ceil()));
        let text = format!("{}: {speed}{}", self.what, left.unwrap_or_default());
        output::draw(&format!("\r\x1b[K{}", output::dim(&text)));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.is_on {
            output::draw("\r\x1b[K");
        }
    }
}
