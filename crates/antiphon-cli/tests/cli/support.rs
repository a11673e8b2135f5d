//! Processes under test, and hand-written connections to them.

mod fake_server;
mod http;
mod memory;
mod process;
mod socket;
mod stream;
mod terminal;
mod ws;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) use self::fake_server::{FakeServer, methods, result};
pub(crate) use self::http::Http;
pub(crate) use self::memory::Memory;
pub(crate) use self::process::{Ended, Process, Server, antiphon, run, run_within};
pub(crate) use self::socket::Socket;
pub(crate) use self::stream::{Framing, Stream};
pub(crate) use self::terminal::Terminal;
pub(crate) use self::ws::{Frame, KEY, PROOF, Ws};

/// The time limit of every wait. A test fails after it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that sends and receives whole messages.
pub(crate) trait Connection {
    /// Sends these bytes as one message.
    fn send(&mut self, message: &[u8]) -> Result<(), String>;

    /// Receives the next message.
    fn receive(&mut self) -> Result<Vec<u8>, String>;

    /// Sends a message and returns the next one received, as text.
    fn ask(&mut self, message: &str) -> String {
        let answer = self.send(message.as_bytes()).and_then(|()| self.receive());
        String::from_utf8(answer.unwrap_or_else(|fault| panic!("{fault}; asked {message:.200}")))
            .unwrap()
    }

    /// Asserts that a plain call gets its result.
    fn works(&mut self) {
        let answer = self.ask(r#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":"w"}"#);
        assert_eq!(answer, r#"{"jsonrpc":"2.0","result":19,"id":"w"}"#);
    }
}

/// Describes an I/O error of a connection.
fn fault(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing came within {PATIENCE:?}")
        }
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => format!("the connection broke: {error}"),
    }
}

/// A temporary directory of one test, removed at its end.
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

/// Returns whether this is CI, where a missing tool fails the test.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1")
}

/// Reports a missing tool: fails in CI, and prints the remedy elsewhere even if output is captured.
pub(crate) fn missing(what: &str, remedy: &str) {
    use std::io::Write as _;
    assert!(!in_ci(), "{what} is missing: {remedy}");
    let _ = writeln!(io::stderr(), "not tested, {what} is missing: {remedy}");
}
