//! The handshakes of the dialects, and the answers to calls of a server.

use std::process::Command;

use antiphon::{CallError, Client, Context, Dialect, Router};
use serde_json::{Value, json};

use crate::interop::{runs, script};
use crate::support::{
    Ended, FakeServer, Framing, Scratch, antiphon, methods, missing, result, run,
};

/// Runs `antiphon call --dialect DIALECT tcp://... ` with these words, and returns what the server saw.
fn call(
    dialect: &str,
    framing: Framing,
    respond: impl FnMut(&Value) -> Vec<String> + Send + 'static,
    words: &[&str],
) -> (Ended, Vec<Value>) {
    let server = FakeServer::start(framing, respond);
    let endpoint = server.endpoint();
    let ended = run(antiphon().args(["call", "--dialect", dialect, &endpoint]).args(words), b"");
    (ended, server.record())
}

/// Answers every call with an empty Object.
fn agree(message: &Value) -> Vec<String> {
    result(message, "{}")
}

#[test]
fn lsp_initializes_opens_calls_and_shuts_down() {
    let scratch = Scratch::new();
    let file = scratch.path("a b.c");
    std::fs::write(&file, "int é;\nint b;\n").unwrap();
    let place = format!("{}:1:6", file.display());
    let words = ["textDocument/references", "--at", &place, "context:={\"n\":1.50}"];
    let (ended, seen) = call("lsp", Framing::Header, agree, &words);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "{}\n"), "{ended:?}");
    assert_eq!(
        methods(&seen),
        [
            "initialize",
            "initialized",
            "textDocument/didOpen",
            "textDocument/references",
            "shutdown",
            "exit"
        ]
    );
    let initialize = &seen[0]["params"];
    assert_eq!(initialize["processId"], Value::Null, "the server may run on another machine");
    assert!(initialize["rootUri"].as_str().unwrap().starts_with("file:///"));
    let uri = format!("file://{}", file.display()).replace(' ', "%20");
    let opened = json!({ "uri": uri, "languageId": "c", "version": 1, "text": "int é;\nint b;\n" });
    assert_eq!(seen[2]["params"]["textDocument"], opened);
    let expected = json!({ "textDocument": { "uri": uri },
        "position": { "line": 0, "character": 5 }, "context": { "n": 1.5 } });
    assert_eq!(seen[3]["params"], expected);
}

#[test]
fn a_file_is_opened_once() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.path("a.py"), scratch.path("b.py"));
    std::fs::write(&a, "a").unwrap();
    std::fs::write(&b, "b").unwrap();
    let [a, b] = [a, b].map(|path| path.display().to_string());
    let words = ["textDocument/hover", "--open", &a, "--open", &b, "--at", &a];
    let (ended, seen) = call("lsp", Framing::Header, agree, &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let opened = methods(&seen).iter().filter(|method| method.ends_with("didOpen")).count();
    assert_eq!(opened, 2, "{seen:?}");
    assert_eq!(seen[4]["params"], json!({ "textDocument": { "uri": format!("file://{a}") } }));
}

#[test]
fn the_handshake_can_be_skipped() {
    let (ended, seen) = call("lsp", Framing::Header, agree, &["--no-init", "a/b"]);
    assert_eq!((ended.code, methods(&seen)), (Some(0), vec!["a/b"]), "{ended:?}");
}

#[test]
fn the_framing_of_the_endpoint_wins() {
    let server = FakeServer::start(Framing::Line, agree);
    let endpoint = format!("tcp+line://127.0.0.1:{}", server.port());
    let ended = run(antiphon().args(["call", "--dialect", "lsp", &endpoint, "a/b"]), b"");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(methods(&server.record()).len(), 5);
}

#[test]
fn mcp_accepts_an_older_version() {
    let respond = |message: &Value| result(message, r#"{"protocolVersion":"2024-11-05"}"#);
    let (ended, seen) = call("mcp", Framing::Line, respond, &["tools/list"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(methods(&seen), ["initialize", "notifications/initialized", "tools/list"]);
    assert_eq!(seen[0]["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(seen[0]["params"]["capabilities"], json!({}));
}

#[test]
fn mcp_rejects_an_unknown_version_and_names_the_remedy() {
    let respond = |message: &Value| result(message, r#"{"protocolVersion":"1999-01-01"}"#);
    let (ended, seen) = call("mcp", Framing::Line, respond, &["tools/list"]);
    assert_eq!((ended.code, methods(&seen)), (Some(5), vec!["initialize"]), "{ended:?}");
    assert!(
        ended.stderr.contains("1999-01-01") && ended.stderr.contains("2024-11-05"),
        "{ended:?}"
    );

    let modern = |message: &Value| {
        let error = r#"{"code":-32601,"message":"Method not found"}"#;
        vec![format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, message["id"])]
    };
    let (ended, _) = call("mcp", Framing::Line, modern, &["tools/list"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("--no-init"), "{ended:?}");
}

/// Calls the client with each of these methods before it responds to `go`, and returns the answers.
fn answers_to(dialect: &str, calls: &'static [(&str, &str)], flags: &[&str]) -> Vec<Value> {
    let framing = if dialect == "lsp" { Framing::Header } else { Framing::Line };
    let respond = move |message: &Value| {
        if message["method"] != "go" {
            return result(message, r#"{"protocolVersion":"2025-11-25"}"#);
        }
        let ask = |(id, (method, params)): (usize, &(&str, &str))| {
            format!(r#"{{"jsonrpc":"2.0","id":"c{id}","method":"{method}","params":{params}}}"#)
        };
        let mut replies: Vec<_> = calls.iter().enumerate().map(ask).collect();
        replies.extend(result(message, "{}"));
        replies
    };
    let (ended, seen) = call(dialect, framing, respond, &[&["go"], flags].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let by_id = |id: usize| seen.iter().find(|message| message["id"] == format!("c{id}"));
    (0..calls.len()).map(|id| by_id(id).expect("every call is answered").clone()).collect()
}

#[test]
fn a_language_server_gets_answers() {
    let calls = &[
        ("workspace/configuration", r#"{"items":[{"section":"a"},{}]}"#),
        ("window/workDoneProgress/create", r#"{"token":1}"#),
        ("workspace/applyEdit", r#"{"edit":{}}"#),
        ("client/registerCapability", "null"),
        ("my/method", "{}"),
        ("my/other", "{}"),
        ("my/failure", "{}"),
        ("window/showMessageRequest", r#"{"type":1,"message":"m"}"#),
    ];
    let scratch = Scratch::new();
    let file = scratch.path("rules");
    std::fs::write(&file, "# comment\n\nmy/method=1\nmy/f*!-32000 not now\n").unwrap();
    let file = file.display().to_string();
    let answers =
        answers_to("lsp", calls, &["--answer", "my/method={\"a\":1.50}", "--answer-file", &file]);
    assert_eq!(answers[0]["result"], json!([null, null]));
    assert_eq!(answers[1]["result"], Value::Null);
    assert_eq!(answers[2]["result"]["applied"], false);
    assert_eq!(answers[3]["result"], Value::Null);
    assert_eq!(answers[4]["result"], json!({ "a": 1.5 }), "the command line wins over the file");
    assert_eq!(answers[5]["error"]["code"], -32601);
    assert_eq!(answers[6]["error"]["message"], "not now");
    assert!(answers[7]["result"].is_null() && answers[7]["error"].is_null());
}

/// The requests of a server in LSP 3.17 and 3.18, and others.
const REQUESTS: &[(&str, &str)] = &[
    ("client/registerCapability", r#"{"registrations":[]}"#),
    ("client/unregisterCapability", r#"{"unregisterations":[]}"#),
    ("window/showDocument", r#"{"uri":"file:///a"}"#),
    ("window/showMessageRequest", r#"{"type":1,"message":"m"}"#),
    ("window/workDoneProgress/create", r#"{"token":1}"#),
    ("workspace/applyEdit", r#"{"edit":{}}"#),
    ("workspace/codeLens/refresh", "null"),
    ("workspace/configuration", r#"{"items":[{"section":"a"},{}]}"#),
    ("workspace/diagnostic/refresh", "null"),
    ("workspace/foldingRange/refresh", "null"),
    ("workspace/inlayHint/refresh", "null"),
    ("workspace/inlineValue/refresh", "null"),
    ("workspace/semanticTokens/refresh", "null"),
    ("workspace/textDocumentContent/refresh", r#"{"uri":"file:///a"}"#),
    ("workspace/workspaceFolders", "null"),
    ("workspace/my/refresh", "null"),
    ("my/request", "{}"),
];

/// Returns what a session of `antiphon-lsp` answers to the same requests.
async fn answers_of_the_library(root: &str) -> Vec<Result<Value, i64>> {
    struct Headless;
    impl antiphon_lsp::LanguageClient for Headless {}
    let (ours, theirs) = antiphon::transport::memory::pair();
    let router = Router::new()
        .method("initialize", |_: Value, _: Context| async { Ok(json!({ "capabilities": {} })) })
        .notification("initialized", |_: Value, _: Context| async {});
    let server = Client::builder().dialect(Dialect::lsp()).handler(router).over(theirs);
    let session = antiphon_lsp::ServerSession::builder().root(root).unwrap();
    let session = session.over(ours, Headless).await.unwrap();
    let mut answers = Vec::new();
    for (method, params) in REQUESTS {
        let params: Option<Value> = serde_json::from_str(params).unwrap();
        answers.push(match server.call::<Value>(method, params).await {
            Ok(result) => Ok(result),
            Err(CallError::Rpc(error)) => Err(error.code.0),
            Err(other) => panic!("{method}: {other}"),
        });
    }
    drop(session);
    answers
}

/// The binary does not link `antiphon-lsp`; ARCHITECTURE.md has the reasons.
#[tokio::test]
async fn a_language_server_gets_the_answers_of_the_library() {
    let scratch = Scratch::new();
    let root = scratch.path("a b é#%");
    std::fs::create_dir(&root).unwrap();
    let root = format!("{}/b/..", root.display());
    let root = &*root;
    let expected = answers_of_the_library(root).await;
    let answers = answers_to("lsp", REQUESTS, &["--root", root]);
    for (((method, _), answer), expected) in REQUESTS.iter().zip(answers).zip(expected) {
        let answer = match answer["error"]["code"].as_i64() {
            Some(code) => Err(code),
            None => Ok(answer["result"].clone()),
        };
        assert_eq!(answer, expected, "{method}");
    }
}

#[test]
fn an_mcp_server_gets_answers_and_learns_of_the_root() {
    let calls = &[("ping", "{}"), ("roots/list", "{}"), ("sampling/createMessage", "{}")];
    let answers = answers_to("mcp", calls, &[]);
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(answers[1]["error"]["code"], -32601);
    assert_eq!(answers[2]["error"]["code"], -32601);
    let answers = answers_to("mcp", calls, &["--root", "/"]);
    assert_eq!(answers[1]["result"]["roots"][0]["uri"], "file:///");
}

#[test]
fn a_wrong_flag_names_the_remedy() {
    for (words, remedy) in [
        (&["--at", "a.c:1:1"][..], "--dialect lsp"),
        (&["--open", "a.c"], "--dialect lsp"),
        (&["--at", "a.c:0:1"], "begin with 1"),
        (&["--answer", "a"], "METHOD=JSON"),
        (&["--answer", "a=text"], "write a String as \"text\""),
        (&["--answer-file", "/nonexistent"], "cannot read /nonexistent"),
        (&["--dialect", "lsp", "--at", "a.c", "-d", "[]"], "by name"),
        (&["--dialect", "lsp", "--at", "a.c", "1"], "name all params"),
        (&["--dialect", "lsp", "--init-options", "{"], "not JSON"),
    ] {
        let ended = run(antiphon().args(["call", "exec:cat", "m"]).args(words), b"");
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(remedy), "{words:?}: {ended:?}");
    }
}

#[test]
fn clangd_hovers_in_one_command() {
    if !runs("clangd") {
        return missing("clangd", "run interop/setup");
    }
    let scratch = Scratch::new();
    let file = scratch.path("main.c");
    std::fs::write(&file, "int add(int a, int b) { return a + b; }\nint x = 1;\n").unwrap();
    let place = format!("{}:1:5", file.display());
    let ended = run(
        antiphon().args(["call", "--dialect", "lsp", "exec:clangd --log=error"]).args([
            "textDocument/hover",
            "--at",
            &place,
        ]),
        b"",
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let hover: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("int add(int a, int b)"));
}

/// Asks for the hover at line 2, column 9 of a file with this text.
fn hover(server: &str, name: &str, text: &str) -> String {
    let scratch = Scratch::new();
    let file = scratch.path(name);
    std::fs::write(&file, text).unwrap();
    let place = format!("{}:2:9", file.display());
    let root = scratch.path("").display().to_string();
    let words = ["textDocument/hover", "--at", &place, "--root", &root, "--timeout", "60s"];
    let ended = run(antiphon().args(["call", "--dialect", "lsp", server]).args(words), b"");
    assert_eq!(ended.code, Some(0), "{server}: run interop/setup: {ended:?}");
    ended.stdout
}

#[test]
#[ignore = "needs interop/setup"]
fn other_language_servers_hover_in_one_command() {
    let pylsp = format!("exec:{}", script(".venv/bin/pylsp").display());
    let shown = hover(&pylsp, "a.py", "import os\nhere = os.getcwd()\n");
    assert!(shown.contains("import os") || shown.contains("OS routines"), "{shown}");
    let program = script("node_modules/typescript-language-server/lib/cli.mjs");
    let typescript = format!("exec:node '{}' --stdio", program.display());
    let shown = hover(&typescript, "a.ts", "const count: number = 1;\nconst x=count;\n");
    assert!(shown.contains("const count: number"), "{shown}");
}

/// Returns the endpoint of the reference server of MCP, if it is installed.
pub(crate) fn everything() -> Option<String> {
    let server = script("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    if !runs("node") || !server.exists() {
        missing("node, or server-everything of npm,", "run interop/setup");
        return None;
    }
    Some(format!("exec:node '{}' stdio", server.display()))
}

#[test]
fn the_reference_server_of_mcp_lists_and_calls_tools() {
    let Some(endpoint) = everything() else { return };
    let mcp = |words: &[&str]| -> Value {
        let mut command: Command = antiphon();
        let ended = run(command.args(["call", "--dialect", "mcp", &endpoint]).args(words), b"");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let tools = mcp(&["tools/list"]);
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let echo = mcp(&["tools/call", "name=echo", "arguments:={\"message\":\"hello\"}"]);
    assert_eq!(echo["content"][0]["text"], "Echo: hello");
}
