//! Servers that flood.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use super::{Peer, check, finds_no_way, finds_nobody, flood, head, right_until, tells, upgrade};
use crate::checking::mutants::reference::Reference;

const NEWS: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"news\"}\n";

/// Sends the first text once, and the second forever.
fn says(
    begin: &'static [u8],
    endless: &'static [u8],
) -> impl Fn(&TcpStream) -> io::Result<()> + Send + Sync {
    move |mut socket| {
        socket.write_all(begin)?;
        flood(socket, endless)
    }
}

#[test]
fn endless_lines() {
    for line in
        [NEWS, b"hello\n", b"\n", b"[]\n", b"{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":null}\n"]
    {
        let peer = Peer::start(says(b"", line));
        finds_nobody(&peer.endpoint("tcp+line"));
    }
}

#[test]
fn one_endless_line() {
    for scheme in ["tcp+line", "tcp+values"] {
        let peer = Peer::start(says(b"[", b"1,"));
        finds_nobody(&peer.endpoint(scheme));
    }
}

#[test]
fn endless_headers() {
    for (begin, endless) in [
        (&b"Content-Length: 9999999999999\r\n\r\n"[..], &b"["[..]),
        (b"", b"X-More: yes\r\n"),
        (b"", b"Content-Length: 2\r\n\r\n{}"),
    ] {
        let peer = Peer::start(says(begin, endless));
        finds_nobody(&peer.endpoint("tcp+header"));
    }
}

#[test]
fn endless_answers_of_http() {
    for (begin, endless) in [
        (&b"HTTP/1.1 200 OK\r\n\r\n"[..], &b"[[[["[..]),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n", b"["),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"4\r\n[[[[\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"x-more: yes\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"hello"),
    ] {
        let peer =
            Peer::start(move |socket| head(socket).and_then(|()| says(begin, endless)(socket)));
        finds_nobody(&peer.endpoint("http"));
    }
}

#[test]
fn endless_frames() {
    for (begin, endless) in [
        (&b""[..], &b"\x81\x02{}"[..]),
        (b"", b"\x89\x02hi"),
        (b"", b"\x8A\x00"),
        (b"\x01\x01[", b"\x00\x02[["),
        (b"\x81\x7F\x00\x00\x7F\xFF\xFF\xFF\xFF\xFF", b"["),
    ] {
        let peer =
            Peer::start(move |socket| upgrade(socket).and_then(|()| says(begin, endless)(socket)));
        finds_nobody(&peer.endpoint("ws"));
    }
}

#[test]
fn an_endless_answer_to_the_handshake() {
    let peer = Peer::start(says(b"HTTP/1.1 101 Switching Protocols\r\n", b"x-more: yes\r\n"));
    finds_no_way(&peer.endpoint("ws"));
}

/// Each response follows thousands of notifications.
#[test]
fn much_news_before_each_answer() {
    let reference = Reference::new(None);
    let peer = Peer::start(move |mut socket| {
        for line in BufReader::new(socket).split(b'\n') {
            socket.write_all(&NEWS.repeat(2000))?;
            for answer in reference.answers(&line?).unwrap_or_default() {
                socket.write_all(format!("{answer}\n").as_bytes())?;
            }
        }
        Ok(())
    });
    tells(&check(&peer.endpoint("tcp+line"), &[]), "the server floods");
}

/// It is right for a while, so the flood is a finding.
#[test]
fn a_flood_from_some_message_on() {
    let peer = Peer::start(right_until(60, |socket| flood(socket, NEWS)));
    let judged = tells(&check(&peer.endpoint("tcp+line"), &[]), "the server floods");
    assert!(judged.count("passed") > 10, "{}", judged.findings());
}

#[test]
fn an_endless_line_from_some_message_on() {
    let peer = Peer::start(right_until(60, |socket| flood(socket, b"[1,")));
    let judged = tells(&check(&peer.endpoint("tcp+line"), &[]), "the server is gone");
    assert!(judged.count("passed") > 10, "{}", judged.findings());
}
