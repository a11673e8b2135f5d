//! Start and shutdown of `antiphon serve`.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::{Connection, Framing, Http, Scratch, Server, Stream, Ws, antiphon, run};

const SLEEP: &str = r#"{"jsonrpc":"2.0","method":"sleep","params":[300],"id":"slow"}"#;
const SLEPT: &str = r#"{"jsonrpc":"2.0","result":300,"id":"slow"}"#;
const FOREVER: &str = r#"{"jsonrpc":"2.0","method":"sleep","params":[600000],"id":"slow"}"#;

/// Starts a slow call. The next call gets its reply, so the slow one is running.
fn start(connection: &mut impl Connection, slow: &str) {
    connection.send(slow.as_bytes()).unwrap();
    connection.works();
}

fn received(connection: &mut impl Connection) -> String {
    String::from_utf8(connection.receive().unwrap()).unwrap()
}

fn lines(server: &Server) -> Stream {
    Stream::tcp(server.address("tcp"), Framing::Line)
}

#[test]
fn it_prints_its_endpoints_and_commands_to_try() {
    let server = Server::start("http://127.0.0.1:0", "");
    let http = server.endpoint("http").to_owned();
    let curl = server.stderr_line();
    assert!(curl.contains(&format!("curl {http} ")), "{curl}");
    assert!(server.stderr_line().contains(&format!("antiphon call {http} subtract 42 23")));
    // The line can be pasted into a shell.
    let command = curl.split_once("try: ").unwrap().1;
    assert!(command.ends_with('\''), "{command}");
}

/// A write to `/dev/full` fails like a full disk.
#[test]
fn a_failed_write_to_stdout_is_an_error() {
    let script = "exec \"$0\" serve stdio: >/dev/full";
    let ended = run(
        Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_antiphon")]),
        SLEEP.as_bytes(),
    );
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
}

#[test]
fn a_signal_lets_running_calls_finish() {
    for signal in [Signal::INT, Signal::TERM] {
        let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", "");
        let (mut stream, mut ws) = (lines(&server), Ws::connect(server.address("http")));
        let mut http = Http::connect(server.address("http"));
        start(&mut stream, SLEEP);
        start(&mut ws, SLEEP);
        // The server requests the body, so this request is running too.
        let headers = "content-type: application/json\r\nexpect: 100-continue\r\n";
        http.head("POST", headers, SLEEP.len()).unwrap();
        assert_eq!(http.answer().unwrap().status, 100);
        server.process().signal(signal);
        http.raw(SLEEP.as_bytes()).unwrap();

        assert_eq!(received(&mut stream), SLEPT);
        assert_eq!(received(&mut ws), SLEPT);
        assert_eq!(http.answer().unwrap().body, SLEPT);
        assert!(stream.receive().unwrap_err().contains("closed"));
        assert!(ws.receive().unwrap_err().contains("Close("));
        let address = server.address("tcp").to_owned();
        let (code, stderr) = server.end();
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stderr.contains("shutting down"), "{stderr}");
        assert!(TcpStream::connect(address).is_err(), "somebody still listens");
    }
}

#[test]
fn new_calls_are_rejected_during_shutdown() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let mut stream = lines(&server);
    start(&mut stream, SLEEP);
    server.process().signal(Signal::INT);
    while !server.stderr_line().contains("shutting down") {}
    // A connection notices the shutdown a little later. Until then, calls succeed.
    let refused = loop {
        let answer = stream.ask(r#"{"jsonrpc":"2.0","method":"echo","id":1}"#);
        if !answer.contains("\"result\":null") {
            break answer;
        }
    };
    assert!(refused.contains("\"code\":-32009") && refused.contains("\"id\":1"), "{refused}");
    assert_eq!(received(&mut stream), SLEPT);
    assert_eq!(server.end().0, Some(0));
}

/// Every request gets one response, also at shutdown.
#[test]
fn a_call_that_outlasts_the_shutdown_timeout_gets_an_error() {
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", "--shutdown-timeout 200ms");
    let (mut stream, mut ws) = (lines(&server), Ws::connect(server.address("http")));
    start(&mut stream, FOREVER);
    start(&mut ws, FOREVER);
    server.process().signal(Signal::INT);
    for answer in [received(&mut stream), received(&mut ws)] {
        assert!(answer.contains("\"error\":{") && answer.contains("\"id\":\"slow\""), "{answer}");
    }
    let (code, stderr) = server.end();
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = Server::start("tcp://127.0.0.1:0", "--shutdown-timeout 10m");
    let mut stream = lines(&server);
    start(&mut stream, FOREVER);
    server.process().signal(Signal::INT);
    while !server.stderr_line().contains("shutting down") {}
    server.process().signal(Signal::INT);
    assert_eq!(server.end().0, Some(130));
}

#[test]
fn the_end_of_stdin_ends_it_after_the_last_response() {
    for framing in [Framing::Line, Framing::Header] {
        let (server, mut stream) = Stream::stdio("stdio:", framing);
        stream.send(SLEEP.as_bytes()).unwrap();
        stream.finish();
        assert_eq!(received(&mut stream), SLEPT);
        assert!(stream.receive().unwrap_err().contains("closed"));
        assert_eq!(server.end(), (Some(0), String::new()));
    }
}

#[test]
fn calls_outlive_the_end_of_their_stream() {
    let scratch = Scratch::new();
    let unix = format!("unix:{}", scratch.path("a.sock").display());
    let server = Server::start(&format!("tcp://127.0.0.1:0 {unix}"), "");
    for mut stream in [lines(&server), Stream::unix(server.address("unix"), Framing::Line)] {
        stream.send(SLEEP.as_bytes()).unwrap();
        stream.finish();
        assert_eq!(received(&mut stream), SLEPT);
        assert!(stream.receive().unwrap_err().contains("closed"));
    }
}

#[test]
fn a_socket_file_is_removed_at_the_end() {
    let scratch = Scratch::new();
    let path = scratch.path("a.sock");
    let server = Server::start(&format!("unix:{}", path.display()), "");
    Stream::unix(server.address("unix"), Framing::Line).works();
    server.process().signal(Signal::TERM);
    assert_eq!(server.end().0, Some(0));
    assert!(!path.exists(), "the socket file is left behind");
}

#[test]
fn a_stale_socket_file_is_replaced() {
    let scratch = Scratch::new();
    let path = scratch.path("a.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = Server::start(&format!("unix:{}", path.display()), "");
    Stream::unix(server.address("unix"), Framing::Line).works();
}

#[test]
fn a_socket_file_in_use_and_other_files_are_not_replaced() {
    let scratch = Scratch::new();
    let (socket, file) = (scratch.path("a.sock"), scratch.path("file"));
    let _living = UnixListener::bind(&socket).unwrap();
    std::fs::write(&file, "precious").unwrap();
    for path in [&socket, &file] {
        let ended = run(antiphon().arg("serve").arg(format!("unix:{}", path.display())), b"");
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains("choose another path"), "{}", ended.stderr);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(socket.exists());
}

#[test]
fn a_port_in_use_is_named_with_a_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    for scheme in ["http", "ws", "tcp"] {
        let endpoint = format!("{scheme}://{}", taken.local_addr().unwrap());
        let ended = run(antiphon().args(["serve", &endpoint]), b"");
        assert_eq!((ended.code, &*ended.stdout), (Some(3), ""));
        assert!(ended.stderr.contains(&endpoint) && ended.stderr.contains(":0 for a free one"));
    }
}

/// stdout carries the protocol, so logs and panics must not appear there.
#[test]
fn logs_and_panics_go_to_stderr() {
    let mut command = antiphon();
    command.args(["serve", "stdio:", "--log", "trace", "--log-format", "json"]);
    let calls = "{\"jsonrpc\":\"2.0\",\"method\":\"panic\",\"id\":1}\n";
    let ended = run(&mut command, calls.as_bytes());
    let answer = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1}"#;
    assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), answer));
    let logged = ended.stderr.lines().filter(|line| line.starts_with('{'));
    let logged: Vec<serde_json::Value> =
        logged.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(logged.iter().any(|line| line["level"] == "ERROR"), "{}", ended.stderr);
}

#[test]
fn unexpected_responses_are_logged_once() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let mut stream = lines(&server);
    for id in 1..=50 {
        let stray = format!(r#"{{"jsonrpc":"2.0","result":"SECRET","id":{id}}}"#);
        stream.send(stray.as_bytes()).unwrap();
    }
    stream.works();
    drop(stream);
    server.process().signal(Signal::INT);
    let (_, log) = server.end();
    assert_eq!(log.matches("does not match any call").count(), 1, "{log}");
    assert!(!log.contains("SECRET"), "{log}");
}

#[test]
fn a_server_under_nohup_outlives_its_terminal() {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" serve http://127.0.0.1:0"]);
    command.arg(antiphon().get_program()).stdin(Stdio::null());
    let server = Server::spawn(&mut command, 1);
    server.process().signal(Signal::HUP);
    let called = run(antiphon().args(["call", server.endpoint("http"), "sum", "1"]), b"");
    assert_eq!(called.stdout, "1\n");
    server.process().signal(Signal::TERM);
    let (code, stderr) = server.end();
    assert_eq!((code, stderr.matches("shutting down").count()), (Some(0), 1), "{stderr}");
}
