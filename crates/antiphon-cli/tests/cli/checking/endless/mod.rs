//! Servers that never finish. `antiphon check` ends with an exit code, and never holds more than one
//! message in memory.

mod deaths;
mod floods;
mod silence;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::Judged;
use super::mutants::reference::Reference;
use crate::support::{Ended, PATIENCE, PROOF, Process, antiphon};

/// The memory limit of `antiphon check`: the largest message, and the process itself.
const MEMORY: usize = 256 << 20;

/// Runs `antiphon check` to its end, with a short timeout.
fn check(endpoint: &str, flags: &[&str]) -> Ended {
    let mut command = antiphon();
    command.args(["check", endpoint, "--timeout", "1s", "--budget", "5s", "--format", "json"]);
    ends(command.args(flags))
}

/// The budget of a run that ends long before it. On a busy machine, the flood of a server delays everything.
const AMPLE: [&str; 2] = ["--budget", "50s"];

/// The server completes no WebSocket handshake.
fn finds_no_way(endpoint: &str) {
    let ended = ends(antiphon().args(["check", endpoint, "--timeout", "200ms"]).args(AMPLE));
    assert_eq!((ended.code, &*ended.stdout), (Some(3), ""), "{ended:?}");
    assert!(ended.stderr.contains("cannot connect"), "{ended:?}");
}

/// It ends with exit code 5. No response ever arrives, so a short timeout is enough.
fn finds_nobody(endpoint: &str) {
    let ended = ends(antiphon().args(["check", endpoint, "--timeout", "200ms"]).args(AMPLE));
    assert_eq!((ended.code, &*ended.stdout), (Some(5), ""), "{ended:?}");
    assert!(ended.stderr.contains("no ordinary call succeeds"), "{ended:?}");
}

/// Waits for the end of a command, and checks its memory.
fn ends(command: &mut Command) -> Ended {
    let shown = format!("{command:?}");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let process = Process::of(&child);
    let (done, output) = channel();
    thread::spawn(move || drop(done.send(child.wait_with_output())));
    for _ in 0..6 * PATIENCE.as_millis() / LOOK.as_millis() {
        let output = match output.recv_timeout(LOOK) {
            Ok(output) => output.unwrap(),
            Err(RecvTimeoutError::Timeout) => {
                let held = process.peak_memory().unwrap_or_default();
                assert!(held <= MEMORY, "{shown} holds {} MiB of memory", held >> 20);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        return Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
    }
    process.signal(Signal::KILL);
    panic!("{shown} does not end");
}

/// The interval of the memory checks.
const LOOK: Duration = Duration::from_millis(20);

/// Returns the report, which must have this text in a finding.
fn tells(ended: &Ended, text: &str) -> Judged {
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("there is no report ({error}): {ended:?}"));
    let judged = Judged { report, code: ended.code };
    let findings = judged.findings();
    assert_eq!(judged.code, Some(1), "{findings}");
    assert!(findings.contains(text), "{text} is not in {findings}");
    judged
}

/// A listener that runs a function on each connection.
pub(super) struct Peer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Peer {
    pub(super) fn start(
        talk: impl Fn(&TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, talk) = (Arc::clone(&is_over), Arc::new(talk));
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let talk = Arc::clone(&talk);
                thread::spawn(move || talk(&socket));
            }
        });
        Self { address, is_over }
    }

    pub(super) fn endpoint(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

/// Reads until the peer closes the connection, and sends nothing.
fn listen(mut socket: &TcpStream) -> io::Result<()> {
    io::copy(&mut socket, &mut io::sink()).map(drop)
}

/// Writes the same bytes until the peer closes the connection.
fn flood(mut socket: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let many = bytes.repeat((64 << 10) / bytes.len());
    loop {
        socket.write_all(&many)?;
    }
}

/// Reads the head of an HTTP request, up to an empty line.
fn head(socket: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1, socket);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Performs a WebSocket handshake.
fn upgrade(mut socket: &TcpStream) -> io::Result<()> {
    head(socket)?;
    let upgraded = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-accept: {PROOF}\r\n\r\n"
    );
    socket.write_all(upgraded.as_bytes())
}

/// Responds correctly to this many lines, and then runs a function on the connection.
fn right_until(
    count: usize,
    then: impl Fn(&TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> impl Fn(&TcpStream) -> io::Result<()> {
    let (reference, heard) = (Reference::new(None), AtomicUsize::new(0));
    move |mut socket| {
        let mut reader = BufReader::new(socket);
        loop {
            let mut line = Vec::new();
            if reader.by_ref().read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if heard.fetch_add(1, Ordering::SeqCst) >= count {
                return then(socket);
            }
            for answer in reference.answers(line.trim_ascii_end()).unwrap_or_default() {
                socket.write_all(format!("{answer}\n").as_bytes())?;
            }
        }
    }
}
