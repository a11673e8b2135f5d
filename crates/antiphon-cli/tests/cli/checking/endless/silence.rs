//! Servers that accept connections and send nothing, or almost nothing.

use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::{Peer, check, finds_no_way, finds_nobody, listen, right_until, tells, upgrade};
use crate::checking::mutants::fault::Fault;
use crate::checking::mutants::served::{MutantServer, Wire};
use crate::checking::side_by_side;

#[test]
fn a_server_that_accepts_and_sends_nothing() {
    let schemes = ["http", "tcp+line", "tcp+header", "tcp+values"];
    side_by_side(
        &schemes
            .map(|scheme| (scheme, move || finds_nobody(&Peer::start(listen).endpoint(scheme)))),
    );
    finds_no_way(&Peer::start(listen).endpoint("ws"));
}

/// The timeout of a response limits the TLS handshake too.
#[test]
fn one_that_accepts_and_never_speaks_tls() {
    for scheme in ["https", "wss", "tls+line"] {
        let peer = Peer::start(listen);
        let ended = check(&peer.endpoint(scheme), &["--insecure"]);
        assert_eq!((ended.code, &*ended.stdout), (Some(3), ""), "{ended:?}");
        assert!(ended.stderr.contains("cannot connect"), "{ended:?}");
    }
}

#[test]
fn a_websocket_that_sends_nothing_after_the_handshake() {
    let peer = Peer::start(|socket| upgrade(socket).and_then(|()| listen(socket)));
    finds_nobody(&peer.endpoint("ws"));
}

/// It echoes every message, which is not a response.
#[test]
fn a_process_that_answers_nothing() {
    let commands = ["sleep 100", "cat"];
    side_by_side(
        &commands.map(|command| (command, move || finds_nobody(&format!("exec:{command}")))),
    );
}

/// It does not read, so the requests pile up.
#[test]
fn one_that_stops_reading() {
    let hold = |_: &TcpStream| -> io::Result<()> {
        // Longer than any run.
        thread::sleep(Duration::from_secs(60));
        Ok(())
    };
    let peer = Peer::start(right_until(60, hold));
    let judged = tells(&check(&peer.endpoint("tcp+line"), &[]), "the server is gone");
    assert!(judged.count("passed") > 10, "{}", judged.findings());
    let left = judged.case("stream-line-in-pieces");
    assert_eq!(left["verdict"], "not-run", "{left:#}");
}

#[test]
fn one_that_hangs_from_some_message_on() {
    let wires = [("lines", Wire::Lines), ("http", Wire::Http), ("ws", Wire::Ws)];
    side_by_side(&wires.map(|(name, wire)| {
        let hangs = move || {
            let served = MutantServer::start(wire, Some(Fault::HangsAfterAWhile));
            let judged = tells(&check(&served.endpoint(), &[]), "the server is gone");
            assert!(judged.count("passed") > 10, "{}", judged.findings());
        };
        (name, hangs)
    }));
}

/// Each response is right, but arrives after the timeout.
#[test]
fn one_that_answers_drop_by_drop() {
    let drip = |mut socket: &TcpStream| {
        let answer = br#"{"jsonrpc":"2.0","result":19,"id":"antiphon1"}"#;
        loop {
            for byte in answer.iter().chain(b"\n") {
                socket.write_all(&[*byte])?;
                thread::sleep(Duration::from_millis(100));
            }
        }
    };
    let peer = Peer::start(drip);
    finds_nobody(&peer.endpoint("tcp+line"));
}
