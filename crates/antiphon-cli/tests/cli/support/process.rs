//! The binary as a child process that never outlives its test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Framing, PATIENCE, Stream};

/// Returns a command for the binary under test.
pub(crate) fn antiphon() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antiphon"));
    command.env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

/// The exit code and output of a process.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command until it exits.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ended {
    run_within(command, input, 3 * PATIENCE)
}

/// Like `run`, with another time limit.
pub(crate) fn run_within(command: &mut Command, input: &[u8], limit: Duration) -> Ended {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{shown} does not start: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // In a thread, since a process that does not read its input would block the write.
    thread::spawn(move || drop(stdin.write_all(&input)));
    let process = Process::of(&child);
    let (done, output) = channel();
    thread::spawn(move || drop(done.send(child.wait_with_output())));
    let Ok(output) = output.recv_timeout(limit) else {
        process.signal(Signal::KILL);
        panic!("{shown} does not end");
    };
    let output = output.unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A running process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(Pid);

impl Process {
    pub(crate) fn of(child: &Child) -> Self {
        Self(Pid::from_child(child))
    }

    pub(crate) fn with_id(id: i32) -> Option<Self> {
        Pid::from_raw(id).map(Self)
    }

    pub(crate) fn id(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    pub(crate) fn signal(self, signal: Signal) {
        let _ = kill_process(self.0, signal);
    }

    /// Returns the peak of the memory that it has allocated, in bytes, or `None` if the system does not report it.
    ///
    /// The pages of its program file are not included: a debug build alone maps more than 20 MiB of them.
    pub(crate) fn peak_memory(self) -> Option<usize> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let bytes_of = |name: &str| -> Option<usize> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
            Some(kib << 10)
        };
        Some(bytes_of("VmHWM:")?.saturating_sub(bytes_of("RssFile:")?))
    }
}

/// `antiphon serve`, killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    endpoints: Vec<String>,
    stderr: Receiver<String>,
}

impl Server {
    /// Starts a server. Endpoints and flags are separated by spaces: `("tcp://127.0.0.1:0", "--trace")`.
    pub(crate) fn start(endpoints: &str, flags: &str) -> Self {
        let mut command = antiphon();
        command.arg("serve").args(endpoints.split_whitespace()).args(flags.split_whitespace());
        Self::spawn(command.stdin(Stdio::null()), endpoints.split_whitespace().count())
    }

    /// Starts a server command and waits until it has printed that many endpoints.
    pub(crate) fn spawn(command: &mut Command, endpoints: usize) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = lines(child.stderr.take().unwrap());
        let mut server = Self { child, endpoints: Vec::new(), stderr };
        while server.endpoints.len() < endpoints {
            let line = server.stderr_line();
            if let Some((_, endpoint)) = line.split_once("listening on ") {
                server.endpoints.push(endpoint.trim().to_owned());
            }
        }
        server
    }

    /// Returns the next line of stderr.
    pub(crate) fn stderr_line(&self) -> String {
        self.stderr.recv_timeout(PATIENCE).expect("the server says more on stderr")
    }

    /// Returns its endpoints.
    pub(crate) fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Returns the first endpoint of this scheme: `tcp`, `tcp+header`, `http`.
    pub(crate) fn endpoint(&self, scheme: &str) -> &str {
        let of_scheme =
            |text: &&String| text.split_once(':').is_some_and(|(found, _)| found == scheme);
        self.endpoints.iter().find(of_scheme).unwrap_or_else(|| {
            panic!("the server does not listen on {scheme}: {:?}", self.endpoints)
        })
    }

    /// Returns the host and port of that endpoint, or its path.
    pub(crate) fn address(&self, scheme: &str) -> &str {
        let (_, address) = self.endpoint(scheme).split_once(':').unwrap();
        address.trim_start_matches("//")
    }

    pub(crate) fn process(&self) -> Process {
        Process::of(&self.child)
    }

    /// Asserts that its peak memory is at most this.
    pub(crate) fn held_at_most(&self, bytes: usize) {
        if let Some(peak) = self.process().peak_memory() {
            assert!(peak <= bytes, "the server held {} KiB of memory", peak >> 10);
        }
    }

    /// Waits for its exit, and returns the exit code and the rest of stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = String::new();
        loop {
            match self.stderr.recv_timeout(PATIENCE) {
                Ok(line) => stderr.push_str(&format!("{line}\n")),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not end: {stderr}"),
            }
        }
        (self.child.wait().unwrap().code(), stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to the stdin and stdout of a server.
impl Stream {
    pub(crate) fn stdio(endpoint: &str, framing: Framing) -> (Server, Self) {
        let mut command = antiphon();
        command.args(["serve", endpoint]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = Server::spawn(&mut command, 1);
        let mut stdin = server.child.stdin.take().unwrap();
        let mut stdout = server.child.stdout.take().unwrap();
        // A pipe has no read timeout, but a socket has. Each direction is forwarded until it ends.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut to_stdin, mut from_stdout) = (theirs.try_clone().unwrap(), theirs);
        thread::spawn(move || pass_on(&mut to_stdin, &mut stdin));
        thread::spawn(move || {
            pass_on(&mut stdout, &mut from_stdout);
            from_stdout.shutdown(Shutdown::Write)
        });
        (server, Self::over_unix(ours, framing))
    }
}

/// Copies bytes. `io::copy` may use splice, which can hold back a few bytes.
fn pass_on(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = [0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
}

/// Returns the lines of a stream as they arrive. The stream is always read, so the writer never blocks.
fn lines(stream: ChildStderr) -> Receiver<String> {
    let (line, lines) = channel();
    thread::spawn(move || {
        for text in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = line.send(text);
        }
    });
    lines
}
