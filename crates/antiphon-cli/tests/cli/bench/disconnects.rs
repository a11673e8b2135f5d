//! Servers that close, stop replying, crash or are not reachable.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::servers::{hello, hello_line, line_id, lines, ok, server, web};
use super::{bench, counted, fails, refuses, succeeds};
use crate::support::Server;

#[test]
fn a_server_that_closes_after_each_reply_is_connected_to_again() {
    let announced = |id| ok("connection: close\r\n", &hello(id));
    let until_closed = |id| format!("HTTP/1.1 200 OK\r\n\r\n{}", hello(id));
    for answer in [announced, until_closed as fn(u64) -> String] {
        let endpoint = web(answer, true);
        succeeds(&[&endpoint, "m", "-n", "40", "-c", "2"], 40);
        let ended = bench(&[&endpoint, "m", "-n", "40", "-c", "2"]);
        assert!(ended.stdout.contains("connections reopened"), "{}", ended.stdout);
    }
    // If the server closes without notice, the next call is lost.
    let (code, calls, errors) = counted(&[&web(|id| ok("", &hello(id)), true), "m", "-n", "40"]);
    assert_eq!((code, calls + errors["lost"]), (3, 40), "{errors:?}");
}

#[test]
fn a_call_that_is_never_answered_times_out() {
    for scheme in ["tcp", "http"] {
        let mute = server(scheme, |mut socket| {
            let _ = socket.read_to_end(&mut Vec::new());
            None
        });
        let words = [&mute, "m", "-c", "2", "-f", "2", "--timeout", "200ms"];
        fails(&[&words[..], &["-n", "4"]].concat(), 4, 0, &[("timeout", 4)]);
    }
    // Only the last call has no reply.
    let last = lines(|id| if id == 20 { String::new() } else { hello_line(id) });
    let words = [&last, "m", "-n", "20", "-c", "1", "--timeout", "200ms"];
    fails(&words, 4, 19, &[("timeout", 1)]);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("ws://{}", mute.local_addr().unwrap());
    refuses(&[&endpoint, "m", "--timeout", "100ms"], 4, "--timeout");
}

/// Starts a server that replies to 10 calls and exits.
fn short_lived() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut socket = BufReader::new(listener.accept().unwrap().0);
        // A client that connects again is refused from the start.
        drop(listener);
        for _ in 0..10 {
            let id = line_id(&mut socket).unwrap();
            socket.get_mut().write_all(hello_line(id).as_bytes()).unwrap();
        }
    });
    endpoint
}

#[test]
fn a_server_that_dies_is_reported_and_ends_the_run() {
    let words = ["m", "-c", "1", "-t", "300ms", "--warm-up", "0"];
    let (code, calls, errors) = counted(&[&[&*short_lived()], &words[..]].concat());
    assert_eq!((code, calls), (3, 10), "{errors:?}");
    assert!(errors["lost"] == 1 && errors["connect"] > 0, "{errors:?}");

    let (code, calls, errors) = counted(&[&short_lived(), "m", "-c", "1", "-n", "100"]);
    assert_eq!((code, calls + errors["lost"] + errors["unsent"]), (3, 100), "{errors:?}");
}

#[test]
fn a_server_that_comes_back_is_used_again() {
    let connections = AtomicUsize::new(0);
    let endpoint = server("tcp", move |mut socket| {
        let is_first = connections.fetch_add(1, Ordering::Relaxed) == 0;
        loop {
            let id = line_id(&mut socket)?;
            if is_first && id == 10 {
                return None;
            }
            socket.get_mut().write_all(hello_line(id).as_bytes()).ok()?;
        }
    });
    fails(&[&endpoint, "m", "-n", "50", "-c", "1"], 3, 49, &[("lost", 1)]);
}

#[test]
fn an_unreachable_server_is_an_error_at_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "ws", "tcp"] {
        let endpoint = format!("{scheme}://{free}");
        refuses(&[&endpoint, "m"], 3, "is the server running there?");
    }
    refuses(&["unix:/no/such.sock", "m"], 3, "is the server running there?");
    refuses(&["exec:/no/such/command", "m"], 3, "installed");
    let web = Server::start("http://127.0.0.1:0/rpc", "");
    let endpoint = web.endpoint("http").replace("http", "ws").replace("/rpc", "/other");
    refuses(&[&endpoint, "m"], 3, "404");
}
