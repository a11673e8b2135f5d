//! The mode of the terminal, which the line editor changes while it reads.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The mode of the terminal before the editor starts.
pub(super) struct TerminalMode {
    terminal: File,
    mode: Termios,
}

impl TerminalMode {
    /// Returns the mode of the terminal that the editor uses. Returns `None` if the process has none.
    pub(super) fn current() -> Option<Self> {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        let mode = tcgetattr(&terminal).ok()?;
        Some(Self { terminal, mode })
    }

    /// Restores the mode while the editor still reads. It does the same when it returns from reading.
    pub(super) fn restore(mut self) {
        const BRACKETED_PASTE_OFF: &[u8] = b"\x1b[?2004l\n";
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.mode);
        let _ = self.terminal.write_all(BRACKETED_PASTE_OFF);
    }
}
