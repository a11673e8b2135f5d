//! Heavy load: ten thousand calls on one connection, and clients that never read their responses.

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

/// Sends all calls from another thread and reads the responses as they arrive.
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
    // The next response belongs to the next call, so there was no surplus one.
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
fn each_pipelined_call_gets_one_response() {
    let server = Server::start(ENDPOINTS, "");
    pipeline_lines(&server);
    pipeline_headers(&server);
    pipeline_websocket(&server);
}

#[test]
fn one_write_carries_many_responses() {
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

/// Counts the system calls of the server that write to a socket during a conversation.
fn writes_to_sockets(conversation: fn(&Server)) -> usize {
    let scratch = Scratch::new();
    let trace = scratch.path("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-s", "0", "-e", "trace=write,writev,sendto,sendmsg", "-o"]);
    command.arg(&trace).arg(antiphon().get_program());
    command.arg("serve").args(ENDPOINTS.split(' ')).stdin(Stdio::null());
    let server = Server::spawn(&mut command, 2);
    conversation(&server);
    // strace exits with the server, and its output is then complete.
    server.process().children().into_iter().for_each(|server| server.signal(Signal::TERM));
    let (code, stderr) = server.end();
    assert_eq!(code, Some(0), "{stderr}");
    let trace = std::fs::read_to_string(trace).unwrap();
    trace.lines().filter(|line| line.contains("<socket:") || line.contains("<TCP:")).count()
}

/// A call of `echo` with a response of 64 KiB.
fn echo() -> Vec<u8> {
    let text = "x".repeat(64 << 10);
    format!(r#"{{"jsonrpc":"2.0","method":"echo","params":["{text}"],"id":1}}"#).into_bytes()
}

/// The memory that the server may use with such a peer: its own, a write queue of 1 MiB, waiting
/// requests up to the frame limit of 32 MiB, and as much again in partly filled buffers.
const HELD: usize = 96 << 20;

/// Sends calls without reading, until the server closes the connection.
fn flood(server: &Server, mut socket: TcpStream, calls: &[u8]) {
    let mut sent = 0;
    while socket.write_all(calls).is_ok() {
        sent += calls.len();
        assert!(sent < 1 << 30, "the server buffers without limit");
    }
    server.held_at_most(HELD);
    Stream::tcp(server.address("tcp"), Framing::Line).works();
    Http::connect(server.address("http")).works();
}

#[test]
fn a_tcp_client_that_never_reads_is_disconnected() {
    let server = Server::start(ENDPOINTS, "--stall-timeout 500ms");
    let stream = Stream::tcp(server.address("tcp"), Framing::Line);
    flood(&server, stream.sender(), &stream.framed(&echo()));
}

#[test]
fn a_websocket_client_that_never_reads_is_disconnected() {
    let server = Server::start(ENDPOINTS, "--stall-timeout 500ms");
    let socket = Ws::connect(server.address("http"));
    flood(&server, socket.sender(), &Ws::framed(0x81, &echo()));
}

#[test]
fn an_http_client_that_never_reads_is_disconnected() {
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

/// While a call of the server is pending, the server must keep reading to get the reply. It still must
/// not buffer without limit.
#[test]
fn a_client_that_never_reads_is_disconnected_while_the_server_calls_it() {
    let server = Server::start(ENDPOINTS, "--stall-timeout 500ms");
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let asked = stream
        .ask(r#"{"jsonrpc":"2.0","method":"call_me_back","params":["never_answered",[]],"id":1}"#);
    assert!(asked.contains("never_answered"), "{asked}");
    flood(&server, stream.sender(), &stream.framed(&echo()));
}

/// The number of spawned calls is limited too.
#[test]
fn slow_calls_over_the_limit_wait_or_are_rejected_and_none_is_lost() {
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
    /// Returns its child processes.
    fn children(self) -> Vec<Self> {
        let path = format!("/proc/{0}/task/{0}/children", self.id());
        let children = std::fs::read_to_string(path).unwrap_or_default();
        children.split_whitespace().filter_map(|id| Self::with_id(id.parse().ok()?)).collect()
    }
}
