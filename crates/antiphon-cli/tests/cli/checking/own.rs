//! Antiphon's own server, on every wire: no failure, no warning, no different choice. One test per wire.

use super::judged;
use crate::support::{Memory, Scratch, Server};

/// Runs every case that this endpoint can express.
fn over(endpoint: &str, flags: &[&str]) {
    let judged = judged(&[&[endpoint], flags].concat());
    let wrong = ["failed", "warned", "differs"].map(|verdict| judged.count(verdict));
    assert_eq!(wrong, [0, 0, 0], "{}", judged.findings());
    assert_eq!(judged.code, Some(0));
    assert!(judged.count("passed") > 200, "only {} cases are run", judged.count("passed"));
    let lacking = judged.report["cases"].as_array().unwrap().iter().find(|case| {
        case["reason"].as_str().is_some_and(|reason| reason.contains("of the test service"))
    });
    assert!(lacking.is_none(), "the service lacks a method: {lacking:?}");
}

fn served(endpoint: &str, scheme: &str) {
    let server = Server::start(endpoint, "");
    over(server.endpoint(scheme), &[]);
}

#[test]
fn http() {
    served("http://127.0.0.1:0", "http");
}

#[test]
fn http_as_a_bitcoin_node() {
    let server = Server::start("http://127.0.0.1:0", "--dialect bitcoin");
    over(server.endpoint("http"), &["--profile", "bitcoin"]);
}

/// Bitcoin nodes serve only HTTP, but the dialect is the same elsewhere. The calls of the server have version 1.0.
#[test]
fn tcp_as_a_bitcoin_node() {
    let server = Server::start("tcp://127.0.0.1:0", "--dialect bitcoin");
    for scheme in ["tcp+line", "tcp+header"] {
        let endpoint = server.endpoint("tcp").replace("tcp:", &format!("{scheme}:"));
        over(&endpoint, &["--profile", "bitcoin", "--skip", "reverse"]);
    }
}

#[test]
fn websocket_on_the_http_port() {
    let server = Server::start("http://127.0.0.1:0", "");
    over(&server.endpoint("http").replace("http:", "ws:"), &[]);
}

#[test]
fn websocket_alone() {
    served("ws://127.0.0.1:0", "ws");
}

#[test]
fn tcp_lines() {
    served("tcp+line://127.0.0.1:0", "tcp+line");
}

#[test]
fn tcp_headers() {
    served("tcp+header://127.0.0.1:0", "tcp+header");
}

#[test]
fn tcp_values() {
    served("tcp+values://127.0.0.1:0", "tcp+values");
}

/// The server detects the framing.
#[test]
fn tcp_detected() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    for scheme in ["tcp+line", "tcp+header"] {
        over(&server.endpoint("tcp").replace("tcp:", &format!("{scheme}:")), &[]);
    }
}

#[test]
fn unix_detected() {
    let scratch = Scratch::new();
    let server = Server::start(&format!("unix:{}", scratch.path("a.sock").display()), "");
    for scheme in ["unix+line", "unix+header"] {
        over(&server.endpoint("unix").replace("unix:", &format!("{scheme}:")), &[]);
    }
}

#[test]
fn stdio_lines() {
    over(&child("exec:", "stdio:"), &[]);
}

#[test]
fn stdio_headers_detected() {
    over(&child("exec+header:", "stdio:"), &[]);
}

#[test]
fn stdio_headers() {
    over(&child("exec+header:", "stdio+header:"), &[]);
}

fn child(scheme: &str, served: &str) -> String {
    format!("{scheme}'{}' serve {served}", env!("CARGO_BIN_EXE_antiphon"))
}

#[test]
fn https_and_its_websockets() {
    secure("https://127.0.0.1:0", &["https", "wss"]);
}

#[test]
fn secure_websocket_alone() {
    secure("wss://127.0.0.1:0", &["wss"]);
}

#[test]
fn tls() {
    secure("tls://127.0.0.1:0", &["tls+line", "tls+header"]);
}

/// Checks a server with a self-signed certificate over these schemes.
fn secure(endpoint: &str, schemes: &[&str]) {
    let scratch = Scratch::new();
    let file = scratch.path("cert.pem").display().to_string();
    let server = Server::start(endpoint, &format!("--tls-self-signed={file}"));
    let (_, address) = server.endpoints()[0].split_once(':').unwrap();
    for scheme in schemes {
        over(&format!("{scheme}:{address}"), &["--cacert", &file]);
    }
}

#[test]
fn in_process() {
    let memory = Memory::start();
    // The test sets the framing of the socket itself.
    let endpoint = format!("unix+header:{}", memory.path().display());
    over(&endpoint, &["--skip", "streams"]);
}
