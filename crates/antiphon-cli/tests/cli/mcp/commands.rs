//! The commands of a client: what they print, and how they end.

use antiphon_mcp::{McpServer, RequestContext, ServerTool};
use serde_json::{Value, json};

use super::servers::{McpHttp, mcp, mcp_at};
use crate::support::{FakeServer, Framing, Scratch, result};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"))
}

#[test]
fn every_command_works_in_both_eras_over_http_and_stdio() {
    let server = McpHttp::everything();
    for way in &server.ways() {
        let done = |command: &str, words: &[&str]| {
            let ended = mcp_at(command, way, words);
            assert_eq!(ended.code, Some(0), "{way:?} {command}: {ended:?}");
            ended.stdout
        };
        let list = done("list", &[]);
        assert!(list.contains("tool\ttest_elicitation\tmessage\tAsks the user"), "{list}");
        assert!(list.contains("resource\ttest://static-text\ttext/plain\t"), "{list}");
        assert!(list.contains("template\ttest://template/{id}/data\t"), "{list}");
        assert!(list.contains("prompt\ttest_prompt_with_arguments\targ1, arg2\t"), "{list}");
        let prompts = done("list", &["--prompts", "--json"]);
        assert!(prompts.lines().all(|line| json(line)["name"].is_string()), "{prompts}");
        let called = json(&done("call", &["test_simple_text"]));
        assert!(called["content"][0]["text"].is_string(), "{called}");
        let text = done("read", &["test://static-text"]);
        assert!(!text.is_empty() && !text.starts_with('{'), "{text}");
        let prompt = json(&done("prompt", &["test_prompt_with_arguments", "arg1=x", "arg2=y"]));
        assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains('x'));
        done("complete", &["test_prompt_with_arguments", "arg1", "te"]);
    }
}

#[test]
fn failures_have_their_exit_codes() {
    let server = McpHttp::everything();
    for way in &server.ways()[..2] {
        for (words, code, expected) in [
            (&["test_error_handling"][..], 1, ""),
            (&["test_simple_txt"], 1, "did you mean `test_simple_text`?"),
            (&["nothing like it"], 1, "`antiphon mcp list`"),
            (&["test_elicitation", "message:=7"], 2, "do not match the input schema"),
            (&["test_elicitation", "message:=7"], 2, "name=text a String"),
            (&["test_elicitation", "-d", "[1]"], 2, "name=text"),
            (&["test_simple_text", "--answer", "x"], 2, "--answer"),
            (&["test_cancellation", "--timeout", "200ms"], 4, "no response within"),
        ] {
            let ended = mcp_at("call", way, words);
            assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
            assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
        }
        for (command, name, expected) in [
            ("read", "test://static-txt", "did you mean `test://static-text`"),
            ("read", "nowhere:", "`antiphon mcp list`"),
            ("prompt", "test_simple_promt", "did you mean `test_simple_prompt`"),
        ] {
            let ended = mcp_at(command, way, &[name]);
            assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
            assert!(ended.stderr.contains(expected), "{name}: {}", ended.stderr);
        }
    }
    for endpoint in ["http://127.0.0.1:1/mcp", "tcp://127.0.0.1:1", "exec:/nowhere/server"] {
        let ended = mcp(&["list", endpoint]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
    }
    let no_headers = mcp(&["list", "tcp://127.0.0.1:1", "-H", "a: b"]);
    assert_eq!(no_headers.code, Some(2), "{no_headers:?}");
}

/// Servers that do not speak the protocol, or break it.
#[test]
fn another_service_is_no_mcp_server() {
    for (response, code, expected) in [
        (r#""result":"hello""#, 5, "the result of `initialize` does not have the expected type"),
        (
            r#""error":{"code":-32601,"message":"Method not found"}"#,
            1,
            "is not an MCP server: Method not found\nhint: `antiphon call`",
        ),
        (r#""result":{},"error":{"code":1,"message":"x"}"#, 5, "must not occur together"),
    ] {
        let fake = FakeServer::start(Framing::Line, move |message| {
            let id = &message["id"];
            vec![format!(r#"{{"jsonrpc":"2.0","id":{id},{response}}}"#)]
        });
        let ended = mcp(&["list", &fake.endpoint(), "--timeout", "20s"]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
    }
}

/// The response of a server that does not have the method.
fn not_found(message: &Value) -> Vec<String> {
    let id = &message["id"];
    vec![format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"nope"}}}}"#)]
}

#[test]
fn a_revision_that_the_server_does_not_have_is_named() {
    let fake = FakeServer::start(Framing::Line, not_found);
    let ended = mcp(&["list", &fake.endpoint(), "--revision", "2026-07-28"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("does not support revision 2026-07-28"), "{ended:?}");
    assert!(ended.stderr.contains("hint: without --revision"), "{ended:?}");
}

/// A server may declare a feature and not have its list.
#[test]
fn a_list_that_fails_does_not_hide_the_others() {
    let fake = FakeServer::start(Framing::Line, |message| {
        let found = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
                "serverInfo": { "name": "x", "version": "1" },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }] })
            }
            "prompts/list" => json!({ "prompts": [{ "name": "hello" }] }),
            _ => return not_found(message),
        };
        result(message, &found.to_string())
    });
    let ended = mcp(&["list", &fake.endpoint()]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stdout, "tool\tadd\t\t\nprompt\thello\t\t\n", "{ended:?}");
    let expected = "error -32601: cannot list the resources: nope";
    assert!(ended.stderr.contains(expected), "{ended:?}");
}

#[test]
fn an_unknown_tool_that_is_reported_as_a_failed_one_has_a_hint() {
    let fake = || {
        FakeServer::start(Framing::Line, |message| {
            let found = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "x", "version": "1" },
                }),
                "tools/list" => {
                    json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }] })
                }
                "tools/call" => json!({ "content": [], "isError": true }),
                _ => return not_found(message),
            };
            result(message, &found.to_string())
        })
    };
    let misspelled = mcp(&["call", &fake().endpoint(), "ad"]);
    assert_eq!(misspelled.code, Some(1), "{misspelled:?}");
    assert!(misspelled.stderr.contains("hint: did you mean `add`?"), "{misspelled:?}");
    let failed = mcp(&["call", &fake().endpoint(), "add"]);
    assert_eq!((failed.code, failed.stderr.as_str()), (Some(1), ""), "{failed:?}");
}

#[test]
fn contents_are_written_to_files() {
    let server = McpHttp::everything();
    let scratch = Scratch::new();
    let file = scratch.path("picture.png");
    let ended = mcp(&["read", &server.url, "test://static-binary", "-o", file.to_str().unwrap()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x89PNG"));
    let folder = scratch.path("saved");
    let words = ["call", &server.url, "test_image_content", "--save", folder.to_str().unwrap()];
    let ended = mcp(&words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(std::fs::read(folder.join("1.png")).unwrap().starts_with(b"\x89PNG"));
    // A file of the user is not replaced.
    assert_eq!(mcp(&words).code, Some(2));
    let lost = mcp(&["read", &server.url, "test://static-text", "-o", "/nowhere/file"]);
    assert_eq!(lost.code, Some(2), "{lost:?}");
}

#[test]
fn numbers_and_strings_of_arguments_keep_their_form() {
    let echo = ServerTool::dynamic(
        antiphon_mcp::types::Tool::new(
            "echo",
            json!({ "type": "object" }).as_object().unwrap().clone(),
        ),
        |arguments: antiphon::RawJson, _cx: RequestContext| async move { arguments.as_str().to_owned() },
    );
    let server = McpServer::builder("echo", "1").tool(echo.unwrap()).build();
    let server = McpHttp::start(server);
    for way in &server.ways() {
        let ended = mcp_at("call", way, &["echo", "a:=1.50", "b=1", "c:=18446744073709551616"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = json(&ended.stdout)["content"][0]["text"].clone();
        assert_eq!(text, r#"{"a":1.50,"b":"1","c":18446744073709551616}"#, "{way:?}");
    }
}

#[test]
fn listen_prints_changes_and_ends() {
    let server = McpHttp::everything();
    for way in &server.ways() {
        let mut words = vec!["mcp".to_owned(), "listen".to_owned()];
        words.extend(way.iter().cloned());
        words.extend(["test://watched-resource", "--count", "2"].map(str::to_owned));
        let mut command = crate::support::antiphon();
        command.args(&words).stdin(std::process::Stdio::null());
        let mut child = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            let read = std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
            assert_ne!(read, 0, "{way:?} ends without listening");
        }
        // Through a bridge, the subscription reaches this server a little later.
        while !server.server.is_subscribed("test://watched-resource") {
            std::thread::yield_now();
        }
        server.server.resource_updated("test://watched-resource");
        let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut next = || {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
            json(&line)
        };
        assert_eq!(next(), json!({ "updated": "test://watched-resource" }), "{way:?}");
        server.server.resource_updated("test://watched-resource");
        assert_eq!(next(), json!({ "updated": "test://watched-resource" }), "{way:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0));
        // The next way must subscribe anew.
        while server.server.is_subscribed("test://watched-resource") {
            std::thread::yield_now();
        }
    }
}
