//! `--dialect bitcoin`: the cookie of a server, credentials, and exact amounts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;

use crate::support::{Ended, Scratch, Server, antiphon, run};

/// Starts a node that writes its cookie to this file.
fn node(cookie: &Path) -> Server {
    let flags = format!("--dialect bitcoin --auth-cookie {}", cookie.display());
    Server::start("http://127.0.0.1:0", &flags)
}

fn call(url: &str, arguments: &[&str]) -> Ended {
    run(antiphon().args(["call", "--dialect", "bitcoin", url]).args(arguments), b"")
}

#[test]
fn the_readers_of_the_cookie_are_admitted() {
    let scratch = Scratch::new();
    let cookie = scratch.path(".cookie");
    // An older file, which others could read, is replaced.
    fs::write(&cookie, "__cookie__:old").unwrap();
    fs::write(scratch.path(".cookie.tmp"), "left by a crash").unwrap();
    let server = node(&cookie);
    let text = fs::read_to_string(&cookie).unwrap();
    let password = text.strip_prefix("__cookie__:").unwrap();
    assert!(password.len() == 64 && password.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(fs::metadata(&cookie).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!scratch.path(".cookie.tmp").exists());

    let url = server.endpoint("http");
    let by_file = call(url, &["whoami", "--user", &format!("@{}", cookie.display())]);
    assert_eq!((by_file.code, &*by_file.stdout), (Some(0), "\"__cookie__\"\n"), "{by_file:?}");
    assert_eq!(call(url, &["whoami", "--user", &text]).stdout, "\"__cookie__\"\n");
    for refused in [&[][..], &["--user", "__cookie__:old"], &["--user", "ada:"]] {
        let ended = call(url, &[&["whoami"], refused].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(3), ""), "{ended:?}");
        assert!(ended.stderr.contains("401"), "{ended:?}");
        assert!(
            ended.stderr.contains("hint: --user, --jwt-secret or -H sends credentials"),
            "{ended:?}"
        );
    }
}

#[test]
fn every_command_that_connects_reads_the_cookie() {
    let scratch = Scratch::new();
    let cookie = scratch.path(".cookie");
    let server = node(&cookie);
    let (url, user) = (server.endpoint("http"), format!("@{}", cookie.display()));
    let check = ["check", url, "--profile", "bitcoin", "--only", "bitcoin", "--user", &user];
    let bench =
        ["bench", url, "subtract", "42", "23", "--expect", "19", "-n", "10", "--user", &user];
    for arguments in [&check[..], &bench[..], &["session", url, "subtract 42 23", "--user", &user]]
    {
        let ended = run(antiphon().args(arguments), b"");
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn the_printed_command_authenticates_without_showing_a_secret() {
    let scratch = Scratch::new();
    let cookie = scratch.path(".cookie");
    let server = node(&cookie);
    let password = fs::read_to_string(&cookie).unwrap();
    server.process().signal(Signal::TERM);
    let (_, stderr) = server.end();
    assert!(stderr.contains(&format!("try: antiphon call --user @{} http", cookie.display())));
    assert!(!stderr.contains(&password) && !stderr.contains("try: curl"), "{stderr}");
}

#[test]
fn the_cookie_is_removed_at_exit() {
    let scratch = Scratch::new();
    let cookie = scratch.path(".cookie");
    for signal in [Signal::TERM, Signal::INT] {
        ends_and_removes(&cookie, node(&cookie), signal);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_cookie_is_removed_when_the_terminal_closes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    // The test itself may run under `nohup`. A child inherits an ignored signal, but not a handler.
    let _handler = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).unwrap();
    let scratch = Scratch::new();
    let cookie = scratch.path(".cookie");
    ends_and_removes(&cookie, node(&cookie), Signal::HUP);
}

fn ends_and_removes(cookie: &Path, server: Server, signal: Signal) {
    assert!(cookie.exists());
    server.process().signal(signal);
    let (code, stderr) = server.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!cookie.exists());
}

/// A second server may have taken over the file.
#[test]
fn the_cookie_of_another_server_stays() {
    let scratch = Scratch::new();
    let cookie = scratch.path(".cookie");
    let server = node(&cookie);
    fs::write(&cookie, "__cookie__:another").unwrap();
    server.process().signal(Signal::TERM);
    assert_eq!(server.end().0, Some(0));
    assert_eq!(fs::read_to_string(&cookie).unwrap(), "__cookie__:another");
}

#[test]
fn an_unusable_file_is_named_with_a_remedy() {
    let scratch = Scratch::new();
    let missing = scratch.path("none").join(".cookie").display().to_string();
    let serve = ["serve", "http://127.0.0.1:0", "--auth-cookie", &missing];
    let ended = run(antiphon().args(serve), b"");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains(&missing), "{ended:?}");
    assert!(ended.stderr.contains("an existing directory that you can write to"), "{ended:?}");
    let ended = call("http://127.0.0.1:1", &["getblockcount", "--user", &format!("@{missing}")]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains(&missing), "{ended:?}");
    assert!(ended.stderr.contains("the .cookie of a running node"), "{ended:?}");
    let ended = call("http://127.0.0.1:1", &["getblockcount", "--user", "alice"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("a user and a password"), "{ended:?}");
}

/// A float would change these digits.
#[test]
fn amounts_are_exact_in_both_directions() {
    let server = Server::start("http://127.0.0.1:0", "--dialect bitcoin --auth-basic alice:hush");
    let url = format!("{}/wallet/savings", server.endpoint("http"));
    let amounts = ["20999999.97690000", "0.10000000", "123456789012345678901234567890.12345678"];
    for amount in amounts {
        for dialect in [&["--dialect", "bitcoin"][..], &["--dialect", "v1"], &[]] {
            let ended = run(
                antiphon()
                    .args(["call", &url, "echo", amount, "--user", "alice:hush"])
                    .args(dialect),
                b"",
            );
            assert_eq!(ended.stdout, format!("[{amount}]\n"), "{dialect:?} {ended:?}");
        }
    }
}

#[test]
fn errors_of_both_versions_are_shown() {
    let server = Server::start("http://127.0.0.1:0", "--dialect bitcoin");
    for dialect in [&["--dialect", "bitcoin"][..], &["--dialect", "v1"], &[]] {
        let ended =
            run(antiphon().args(["call", server.endpoint("http"), "none"]).args(dialect), b"");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("-32601"), "{ended:?}");
    }
}

#[test]
fn the_version_of_the_calls_can_be_set() {
    let server = Server::start("http://127.0.0.1:0", "--dialect bitcoin");
    for (flags, sent) in [
        (&["--dialect", "bitcoin"][..], r#"{"jsonrpc":"1.0","#),
        (&["--dialect", "bitcoin", "--jsonrpc", "2.0"], r#"{"jsonrpc":"2.0","#),
        (&["--dialect", "v1"], r#"{"method":"#),
        (&["--jsonrpc", "1.0"], r#"{"method":"#),
        (&["--jsonrpc", "2.0"], r#"{"jsonrpc":"2.0","#),
    ] {
        let words = ["call", "-v", server.endpoint("http"), "echo", "0.10000000"];
        let ended = run(antiphon().args(words).args(flags), b"");
        assert_eq!(ended.stdout, "[0.10000000]\n", "{ended:?}");
        let request = ended.stderr.lines().find_map(|line| line.strip_prefix("--> "));
        assert!(request.is_some_and(|text| text.starts_with(sent)), "{flags:?} {ended:?}");
    }
}

#[test]
fn a_raw_response_is_the_1_0_response_as_received() {
    let server = Server::start("http://127.0.0.1:0 tcp://127.0.0.1:0", "--dialect bitcoin");
    for scheme in ["http", "tcp"] {
        let raw = call(server.endpoint(scheme), &["--raw", "sum", "1"]);
        let response = "{\"result\":1,\"error\":null,\"id\":1}\n";
        assert_eq!((raw.code, &*raw.stdout), (Some(0), response), "{raw:?}");
        let raw = call(server.endpoint(scheme), &["--raw", "nope"]);
        assert_eq!(raw.code, Some(1));
        assert!(raw.stdout.starts_with("{\"result\":null,\"error\":{\"code\":-32601"), "{raw:?}");
    }
}

/// Servers differ in which of two headers they read.
#[test]
fn a_request_has_one_authorization_header() {
    let scratch = Scratch::new();
    let file = scratch.path("jwt.hex");
    fs::write(&file, "ab".repeat(32)).unwrap();
    let secret = file.display().to_string();
    let url = "http://127.0.0.1:1";
    for command in [&["call", url, "a"][..], &["check", url], &["bench", url, "a"]] {
        for (flag, value) in [("--user", "ada:hush"), ("--jwt-secret", &*secret)] {
            if (command[0], flag) == ("bench", "--jwt-secret") {
                continue;
            }
            let flags = ["-H", "authorization: Bearer x", flag, value];
            let ended = run(antiphon().args(command).args(flags), b"");
            assert_eq!(ended.code, Some(2), "{command:?}: {ended:?}");
            let expected = format!("{flag} and -H 'Authorization: ...' cannot be combined");
            assert!(ended.stderr.contains(&expected), "{command:?}: {ended:?}");
        }
    }
}
