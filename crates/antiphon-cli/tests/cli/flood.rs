//! Much at once: ten thousand calls on one connection, and callers who never read their answers.

use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Connection, Framing, Http, Process, Scratch, Server, Stream, Ws};
use crate::support::{antiphon, missing};

const CALLS: usize = 10_000;
const ENDPOINTS: &str = "http://127.0.0.1:0 tcp://127.0.0.1:0";

fn call(id: usize) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"subtract","params":[{id},1],"id":{id}}}"#).into_bytes()
}

/// Sends all calls from a thread of its own, and takes the answers as they come.
fn pipeline(connection: &mut impl Connection, mut sender: TcpStream, calls: Vec<u8>) {
    let sending = thread::spawn(move || sender.write_all(&calls).unwrap());
    let mut answered = HashSet::new();
    for _ in 0..CALLS {
        let answer: Value = serde_json::from_slice(&connection.receive().unwrap()).unwrap();
        let id = answer["id"].as_i64().unwrap();
        assert_eq!(answer["result"].as_i64(), Some(id - 1), "{answer}");
        assert!(answered.insert(id), "{id} is answered twice");
    }
    assert_eq!(answered.len(), CALLS);
    sending.join().unwrap();
    // The next answer belongs to the next call, so there was none too many.
    connection.works();
}

fn pipeline_lines(server: &Server) {
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let calls = (0..CALLS).flat_map(|id| stream.framed(&call(id))).collect();
    let sender = stream.sender();
    pipeline(&mut stream, sender, calls);
}

fn pipeline_headers(server: &Server) {
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Header);
    let calls = (0..CALLS).flat_map(|id| stream.framed(&call(id))).collect();
    let sender = stream.sender();
    pipeline(&mut stream, sender, calls);
}

fn pipeline_websocket(server: &Server) {
    let mut socket = Ws::connect(server.address("http"));
    let calls = (0..CALLS).flat_map(|id| Ws::framed(0x81, &call(id))).collect();
    let sender = socket.sender();
    pipeline(&mut socket, sender, calls);
}

#[test]
fn pipelined_calls_are_each_answered_once() {
    let server = Server::start(ENDPOINTS, "");
    pipeline_lines(&server);
    pipeline_headers(&server);
    pipeline_websocket(&server);
}

#[test]
fn answers_go_out_many_in_one_write() {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    if !traced.is_ok_and(|status| status.success()) {
        return missing("strace, or the right to trace,", "install strace to count system calls");
    }
    for pipeline in [pipeline_lines, pipeline_headers, pipeline_websocket] {
        let writes = writes_to_sockets(pipeline);
        assert!(writes > 0, "strace has seen nothing");
        assert!(writes < CALLS / 10, "{writes} writes for {CALLS} answers");
    }
}

/// How many system calls the server makes to write to a socket while this goes on.
fn writes_to_sockets(conversation: fn(&Server)) -> usize {
    let scratch = Scratch::new();
    let trace = scratch.path("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-s", "0", "-e", "trace=write,writev,sendto,sendmsg", "-o"]);
    command.arg(&trace).arg(antiphon().get_program());
    command.arg("serve").args(ENDPOINTS.split(' ')).stdin(Stdio::null());
    let server = Server::spawn(&mut command, 2);
    conversation(&server);
    // strace ends with the server, and has then written everything down.
    server.process().children().into_iter().for_each(|server| server.signal(Signal::TERM));
    let (code, stderr) = server.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trace = std::fs::read_to_string(trace).unwrap();
    trace.lines().filter(|line| line.contains("<socket:") || line.contains("<TCP:")).count()
}

/// An echo whose answer is 64 KiB.
fn echo() -> Vec<u8> {
    let text = "x".repeat(64 << 10);
    format!(r#"{{"jsonrpc":"2.0","method":"echo","params":["{text}"],"id":1}}"#).into_bytes()
}

/// What the server may hold for such a peer: itself, a write queue of 1 MiB, and requests that wait, up
/// to the frame limit of 32 MiB and as much again in buffers that are not full.
const HELD: usize = 96 << 20;

/// Sends calls for ever and reads nothing. Ends when the server cuts it off.
fn flood(server: &Server, mut socket: TcpStream, calls: &[u8]) {
    let mut sent = 0;
    while socket.write_all(calls).is_ok() {
        sent += calls.len();
        assert!(sent < 1 << 30, "the server takes in everything");
    }
    server.held_at_most(HELD);
    Stream::tcp(server.address("tcp"), Framing::Line).works();
    Http::connect(server.address("http")).works();
}

#[test]
fn who_never_reads_on_tcp_is_cut_off() {
    let server = Server::start(ENDPOINTS, "--stall-timeout 500ms");
    let stream = Stream::tcp(server.address("tcp"), Framing::Line);
    flood(&server, stream.sender(), &stream.framed(&echo()));
}

#[test]
fn who_never_reads_on_a_websocket_is_cut_off() {
    let server = Server::start(ENDPOINTS, "--stall-timeout 500ms");
    let socket = Ws::connect(server.address("http"));
    flood(&server, socket.sender(), &Ws::framed(0x81, &echo()));
}

#[test]
fn who_never_reads_on_http_is_not_read_either() {
    let server = Server::start(ENDPOINTS, "--stall-timeout 500ms");
    let http = Http::connect(server.address("http"));
    let body = echo();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    flood(&server, http.sender(), &[head.as_bytes(), &body].concat());
}

/// While a call of the server's waits, it must go on reading, or the answer could not arrive: even
/// so it does not hold what an idle caller lets pile up.
#[test]
fn who_never_reads_while_the_server_waits_for_it_is_cut_off() {
    let server = Server::start(ENDPOINTS, "--stall-timeout 500ms");
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let asked = stream
        .ask(r#"{"jsonrpc":"2.0","method":"call_me_back","params":["never_answered",[]],"id":1}"#);
    assert!(asked.contains("never_answered"), "{asked}");
    flood(&server, stream.sender(), &stream.framed(&echo()));
}

/// Answers that wait, each in a task of its own, are bounded too.
#[test]
fn slow_calls_beyond_the_limit_wait_or_are_refused_and_none_is_lost() {
    let server = Server::start(ENDPOINTS, "--max-in-flight 16");
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let calls: Vec<u8> = (0..500)
        .flat_map(|id| {
            let call = format!(r#"{{"jsonrpc":"2.0","method":"sleep","params":[5],"id":{id}}}"#);
            stream.framed(call.as_bytes())
        })
        .collect();
    stream.raw(&calls).unwrap();
    let mut answered = HashSet::new();
    for _ in 0..500 {
        let answer: Value = serde_json::from_slice(&stream.receive().unwrap()).unwrap();
        assert!(answer["result"] == 5 || answer["error"]["code"] == -32009, "{answer}");
        assert!(answered.insert(answer["id"].as_i64()), "answered twice: {answer}");
    }
    stream.works();
}

impl Process {
    /// The processes it has started.
    fn children(self) -> Vec<Self> {
        let path = format!("/proc/{0}/task/{0}/children", self.id());
        let children = std::fs::read_to_string(path).unwrap_or_default();
        children.split_whitespace().filter_map(|id| Self::with_id(id.parse().ok()?)).collect()
    }
}
