//! `bench` as a shell sees it: what it counts as a success, and what as which error. How fast
//! anything is, no test says.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, PATIENCE, Process, Scratch, Server, antiphon, run};

const HELLO: &str = r#"{"jsonrpc":"2.0","result":"hello","id":"#;

fn bench(words: &[&str]) -> Ended {
    run(antiphon().arg("bench").args(words), b"")
}

/// What came of a run: its exit code, calls that succeeded, and errors by kind.
type Counts = (i32, u64, BTreeMap<String, u64>);

/// Runs it with `--format json` and gives what it counted at its first endpoint.
fn counted(words: &[&str]) -> Counts {
    let ended = bench(&[words, &["--format", "json"]].concat());
    let code = ended.code.unwrap();
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {words:?} {ended:?}"));
    let target = &report["targets"][0];
    let calls = target["rounds"].as_array().unwrap().iter().map(|r| r["calls"].as_u64().unwrap());
    let errors = serde_json::from_value(target["errors"].clone()).unwrap();
    (code, calls.sum(), errors)
}

/// All of these calls succeed.
#[track_caller]
fn succeeds(words: &[&str], calls: u64) {
    assert_eq!(counted(words), (0, calls, BTreeMap::new()), "{words:?}");
}

/// It ends with this code, after so many calls, and exactly these errors.
#[track_caller]
fn fails(words: &[&str], code: i32, calls: u64, errors: &[(&str, u64)]) {
    let errors = errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
    assert_eq!(counted(words), (code, calls, errors), "{words:?}");
}

#[track_caller]
fn refuses(words: &[&str], code: i32, remedy: &str) {
    let ended = bench(words);
    assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{words:?}: {ended:?}");
    assert!(ended.stderr.contains(remedy), "{remedy:?} is missing: {}", ended.stderr);
}

/// A server that gives each connection to this.
fn server(
    scheme: &str,
    serve: impl Fn(BufReader<TcpStream>) -> Option<()> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        thread::scope(|scope| {
            for socket in listener.incoming().map_while(Result::ok) {
                let serve = &serve;
                scope.spawn(move || serve(BufReader::new(socket)));
            }
        });
    });
    endpoint
}

/// A server that answers the line with this id with that text.
fn lines(answer: fn(u64) -> String) -> String {
    server("tcp", move |mut socket| {
        loop {
            let id = line_id(&mut socket)?;
            socket.get_mut().write_all(answer(id).as_bytes()).ok()?;
        }
    })
}

/// A web server that answers the POST with this id with that text, and may close then.
fn web(answer: fn(u64) -> String, closes: bool) -> String {
    server("http", move |mut socket| {
        loop {
            let id = post_id(&mut socket)?;
            socket.get_mut().write_all(answer(id).as_bytes()).ok()?;
            if closes {
                return None;
            }
        }
    })
}

fn line_id(socket: &mut BufReader<TcpStream>) -> Option<u64> {
    let mut line = String::new();
    socket.read_line(&mut line).ok()?;
    id_of(&line)
}

fn post_id(socket: &mut BufReader<TcpStream>) -> Option<u64> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some(("content-length", digits)) => length = digits.parse().ok()?,
            None if line == "\r\n" => break,
            None if line.is_empty() => return None,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).ok()?;
    id_of(std::str::from_utf8(&body).ok()?)
}

/// The first id of a message.
fn id_of(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("\"id\":")?;
    rest.split_once('}')?.0.parse().ok()
}

fn hello(id: u64) -> String {
    format!("{HELLO}{id}}}")
}

fn hello_line(id: u64) -> String {
    hello(id) + "\n"
}

fn ok(head: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn calls_are_counted_on_every_wire() {
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
fn connections_are_dealt_out_to_threads() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let call = [server.endpoint("tcp"), "echo", "-c", "5", "-n", "77"];
    for threads in ["1", "2", "5", "9"] {
        succeeds(&[&call[..], &["--threads", threads]].concat(), 77);
    }
}

#[test]
fn params_are_those_of_call() {
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
    // A busy machine may be late, and says so.
    let (_, calls, mut errors) = counted(&[&call[..], &["--rate", "500"]].concat());
    errors.remove("late");
    assert_eq!((calls > 0, errors), (true, BTreeMap::new()));
    succeeds(&[server.endpoint("tcp"), "echo", "-n", "50", "--warm-up", "50ms"], 50);
}

#[test]
fn what_could_not_be_sent_in_time_is_late() {
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
fn the_json_is_one_document_of_a_fixed_shape() {
    let server = Server::start("tcp://127.0.0.1:0 http://127.0.0.1:0", "");
    let other = format!("b={}", server.endpoint("http"));
    let words = ["--name", "a", server.endpoint("tcp"), "echo", "1", "--vs", &other, "-n", "40"];
    let more = ["-c", "2", "-f", "3", "-b", "4", "--rounds", "2", "--format", "json"];
    let ended = bench(&[&words[..], &more].concat());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        keys(&report),
        ["batch", "connections", "in_flight", "method", "rate", "rounds", "targets"]
    );
    let head = ["method", "connections", "in_flight", "batch", "rate", "rounds"];
    let head: Vec<_> = head.iter().map(|name| report[name].to_string()).collect();
    assert_eq!(head, ["\"echo\"", "2", "3", "4", "null", "2"]);
    let targets = report["targets"].as_array().unwrap();
    let names: Vec<_> = targets.iter().map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(targets[1]["endpoint"], server.endpoint("http"));
    assert_eq!(targets[0]["ratio"], 1.0);
    for target in targets {
        let of_target = ["calls_per_second", "endpoint", "errors", "latency_us", "name", "ratio"];
        assert_eq!(keys(target), [&of_target[..], &["rounds", "spread"]].concat());
        assert_eq!(keys(&target["spread"]), ["max", "min"]);
        assert_eq!(keys(&target["errors"]), [""; 0]);
        let rounds = target["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        for round in rounds {
            let of_round = ["calls", "calls_per_second", "errors", "latency_us", "seconds"];
            assert_eq!(keys(round), of_round);
            assert_eq!(round["calls"], 40);
        }
        for latency in [&target["latency_us"], &rounds[0]["latency_us"]] {
            assert_eq!(keys(latency), ["max", "mean", "p50", "p90", "p99", "p99.9"]);
            let figure = |name: &str| latency[name].as_f64().unwrap();
            assert!(0.0 < figure("p50") && figure("p50") <= figure("max"), "{latency}");
        }
    }
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn endpoints_take_turns_and_another_one_begins_each_round() {
    let (heard, hears) = channel();
    let endpoints = ["a", "b", "c"].map(|name| {
        let heard = heard.clone();
        let endpoint = server("tcp", move |mut socket| {
            let id = line_id(&mut socket)?;
            heard.send(name).unwrap();
            socket.get_mut().write_all(hello_line(id).as_bytes()).ok()
        });
        format!("{name}={endpoint}")
    });
    let first = endpoints[0].strip_prefix("a=").unwrap();
    let words = [first, "m", "--vs", &endpoints[1], "--vs", &endpoints[2], "-c", "1", "-n", "1"];
    let ended = bench(&[&words[..], &["--rounds", "3"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let order: String = hears.try_iter().collect();
    assert_eq!(order, "abcbcacab");
    for part in ["3 rounds of 1 call", "calls/s", "min..max", "ratio", "p50", "p99", "errors"] {
        assert!(ended.stdout.contains(part), "{part} is missing: {}", ended.stdout);
    }
}

#[test]
fn the_table_tells_figures_and_errors() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let ended = bench(&[server.endpoint("tcp"), "echo", "-n", "100"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let rows: Vec<Vec<&str>> =
        ended.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let load = format!("echo at {}: 16 connections, 100 calls", server.endpoint("tcp"));
    assert_eq!(rows[0].join(" "), load);
    assert_eq!(rows[2], ["calls/s", "p50", "p90", "p99", "p99.9", "max", "errors"]);
    assert_eq!((rows.len(), rows[3].last()), (4, Some(&"none")));

    let ended = bench(&[server.endpoint("tcp"), "fail", "7", "out\u{1b} of tea", "-n", "100"]);
    assert_eq!(ended.code, Some(1));
    let told = "100 x error 7, such as: out\\u{1b} of tea";
    assert!(ended.stdout.contains(told), "{}", ended.stdout);
}

#[test]
fn an_error_of_the_peer_is_counted_by_its_code() {
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0 ws://127.0.0.1:0", "");
    for scheme in ["http", "tcp", "ws"] {
        let endpoint = server.endpoint(scheme);
        fails(&[endpoint, "subtrct", "-n", "64"], 1, 0, &[("error -32601", 64)]);
        let batches = [endpoint, "fail", "7", "no", "-n", "64", "-b", "8", "-f", "2"];
        fails(&batches, 1, 0, &[("error 7", 64)]);
    }
    let limited = Server::start("http://127.0.0.1:0", "--max-batch-entries 4");
    let batches = [limited.endpoint("http"), "echo", "-n", "64", "-b", "8"];
    fails(&batches, 1, 0, &[("error -32010", 64)]);
}

#[test]
fn a_result_that_was_not_expected_is_no_success() {
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", "");
    for scheme in ["http", "tcp"] {
        let call = [server.endpoint(scheme), "subtract", "42", "23", "--expect", "18", "-n", "32"];
        fails(&call, 5, 0, &[("wrong result", 32)]);
        fails(&[&call[..], &["-b", "4"]].concat(), 5, 0, &[("wrong result", 32)]);
    }
    // One that changes is right as long as nothing is expected of it.
    let counts = lines(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":[{id}]}}\n"));
    succeeds(&[&counts, "m", "-n", "100"], 100);
    let words = [&counts, "m", "-n", "10", "-c", "1", "--expect", "[3]"];
    fails(&words, 5, 1, &[("wrong result", 9)]);
}

/// The first replies are right, so that the rest is compared with them.
#[test]
fn a_wrong_reply_among_right_ones_is_found() {
    let error = |id| {
        if id % 10 == 0 {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"error\":{{\"code\":1,\"message\":\"\"}},\"id\":{id}}}\n"
            )
        } else {
            hello_line(id)
        }
    };
    fails(&[&lines(error), "m", "-n", "100", "-c", "1"], 1, 90, &[("error 1", 10)]);
    let garbage = |id| if id == 50 { "garbage\n".to_owned() } else { hello_line(id) };
    fails(&[&lines(garbage), "m", "-n", "60", "-c", "1"], 5, 59, &[("protocol", 1)]);
    // An old id again; the connection is made anew, and the call after it is the first there.
    let again = |id| hello_line(if id == 50 { 49 } else { id });
    fails(&[&lines(again), "m", "-n", "60", "-c", "1"], 5, 59, &[("wrong id", 1)]);
    let twice = |id| hello_line(id).repeat(if id == 50 { 2 } else { 1 });
    let (code, _, errors) = counted(&[&lines(twice), "m", "-n", "60", "-c", "1"]);
    assert_eq!((code, errors.get("wrong id")), (5, Some(&1)), "{errors:?}");
    let truncated = |id| ok("", &hello(if id == 50 { 500 } else { id }));
    fails(&[&web(truncated, false), "m", "-n", "60", "-c", "1"], 5, 59, &[("wrong id", 1)]);
}

#[test]
fn who_never_says_anything_right_has_no_success() {
    let words = |endpoint: &str| -> Vec<String> {
        [endpoint, "m", "-n", "6", "-c", "2", "--timeout", "10s"].map(str::to_owned).to_vec()
    };
    for (answer, kind) in [
        ((|_| "garbage\n".to_owned()) as fn(u64) -> String, "protocol"),
        (|_| "[]\n".to_owned(), "protocol"),
        (|id| format!("[{}]\n", hello(id)), "protocol"),
        (|id| format!("{{\"jsonrpc\":\"1.0\",\"result\":1,\"id\":{id}}}\n"), "protocol"),
        (|id| format!("{{\"result\":1,\"id\":{id}}}\n"), "protocol"),
        (|id| hello_line(id + 1000), "wrong id"),
        (|id| format!("{HELLO}\"{id}\"}}\n"), "wrong id"),
        (|_| format!("{HELLO}null}}\n"), "wrong id"),
    ] {
        let words = words(&lines(answer));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        fails(&words, 5, 0, &[(kind, 6)]);
    }
    for (answer, code, kind) in [
        ((|_| ok("", "<html>")) as fn(u64) -> String, 5, "protocol"),
        (|_| ok("", ""), 5, "protocol"),
        (|_| "HTTP/1.1 204 No Content\r\n\r\n".to_owned(), 5, "protocol"),
        (|_| ok("", "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}"), 5, "protocol"),
        (|id| ok("", &hello(id + 1)), 5, "wrong id"),
        (|id| ok("", &hello(id)).replace("200 OK", "503 Busy"), 3, "http 503"),
        (|_| "HTTP/1.1 404 x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".into(), 3, "http 404"),
        (|id| hello_line(id), 5, "protocol"),
    ] {
        let words = words(&web(answer, false));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        fails(&words, code, 0, &[(kind, 6)]);
    }
}

#[test]
fn a_batch_must_answer_each_call_once() {
    fn batch(ids: impl Iterator<Item = u64>) -> String {
        format!("[{}]\n", ids.map(hello).collect::<Vec<_>>().join(","))
    }
    succeeds(&[&lines(|id| batch((id..id + 4).rev())), "m", "-n", "40", "-b", "4"], 40);
    let words = |endpoint: &str| -> Vec<String> {
        [endpoint, "m", "-n", "40", "-b", "4", "-c", "1"].map(str::to_owned).to_vec()
    };
    // The first is whole, and every other one lacks a call.
    for (answer, errors) in [
        ((|id| batch(id..id + 4 - u64::from(id > 1))) as fn(u64) -> String, ("protocol", 9)),
        (|id| batch((id..id + 4).map(|n| if n == 2 { 1 } else { n })), ("wrong id", 1)),
        (|id| batch(id..id + 5 - u64::from(id > 1)), ("wrong id", 1)),
    ] {
        let words = words(&lines(answer));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        fails(&words, 5, 40 - errors.1, &[errors]);
    }
}

#[test]
fn answers_may_come_in_any_order_with_other_messages_between() {
    let endpoint = server("tcp", |mut socket| {
        loop {
            let ids = [line_id(&mut socket)?, line_id(&mut socket)?, line_id(&mut socket)?];
            let aside = "{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":[1]}\n\n";
            let replies: String = ids.iter().rev().map(|id| hello_line(*id) + aside).collect();
            socket.get_mut().write_all(replies.as_bytes()).ok()?;
        }
    });
    succeeds(&[&endpoint, "m", "-n", "60", "-c", "2", "-f", "3"], 60);
}

#[test]
fn http_bodies_of_every_kind_are_read() {
    let chunked = |id| {
        let (a, b) = (HELLO, format!("{id}}}"));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{:x}\r\n{a}\r\n{:X};x=y\r\n{b}\r\n0\r\nt: x\r\n\r\n", a.len(), b.len())
    };
    succeeds(&[&web(chunked, false), "m", "-n", "40", "-c", "2"], 40);
    succeeds(&[&web(chunked, false), "m", "-n", "40", "-c", "2", "-f", "4"], 40);
    let early = |id| format!("HTTP/1.1 100 Continue\r\n\r\n{}", ok("x-id: 1\r\n", &hello(id)));
    succeeds(&[&web(early, false), "m", "-n", "40", "-c", "2"], 40);
    // A head that is never the same.
    let dated = |id| ok(&format!("date: {id}\r\n"), &hello(id));
    succeeds(&[&web(dated, false), "m", "-n", "40", "-c", "2", "-f", "4"], 40);
}

#[test]
fn a_server_that_closes_after_each_reply_is_connected_to_again() {
    let announced = |id| ok("connection: close\r\n", &hello(id));
    let until_closed = |id| format!("HTTP/1.1 200 OK\r\n\r\n{}", hello(id));
    for answer in [announced, until_closed as fn(u64) -> String] {
        let endpoint = web(answer, true);
        succeeds(&[&endpoint, "m", "-n", "40", "-c", "2"], 40);
        let ended = bench(&[&endpoint, "m", "-n", "40", "-c", "2"]);
        assert!(ended.stdout.contains("connections made anew"), "{}", ended.stdout);
    }
    // Without a word, the next call is lost on its way.
    let (code, calls, errors) = counted(&[&web(|id| ok("", &hello(id)), true), "m", "-n", "40"]);
    assert_eq!((code, calls + errors["lost"]), (3, 40), "{errors:?}");
}

/// RFC 6455 by hand: a ping before, and a reply in pieces.
#[test]
fn a_websocket_may_ping_and_fragment() {
    let endpoint = server("ws", |mut socket| {
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            socket.read_line(&mut line).ok()?;
        }
        let proof = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        let head = "HTTP/1.1 101 Hi\r\nupgrade: websocket\r\nconnection: upgrade\r\n";
        socket.get_mut().write_all(format!("{head}{proof}\r\n\r\n").as_bytes()).ok()?;
        let mut id = 0;
        while let Some((first, payload)) = masked(&mut socket) {
            match first {
                0x81 => {
                    id = id_of(std::str::from_utf8(&payload).unwrap()).unwrap();
                    socket.get_mut().write_all(b"\x89\x03you").ok()?;
                }
                // The call is answered once the ping is.
                0x8A => {
                    assert_eq!(payload, b"you");
                    let (a, b) = (HELLO, format!("{id}}}"));
                    let reply = [&[0x01, a.len() as u8], a.as_bytes(), &[0x8A, 0]].concat();
                    let rest = [&[0x80, b.len() as u8], b.as_bytes()].concat();
                    socket.get_mut().write_all(&[reply, rest].concat()).ok()?;
                }
                0x88 => return None,
                other => panic!("{other:x} is no frame that was expected"),
            }
        }
        None
    });
    succeeds(&[&endpoint, "m", "-n", "20", "-c", "2"], 20);
}

/// A short frame of a client's.
fn masked(socket: &mut BufReader<TcpStream>) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 6];
    socket.read_exact(&mut head).ok()?;
    let [first, length, key @ ..] = head;
    let mut payload = vec![0; usize::from(length & 0x7F)];
    socket.read_exact(&mut payload).ok()?;
    payload.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some((first, payload))
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
    // The last of many.
    let last = lines(|id| if id == 20 { String::new() } else { hello_line(id) });
    let words = [&last, "m", "-n", "20", "-c", "1", "--timeout", "200ms"];
    fails(&words, 4, 19, &[("timeout", 1)]);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("ws://{}", mute.local_addr().unwrap());
    refuses(&[&endpoint, "m", "--timeout", "100ms"], 4, "--timeout");
}

/// It answers 10 calls and is gone.
fn mortal() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut socket = BufReader::new(listener.accept().unwrap().0);
        for _ in 0..10 {
            let id = line_id(&mut socket).unwrap();
            socket.get_mut().write_all(hello_line(id).as_bytes()).unwrap();
        }
    });
    endpoint
}

#[test]
fn a_server_that_dies_is_told_and_the_run_ends() {
    let words = ["m", "-c", "1", "-t", "300ms", "--warm-up", "0"];
    let (code, calls, errors) = counted(&[&[&*mortal()], &words[..]].concat());
    assert_eq!((code, calls), (3, 10), "{errors:?}");
    assert!(errors["lost"] == 1 && errors["connect"] > 0, "{errors:?}");

    let (code, calls, errors) = counted(&[&mortal(), "m", "-c", "1", "-n", "100"]);
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
fn who_cannot_be_reached_is_told_at_once() {
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

#[test]
fn load_stays_on_this_machine() {
    for endpoint in ["http://example.org", "ws://10.0.0.1:80/x", "tcp://0.0.0.0:1", "tcp://[::2]:1"]
    {
        refuses(&[endpoint, "m"], 2, "--allow-remote");
        refuses(&["tcp://127.0.0.1:1", "m", "--vs", endpoint], 2, "--allow-remote");
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused() {
    let tcp = "tcp://127.0.0.1:1";
    for (words, remedy) in [
        (&[][..], "Usage:"),
        (&[tcp], "<METHOD>"),
        (&["stdio:", "m"], "exec:command"),
        (&["memory:x", "m"], "unix:/path"),
        (&[tcp, "m", "--vs", "a=stdio:"], "exec:command"),
        (&[tcp, "m", "--vs", "localhost:80"], "http://host:port"),
        (&[tcp, "m", "-n", "10", "-t", "1s"], "cannot be used with"),
        (&[tcp, "m", "-n", "10", "-b", "3"], "a multiple of --batch"),
        (&[tcp, "m", "-c", "0"], "at least 1"),
        (&[tcp, "m", "-t", "soon"], "500ms"),
        (&[tcp, "m", "--rate", "fast"], "no count"),
        (&[tcp, "m", "--format", "xml"], "json"),
        (&[tcp, "m", "--expect", "{"], "--expect is not JSON"),
        (&[tcp, "m", "--expect", "@/no/such/file"], "/no/such/file"),
        (&[tcp, "m", "1", "a=b"], "all by position or all by name"),
        (&[tcp, "m", "-H", "a: b"], "-H is for http:// and ws://"),
    ] {
        refuses(words, 2, remedy);
    }
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

#[test]
fn ctrl_c_prints_what_was_measured() {
    let (called, is_called) = channel();
    let endpoint = server("tcp", move |mut socket| {
        loop {
            let id = line_id(&mut socket)?;
            socket.get_mut().write_all(hello_line(id).as_bytes()).ok()?;
            if id == 100 {
                called.send(()).ok()?;
            }
        }
    });
    let words = ["bench", &endpoint, "m", "-c", "1", "-t", "10m", "--warm-up", "0"];
    let bench = antiphon().args(words).stdout(Stdio::piped()).spawn().unwrap();
    is_called.recv_timeout(PATIENCE).unwrap();
    Process::of(&bench).signal(Signal::INT);
    let output = bench.wait_with_output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{table}");
    assert!(table.contains("calls/s") && table.contains("none"), "{table}");
}

#[test]
fn help_teaches() {
    let help = bench(&["--help"]);
    assert_eq!((help.code, &*help.stderr), (Some(0), ""));
    for part in ["Examples:\n  antiphon bench", "--rate", "exit code 5", "Ctrl-C"] {
        assert!(help.stdout.contains(part), "{part} is missing: {}", help.stdout);
    }
    let script = run(antiphon().args(["completions", "bash"]), b"");
    assert!(script.stdout.contains("--in-flight"));
}
