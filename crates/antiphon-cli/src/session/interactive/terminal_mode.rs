//! The mode of the terminal, which the line editor changes while it reads.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

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

    /// Restores the mode of the terminal while the editor still waits for a key. The editor restores it only after it
    /// has read a line.
    pub(super) fn restore(mut self) {
        const BRACKETED_PASTE_OFF: &[u8] = b"\x1b[?2004l\n";
        self.wait_for_editor();
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.mode);
        let _ = self.terminal.write_all(BRACKETED_PASTE_OFF);
    }

    /// Waits until the editor has set its own mode. Otherwise the editor would set it after the restore. The editor has
    /// no event for this, and needs less than a millisecond unless the machine is overloaded.
    fn wait_for_editor(&self) {
        const TICK: Duration = Duration::from_millis(1);
        const MOST_TICKS: usize = 200;
        for _ in 0..MOST_TICKS {
            match tcgetattr(&self.terminal) {
                Ok(mode) if mode.local_modes.contains(LocalModes::ICANON) => thread::sleep(TICK),
                _ => return,
            }
        }
    }
}
