//! Successful calls are all counted, on every transport and with every schedule.

use std::collections::BTreeMap;
use std::io::Read as _;

use super::servers::server;
use super::{counted, fails, refuses, succeeds};
use crate::support::{Scratch, Server};

#[test]
fn calls_are_counted_on_every_transport() {
    let scratch = Scratch::new();
    let unix = scratch.path("a.sock").display().to_string();
    let server = Server::start(
        &format!("http://127.0.0.1:0 ws://127.0.0.1:0 tcp://127.0.0.1:0 unix:{unix}"),
        "",
    );
    let (http, ws, tcp) = (server.endpoint("http"), server.endpoint("ws"), server.endpoint("tcp"));
    let tcp_as = |framing: &str| tcp.replace("tcp:", &format!("tcp+{framing}:"));
    let localhost = tcp.replace("127.0.0.1", "localhost");
    let child = |scheme| format!("{scheme}:'{}' serve stdio:", env!("CARGO_BIN_EXE_antiphon"));
    for endpoint in [
        http,
        ws,
        &http.replace("http", "ws"),
        tcp,
        &localhost,
        &tcp_as("line"),
        &tcp_as("header"),
        &tcp_as("values"),
        server.endpoint("unix"),
        &format!("unix+header:{unix}"),
        &child("exec"),
        &child("exec+header"),
    ] {
        let call = [endpoint, "subtract", "42", "23", "--expect", "19", "-c", "3"];
        succeeds(&[&call[..], &["-n", "301"]].concat(), 301);
        succeeds(&[&call[..], &["-n", "301", "-f", "8"]].concat(), 301);
        succeeds(&[&call[..], &["-n", "301", "-b", "7"]].concat(), 301);
        succeeds(&[&call[..], &["-n", "3010", "-b", "10", "-f", "4"]].concat(), 3010);
    }
}

#[test]
fn connections_are_spread_over_threads() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let call = [server.endpoint("tcp"), "echo", "-c", "5", "-n", "77"];
    for threads in ["1", "2", "5", "9"] {
        succeeds(&[&call[..], &["--threads", threads]].concat(), 77);
    }
}

#[test]
fn params_have_the_forms_of_call() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let scratch = Scratch::new();
    let file = scratch.path("expected.json");
    std::fs::write(&file, "{ \"b\": [1, 2],\n \"a\": \"x\" }\n").unwrap();
    let expected = format!("@{}", file.display());
    let call = [server.endpoint("tcp"), "echo", "-n", "20", "--expect"];
    for (expect, params) in [
        ("[1,\"x\"]", &["1", "x"][..]),
        (&expected, &["a=x", "b:=[1,2]"]),
        ("[1,\n2]", &["-d", "[1,\n2]"]),
        ("null", &[]),
    ] {
        succeeds(&[&call[..], &[expect], params].concat(), 20);
    }
}

#[test]
fn a_schedule_sends_all_calls() {
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", "");
    for scheme in ["http", "tcp"] {
        let call = [server.endpoint(scheme), "echo", "-c", "3", "--rate", "2000"];
        succeeds(&[&call[..], &["-n", "200"]].concat(), 200);
        succeeds(&[&call[..], &["-n", "200", "-b", "10"]].concat(), 200);
    }
}

#[test]
fn a_run_ends_at_its_time_and_the_warm_up_does_not_count() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let call = [server.endpoint("tcp"), "echo", "-t", "100ms", "--warm-up", "50ms"];
    for more in [&[][..], &["-f", "4"], &["-b", "3"]] {
        let (code, calls, errors) = counted(&[&call[..], more].concat());
        assert_eq!((code, calls > 0, errors), (0, true, BTreeMap::new()), "{more:?}");
    }
    // On a busy machine some calls may be late.
    let (_, calls, mut errors) = counted(&[&call[..], &["--rate", "500"]].concat());
    errors.remove("late");
    assert_eq!((calls > 0, errors), (true, BTreeMap::new()));
    succeeds(&[server.endpoint("tcp"), "echo", "-n", "50", "--warm-up", "50ms"], 50);
}

#[test]
fn a_call_not_sent_in_time_is_late() {
    let mute = server("http", |mut socket| {
        let _ = socket.read_to_end(&mut Vec::new());
        None
    });
    let words = [&mute, "m", "-c", "2", "--rate", "100", "-t", "300ms", "--warm-up", "0"];
    let (code, calls, errors) = counted(&[&words[..], &["--timeout", "100ms"]].concat());
    assert_eq!((code, calls), (4, 0));
    assert!(errors["late"] > 0 && errors["timeout"] > 0, "{errors:?}");
    assert_eq!(errors["late"] + errors["timeout"], 30, "none is dropped: {errors:?}");
}

#[test]
fn headers_are_sent() {
    let server = Server::start("http://127.0.0.1:0", "");
    let http = server.endpoint("http");
    let origin = ["-H", "Origin: http://evil.example", "-n", "10"];
    fails(&[&[http, "echo"], &origin[..]].concat(), 3, 0, &[("http 403", 10)]);
    let ws = http.replace("http", "ws");
    refuses(&[&[&*ws, "echo"], &origin[..]].concat(), 3, "403");
}
