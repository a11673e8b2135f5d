//! Ctrl-C during a script.

use std::process::Stdio;
use std::sync::mpsc::channel;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{FakeServer, Framing, PATIENCE, Process, antiphon, methods, result};

#[test]
fn ctrl_c_cancels_the_call_and_ends_the_session() {
    let (called, is_called) = channel();
    let respond = move |message: &Value| {
        if message["method"] == "work" {
            called.send(()).unwrap();
            return Vec::new();
        }
        result(message, "{}")
    };
    let server = FakeServer::start(Framing::Header, respond);
    let endpoint = server.endpoint();
    let child = antiphon()
        .args(["session", "--dialect", "lsp", &endpoint, "work", "never"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    is_called.recv_timeout(PATIENCE).unwrap();
    Process::of(&child).signal(Signal::INT);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let expected = ["initialize", "initialized", "work", "$/cancelRequest", "shutdown", "exit"];
    assert_eq!(methods(&server.record()), expected);
}
