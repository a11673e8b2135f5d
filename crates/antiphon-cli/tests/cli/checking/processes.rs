//! The processes that `antiphon check` starts, and servers that are unreachable.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::check;
use crate::support::{PATIENCE, Process, Scratch, Server, antiphon};

const BINARY: &str = env!("CARGO_BIN_EXE_antiphon");

/// Waits until the condition holds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a port without a listener.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the socket file of a server that has ended.
fn is_left(path: &Path) -> bool {
    path.exists() && UnixStream::connect(path).is_err()
}

#[test]
fn a_spawned_server_ends_with_us() {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    // It listens elsewhere, so the run waits for it; and the shell is not the server.
    let command = format!("sh -c '{BINARY} serve unix:{} & wait'", path.display());
    let endpoint = format!("tcp://127.0.0.1:{}", free_port());
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut check = antiphon();
        check.args(["check", &endpoint, "--spawn", &command]).stdin(Stdio::null());
        let child = check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("it listens", || UnixStream::connect(&path).is_ok());
        Process::of(&child).signal(signal);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{signal:?}: {ended:?}");
        until("the server is gone", || is_left(&path));
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn children_of_a_shell_end_with_the_run() {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let shown = path.display();
    let leave = format!("{BINARY} serve unix:{shown} & while ! test -S {shown}; do :; done");
    let endpoint = format!("tcp://127.0.0.1:{}", free_port());
    let ended = check(&[&endpoint, "--spawn", &format!("sh -c '{leave}'")]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("ended before it accepted connections"), "{ended:?}");
    until("the server is gone", || is_left(&path));
}

#[test]
fn children_of_exec_end_with_the_run() {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let shown = path.display();
    let beside = format!("{BINARY} serve unix:{shown} >/dev/null 2>&1 &");
    let wait = format!("while ! test -S {shown}; do :; done");
    let endpoint = format!("exec:sh -c '{beside} {wait}; exec {BINARY} serve stdio:'");
    let ended = check(&[&endpoint, "--only", "id-zero"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    until("the server is gone", || is_left(&path));
}

#[test]
fn a_taken_port_is_an_error_of_spawn() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let ended = check(&[server.endpoint("tcp"), "--spawn", "sleep 60"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("listens on tcp://"), "{ended:?}");
}

#[test]
fn a_silent_listener_is_unreachable() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = mute.local_addr().unwrap();
    for scheme in ["https", "wss", "tls", "ws"] {
        let ended = check(&[&format!("{scheme}://{address}"), "--timeout", "100ms"]);
        assert_eq!((ended.code, &*ended.stdout), (Some(3), ""), "{ended:?}");
    }
    let ended = check(&[&format!("http://{address}"), "--budget", "100ms"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("the time limit was reached"), "{ended:?}");
}

#[test]
fn no_time_is_too_long() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let long = "9000000000000000000s";
    let times = ["--timeout", long, "--budget", long, "--hostile", "--only", "id-zero"];
    let ended = check(&[&[server.endpoint("tcp")], &times[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Responds to every HTTP request with this status.
fn refuses(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok_and(|read| read > 0) {
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    address
}

#[test]
fn a_rejected_request_gets_a_hint() {
    for (status, scheme, code, hint) in [
        ("404 Not Found", "ws", 3, "check the path"),
        ("401 Unauthorized", "ws", 3, "hint: -H 'Authorization"),
        ("401 Unauthorized", "http", 5, "hint: -H 'Authorization"),
        ("403 Forbidden", "http", 5, "hint: -H 'Authorization"),
    ] {
        let ended = check(&[&format!("{scheme}://{}", refuses(status))]);
        assert_eq!(ended.code, Some(code), "{scheme} {status}: {ended:?}");
        assert!(ended.stderr.contains(hint), "{scheme} {status}: {ended:?}");
    }
}

/// Responds to every line with 19, one connection after another, until a line makes it die.
fn mortal() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            if !serve(&stream) {
                return;
            }
        }
    });
    address
}

/// Serves until the end of the connection. Returns false if a line made it die.
fn serve(mut stream: &TcpStream) -> bool {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.contains("\"die\"") {
            return false;
        }
        let call: serde_json::Value = serde_json::from_str(&line).unwrap();
        let answer = serde_json::json!({ "jsonrpc": "2.0", "result": 19, "id": call["id"] });
        let _ = writeln!(stream, "{answer}");
    }
    true
}

#[test]
fn a_server_that_goes_away_fails_despite_a_baseline() {
    let scratch = Scratch::new();
    let (file, known) = (scratch.path("own.wire"), scratch.path("known.txt"));
    let call = |method| format!(r#"--> {{"jsonrpc":"2.0","method":"{method}","id":1}}"#);
    let answer = r#"<-- {"jsonrpc":"2.0","result":19,"id":1}"#;
    let cases = format!(
        "@ section 5\n== one: it dies\n{}\n{answer}\n== two: it lives\n{}\n{answer}\n",
        call("die"),
        call("live")
    );
    std::fs::write(&file, cases).unwrap();
    std::fs::write(&known, "crashed one\n").unwrap();
    let (file, known) = (file.display().to_string(), known.display().to_string());
    let args = [&*file, "--method", "live", "--timeout", "1s", "--baseline", &known];
    let ended = check(&[&[&*format!("tcp://{}", mortal())], &args[..]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("the server became unreachable before all cases were run"),
        "{ended:?}"
    );
}
