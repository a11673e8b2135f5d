//! `antiphon subscribe`: items on stdout and a clean end.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::Signal;

use serde_json::json;

use crate::support::{FakeServer, Framing, Process, Server, antiphon, methods, result, run};

const WIRES: &str =
    "ws://127.0.0.1:0 tcp://127.0.0.1:0 tcp+header://127.0.0.1:0 http://127.0.0.1:0";

#[test]
fn each_item_is_a_line_and_count_limits_them() {
    let server = Server::start(WIRES, "");
    for wire in ["ws", "tcp", "tcp+header"] {
        let words = ["subscribe", "-v", server.endpoint(wire), "subscribe_ticks", "1", "-n", "3"];
        let ended = run(antiphon().args(words), b"");
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "0\n1\n2\n"), "{}", ended.stderr);
        // The server has confirmed the unsubscribe call.
        let exchange = ended.stderr.split("--> ").last().unwrap();
        assert!(exchange.contains("\"unsubscribe_ticks\""), "{}", ended.stderr);
        assert!(exchange.contains("\"result\":true"), "{}", ended.stderr);
    }
}

#[test]
fn the_end_of_the_source_is_a_success() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let words = ["subscribe", server.endpoint("tcp"), "subscribe_ticks", "ms:=1", "count:=4"];
    let ended = run(antiphon().args(words), b"");
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "0\n1\n2\n3\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("the source has ended"), "{}", ended.stderr);
}

#[test]
fn ctrl_c_unsubscribes_first() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let words = ["subscribe", "-v", server.endpoint("tcp"), "subscribe_ticks", "1"];
    let mut child =
        antiphon().args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "0\n");
    Process::of(&child).signal(Signal::INT);
    let reading = std::thread::spawn(move || stdout.lines().map_while(Result::ok).count());
    let output = child.wait_with_output().unwrap();
    reading.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    let exchange = stderr.split("--> ").last().unwrap();
    assert!(
        exchange.contains("unsubscribe_ticks") && exchange.contains("\"result\":true"),
        "{stderr}"
    );
}

#[test]
fn a_closed_stdout_is_a_success() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let mut child = antiphon()
        .args(["subscribe", server.endpoint("tcp"), "subscribe_ticks", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "0\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_failed_subscription_explains_why() {
    let server = Server::start(WIRES, "");
    for (words, code, said) in [
        (["http", "subscribe_ticks", "1"], 3, "use ws:// or wss://"),
        (["tcp", "subscribe_nothing", "1"], 1, "no such method"),
        (["tcp", "subscribe_ticks", "soon"], 1, "-32602"),
        (["tcp", "echo", "1"], 2, "--unsubscribe NAME"),
        (["tcp", "subscribe_ticks", "1.5"], 1, "ms"),
    ] {
        let [wire, method, param] = words;
        let words = ["subscribe", server.endpoint(wire), method, param];
        let ended = run(antiphon().args(words), b"");
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    // A method whose result is not an id is not a subscription.
    let words = ["subscribe", server.endpoint("tcp"), "get_data", "--unsubscribe", "x"];
    let ended = run(antiphon().args(words), b"");
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert!(ended.stderr.contains("answered with its id"), "{}", ended.stderr);
}

#[test]
fn a_lost_connection_is_an_error_without_reconnect() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let endpoint = server.endpoint("tcp").to_owned();
    let spawn = |flags: &[&str]| {
        let mut command = antiphon();
        command.args(["subscribe", &endpoint, "subscribe_ticks", "1"]).args(flags);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "0\n");
        (child, stdout)
    };
    let (leaving, _leaving) = spawn(&[]);
    let (mut staying, staying_out) = spawn(&["--reconnect"]);
    drop(server);
    let left = leaving.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&left.stderr);
    assert_eq!(left.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("--reconnect"), "{stderr}");
    let _again = Server::start(&endpoint, "");
    // The new subscription counts from 0.
    let mut lines = staying_out.lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "0"));
    let mut stderr = BufReader::new(staying.stderr.take().unwrap());
    let mut notice = String::new();
    stderr.read_line(&mut notice).unwrap();
    assert!(notice.contains("there is a gap"), "{notice}");
    Process::of(&staying).signal(Signal::INT);
    // Its stdout must be read, or it would block.
    let draining = std::thread::spawn(move || lines.count());
    assert_eq!(staying.wait().unwrap().code(), Some(130));
    draining.join().unwrap();
}

/// The kind alone is enough: the command knows the names of the methods.
#[test]
fn ethereum_subscribes_by_the_kind() {
    for (params, sent) in [
        (&["newHeads"][..], r#"["newHeads"]"#),
        (&["logs", "address=0x1"], r#"["logs",{"address":"0x1"}]"#),
        (&["newPendingTransactions", "true"], r#"["newPendingTransactions",true]"#),
        (&["eth_subscribe", "newHeads"], r#"["newHeads"]"#),
    ] {
        let item = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x9","result":"0x1"}}"#;
        let server =
            FakeServer::start(Framing::Line, move |message| match message["method"].as_str() {
                Some("eth_subscribe") => {
                    [result(message, r#""0x9""#), vec![item.to_owned()]].concat()
                }
                _ => result(message, "true"),
            });
        let endpoint = server.endpoint();
        let words = ["subscribe", "--dialect", "ethereum", "-n", "1", &endpoint];
        let ended = run(antiphon().args(words).args(params), b"");
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "\"0x1\"\n"), "{}", ended.stderr);
        let record = server.record();
        assert_eq!(methods(&record), ["eth_subscribe", "eth_unsubscribe"]);
        assert_eq!(
            (record[0]["params"].to_string(), &record[1]["params"][0]),
            (sent.to_owned(), &json!("0x9"))
        );
    }
    let http = ["subscribe", "http://127.0.0.1:1", "newHeads", "--dialect", "ethereum"];
    let ended = run(antiphon().args(http), b"");
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("geth has WebSockets on port 8546"), "{}", ended.stderr);
    // Without the dialect, the name is a method.
    let ended = run(antiphon().args(["subscribe", "tcp://127.0.0.1:1", "newHeads"]), b"");
    assert!(ended.stderr.contains("--unsubscribe NAME"), "{}", ended.stderr);
}

/// The second connection would have no login, or no handshake.
#[test]
fn reconnect_rejects_what_it_does_not_repeat() {
    for (flags, named) in [
        (&["--init", "login ada"][..], "the lines of --init"),
        (&["--dialect", "lsp", "--no-init", "--open", "a.c"], "the documents of --open"),
        (&["--dialect", "lsp"], "the handshake of --dialect lsp"),
        (&["--dialect", "mcp"], "the handshake of --dialect mcp"),
    ] {
        let words = ["subscribe", "--reconnect", "tcp://127.0.0.1:1", "subscribe_ticks"];
        let ended = run(antiphon().args(words).args(flags), b"");
        assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
        let expected = format!("--reconnect does not repeat {named}");
        assert!(ended.stderr.contains(&expected), "{flags:?}: {ended:?}");
    }
    let words = ["subscribe", "--reconnect", "tcp://127.0.0.1:1", "subscribe_ticks"];
    let ended = run(antiphon().args(words).args(["--dialect", "lsp", "--no-init"]), b"");
    assert_eq!(ended.code, Some(3), "{ended:?}");
}
