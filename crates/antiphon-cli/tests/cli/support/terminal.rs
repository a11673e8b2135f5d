//! The binary at a terminal.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _, pipe};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::termios::{LocalModes, tcgetattr};

use super::{PATIENCE, antiphon};

/// A process at a pseudo-terminal, killed when it is dropped.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    output: Receiver<Vec<u8>>,
    /// The output, and where the next expectation begins.
    seen: String,
    at: usize,
}

impl Terminal {
    /// Starts the binary. Its home directory is `home`.
    pub(crate) fn start(home: &OsStr, words: &[&str]) -> Self {
        Self::start_with(home, words, |command| command)
    }

    /// Starts the binary with a stdout that nobody reads.
    pub(crate) fn start_without_stdout(home: &OsStr, words: &[&str]) -> Self {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        Self::start_with(home, words, |command| command.stdout(writer))
    }

    fn start_with(home: &OsStr, words: &[&str], change: impl FnOnce(Command) -> Command) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(24, 200)).unwrap();
        let command = Command::new(antiphon().get_program());
        let command = command.args(words).env("HOME", home).env("TERM", "xterm");
        let command = command.env_remove("XDG_STATE_HOME").env("NO_COLOR", "1");
        let child = change(command).spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let (sender, output) = channel();
        let reading = pty.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the process has closed the terminal.
            while let Ok(read @ 1..) = (&*reading).read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { pty, child, output, seen: String::new(), at: 0 }
    }

    /// Presses these keys.
    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for this text, after what was expected before.
    pub(crate) fn expect(&mut self, text: &str) {
        self.expect_one_of(&[text]);
    }

    /// Waits for one of these texts, and returns which one came.
    pub(crate) fn expect_one_of(&mut self, texts: &[&str]) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let new = &self.seen[self.at..];
            let found = texts
                .iter()
                .enumerate()
                .filter_map(|(index, text)| Some((new.find(text)? + text.len(), index)));
            if let Some((length, index)) = found.min() {
                self.at += length;
                return index;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                panic!("none of {texts:?} on the terminal after {new:?}");
            };
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Returns whether the terminal echoes keys and assembles lines, as before the line editor.
    pub(crate) fn is_cooked(&self) -> bool {
        tcgetattr(&*self.pty).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the exit of the process, and returns its code and all output.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                // The process has closed the terminal, so it ends.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {:?}", self.seen),
            }
        }
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.seen))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
