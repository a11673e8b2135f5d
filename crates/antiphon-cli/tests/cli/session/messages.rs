//! What a server sends on its own, and the documents that are opened for it.

use serde_json::{Value, json};

use super::{notification, session, session_with};
use crate::support::{Framing, Scratch, Server, methods, result};

/// Sends three notifications before it responds to `go`.
fn noisy(message: &Value) -> Vec<String> {
    let mut replies = Vec::new();
    if message["method"] == "go" {
        replies.push(notification("state", r#"{"of":"a","n":1}"#));
        replies.push(notification("state", r#"{"of":"b","n":2}"#));
        replies.push(notification("log", r#"["\u001b[2J\u009b"]"#));
    }
    replies.extend(result(message, "0"));
    replies
}

#[test]
fn a_wait_takes_what_has_arrived_before_it() {
    let lines = ["go", "sum", "wait state of=b", "wait state", "s = wait log", "echo $s[0]"];
    let (ended, seen) = session_with(Framing::Line, noisy, &lines);
    let expected = "0\n0\n{\"of\":\"b\",\"n\":2}\n{\"of\":\"a\",\"n\":1}\n0\n";
    assert_eq!((ended.code, &*ended.stdout), (Some(0), expected), "{ended:?}");
    assert_eq!(seen[2]["params"], json!(["\u{1b}[2J\u{9b}"]));
    // The text of a server cannot control a terminal.
    assert!(ended.stderr.contains("server: state {\"of\":\"a\",\"n\":1}\n"), "{ended:?}");
    assert!(!ended.stderr.contains(['\u{1b}', '\u{9b}']), "{ended:?}");
    let (ended, _) = session_with(Framing::Line, noisy, &["--quiet", "go"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
}

#[test]
fn a_message_is_taken_once_and_clear_forgets_it() {
    for lines in [
        &["go", "wait log", "wait log 50ms"][..],
        &["go", "clear", "wait log 50ms"],
        &["go", "wait state of=c 50ms"],
    ] {
        let (ended, _) = session_with(Framing::Line, noisy, lines);
        assert_eq!(ended.code, Some(4), "{lines:?}: {ended:?}");
        assert!(ended.stderr.contains("within 50ms"), "{lines:?}: {ended:?}");
    }
}

#[test]
fn a_wait_takes_a_call_of_the_server() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let lines = ["answer m={\"a\": 1.50}", "call_me_back m [7]", "wait m"];
    let ended = session(server.endpoint("tcp"), &lines, "");
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "{\"a\":1.50}\n[7]\n"), "{ended:?}");
    assert_eq!(ended.stderr, "server: m [7] -> {\"a\":1.50}\n");
}

#[test]
fn answers_change_during_a_session() {
    let server = Server::start("ws://127.0.0.1:0", "");
    let lines = [
        "x = call_me_back b",
        "answer m=1",
        "call_me_back m",
        "s = sum 2 3",
        "answer m=[$s]",
        "call_me_back m",
        "answer m!-5 not now",
        "call_me_back m",
    ];
    let words = [&["--keep-going"], &lines[..]].concat();
    let ended = session(server.endpoint("ws"), &words, "");
    assert_eq!((ended.code, &*ended.stdout), (Some(1), "1\n[5]\n"), "{ended:?}");
    assert!(ended.stderr.contains("server: m -> error -5: not now"), "{ended:?}");
}

#[test]
fn http_has_no_messages_to_wait_for() {
    let server = Server::start("http://127.0.0.1:0", "");
    let ended = session(server.endpoint("http"), &["sum 1", "wait a"], "");
    assert_eq!((ended.code, &*ended.stdout), (Some(2), "1\n"), "{ended:?}");
    assert!(ended.stderr.contains("use ws://"), "{ended:?}");
}

#[test]
fn a_language_server_gets_documents() {
    let scratch = Scratch::new();
    let path = scratch.path("a.c");
    std::fs::write(&path, "int a;\nint b;\n").unwrap();
    let file = path.display().to_string();
    let open = format!("doc = open {file}");
    let hover = format!("textDocument/hover --at {file}:2:5");
    let written = path.clone();
    let respond = move |message: &Value| {
        if message["method"] == "edit" {
            std::fs::write(&written, "int c;\n").unwrap();
        }
        result(message, "{}")
    };
    let words = ["--dialect", "lsp", &*open, &*hover, "edit", &*open, "m a=$doc.uri b:=$doc"];
    let (ended, seen) = session_with(Framing::Header, respond, &words);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "{}\n{}\n{}\n"), "{ended:?}");
    let expected = [
        "initialize",
        "initialized",
        "textDocument/didOpen",
        "textDocument/hover",
        "edit",
        "textDocument/didChange",
        "m",
        "shutdown",
        "exit",
    ];
    assert_eq!(methods(&seen), expected);
    assert_eq!(seen[3]["params"]["position"], json!({ "line": 1, "character": 4 }));
    assert_eq!(seen[5]["params"]["contentChanges"], json!([{ "text": "int c;\n" }]));
    let uri = format!("file://{file}");
    assert_eq!(seen[6]["params"], json!({ "a": uri, "b": { "uri": uri, "version": 2 } }));
}
