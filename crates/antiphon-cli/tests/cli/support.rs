//! Processes and connections to speak to them, written by hand.

mod http;
mod memory;
mod process;
mod socket;
mod stream;
mod ws;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use self::http::Http;
pub(crate) use self::memory::Memory;
pub(crate) use self::process::{Ended, Process, Server, antiphon, run, run_within};
pub(crate) use self::socket::Socket;
pub(crate) use self::stream::{Framing, Stream};
pub(crate) use self::ws::{Frame, KEY, PROOF, Ws};

/// How long anything is waited for before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The other end of a wire, message by message.
pub(crate) trait Connection {
    /// Sends these bytes as one message.
    fn send(&mut self, message: &[u8]) -> Result<(), String>;

    /// The next message that comes.
    fn receive(&mut self) -> Result<Vec<u8>, String>;

    /// Sends a message and gives the next one that comes, as text.
    fn ask(&mut self, message: &str) -> String {
        let answer = self.send(message.as_bytes()).and_then(|()| self.receive());
        String::from_utf8(answer.unwrap_or_else(|fault| panic!("{fault}; asked {message:.200}")))
            .unwrap()
    }

    /// An ordinary call gets its ordinary answer.
    fn works(&mut self) {
        let answer = self.ask(r#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":"w"}"#);
        assert_eq!(answer, r#"{"jsonrpc":"2.0","result":19,"id":"w"}"#);
    }
}

/// What an error of the system means for a conversation.
fn fault(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing came within {PATIENCE:?}")
        }
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => format!("the connection broke: {error}"),
    }
}

/// A directory of one test's own, gone at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("antiphon-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The root of the workspace.
pub(crate) fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Whether a missing tool fails the test; elsewhere it is only named.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1")
}

/// Fails in CI; elsewhere says what to install, past the capture of test output.
pub(crate) fn missing(what: &str, remedy: &str) {
    use std::io::Write as _;
    assert!(!in_ci(), "{what} is missing: {remedy}");
    let _ = writeln!(io::stderr(), "not tested, {what} is missing: {remedy}");
}
