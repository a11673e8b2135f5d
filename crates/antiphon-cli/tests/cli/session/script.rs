//! Scripts: variables, errors and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use super::session;
use crate::support::{Scratch, Server, antiphon};

const WIRES: &str =
    "http://127.0.0.1:0 ws://127.0.0.1:0 tcp://127.0.0.1:0 tcp+header://127.0.0.1:0";

const SCRIPT: &str = r#"
# three sums
a = sum 1 2
b = sum $a 10
subtract minuend:=$b subtrahend:=3      # named
echo [{"n": $b}, 1.50] "$a of $b" '$a'
$_[0][0]
"#;

#[test]
fn a_script_uses_earlier_results_over_every_wire() {
    let server = Server::start(WIRES, "");
    let expected = "10\n[[{\"n\":13},1.50],\"3 of 13\",\"$a\"]\n{\"n\":13}\n";
    for scheme in ["http", "ws", "tcp", "tcp+header"] {
        let ended = session(server.endpoint(scheme), &[], SCRIPT);
        assert_eq!((ended.code, &*ended.stdout), (Some(0), expected), "{scheme}: {ended:?}");
        assert_eq!(ended.stderr, "");
    }
    let ended = session("exec:antiphon-is-not-here", &["a = sum 1 2"], "");
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

#[test]
fn lines_come_from_the_command_line_or_a_file_too() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let endpoint = server.endpoint("tcp");
    let ended = session(endpoint, &["a = sum 1 2", "", "subtract $a -1"], "sum 7");
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "4\n"), "{ended:?}");
    let scratch = Scratch::new();
    let file = scratch.path("calls.txt");
    std::fs::write(&file, SCRIPT).unwrap();
    let file = file.display().to_string();
    let ended = session(endpoint, &["--file", &file], "sum 7");
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 3), "{ended:?}");
    // Nothing runs, and nothing connects, if a line is wrong.
    std::fs::write(&file, "sum 1\n\nsum '1").unwrap();
    let ended = session("tcp://127.0.0.1:1", &["--file", &file], "");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{file}:3: the ' in column 5")), "{ended:?}");
}

#[test]
fn values_stay_exact() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let exact = r#"{"big":18446744073709551617,"price":1.50,"s":"42","e":1E+2,"u":"\u00e9"}"#;
    let lines = format!(
        "x = echo {exact}\necho $x[0].big $x[0].price $x[0].s $x[0].e $x[0][\"u\"]\necho a:=$x[0].s b=$x[0].price"
    );
    let ended = session(server.endpoint("tcp"), &[], &lines);
    let expected =
        "[18446744073709551617,1.50,\"42\",1E+2,\"\\u00e9\"]\n{\"a\":\"42\",\"b\":\"1.50\"}\n";
    assert_eq!((ended.code, &*ended.stdout), (Some(0), expected), "{ended:?}");
}

#[test]
fn the_first_error_ends_a_script() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    for (lines, code, said) in [
        ("sum 1\nnope\nsum 2", 1, "error -32601: line 2: "),
        ("sum 1\nsum 1 '2\nsum 2", 2, "line 2: the ' in column 7"),
        ("sum 1\nsum $x\nsum 2", 2, "line 2: there is no variable `$x`"),
        ("sum 1\nsum $_.a\nsum 2", 2, "line 2: `$_` is a Number, not an Object"),
        ("sum 1\nsleep 60000\nsum 2", 4, "line 2: no reply from"),
        ("sum 1\nwait ticks\nsum 2", 4, "line 2: no ticks from the server within 1s"),
        ("sum 1\nopen a.c\nsum 2", 2, "--dialect lsp"),
        ("sum 1\nsum 1 a=2\nsum 2", 2, "line 2: params cannot be mixed"),
        ("sum 1\nsum -d -\nsum 2", 2, "use -d JSON or -d @FILE"),
    ] {
        let ended = session(server.endpoint("tcp"), &["--timeout", "1s"], lines);
        assert_eq!((ended.code, &*ended.stdout), (Some(code), "1\n"), "{lines}: {ended:?}");
        assert!(ended.stderr.contains(said), "{lines}: {ended:?}");
    }
}

#[test]
fn keep_going_reports_each_error_and_exits_with_the_worst() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let lines = "nope\nsum 1\nsum '\nfail 7 no\nsum 2\nexit\nsum 3";
    let ended = session(server.endpoint("tcp"), &["--keep-going"], lines);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), "1\n2\n"), "{ended:?}");
    for place in ["error -32601: line 1: ", "error: line 3: ", "error 7: line 4: no"] {
        assert!(ended.stderr.contains(place), "{place}: {ended:?}");
    }
}

#[test]
fn json_output_is_one_object_per_line() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let lines = "a = sum 1 2\nfail 7 no {\"x\":1.50}\n\n$a\nsum $b\nnotify update\ncall_me_back m";
    let words = ["--keep-going", "--format", "json"];
    let ended = session(server.endpoint("tcp"), &words, lines);
    assert_eq!((ended.code, &*ended.stderr), (Some(2), ""), "{ended:?}");
    let printed: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failure = &printed[3];
    assert!(failure["message"].as_str().unwrap().contains("`$b`"), "{failure}");
    assert!(failure["hint"].as_str().unwrap().contains("`a`"), "{failure}");
    assert_eq!(
        printed[..3],
        [
            json!({"line": 1, "kind": "result", "method": "sum", "variable": "a", "result": 3}),
            json!({"line": 2, "kind": "error", "method": "fail",
                "error": {"code": 7, "message": "no", "data": {"x": 1.5}}}),
            json!({"line": 4, "kind": "result", "result": 3}),
        ]
    );
    assert_eq!((&failure["kind"], &failure["exit"]), (&json!("failure"), &json!(2)));
    assert_eq!(printed[4]["kind"], "call");
    assert_eq!(
        (&printed[4]["method"], &printed[4]["error"]["code"]),
        (&json!("m"), &json!(-32601))
    );
    assert_eq!((&printed[5]["kind"], &printed[5]["line"]), (&json!("error"), &json!(7)));
    assert_eq!(printed.len(), 6);
}

/// Another program can write a line when it has read the result of the one before.
#[test]
fn a_line_runs_when_it_arrives() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let mut child = antiphon()
        .args(["session", server.endpoint("tcp")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for expected in ["1\n", "2\n"] {
        writeln!(stdin, "sum {expected}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_script_cannot_ask() {
    for words in [&["--ask", "sum 1"][..], &["reply 1"]] {
        let ended = session("tcp://127.0.0.1:1", words, "");
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("--ask"), "{ended:?}");
    }
}

#[test]
fn the_whole_script_has_a_time_limit() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let words = ["--max-time", "1s", "sum 1", "sleep 60000"];
    let ended = session(server.endpoint("tcp"), &words, "");
    assert_eq!((ended.code, &*ended.stdout), (Some(4), "1\n"), "{ended:?}");
    assert!(ended.stderr.contains("took longer than 1s"), "{ended:?}");
}

#[test]
fn a_lost_connection_ends_a_script_that_keeps_going() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || drop(listener.accept()));
    let ended = session(&endpoint, &["--keep-going", "wait a", "sum 1", "sum 2"], "");
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.stderr.matches("error").count(), 1, "{ended:?}");
}
