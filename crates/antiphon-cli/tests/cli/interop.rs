//! Clients of other projects against `antiphon serve`, and `antiphon call` against their servers.
//!
//! The scripts are in `interop/`. If a dependency is missing, the test fails in CI and elsewhere prints
//! what to install.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{Ended, Scratch, Server, antiphon, missing, run, workspace};

const SETUP: &str = "run interop/setup";

pub(crate) fn script(name: &str) -> PathBuf {
    workspace().join("interop").join(name)
}

/// Returns whether `program --version` succeeds.
pub(crate) fn runs(program: &str) -> bool {
    starts(program, "--version")
}

/// Like `runs`, with another argument for the version.
fn starts(program: &str, version: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(version).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns a Node command for a script of `interop/`, if both are installed.
pub(crate) fn node(name: &str) -> Option<Command> {
    if !runs("node") || !script("node_modules/.installed").exists() {
        missing("node, or what the scripts need of npm,", SETUP);
        return None;
    }
    let mut command = Command::new("node");
    command.arg(script(name));
    Some(command)
}

/// Returns a Python command for a script of `interop/`, if both are installed.
pub(crate) fn python(name: &str) -> Option<Command> {
    if !script(".venv/.installed").exists() {
        missing("python, or what the scripts need of pip,", SETUP);
        return None;
    }
    let mut command = Command::new(script(".venv/bin/python"));
    command.arg(script(name));
    Some(command)
}

/// Runs a script that prints a line `ok` per assertion.
#[track_caller]
fn passes(check: &mut Command, assertions: usize) {
    passes_with(check, b"", assertions);
}

/// Like `passes`, with input on stdin.
#[track_caller]
fn passes_with(check: &mut Command, input: &[u8], assertions: usize) {
    let Ended { code, stdout, stderr } = run(check, input);
    assert_eq!(code, Some(0), "{stdout}\n{stderr}");
    let held = stdout.lines().filter(|line| line.starts_with("ok")).count();
    assert!(held >= assertions, "only {held} assertions were made:\n{stdout}");
}

/// Validates the OpenRPC document against the official meta-schemas with ajv.
#[test]
fn openrpc() {
    let Some(mut check) = node("openrpc.mjs") else { return };
    let server = Server::start("http://127.0.0.1:0", "");
    let told = run(antiphon().args(["call", server.endpoint("http"), "rpc.discover"]), b"");
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    passes_with(&mut check, told.stdout.as_bytes(), 6);
}

#[test]
fn curl() {
    if !runs("curl") {
        return missing("curl", "install curl");
    }
    let mut check = Command::new(script("curl.sh"));
    passes(check.arg("http://127.0.0.1:0").arg(antiphon().get_program()), 40);
}

/// Uses HTTP/2 and HTTP/1.1.
#[test]
fn curl_by_tls() {
    if !runs("curl") {
        return missing("curl", "install curl");
    }
    let mut check = Command::new(script("curl.sh"));
    passes(check.arg("https://127.0.0.1:0").arg(antiphon().get_program()), 45);
}

#[test]
fn openssl() {
    if !starts("openssl", "version") {
        return missing("openssl", "install openssl");
    }
    passes(Command::new(script("openssl.sh")).arg(antiphon().get_program()), 12);
}

#[test]
fn ws_of_node_by_tls() {
    for scheme in ["https", "wss"] {
        let Some(mut check) = node("ws_client.mjs") else { return };
        let (server, scratch) = secure(&format!("{scheme}://127.0.0.1:0"));
        check.env("NODE_EXTRA_CA_CERTS", scratch.path("cert.pem"));
        passes(check.arg(server.endpoint(scheme)), 14);
    }
}

/// Starts a server with a self-signed certificate in `cert.pem`.
fn secure(endpoint: &str) -> (Server, Scratch) {
    let scratch = Scratch::new();
    let flag = format!("--tls-self-signed={}", scratch.path("cert.pem").display());
    (Server::start(endpoint, &flag), scratch)
}

#[test]
fn ws_of_node() {
    let Some(mut check) = node("ws_client.mjs") else { return };
    let server = Server::start("http://127.0.0.1:0", "");
    passes(check.arg(server.endpoint("http")), 14);
}

#[test]
fn ws_of_node_on_a_port_of_its_own() {
    let Some(mut check) = node("ws_client.mjs") else { return };
    let server = Server::start("ws://127.0.0.1:0", "");
    passes(check.arg(server.endpoint("ws")), 14);
}

#[test]
fn websockets_of_python() {
    let Some(mut check) = python("ws_client.py") else { return };
    let server = Server::start("http://127.0.0.1:0", "");
    passes(check.arg(server.endpoint("http")), 12);
}

#[test]
fn prometheus_of_python() {
    let Some(mut check) = python("metrics.py") else { return };
    let server = Server::start("http://127.0.0.1:0", "--metrics");
    passes(check.arg(server.endpoint("http")), 12);
}

#[test]
fn vscode_jsonrpc_as_client() {
    for endpoint in ["stdio+header:", "stdio:"] {
        let Some(mut check) = node("vscode_client.mjs") else { return };
        passes(check.arg(antiphon().get_program()).args(["serve", endpoint]), 16);
    }
}

#[test]
fn vscode_jsonrpc_as_server() {
    let Some(_) = node("vscode_server.mjs") else { return };
    let endpoint = format!("exec+header:node '{}'", script("vscode_server.mjs").display());
    answers(&endpoint);
    // The server calls the client, which has no such method, and returns that error.
    let ended = call(&[&endpoint, "ask"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
}

#[test]
fn jayson_over_http() {
    let Some(mut server) = node("jayson_server.mjs") else { return };
    let server = Foreign::start(server.args(["http", "0"]));
    answers(&format!("http://127.0.0.1:{}", server.port));
    batches(&format!("http://127.0.0.1:{}", server.port));
}

/// Its responses have no newline between them.
#[test]
fn jayson_over_tcp() {
    let Some(mut server) = node("jayson_server.mjs") else { return };
    let server = Foreign::start(server.args(["tcp", "0"]));
    answers(&format!("tcp://127.0.0.1:{}", server.port));
    batches(&format!("tcp://127.0.0.1:{}", server.port));
}

/// The certificate is generated by openssl.
#[test]
fn jayson_by_tls() {
    if !starts("openssl", "version") {
        return missing("openssl", "install openssl");
    }
    let scratch = Scratch::new();
    let (cert, key) = (scratch.path("cert.pem"), scratch.path("key.pem"));
    let subject = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=jayson \
                   -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    let mut make = Command::new("openssl");
    make.arg("req").args(subject.split_whitespace());
    let made = run(make.arg("-keyout").arg(&key).arg("-out").arg(&cert), b"");
    assert_eq!(made.code, Some(0), "{made:?}");
    for kind in ["https", "tls"] {
        let Some(mut server) = node("jayson_server.mjs") else { return };
        let server = Foreign::start(server.args([kind, "0"]).arg(&cert).arg(&key));
        let endpoint = format!("{kind}://127.0.0.1:{}", server.port);
        let mut call = antiphon();
        call.args(["call", &endpoint, "subtract", "42", "23", "--cacert"]).arg(&cert);
        let ended = run(&mut call, b"");
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "19\n"), "{ended:?}");
        let refused = run(antiphon().args(["call", &endpoint, "subtract", "42", "23"]), b"");
        assert_eq!(refused.code, Some(3), "{refused:?}");
    }
}

#[test]
fn jsonrpcserver_of_python() {
    let Some(mut server) = python("jsonrpcserver_http.py") else { return };
    let server = Foreign::start(server.arg("0"));
    answers(&format!("http://127.0.0.1:{}", server.port));
    batches(&format!("http://127.0.0.1:{}", server.port));
}

/// bcoin answers every call in 1.0, with the status 200.
#[test]
fn bcoin() {
    let Some(mut node) = node("bcoin_node.mjs") else { return };
    let node = Foreign::start(node.args(["0", "pa55word"]));
    let url = format!("http://127.0.0.1:{}", node.port);
    let user = ["--user", "x:pa55word"];
    for (dialect, version) in [("bitcoin", "1.0"), ("bitcoin", "2.0"), ("v1", "1.0"), ("v1", "2.0")]
    {
        let flags = ["--dialect", dialect, "--jsonrpc", version, &url];
        let as_user = |words: &[&str], user: &[&str]| call(&[&flags, words, user].concat());
        let count = as_user(&["getblockcount"], &user);
        assert_eq!((count.code, &*count.stdout), (Some(0), "0\n"), "{count:?}");
        let difficulty = as_user(&["getdifficulty"], &user);
        assert_eq!(difficulty.stdout, "4.6565423739069247e-10\n", "{difficulty:?}");
        for (words, code) in [(&["getblockhash", "7"][..], "-8"), (&["unknown"], "-32601")] {
            let ended = as_user(words, &user);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.stderr.contains(code), "{ended:?}");
        }
        for wrong in [&["--user", "x:wrong"][..], &[]] {
            let refused = as_user(&["getblockcount"], wrong);
            assert_eq!(refused.code, Some(3), "{refused:?}");
            assert!(refused.stderr.contains("401"), "{refused:?}");
        }
        let mut batch = antiphon();
        batch.arg("batch").args(flags).args(user);
        let ended = run(&mut batch, b"{\"method\":\"getblockcount\"}\n{\"method\":\"unknown\"}");
        assert_eq!(ended.stdout.lines().count(), 2, "{ended:?}");
        assert!(ended.stdout.contains(r#""result":0"#), "{ended:?}");
        assert!(ended.stdout.contains("-32601"), "{ended:?}");
    }
    // In plain JSON-RPC, the remedy is named.
    let plain = call(&[&[&*url, "getblockcount"][..], &user].concat());
    assert_eq!(plain.code, Some(5), "{plain:?}");
    assert!(plain.stderr.contains("--dialect v1"), "{plain:?}");
}

#[test]
fn clangd() {
    if !runs("clangd") {
        return missing("clangd", SETUP);
    }
    let ended = call(&[
        "exec+header:clangd --log=error",
        "initialize",
        "processId:=null",
        "rootUri:=null",
        "capabilities:={}",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["serverInfo"]["name"], "clangd");
    assert!(result["capabilities"]["hoverProvider"].as_bool().unwrap_or_default(), "{result}");
}

fn call(words: &[&str]) -> Ended {
    run(antiphon().arg("call").args(words), b"")
}

/// Asserts the calls that every one of these servers supports.
#[track_caller]
fn answers(endpoint: &str) {
    for (words, result) in [
        (&["subtract", "42", "23"][..], "19\n"),
        (&["subtract", "minuend:=42", "subtrahend:=23"], "19\n"),
        (&["sum", "1", "2", "4"], "7\n"),
    ] {
        let ended = call(&[&[endpoint], words].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(0), result), "{ended:?}");
    }
    let ended = call(&[endpoint, "fail", "-32050", "out of tea", "{\"cups\":0}"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    for part in ["-32050", "out of tea", "cups"] {
        assert!(ended.stderr.contains(part), "{part} is missing: {}", ended.stderr);
    }
    let unknown = call(&[endpoint, "no_such_method"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("-32601"), "{unknown:?}");
    let notified = run(antiphon().args(["notify", endpoint, "sum", "1"]), b"");
    assert_eq!((notified.code, &*notified.stdout), (Some(0), ""), "{notified:?}");
}

#[track_caller]
fn batches(endpoint: &str) {
    let calls = "{\"method\":\"sum\",\"params\":[1,2]}\n{\"method\":\"subtract\",\"params\":[3,2]}";
    let ended = run(antiphon().args(["batch", endpoint]), calls.as_bytes());
    let responses: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(
        responses,
        [r#"{"jsonrpc":"2.0","result":3,"id":1}"#, r#"{"jsonrpc":"2.0","result":1,"id":2}"#],
        "{ended:?}"
    );
}

/// A server that prints `listening PORT`, killed when it is dropped.
pub(crate) struct Foreign {
    child: Child,
    pub(crate) port: u16,
}

impl Foreign {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening ").and_then(|port| port.parse().ok());
        Self { child, port: port.unwrap_or_else(|| panic!("{line:?} names no port")) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
