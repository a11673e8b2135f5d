//! `antiphon mcp bridge` on the command line.

use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::Signal;

use super::servers::{McpHttp, binary, mcp};
use crate::support::{Process, Server, antiphon};

/// A bridge over HTTP. So many processes behind it say that they listen.
fn bridge(words: &[&str], processes: usize) -> (Server, String) {
    let mut command = antiphon();
    command.args(["mcp", "bridge"]).args(words).arg("http://127.0.0.1:0/mcp").stdin(Stdio::null());
    let server = Server::spawn(&mut command, 1 + processes);
    let url = server.endpoint("http").to_owned();
    (server, url)
}

#[test]
fn two_servers_are_one() {
    let everything = McpHttp::everything();
    let demo = format!("d_=exec:{0} mcp serve --from 'exec:{0} serve stdio:'", binary());
    let all = format!("all.={}", everything.url);
    let words = [
        "--to",
        &all,
        "--to",
        &demo,
        "--allow",
        "test_*,sum,subtract",
        "--deny",
        "test_c*",
        "--rename",
        "sum=add",
    ];
    let (_server, url) = bridge(&words, 2);
    let list = mcp(&["list", &url, "--tools"]);
    let names: Vec<_> = list.stdout.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    assert!(names.contains(&"all.test_simple_text") && names.contains(&"d_add"), "{names:?}");
    assert!(names.contains(&"d_subtract") && !names.contains(&"d_sum"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.contains("test_c") || name.contains("echo")),
        "{names:?}"
    );
    let called = mcp(&["call", &url, "d_subtract", "minuend:=42", "subtrahend:=23"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stdout.contains("19"), "{called:?}");
    let legacy = mcp(&["call", &url, "all.test_simple_text", "--revision", "2025-06-18"]);
    assert_eq!(legacy.code, Some(0), "{legacy:?}");
}

/// The policy of Streamable HTTP would refuse the GET that opens a WebSocket.
#[test]
fn clients_connect_by_websocket() {
    let demo = format!("exec:{} serve stdio:", binary());
    let tools = format!("exec:{} mcp serve --from '{demo}'", binary());
    for (words, processes) in [(["serve", "--from", &demo], 1), (["bridge", "--to", &tools], 2)] {
        let mut command = antiphon();
        command.arg("mcp").args(words).arg("ws://127.0.0.1:0").stdin(Stdio::null());
        let server = Server::spawn(&mut command, 1 + processes);
        let list = mcp(&["list", server.endpoint("ws"), "--tools"]);
        assert!(list.stdout.contains("subtract"), "{words:?} {list:?}");
    }
}

#[test]
fn a_wrong_command_line_says_what_to_do() {
    let everything = McpHttp::everything();
    let url = everything.url.as_str();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("http://{}/mcp", taken.local_addr().unwrap());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("tcp://{}", silent.local_addr().unwrap());
    let named = format!("a b={url}");
    for (words, code, expected) in [
        (&[][..], 2, "--to <[PREFIX=]ENDPOINT>"),
        (&["--to", "nonsense"], 2, "nonsense"),
        (&["--to", &named], 2, "is not a name of a tool"),
        (&["--to", url, "--to", url], 2, "--to PREFIX=ENDPOINT sets a prefix"),
        (&["--to", url, "--rename", "a"], 2, "NAME=OTHER"),
        (&["--to", url, "--rename", "a=b c"], 2, "is not a name of a tool"),
        (&["--to", "exec:cat", "-H", "a: b"], 2, "only HTTP has headers"),
        (&["--to", url, "--answer", "a=b"], 2, "--answer"),
        (&["--to", url, &taken], 3, "already in use"),
        (&["--to", "http://127.0.0.1:1/mcp"], 3, "http://127.0.0.1:1/mcp is not usable"),
        (&["--to", "exec:/nowhere/server"], 3, "exec:/nowhere/server"),
        (&["--to", &silent, "--timeout", "300ms"], 4, "no response within 300ms"),
    ] {
        let ended = mcp(&[&["bridge"], words].concat());
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{words:?}");
    }
}

#[test]
fn the_end_of_stdin_and_sigterm_end_it() {
    let everything = McpHttp::everything();
    let ended = mcp(&["bridge", "--to", &everything.url]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.stderr);
    let mut command = antiphon();
    command.args(["mcp", "bridge", "--to", &everything.url, "http://127.0.0.1:0/mcp"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("listening on http://127.0.0.1:"), "{line}");
    Process::of(&child).signal(Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
