//! Servers that crash: on every message, on some, and again after each start.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use super::{Peer, check, ends, finds_no_way, finds_nobody, right_until, tells};
use crate::checking::mutants::fault::Fault;
use crate::checking::mutants::reference::Reference;
use crate::support::{Ended, PATIENCE, Scratch, antiphon};

#[test]
fn one_that_closes_at_once() {
    for scheme in ["http", "tcp+line", "tcp+header"] {
        let peer = Peer::start(|_| Ok(()));
        finds_nobody(&peer.endpoint(scheme));
    }
    let peer = Peer::start(|_| Ok(()));
    finds_no_way(&peer.endpoint("ws"));
}

#[test]
fn one_that_closes_on_every_message() {
    let peer = Peer::start(right_until(0, |_| Ok(())));
    finds_nobody(&peer.endpoint("tcp+line"));
}

/// From here on, it closes the connection on each message, but accepts new connections.
#[test]
fn one_that_closes_on_every_message_from_some_on() {
    let peer = Peer::start(right_until(60, |_| Ok(())));
    let judged = tells(&check(&peer.endpoint("tcp+line"), &[]), "the server closed the connection");
    assert!(judged.count("passed") > 10, "{}", judged.findings());
}

#[test]
fn a_process_that_dies_on_every_message() {
    for command in ["sh -c 'read line; exit 3'", "sh -c 'exit 3'", "true"] {
        finds_nobody(&format!("exec:{command}"));
    }
}

/// The next case gets a new process, and passes.
#[test]
fn a_process_that_dies_on_one_message() {
    let script = r#"while read -r line; do case "$line" in
        *deadly*) exit 3;;
        *) id=$(printf %s "$line" | sed 's/.*"id"://;s/}.*//')
           echo "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":$id}";;
    esac; done"#;
    let cases = "@ section 5\n\
        == first: it works\n--> {\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}\n<-- {\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n\
        == deadly: it survives\n@ level choice\n--> {\"jsonrpc\":\"2.0\",\"method\":\"deadly\",\"id\":1}\n<-- {\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n\
        == last: it still works\n--> {\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}\n<-- {\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n";
    let scratch = Scratch::new();
    let (program, file) = (scratch.path("server.sh"), scratch.path("own.wire"));
    std::fs::write(&program, script).unwrap();
    std::fs::write(&file, cases).unwrap();
    let endpoint = format!("exec:sh {}", program.display());
    let ended = check(&endpoint, &[&file.display().to_string(), "--method", "a"]);
    let judged = tells(&ended, "exit status: 3");
    let verdicts = ["first", "deadly", "last"].map(|name| judged.verdict(name));
    assert_eq!(verdicts, ["passed", "failed", "passed"], "{}", judged.findings());
    assert_eq!(judged.case("deadly")["fault"], "crashed");
}

/// A server that a message kills is restarted, and the following cases pass.
#[test]
fn a_spawned_server_that_dies_on_some_messages() {
    let judged = tells(&spawned("depth", &["--hostile", "--only", "bomb-*"]), "exit status: 3");
    for name in ["bomb-unclosed-arrays", "bomb-closed-arrays", "bomb-in-params"] {
        let case = judged.case(name);
        assert_eq!(
            (&case["verdict"], &case["fault"]),
            (&"failed".into(), &"crashed".into()),
            "{case:#}"
        );
    }
    assert_eq!(judged.verdict("bomb-closing"), "passed", "{}", judged.findings());
}

#[test]
fn a_spawned_server_that_dies_on_every_message() {
    let ended = spawned("everything", &[]);
    assert_eq!((ended.code, &*ended.stdout), (Some(5), ""), "{ended:?}");
}

/// It replies to the first calls, and then crashes on each case. When the time is up, there is a report.
#[test]
fn a_spawned_server_that_dies_again_and_again() {
    let judged = tells(&spawned("cases", &[]), "exit status: 3");
    assert!(judged.count("not_run") > 0, "{}", judged.report["counts"]);
}

/// The server ends with the run, even if a shell started it.
#[test]
fn a_spawned_server_is_gone_in_the_end() {
    let address = free();
    let command = format!("sh -c {}", shell_words::quote(&format!("{}; true", mortal_command())));
    let ended = spawned_by(&command, address, "depth", &["--hostile", "--only", "bomb-*"]);
    tells(&ended, "the server");
    let is_gone = || TcpStream::connect(address).is_err();
    let begun = Instant::now();
    while !is_gone() {
        assert!(begun.elapsed() < PATIENCE, "the server is still there");
        thread::yield_now();
    }
}

/// Runs `antiphon check --spawn` with [`mortal`] as the server.
fn spawned(of: &str, flags: &[&str]) -> Ended {
    spawned_by(&mortal_command(), free(), of, flags)
}

fn spawned_by(command: &str, address: SocketAddr, of: &str, flags: &[&str]) -> Ended {
    let mut antiphon = antiphon();
    antiphon.env(DIES_OF, of).env(LISTENS_ON, address.to_string());
    antiphon.args(["check", &format!("tcp+line://{address}"), "--spawn", command]);
    ends(antiphon.args(["--timeout", "1s", "--budget", "5s", "--format", "json"]).args(flags))
}

/// An endpoint without a listener.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn mortal_command() -> String {
    let test = std::env::current_exe().unwrap();
    format!("'{}' --exact checking::endless::deaths::mortal", test.display())
}

const DIES_OF: &str = "ANTIPHON_TEST_DIES_OF";
const LISTENS_ON: &str = "ANTIPHON_TEST_LISTENS_ON";

/// Not a test, but a server process that messages kill.
#[test]
fn mortal() {
    let (Ok(of), Ok(address)) = (std::env::var(DIES_OF), std::env::var(LISTENS_ON)) else { return };
    let listener = TcpListener::bind(address).unwrap();
    for socket in listener.incoming().map_while(Result::ok) {
        let of = of.clone();
        thread::spawn(move || live(&socket, &of));
    }
}

fn live(mut socket: &TcpStream, of: &str) -> io::Result<()> {
    let reference = Reference::new(Some(Fault::DepthKills));
    for line in BufReader::new(socket).split(b'\n') {
        let line = line?;
        let is_ours = line.windows(9).any(|part| part == b"\"antiphon");
        let answers = match of {
            "everything" => None,
            "cases" if !is_ours => None,
            _ => reference.answers(&line).ok(),
        };
        let Some(answers) = answers else { std::process::exit(3) };
        for answer in answers {
            socket.write_all(format!("{answer}\n").as_bytes())?;
        }
    }
    Ok(())
}
