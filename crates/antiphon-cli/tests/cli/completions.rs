//! Completions in a real bash.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{FakeServer, Framing, Scratch, Server, antiphon, methods, result, run};

/// The steps of bash after the tab key. Words are split at `:` and `=` too.
const TAB: &str = r#"
source <(antiphon completions bash)
[[ "$(complete -p antiphon)" =~ -F\ ([a-z_]+) ]] || exit 9
COMP_LINE="$1" COMP_POINT=${#1}
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"${BASH_REMATCH[1]}" antiphon "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// Returns the completions that bash offers for a line.
fn completed(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let spaced = word.replace(':', "\0:\0").replace('=', "\0=\0");
        words.extend(spaced.split('\0').filter(|part| !part.is_empty()).map(str::to_owned));
    }
    if line.ends_with(' ') {
        words.push(String::new());
    }
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", TAB, "bash", line]).args(words).env("PATH", path());
    let ended = run(&mut bash, b"");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "", "{line}");
    ended.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns PATH with the binary under test first.
fn path() -> OsString {
    let ours = Path::new(antiphon().get_program()).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(ours).chain(std::env::split_paths(&others))).unwrap()
}

#[test]
fn methods_come_from_the_endpoint_on_the_line() {
    let server = Server::start("http://127.0.0.1:0 ws://127.0.0.1:0 tcp+header://127.0.0.1:0", "");
    for scheme in ["http", "ws", "tcp+header"] {
        let endpoint = server.endpoint(scheme);
        for command in ["call", "notify", "describe"] {
            let line = format!("antiphon {command} {endpoint} su");
            assert_eq!(completed(&line), ["subtract", "sum", "subscribe_ticks"], "{line}");
        }
        let line = format!("antiphon subscribe --timeout 3s {endpoint} ");
        assert_eq!(completed(&line), ["subscribe_ticks"]);
    }
    let line = format!("antiphon call -H 'A: b' {} ", server.endpoint("http"));
    assert_eq!(completed(&line).len(), 14);
}

#[test]
fn params_come_from_the_method() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    let endpoint = server.endpoint("tcp");
    for (typed, offered) in [
        ("subtract ", &["minuend:=", "subtrahend:="][..]),
        ("subtract minuend:=1 ", &["subtrahend:="]),
        ("subtract sub", &["subtrahend:="]),
        ("fail code:=1 m", &["message="]),
        // readline replaces only the text after `:` or `=`.
        ("fail code:=1 message", &["message="]),
        ("call_me_back method=x ", &["params:="]),
    ] {
        assert_eq!(completed(&format!("antiphon call {endpoint} {typed}")), offered, "{typed}");
    }
    // After a param by position no names are offered, but flags are.
    let flags = completed(&format!("antiphon call {endpoint} subtract 1 "));
    assert!(flags.contains(&"--check".to_owned()), "{flags:?}");
    assert_eq!(completed(&format!("antiphon call {endpoint} --che")), ["--check"]);
}

/// Headers and `--schema` on the line apply to the query.
#[test]
fn the_query_uses_the_flags_on_the_line() {
    let server = Server::start("http://127.0.0.1:0", "--auth-bearer s3cret");
    let endpoint = server.endpoint("http");
    assert_eq!(completed(&format!("antiphon call {endpoint} subt")), [""; 0]);
    let line = format!("antiphon call -H 'Authorization: Bearer s3cret' {endpoint} subt");
    assert_eq!(completed(&line), ["subtract"]);
    let scratch = Scratch::new();
    let file = scratch.path("openrpc.json");
    let names = ["a:one", "a:two", "$(touch x)", "-rf", "two words"];
    let methods = names.map(|name| format!(r#"{{"name":"{name}","params":[]}}"#)).join(",");
    let document = format!(
        r#"{{"openrpc":"1.4.1","info":{{"title":"t","version":"1"}},"methods":[{methods}]}}"#
    );
    std::fs::write(&file, document).unwrap();
    let line = format!("antiphon call --schema {} tcp://127.0.0.1:1 ", file.display());
    // A name with special characters of a shell is not offered.
    assert_eq!(completed(&line), ["a:one", "a:two"]);
    assert_eq!(completed(&format!("{line}a:t")), ["two"]);
}

#[test]
fn an_unreachable_endpoint_is_ignored() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for endpoint in [format!("tcp://{address}"), format!("tcp://{gone}"), "nonsense".to_owned()] {
        let offered = completed(&format!("antiphon call {endpoint} --ra"));
        assert_eq!(offered, ["--raw"], "{endpoint}");
        assert_eq!(completed(&format!("antiphon call {endpoint} sub")), [""; 0], "{endpoint}");
    }
}

#[test]
fn completion_starts_no_process() {
    let scratch = Scratch::new();
    let trace = scratch.path("started");
    let line = format!("antiphon call 'exec:touch {}' sub", trace.display());
    assert_eq!(completed(&line), [""; 0]);
    assert!(!trace.exists());
    // A call does start it, so the test would notice.
    let endpoint = format!("exec:touch {}", trace.display());
    run(antiphon().args(["call", &endpoint, "subtract"]), b"");
    assert!(trace.exists());
}

/// The lines of `--init` may change the state of the server, such as a login.
#[test]
fn completion_runs_neither_init_nor_open() {
    let scratch = Scratch::new();
    let file = scratch.path("main.c");
    std::fs::write(&file, "int a;").unwrap();
    let document = r#"{"openrpc":"1.4.1","info":{"title":"t","version":"1"},
        "methods":[{"name":"work","params":[]}]}"#;
    let document = document.replace('\n', "");
    let respond = move |message: &Value| match &message["method"] {
        method if method == "rpc.discover" => result(message, &document),
        _ => result(message, "{}"),
    };
    let server = FakeServer::start(Framing::Header, respond);
    let flags = format!("--dialect lsp --open {} --init 'login ada'", file.display());
    let line = format!("antiphon call {} {flags} wo", server.endpoint());
    assert_eq!(completed(&line), ["work"]);
    assert_eq!(methods(&server.record()), ["initialize", "initialized", "rpc.discover"]);
}
