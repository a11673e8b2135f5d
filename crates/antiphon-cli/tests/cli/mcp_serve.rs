//! `antiphon mcp serve`: the services in front of which it stands, and the errors of its command line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::ethereum_nodes::{Node, part};
use crate::interop::{node, script};
use crate::support::{Ended, Scratch, Server, antiphon, run};

/// `antiphon mcp serve` on stdio, whose session has begun. It is killed at the end.
struct Mcp {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u32,
}

impl Mcp {
    fn start(words: &[&str]) -> Self {
        let mut child = antiphon()
            .args(["mcp", "serve"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut mcp = Self { child, stdin, stdout: BufReader::new(stdout), id: 0 };
        let initialized = mcp.call(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(initialized["protocolVersion"], "2025-11-25", "{initialized}");
        mcp.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        mcp
    }

    fn send(&mut self, message: &str) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// Returns the result of a call. Each line of stdout must be a message.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.call_text(method, &params.to_string())
    }

    fn call_text(&mut self, method: &str, params: &str) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
        }
    }

    fn tool(&mut self, name: &str, arguments: &str) -> Value {
        self.call_text("tools/call", &format!(r#"{{"name":"{name}","arguments":{arguments}}}"#))
    }

    fn tool_names(&mut self) -> Vec<String> {
        let list = self.call("tools/list", &json!({}));
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        list["tools"].as_array().unwrap().iter().map(name).collect()
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// The demonstration service as a child process.
fn demo() -> String {
    format!("exec:{} serve stdio:", antiphon().get_program().to_str().unwrap())
}

#[test]
fn the_methods_of_a_service_are_tools_on_stdio() {
    let mut mcp =
        Mcp::start(&["--from", &demo(), "--deny", "notify_*,panic", "--read-only", "sum"]);
    let names = mcp.tool_names();
    assert!(names.contains(&"subtract".to_owned()) && !names.contains(&"panic".to_owned()));
    assert!(!names.iter().any(|name| name.starts_with("notify_")), "{names:?}");
    let list = mcp.call("tools/list", &json!({}));
    let is_read_only = |name: &str| {
        let tools = list["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"]["readOnlyHint"] == true
    };
    assert!(is_read_only("sum") && !is_read_only("echo"));
    let echoed = mcp.tool("echo", r#"{"params":[18446744073709551616,1.50]}"#);
    assert_eq!(text(&echoed), "[18446744073709551616,1.50]");
    let failed = mcp.tool("fail", r#"{"code":-32050,"message":"no","data":[1.50]}"#);
    assert_eq!(failed["isError"], true);
    assert_eq!(text(&failed), "error -32050: no\ndata: [1.50]");
    let read = json!({ "uri": "subscription:///subscribe_ticks/1" });
    let ticks = mcp.call("resources/read", &read);
    assert!(ticks["contents"][0]["text"].as_str().unwrap().parse::<u64>().is_ok(), "{ticks}");
}

#[test]
fn a_lost_service_is_a_tool_error_and_is_called_again_when_it_is_back() {
    let scratch = Scratch::new();
    let endpoint = format!("unix:{}", scratch.path("demo.sock").display());
    let service = Server::start(&endpoint, "");
    let mut mcp = Mcp::start(&["--from", &endpoint, "--timeout", "1s"]);
    assert_eq!(text(&mcp.tool("subtract", r#"{"minuend":42,"subtrahend":23}"#)), "19");
    drop(service);
    let failed = mcp.tool("subtract", r#"{"minuend":42,"subtrahend":23}"#);
    assert_eq!(failed["isError"], true, "{failed}");
    assert!(text(&failed).starts_with("the call failed: "), "{failed}");
    let _ = std::fs::remove_file(scratch.path("demo.sock"));
    let _service = Server::start(&endpoint, "");
    // The first attempts may still find the old connection.
    let is_back =
        (0..20).any(|_| text(&mcp.tool("subtract", r#"{"minuend":42,"subtrahend":23}"#)) == "19");
    assert!(is_back, "the service is not called again");
}

fn refused(words: &[&str]) -> Ended {
    run(antiphon().args(["mcp", "serve"]).args(words), b"")
}

#[test]
fn an_error_names_the_value_and_the_remedy() {
    let scratch = Scratch::new();
    let schema = |name: &str, text: &str| {
        std::fs::write(scratch.path(name), text).unwrap();
        scratch.path(name).to_str().unwrap().to_owned()
    };
    let info = r#""openrpc":"1.3.2","info":{"title":"t","version":"1"}"#;
    let no_schema = format!(
        r#"{{{info},"methods":[{{"name":"a","params":[]}},{{"name":"b","params":[{{"name":"p"}}]}}]}}"#
    );
    let broken = schema("broken.json", &no_schema);
    let empty = schema("empty.json", &format!(r#"{{{info},"methods":[]}}"#));
    let lost = schema(
        "lost.json",
        &format!(
            r##"{{{info},"methods":[{{"name":"m","params":[{{"name":"p","schema":{{"$ref":"#/x"}}}}]}}]}}"##
        ),
    );
    let (demo, silent) = (demo(), format!("{} --deny-method rpc.discover", demo()));
    for (words, code, expected) in [
        (&["--from", &silent][..], 1, "use --schema FILE"),
        (&["--from", &demo, "--allow", "nothing.*"], 2, "--allow and --deny"),
        (
            &["--from", &demo, "--schema", &broken],
            2,
            "methods[1].params[0]: missing field `schema`",
        ),
        (&["--from", &demo, "--schema", &empty], 2, "describes no method"),
        (&["--from", &demo, "--schema", &lost], 2, "the param `p` of the method `m`"),
        (&["--from", &demo, "--schema", &lost], 2, "--deny METHOD"),
        (&["--from", &demo, "--schema", "/nowhere.json"], 2, "/nowhere.json"),
        (&["--from", &demo, "--rename", "sum"], 2, "METHOD=TOOL"),
        (&["--from", &demo, "--prefix", "a b"], 2, "`a b` is not a name of a tool"),
        (&["--from", "tcp://127.0.0.1:1"], 3, "tcp://127.0.0.1:1"),
        (&["--from", &demo, "exec:cat"], 2, "stdio:"),
        (&[], 2, "--from <ENDPOINT>"),
    ] {
        let ended = refused(words);
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{words:?}");
    }
}

#[test]
fn the_end_of_stdin_ends_the_server() {
    let ended = refused(&["--from", &demo()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.stderr);
}

/// Runs the client of the Python SDK.
#[track_caller]
fn python(service: &str, target: &[&str], assertions: usize) {
    let mut command = Command::new(part(".venv/bin/python"));
    let ended = run(command.arg(script("mcp_serve.py")).arg(service).args(target), b"");
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let held = ended.stdout.lines().filter(|line| line.starts_with("ok")).count();
    assert!(held >= assertions, "only {held} assertions were made:\n{}", ended.stdout);
}

/// The words of `antiphon mcp serve` as a command of a client.
fn command<'a>(binary: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&[binary, "mcp", "serve"][..], words].concat()
}

#[test]
#[ignore = "needs interop/setup"]
fn python_sdk_and_the_demonstration_service() {
    let binary = antiphon().get_program().to_str().unwrap().to_owned();
    let service = Server::start("http://127.0.0.1:0", "");
    python("demo", &command(&binary, &["--from", service.endpoint("http")]), 7);
    let ws = service.endpoint("http").replace("http:", "ws:");
    python("ticks", &command(&binary, &["--from", &ws]), 11);
    let mut serve = antiphon();
    serve.args(["mcp", "serve", "--from", &ws, "http://127.0.0.1:0/mcp"]).stdin(Stdio::null());
    let server = Server::spawn(&mut serve, 1);
    python("ticks", &[server.endpoint("http")], 11);
}

#[test]
#[ignore = "needs interop/setup"]
fn python_sdk_and_anvil() {
    let binary = antiphon().get_program().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let chain = Node::anvil(&scratch);
    let document = part("node_modules/@metamask/api-specs/dist/build/openrpc.json");
    let words = [
        "--from",
        &chain.endpoint("ws"),
        "--dialect",
        "ethereum",
        "--schema",
        document.to_str().unwrap(),
        "--allow",
        "eth_get*,eth_chainId,eth_subscribe",
        "--read-only",
        "*",
    ];
    python("anvil", &command(&binary, &words), 10);
}

#[test]
#[ignore = "needs interop/setup"]
fn python_sdk_and_jayson() {
    let Some(mut command_of_jayson) = node("jayson_server.mjs") else { return };
    let mut jayson = command_of_jayson.args(["http", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(jayson.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let endpoint = format!("http://127.0.0.1:{}", line.trim().strip_prefix("listening ").unwrap());
    let scratch = Scratch::new();
    let number =
        |name: &str| json!({ "name": name, "required": true, "schema": { "type": "number" } });
    let result = json!({ "name": "result", "schema": {} });
    let document = json!({
        "openrpc": "1.3.2", "info": { "title": "jayson", "version": "1" },
        "methods": [
            { "name": "subtract", "paramStructure": "by-name",
              "params": [number("minuend"), number("subtrahend")], "result": result },
            { "name": "fail", "params": [number("code"), { "name": "message", "schema": {} }],
              "result": result },
        ],
    });
    std::fs::write(scratch.path("openrpc.json"), document.to_string()).unwrap();
    let schema = scratch.path("openrpc.json");
    let words = ["--from", &endpoint, "--schema", schema.to_str().unwrap(), "--prefix", "js_"];
    let binary = antiphon().get_program().to_str().unwrap().to_owned();
    python("jayson", &command(&binary, &words), 3);
    let _ = jayson.kill();
    let _ = jayson.wait();
}
