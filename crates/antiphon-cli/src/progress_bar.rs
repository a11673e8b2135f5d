//! A progress bar on stderr, if that is a terminal.

use std::cell::Cell;
use std::io::{self, IsTerminal as _};

use crate::output;

/// A progress bar on a terminal.
pub(crate) struct ProgressBar {
    total: usize,
    is_on: bool,
    drawn: Cell<usize>,
}

impl ProgressBar {
    pub(crate) fn new(total: usize) -> Self {
        Self { total, is_on: io::stderr().is_terminal(), drawn: Cell::new(usize::MAX) }
    }

    pub(crate) fn draw(&self, done: usize, what: &str) {
        const WIDTH: usize = 20;
        /// The width of a narrow terminal. A line that wraps cannot be redrawn.
        const COLUMNS: usize = 45;
        let filled = done * WIDTH / self.total.max(1);
        if !self.is_on || self.drawn.replace(done) == done {
            return;
        }
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH - filled));
        let text = format!("{bar} {done}/{} {what}", self.total);
        let text: String = text.chars().take(COLUMNS).collect();
        output::draw(&format!("\r\x1b[K{}", output::dim(&text)));
    }

    pub(crate) fn clear(&self) {
        if self.is_on {
            output::draw("\r\x1b[K");
        }
    }
}
