//! `call`, `notify` and `batch` as a shell sees them: stdout, stderr and exit code.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use crate::support::{Ended, Scratch, Server, antiphon, run};

/// Runs a command line.
fn cli(words: &[&str]) -> Ended {
    run(antiphon().args(words), b"")
}

fn cli_with_input(words: &[&str], input: &str) -> Ended {
    run(antiphon().args(words), input.as_bytes())
}

/// Asserts success, this stdout and an empty stderr.
#[track_caller]
fn prints(ended: &Ended, stdout: &str) {
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(0), stdout, ""));
}

/// Asserts this exit code, an empty stdout and each of these texts on stderr.
#[track_caller]
fn fails(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is missing: {}", ended.stderr);
    }
}

fn demo() -> Server {
    Server::start("tcp://127.0.0.1:0", "")
}

/// Starts a server on every kind of endpoint that listens.
fn everywhere() -> (Server, Scratch, Vec<String>) {
    let scratch = Scratch::new();
    let unix = |scheme, name| format!("{scheme}:{}", scratch.path(name).display());
    let endpoints = format!(
        "http://127.0.0.1:0 ws://127.0.0.1:0 tcp://127.0.0.1:0 tcp+line://127.0.0.1:0 \
         tcp+header://127.0.0.1:0 tcp+values://127.0.0.1:0 http://[::1]:0 {} {}",
        unix("unix", "a.sock"),
        unix("unix+header", "b.sock"),
    );
    let server = Server::start(&endpoints, "");
    let mut callable = server.endpoints().to_vec();
    callable.push(server.endpoint("http").replace("http", "ws"));
    callable.push(server.endpoint("tcp").replace("tcp", "tcp+header"));
    (server, scratch, callable)
}

/// `exec:` with the binary itself as the child.
fn child(scheme: &str, serving: &str) -> String {
    format!("{scheme}:'{}' serve {serving}", env!("CARGO_BIN_EXE_antiphon"))
}

#[test]
fn call_reaches_every_kind_of_endpoint() {
    let (_server, _scratch, endpoints) = everywhere();
    for endpoint in endpoints {
        prints(&cli(&["call", &endpoint, "subtract", "42", "23"]), "19\n");
    }
}

/// The child's stderr stays visible, and its stdout carries the protocol.
#[test]
fn call_runs_a_child_process() {
    for (scheme, serving) in [
        ("exec", "stdio:"),
        ("exec+line", "stdio+line:"),
        ("exec+header", "stdio:"),
        ("exec+header", "stdio+header:"),
        ("exec+values", "stdio+values:"),
    ] {
        let ended = cli(&["call", &child(scheme, serving), "subtract", "42", "23"]);
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "19\n"), "{scheme}: {ended:?}");
        assert_eq!(ended.stderr, format!("listening on {serving}\n"));
    }
}

#[test]
fn params_have_every_form() {
    let server = demo();
    let echo = |params: &[&str]| cli(&[&["call", server.endpoint("tcp"), "echo"], params].concat());
    for (params, result) in [
        (&[][..], "null\n"),
        (&["1", "2.50", "true", "null", "-7"], "[1,2.50,true,null,-7]\n"),
        (&["18446744073709551616", "1e-999"], "[18446744073709551616,1e-999]\n"),
        (&["hello", "\"42\"", "é", ""], "[\"hello\",\"42\",\"é\",\"\"]\n"),
        (&["[1,{}]", "{\"a\":[]}"], "[[1,{}],{\"a\":[]}]\n"),
        (&["name=ada", "age:=36"], "{\"name\":\"ada\",\"age\":36}\n"),
        (&["-d", "[1.50]"], "[1.50]\n"),
        (&["-d", "{\"a\":{\"b\":null}}"], "{\"a\":{\"b\":null}}\n"),
        (&["--data", "[]"], "[]\n"),
    ] {
        prints(&echo(params), result);
    }
}

#[test]
fn params_come_from_a_file_and_from_stdin() {
    let server = demo();
    let scratch = Scratch::new();
    let file = scratch.path("params.json");
    std::fs::write(&file, "[1,\n 2,\n 4]\n").unwrap();
    let from_file = format!("@{}", file.display());
    prints(&cli(&["call", server.endpoint("tcp"), "sum", "-d", &from_file]), "7\n");
    let ended = cli_with_input(&["call", server.endpoint("tcp"), "sum", "-d", "-"], "[1, 2]\n");
    prints(&ended, "3\n");
}

#[test]
fn id_and_raw_show_the_response_of_the_given_id() {
    let (server, _scratch, endpoints) = everywhere();
    for endpoint in &endpoints {
        for id in ["7", "-1", "1.50", "\"seven\"", "null", "18446744073709551616"] {
            let ended = cli(&["call", endpoint, "echo", "1", "--raw", "--id", id]);
            prints(&ended, &format!("{{\"jsonrpc\":\"2.0\",\"result\":[1],\"id\":{id}}}\n"));
        }
    }
    let ended = cli(&["call", server.endpoint("tcp"), "fail", "7", "no", "--raw", "--id", "2"]);
    let response = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":7,\"message\":\"no\"},\"id\":2}\n";
    assert_eq!((ended.code, &*ended.stdout), (Some(1), response), "{ended:?}");
}

#[test]
fn verbose_shows_both_messages_on_stderr() {
    let (_server, _scratch, endpoints) = everywhere();
    for endpoint in endpoints {
        let ended = cli(&["call", "-v", &endpoint, "subtract", "42", "23", "--id", "5"]);
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "19\n"));
        let (sent, received) = ended.stderr.trim_end().split_once('\n').unwrap();
        let call = r#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":5}"#;
        assert_eq!(sent, format!("--> {call}"));
        assert_eq!(received, r#"<-- {"jsonrpc":"2.0","result":19,"id":5}"#);
    }
}

#[test]
fn headers_are_sent() {
    let server = Server::start("http://127.0.0.1:0", "");
    for endpoint in [server.endpoint("http"), &server.endpoint("http").replace("http", "ws")] {
        let ended = cli(&["call", endpoint, "echo", "-H", "Origin: http://evil.example"]);
        fails(&ended, 3, &["403"]);
    }
    let ended = cli(&["call", "tcp://127.0.0.1:1", "echo", "-H", "a: b"]);
    fails(&ended, 2, &["--user and --jwt-secret are for http:// and ws://"]);
}

#[test]
fn notify_sends_and_prints_nothing() {
    let (_server, _scratch, endpoints) = everywhere();
    for endpoint in endpoints {
        prints(&cli(&["notify", &endpoint, "update", "1", "2"]), "");
    }
    // The server logs the notification: closing the connection did not cut it off.
    let words = format!("{} --log debug", child("exec", "stdio:"));
    let ended = cli(&["notify", &words, "update", "1", "2"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), ""));
    assert!(ended.stderr.contains("notified") && ended.stderr.contains("[1,2]"), "{ended:?}");
}

#[test]
fn batch_accepts_lines_and_arrays() {
    let lines = "{\"method\":\"sum\",\"params\":[1,2]}\n\
                 {\"jsonrpc\":\"2.0\",\"method\":\"update\",\"params\":[1]}\n\n\
                 {\"jsonrpc\":\"2.0\",\"method\":\"get_data\",\"id\":\"nine\"}\n";
    let array = format!("[{}]", lines.trim().replace("\n\n", "\n").replace('\n', ","));
    let (_server, _scratch, endpoints) = everywhere();
    for endpoint in endpoints {
        for input in [lines, &array] {
            let ended = cli_with_input(&["batch", &endpoint], input);
            let responses: Vec<_> = ended.stdout.lines().collect();
            assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{endpoint}");
            assert_eq!(
                responses,
                [
                    r#"{"jsonrpc":"2.0","result":3,"id":1}"#,
                    r#"{"jsonrpc":"2.0","result":["hello",5],"id":"nine"}"#
                ]
            );
        }
    }
}

#[test]
fn an_error_in_a_batch_is_printed_and_fails_it() {
    let server = demo();
    let calls = "[{\"method\":\"sum\",\"params\":[1]},{\"method\":\"fail\",\"params\":[7,\"no\"]}]";
    let ended = cli(&["batch", server.endpoint("tcp"), "-d", calls]);
    assert_eq!(ended.code, Some(1));
    let second = ended.stdout.lines().nth(1).unwrap();
    assert_eq!(second, r#"{"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":2}"#);
}

#[test]
fn exit_1_is_an_error_of_the_peer() {
    let server = demo();
    let endpoint = server.endpoint("tcp");
    let ended = cli(&["call", endpoint, "fail", "-32050", "out of tea", "{\"cups\":0}"]);
    fails(&ended, 1, &["-32050", "out of tea", "{\"cups\":0}"]);
    fails(&cli(&["call", endpoint, "subtract", "a", "b"]), 1, &["-32602"]);
    fails(&cli(&["call", endpoint, "subtrct"]), 1, &["-32601", "hint:", "`subtract`"]);
}

#[test]
fn exit_2_is_an_invalid_command_line() {
    for (words, remedy) in [
        (&["call"][..], "Usage:"),
        (&["frobnicate"], "Usage:"),
        (&["call", "localhost:80", "m"], "http://host:port"),
        (&["call", "stdio:", "m"], "exec:command"),
        (&["call", "ssl://example.org", "m"], "https://"),
        (&["call", "-k", "http://h:1", "m"], "https://"),
        (&["call", "https://h:1", "m", "--cacert", "/no/such/file"], "/no/such/file"),
        (&["call", "https://h:1", "m", "--cacert", "/dev/null"], "found no certificate"),
        (&["call", "https://h:1", "m", "--key", "/dev/null"], "--cert"),
        (&["serve", "https://127.0.0.1:0"], "--tls-self-signed"),
        (&["serve", "http://127.0.0.1:0", "--tls-self-signed"], "https://"),
        (&["serve", "tls://127.0.0.1:0", "--tls-cert", "/dev/null"], "found no certificate"),
        (&["call", "tcp://h:1", "m", "1", "a=b"], "name all params or none"),
        (&["call", "tcp://h:1", "m", "-d", "7"], "an Array or an Object"),
        (&["call", "tcp://h:1", "m", "-d", "[1"], "not JSON"),
        (&["call", "tcp://h:1", "m", "-d", "@/no/such/file"], "/no/such/file"),
        (&["call", "tcp://h:1", "m", "--id", "[1]"], "an id is a Number"),
        (&["call", "tcp://h:1", "m", "--timeout", "soon"], "500ms"),
        (&["batch", "tcp://h:1", "-d", "[]"], "one per line"),
        (&["batch", "tcp://h:1", "-d", "{\"params\":[]}"], "`method` is missing"),
        (&["serve", "exec:cat"], "stdio:"),
        (&["serve", "stdio:", "stdio:"], "only one stdin"),
        (&["serve", "--max-frame-bytes", "big"], "32MiB"),
        (&["serve", "--log", "loud"], "debug"),
    ] {
        fails(&cli(words), 2, &[remedy]);
    }
}

#[test]
fn exit_3_is_a_peer_that_cannot_be_reached() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "ws", "tcp"] {
        let ended = cli(&["call", &format!("{scheme}://{free}"), "m"]);
        fails(&ended, 3, &["is the server running there?"]);
    }
    fails(&cli(&["call", "unix:/no/such.sock", "m"]), 3, &["is the server running there?"]);
    fails(&cli(&["call", "exec:/no/such/command", "m"]), 3, &["installed"]);
    // The process starts and exits without a reply.
    fails(&cli(&["call", "exec:true", "m"]), 3, &["check the log of the server"]);
    fails(&cli(&["notify", &format!("tcp://{free}"), "m"]), 3, &["is the server running there?"]);
}

#[test]
fn exit_4_is_a_timeout() {
    let (_server, _scratch, endpoints) = everywhere();
    for endpoint in &endpoints {
        let ended = cli(&["call", "--timeout", "100ms", endpoint, "sleep", "60000"]);
        fails(&ended, 4, &["within 100ms", "--timeout 2m"]);
    }
    // A server that accepts and sends nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("ws://{}", mute.local_addr().unwrap());
    fails(&cli(&["call", "--timeout", "100ms", &endpoint, "m"]), 4, &["within 100ms"]);
}

#[test]
fn exit_5_is_a_protocol_violation_of_the_peer() {
    for answer in [
        r#"{"jsonrpc":"2.0","result":1,"error":{"code":1,"message":"m"},"id":1}"#,
        r#"{"jsonrpc":"2.0","error":"boom","id":1}"#,
    ] {
        let script =
            format!("exec:sh -c \"read line; echo '{}'; read more\"", answer.replace('"', "\\\""));
        fails(&cli(&["call", &script, "m"]), 5, &["-v shows the messages"]);
        fails(&cli(&["call", &http_server_with_reply(answer), "m"]), 5, &["-v shows the messages"]);
    }
    // On a duplex connection these would not be read as replies.
    for answer in [
        "",
        "<html>",
        "[]",
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","result":1,"id":"other"}"#,
    ] {
        fails(&cli(&["call", &http_server_with_reply(answer), "m"]), 5, &["-v shows the messages"]);
    }
}

#[test]
fn a_wrong_framing_is_named() {
    let headers = Server::start("tcp+header://127.0.0.1:0", "");
    let endpoint = format!("tcp://{}", headers.address("tcp+header"));
    fails(&cli(&["call", &endpoint, "sum", "1"]), 5, &["tcp+header://"]);
    let web = Server::start("http://127.0.0.1:0", "");
    let endpoint = format!("tcp://{}", web.address("http"));
    fails(&cli(&["call", &endpoint, "sum", "1"]), 5, &["use http://"]);
}

#[test]
fn a_local_limit_is_not_an_error_of_the_peer() {
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", "");
    for scheme in ["http", "tcp"] {
        let arguments =
            ["call", server.endpoint(scheme), "echo", "[[[[[[1]]]]]]", "--max-depth", "5"];
        fails(&cli(&arguments), 3, &["exceeds a limit of this side", "nesting"]);
    }
}

/// Starts an HTTP server that replies to one POST with this body.
fn http_server_with_reply(body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    thread::spawn(move || {
        let mut reader = BufReader::new(listener.accept().unwrap().0);
        let mut line = String::from("-");
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
        // Reads to the end: closing with unread bytes would reset the connection.
        let _ = reader.read_to_end(&mut Vec::new());
    });
    endpoint
}

#[test]
fn limits_come_from_flags_and_from_the_environment() {
    let (_server, _scratch, endpoints) = everywhere();
    let long = "x".repeat(100);
    for endpoint in endpoints {
        let call = ["call", &endpoint, "echo", &long];
        let ended = cli(&[&call[..], &["--max-frame-bytes", "32"]].concat());
        fails(&ended, 3, &["32 bytes"]);
        let ended = run(antiphon().args(call).env("ANTIPHON_MAX_FRAME_BYTES", "32"), b"");
        fails(&ended, 3, &["32 bytes"]);
    }
    let ended = run(antiphon().arg("serve").env("ANTIPHON_MAX_CONNECTIONS", "none"), b"");
    fails(&ended, 2, &["`none` is not a count"]);
}

#[test]
fn help_has_examples_endpoints_and_exit_codes() {
    let help = cli(&["--help"]);
    for part in ["Examples:", "Endpoints:", "Exit codes:", "antiphon call http://"] {
        assert!(help.stdout.contains(part), "{part} is missing: {}", help.stdout);
    }
    for command in ["serve", "call", "notify", "batch", "completions"] {
        let help = cli(&[command, "--help"]);
        assert_eq!((help.code, &*help.stderr), (Some(0), ""));
        assert!(help.stdout.contains(&format!("Examples:\n  antiphon {command}")), "{command}");
        assert!(!help.stdout.contains('\x1b'), "{command} is coloured without a terminal");
    }
    assert!(cli(&["serve", "--help"]).stdout.contains("ANTIPHON_MAX_FRAME_BYTES"));
    assert!(cli(&["--version"]).stdout.starts_with("antiphon "));
}

#[test]
fn completions_are_scripts_for_each_shell() {
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef antiphon"), ("fish", "complete -c")]
    {
        let script = cli(&["completions", shell]);
        assert_eq!(script.code, Some(0));
        assert!(script.stdout.contains(mark) && script.stdout.contains("batch"), "{shell}");
    }
}
