//! The lines of `--init`, before the first call of any command.

use serde_json::Value;

use super::{notification, session};
use crate::support::{FakeServer, Framing, Scratch, Server, antiphon, methods, result, run};

#[test]
fn lines_run_before_the_call_on_the_same_connection() {
    let scratch = Scratch::new();
    let file = scratch.path("init.txt");
    std::fs::write(&file, "# a second step\nnotify ready $_\n").unwrap();
    let file = format!("@{}", file.display());
    for (command, input, last) in [
        (&["call", "work", "1"][..], "", "work"),
        (&["notify", "work", "1"], "", "work"),
        (&["batch"], r#"{"method":"work"}"#, "-"),
    ] {
        let respond = |message: &Value| match message.as_array() {
            Some(batch) => vec![format!("[{}]", result(&batch[0], "7").concat())],
            None => result(message, "7"),
        };
        let server = FakeServer::start(Framing::Line, respond);
        let endpoint = server.endpoint();
        let mut words = command.to_vec();
        words.insert(1, &endpoint);
        words.extend(["--init", "s = login ada -- -x", "--init", &file]);
        let ended = run(antiphon().args(&words), input.as_bytes());
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        let seen = server.record();
        assert_eq!(methods(&seen), ["login", "ready", last], "{words:?}");
        assert_eq!(seen[0]["params"], serde_json::json!(["ada", "-x"]));
        assert_eq!(seen[1]["params"], serde_json::json!([7]));
    }
}

#[test]
fn a_line_that_fails_prevents_the_call() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    for (line, code, said) in [
        ("fail 7 no", 1, "error 7: --init: line 1: `fail`: no"),
        ("login s3cret", 1, "--init: line 1: `login`: "),
        ("login password:=s3cret", 2, "line 1: `login`: the value of param `password` is not JSON"),
        ("login 's3cret", 2, "--init: line 1: the ' in column 7"),
        ("@/nonexistent", 2, "cannot read /nonexistent"),
        ("wait a 50ms", 4, "no a from the server within 50ms"),
    ] {
        let words = ["call", server.endpoint("tcp"), "sum", "1", "--init", line];
        let ended = run(antiphon().args(words), b"");
        assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{line}: {ended:?}");
        assert!(ended.stderr.contains(said), "{line}: {ended:?}");
        // A log of CI shows stderr.
        assert!(!ended.stderr.contains("s3cret"), "{line}: {ended:?}");
    }
}

#[test]
fn a_session_sees_the_variables_and_the_messages_of_its_init_lines() {
    let respond = |message: &Value| {
        let mut replies = vec![notification("hello", "[1]")];
        replies.extend(result(message, "5"));
        replies
    };
    let server = FakeServer::start(Framing::Line, respond);
    let endpoint = server.endpoint();
    let ended = session(&endpoint, &["--init", "a = login", "$a", "wait hello"], "");
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "5\n[1]\n"), "{ended:?}");
}

#[test]
fn a_handshake_can_be_written_by_hand() {
    let server = FakeServer::start(Framing::Header, |message| result(message, "{}"));
    let endpoint = format!("tcp+header://127.0.0.1:{}", server.port());
    let words = [
        "call",
        &endpoint,
        "a/b",
        "--init",
        r#"initialize capabilities:={"a": {}} processId:=null"#,
        "--init",
        "notify initialized -d {}",
    ];
    let ended = run(antiphon().args(words), b"");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let seen = server.record();
    assert_eq!(methods(&seen), ["initialize", "initialized", "a/b"]);
    assert_eq!(
        seen[0]["params"],
        serde_json::json!({"capabilities": {"a": {}}, "processId": null})
    );
}
