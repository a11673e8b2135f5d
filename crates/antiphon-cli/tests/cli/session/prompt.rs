//! The prompt of a session, at a pseudo-terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::channel;

use super::notification;
use crate::support::{FakeServer, Framing, PATIENCE, Scratch, Server, Terminal, methods, result};

const PROMPT: &str = "antiphon> ";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";

/// A session at a terminal, whose home directory is temporary.
fn prompt(home: &Scratch, endpoint: &str, words: &[&str]) -> Terminal {
    let words = [&["session", endpoint], words].concat();
    let mut terminal = Terminal::start(home.path("").as_os_str(), &words);
    // The note may arrive after the prompt, which is then drawn again.
    terminal.expect("Ctrl-D ends the session");
    terminal.expect(PROMPT);
    terminal
}

#[test]
fn lines_are_edited_and_results_are_shown() {
    let server = Server::start("ws://127.0.0.1:0", "");
    let home = Scratch::new();
    let mut terminal = prompt(&home, server.endpoint("ws"), &[]);
    // Ctrl-A moves to the start of the line.
    terminal.press("1 2\x01sum \r");
    terminal.expect("3\r\n");
    terminal.expect(PROMPT);
    terminal.press("nope\r");
    terminal.expect("error -32601: Method not found");
    terminal.expect(PROMPT);
    // A paste of two lines.
    terminal.press("\x1b[200~x = echo {\"a\": [1.50]}\n$x[0].a\x1b[201~\r");
    terminal.expect("  1.50\r\n");
    terminal.expect(PROMPT);
    terminal.press("half a line");
    terminal.expect("half a line");
    terminal.press(CTRL_C);
    terminal.expect(PROMPT);
    terminal.press("exit\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
}

/// A program such as `expect` writes faster than the prompt reads.
#[test]
fn lines_that_arrive_in_one_read_all_run() {
    let server = Server::start("ws://127.0.0.1:0", "");
    let home = Scratch::new();
    let mut terminal = prompt(&home, server.endpoint("ws"), &[]);
    // No result is the end of a line that is typed. A result may appear after the next ones.
    terminal.press("sum 1 10\rsum 20 2\rsum 30 3\r");
    let results = ["11\r\n", "22\r\n", "33\r\n"];
    let mut seen: Vec<_> = results.iter().map(|_| terminal.expect_one_of(&results)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2]);
    terminal.press("exit\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
}

#[test]
fn ctrl_d_ends_the_session_with_the_handshake() {
    let server = FakeServer::start(Framing::Header, |message| result(message, "{}"));
    let home = Scratch::new();
    let endpoint = server.endpoint();
    let terminal = prompt(&home, &endpoint, &["--dialect", "lsp"]);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(methods(&server.record()), ["initialize", "initialized", "shutdown", "exit"]);
}

#[test]
fn tab_completes_methods_params_variables_and_commands() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let home = Scratch::new();
    let mut terminal = prompt(&home, server.endpoint("tcp"), &[]);
    terminal.press("tip = echo {\"height\": 7, \"hash\": 8}\r");
    terminal.expect(PROMPT);
    // The methods arrive in the background. Until then, `subtrx` is called.
    terminal.press("subtr\tx\r");
    while terminal.expect_one_of(&["error -32601", "error -32602"]) == 0 {
        terminal.expect(PROMPT);
        terminal.press("subtr\tx\r");
    }
    terminal.expect(PROMPT);
    terminal.press("subtr\tminu\t50 sub\t8\r");
    terminal.expect("42\r\n");
    terminal.expect(PROMPT);
    terminal.press("ec\t$ti\t[0].he\t\r");
    terminal.expect("  7\r\n");
    terminal.expect(PROMPT);
    terminal.press("exi\t\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
}

#[test]
fn a_language_server_decides_which_methods_are_completed() {
    let server = FakeServer::start(Framing::Header, |message| {
        result(message, r#"{"capabilities":{"hoverProvider":true,"definitionProvider":false}}"#)
    });
    let home = Scratch::new();
    let endpoint = server.endpoint();
    let mut terminal = prompt(&home, &endpoint, &["--dialect", "lsp"]);
    terminal.press("textDocument/h\t");
    terminal.expect("textDocument/hover ");
    terminal.press(CTRL_C);
    terminal.expect(PROMPT);
    terminal.press("textDocument/de\tx\r");
    terminal.expect("capabilities");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    assert!(methods(&server.record()).contains(&"textDocument/dex"));
}

#[test]
fn messages_of_the_server_do_not_destroy_the_line() {
    let (speak, messages) = channel::<Vec<String>>();
    let server = FakeServer::start(Framing::Line, move |message| match &message["method"] {
        method if method == "work" => {
            let mut replies = messages.recv_timeout(PATIENCE).unwrap();
            replies.extend(result(message, "\"done\""));
            replies
        }
        _ => result(message, "\"reported\""),
    });
    let home = Scratch::new();
    let endpoint = server.endpoint();
    let mut terminal = prompt(&home, &endpoint, &["--dialect", "v1"]);
    terminal.press("work\r");
    terminal.expect(PROMPT);
    terminal.press("rep");
    terminal.expect("rep");
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"ask","params":[]}"#;
    speak.send(vec![notification("news", r#"["\u001b]0;x\u009b"]"#), ask.to_owned()]).unwrap();
    terminal.expect("server: news [\"\\u001b]0;x\\u009b\"]\r\n");
    // The line is drawn again below each message.
    terminal.expect("antiphon> rep");
    terminal.expect("server: ask [] -> error -32601: Method not found\r\n");
    terminal.expect("\"done\"\r\n");
    terminal.expect("antiphon> rep");
    terminal.press("ort 1\r");
    terminal.expect("\"reported\"");
    terminal.expect(PROMPT);
    terminal.press("answer ask=5\r");
    terminal.expect(PROMPT);
    terminal.press("work\r");
    speak.send(vec![ask.to_owned()]).unwrap();
    terminal.expect("server: ask [] -> 5");
    terminal.expect("done");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(methods(&server.record()), ["work", "-", "report", "work", "-"]);
}

#[test]
fn ctrl_c_cancels_the_running_call_and_keeps_the_session() {
    let (called, is_called) = channel();
    let server = FakeServer::start(Framing::Header, move |message| {
        if message["method"] == "work" {
            called.send(()).unwrap();
            return Vec::new();
        }
        result(message, "7")
    });
    let home = Scratch::new();
    let endpoint = server.endpoint();
    let mut terminal = prompt(&home, &endpoint, &["--dialect", "lsp", "--no-init"]);
    terminal.press("work\r");
    is_called.recv_timeout(PATIENCE).unwrap();
    terminal.expect(PROMPT);
    // Dropped, since Ctrl-C cancels what was typed ahead, too.
    terminal.press("never\r");
    terminal.expect(PROMPT);
    terminal.press(CTRL_C);
    terminal.expect("cancelled");
    terminal.expect(PROMPT);
    terminal.press("next\r");
    terminal.expect("7\r\n");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(methods(&server.record()), ["work", "$/cancelRequest", "next"]);
}

#[test]
fn the_history_is_private_and_leaves_out_lines_that_begin_with_a_space() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let home = Scratch::new();
    let mut terminal = prompt(&home, server.endpoint("tcp"), &[]);
    terminal.press("sum 40 2\r");
    terminal.expect("42\r\n");
    terminal.expect(PROMPT);
    terminal.press(" echo s3cret\r");
    terminal.expect("  \"s3cret\"\r\n");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    let file = home.path(".local/state/antiphon/session-history");
    let history = std::fs::read_to_string(&file).unwrap();
    assert!(history.contains("sum 40 2") && !history.contains("s3cret"), "{history}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The next session has the lines of the first.
    let mut terminal = prompt(&home, server.endpoint("tcp"), &[]);
    terminal.press(UP);
    terminal.expect("sum 40 2");
    terminal.press("\r");
    terminal.expect("42\r\n");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    let other = Scratch::new();
    let mut terminal = prompt(&other, server.endpoint("tcp"), &["--no-history"]);
    terminal.press("sum 1\r");
    terminal.expect("1\r\n");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    assert!(!other.path(".local").exists());
}

#[test]
fn a_lost_connection_is_reported_at_the_prompt() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let home = Scratch::new();
    let mut terminal = prompt(&home, server.endpoint("tcp"), &[]);
    terminal.press("sum 1\r");
    terminal.expect("1\r\n");
    terminal.expect(PROMPT);
    drop(server);
    terminal.expect("error: the connection is lost: ");
    terminal.expect("Ctrl-D ends the session");
    terminal.expect(PROMPT);
    terminal.press("$_\r");
    terminal.expect("1\r\n");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(3));
}

#[test]
fn a_call_of_the_server_is_answered_by_hand() {
    let server = Server::start("ws://127.0.0.1:0", "");
    let home = Scratch::new();
    let flags = ["--ask", "--answer", "known=1"];
    let mut terminal = prompt(&home, server.endpoint("ws"), &flags);
    // The result of the call needs the answer, so the prompt reads it while the call runs.
    for (answer, expected) in [
        ("reply {\"a\": 1.50}\r", "  \"a\": 1.50\r\n"),
        ("reply !-7 not now\r", "error -7: not now"),
    ] {
        terminal.press("call_me_back ask [1]\r");
        terminal.expect("server: ask [1] waits for `reply JSON`");
        terminal.expect(PROMPT);
        terminal.press("reply {\r");
        terminal.expect("is not JSON");
        terminal.expect(PROMPT);
        terminal.press(answer);
        terminal.expect(expected);
        terminal.expect(PROMPT);
    }
    terminal.press("call_me_back known\r");
    terminal.expect("server: known -> 1");
    terminal.expect(PROMPT);
    terminal.press("reply 1\r");
    terminal.expect("no call of the server waits");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
}

/// JSON allows U+007F to U+009F unescaped.
#[test]
fn a_value_cannot_control_the_terminal_and_stays_exact_in_a_pipe() {
    let respond = |message: &serde_json::Value| {
        let mut replies = vec![notification("news", "[\"\u{9b}2J\"]")];
        replies.extend(result(message, "\"\u{9b}3J\""));
        replies
    };
    let server = FakeServer::start(Framing::Line, respond);
    let endpoint = server.endpoint();
    let home = Scratch::new();
    let words = ["--dialect", "v1", "--format", "json"];
    let mut terminal = prompt(&home, &endpoint, &words);
    terminal.press("work\r");
    terminal.expect("\"method\":\"news\",\"params\":[\"\\u009b2J\"]}");
    terminal.expect("\"result\":\"\\u009b3J\"}");
    terminal.expect(PROMPT);
    terminal.press(CTRL_D);
    let (code, seen) = terminal.end();
    assert!(code == Some(0) && !seen.contains('\u{9b}'), "{seen:?}");

    let server = FakeServer::start(Framing::Line, |message| result(message, "\"\u{9b}3J\""));
    let endpoint = server.endpoint();
    let terminal = Terminal::start(home.path("").as_os_str(), &["call", "--raw", &endpoint, "a"]);
    let (code, seen) = terminal.end();
    assert!(code == Some(0) && seen.contains("\"\\u009b3J\""), "{seen:?}");
    let (ended, _) = super::session_with(Framing::Line, respond, &["--quiet", "work"]);
    assert_eq!(ended.stdout, "\"\u{9b}3J\"\n");
}

/// The next line is already requested when the result arrives.
#[test]
fn a_closed_stdout_ends_the_session_without_a_key() {
    let (respond, response) = channel::<()>();
    let server = FakeServer::start(Framing::Line, move |message| {
        response.recv_timeout(PATIENCE).unwrap();
        result(message, "1")
    });
    let home = Scratch::new();
    let endpoint = server.endpoint();
    let words = ["session", "--dialect", "v1", &endpoint];
    let mut terminal = Terminal::start_without_stdout(home.path("").as_os_str(), &words);
    terminal.expect("Ctrl-D ends the session");
    terminal.expect(PROMPT);
    assert!(!terminal.is_cooked());
    terminal.press("work\r");
    terminal.expect("work");
    terminal.expect(PROMPT);
    respond.send(()).unwrap();
    terminal.expect("\u{1b}[?2004l\r\n");
    assert!(terminal.is_cooked());
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen:?}");
    assert_eq!(methods(&server.record()), ["work"]);
}

#[test]
fn the_history_leaves_out_the_secrets_of_a_bitcoin_wallet() {
    let server = Server::start("http://127.0.0.1:0", "--dialect bitcoin");
    let home = Scratch::new();
    let mut terminal = prompt(&home, server.endpoint("http"), &["--dialect", "bitcoin"]);
    for line in ["getblockcount", "walletpassphrase hush 60"] {
        terminal.press(&format!("{line}\r"));
        terminal.expect("error -32601");
        terminal.expect(PROMPT);
    }
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    let history = std::fs::read_to_string(home.path(".local/state/antiphon/session-history"));
    let history = history.unwrap();
    assert!(history.contains("getblockcount") && !history.contains("hush"), "{history}");
}
