//! Valid replies, and the error kinds of invalid ones.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use super::servers::{HELLO, hello, hello_line, id_of, line_id, lines, ok, server, web};
use super::{counted, fails, succeeds};
use crate::support::Server;

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
fn an_unexpected_result_is_an_error() {
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", "");
    for scheme in ["http", "tcp"] {
        let call = [server.endpoint(scheme), "subtract", "42", "23", "--expect", "18", "-n", "32"];
        fails(&call, 5, 0, &[("wrong result", 32)]);
        fails(&[&call[..], &["-b", "4"]].concat(), 5, 0, &[("wrong result", 32)]);
    }
    // Without --expect the results may differ.
    let counts = lines(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":[{id}]}}\n"));
    succeeds(&[&counts, "m", "-n", "100"], 100);
    let words = [&counts, "m", "-n", "10", "-c", "1", "--expect", "[3]"];
    fails(&words, 5, 1, &[("wrong result", 9)]);
}

/// The first replies are valid, so that the others are compared with a template.
#[test]
fn an_invalid_reply_among_valid_ones_is_found() {
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
    // An id occurs again: the connection is reopened, and the next call is the first on it.
    let again = |id| hello_line(if id == 50 { 49 } else { id });
    fails(&[&lines(again), "m", "-n", "60", "-c", "1"], 5, 59, &[("wrong id", 1)]);
    let twice = |id| hello_line(id).repeat(if id == 50 { 2 } else { 1 });
    let (code, _, errors) = counted(&[&lines(twice), "m", "-n", "60", "-c", "1"]);
    assert_eq!((code, errors.get("wrong id")), (5, Some(&1)), "{errors:?}");
    let truncated = |id| ok("", &hello(if id == 50 { 500 } else { id }));
    fails(&[&web(truncated, false), "m", "-n", "60", "-c", "1"], 5, 59, &[("wrong id", 1)]);
}

#[test]
fn a_server_with_only_invalid_replies_has_no_successes() {
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
fn a_batch_must_have_one_response_per_call() {
    fn batch(ids: impl Iterator<Item = u64>) -> String {
        format!("[{}]\n", ids.map(hello).collect::<Vec<_>>().join(","))
    }
    succeeds(&[&lines(|id| batch((id..id + 4).rev())), "m", "-n", "40", "-b", "4"], 40);
    let words = |endpoint: &str| -> Vec<String> {
        [endpoint, "m", "-n", "40", "-b", "4", "-c", "1"].map(str::to_owned).to_vec()
    };
    // The first batch is complete, and some others have a response missing, repeated or extra.
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
fn replies_may_arrive_in_any_order_with_other_messages_between() {
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
fn http_bodies_of_every_encoding_are_read() {
    let chunked = |id| {
        let (a, b) = (HELLO, format!("{id}}}"));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{:x}\r\n{a}\r\n{:X};x=y\r\n{b}\r\n0\r\nt: x\r\n\r\n", a.len(), b.len())
    };
    succeeds(&[&web(chunked, false), "m", "-n", "40", "-c", "2"], 40);
    succeeds(&[&web(chunked, false), "m", "-n", "40", "-c", "2", "-f", "4"], 40);
    let early = |id| format!("HTTP/1.1 100 Continue\r\n\r\n{}", ok("x-id: 1\r\n", &hello(id)));
    succeeds(&[&web(early, false), "m", "-n", "40", "-c", "2"], 40);
    // The response head differs each time.
    let dated = |id| ok(&format!("date: {id}\r\n"), &hello(id));
    succeeds(&[&web(dated, false), "m", "-n", "40", "-c", "2", "-f", "4"], 40);
}

/// The server sends a ping first and then a fragmented reply (RFC 6455).
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
                // The reply follows the pong.
                0x8A => {
                    assert_eq!(payload, b"you");
                    let (a, b) = (HELLO, format!("{id}}}"));
                    let reply = [&[0x01, a.len() as u8], a.as_bytes(), &[0x8A, 0]].concat();
                    let rest = [&[0x80, b.len() as u8], b.as_bytes()].concat();
                    socket.get_mut().write_all(&[reply, rest].concat()).ok()?;
                }
                0x88 => return None,
                other => panic!("unexpected frame {other:x}"),
            }
        }
        None
    });
    succeeds(&[&endpoint, "m", "-n", "20", "-c", "2"], 20);
}

/// Reads a short frame from a client.
fn masked(socket: &mut BufReader<TcpStream>) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 6];
    socket.read_exact(&mut head).ok()?;
    let [first, length, key @ ..] = head;
    let mut payload = vec![0; usize::from(length & 0x7F)];
    socket.read_exact(&mut payload).ok()?;
    payload.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some((first, payload))
}
