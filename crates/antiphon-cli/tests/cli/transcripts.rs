//! Every case of `testdata/wire`, over every wire: one test a wire.
//!
//! A case runs on a connection of its own and ends with the probe, whose answer must be the very next
//! message. All failures of a wire are listed, not the first alone.

use std::fmt::Write as _;

use crate::support::{
    Connection, Framing, Http, Memory, Scratch, Server, Stream, Trust, Ws, workspace,
};
use crate::wire::{Bindings, Case, Pattern, Step, Wire, parse};

const TCP: &str = "tcp://127.0.0.1:0";

#[test]
fn http() {
    let server = Server::start("http://127.0.0.1:0", "");
    over(Wire::Http, &cases(), || Http::connect(server.address("http")));
}

#[test]
fn websocket_on_the_http_port() {
    let server = Server::start("http://127.0.0.1:0", "");
    over(Wire::Ws, &cases(), || Ws::connect(server.address("http")));
}

#[test]
fn websocket_alone() {
    let server = Server::start("ws://127.0.0.1:0", "");
    over(Wire::Ws, &cases(), || Ws::connect(server.address("ws")));
}

#[test]
fn tcp_lines_detected() {
    let server = Server::start(TCP, "");
    over(Wire::Line, &cases(), || Stream::tcp(server.address("tcp"), Framing::Line));
}

#[test]
fn tcp_headers_detected() {
    let server = Server::start(TCP, "");
    over(Wire::Header, &cases(), || Stream::tcp(server.address("tcp"), Framing::Header));
}

#[test]
fn tcp_lines() {
    let server = Server::start("tcp+line://127.0.0.1:0", "");
    over(Wire::Line, &cases(), || Stream::tcp(server.address("tcp+line"), Framing::Line));
}

#[test]
fn tcp_headers() {
    let server = Server::start("tcp+header://127.0.0.1:0", "");
    over(Wire::Header, &cases(), || Stream::tcp(server.address("tcp+header"), Framing::Header));
}

/// Values end where they close, so only what is one value can be sent: a text that is cut off would
/// go on with the probe. A newline is white space, as it is under `header`.
#[test]
fn tcp_values() {
    let is_value = |step: &Step| match step {
        Step::Send(message) => {
            serde_json::from_slice::<&serde_json::value::RawValue>(message).is_ok()
        }
        _ => true,
    };
    let cases: Vec<Case> =
        cases().into_iter().filter(|case| case.steps.iter().all(is_value)).collect();
    let server = Server::start("tcp+values://127.0.0.1:0", "");
    over(Wire::Header, &cases, || Stream::tcp(server.address("tcp+values"), Framing::Line));
}

#[test]
fn unix_lines() {
    let scratch = Scratch::new();
    let server = Server::start(&format!("unix:{}", scratch.path("a.sock").display()), "");
    over(Wire::Line, &cases(), || Stream::unix(server.address("unix"), Framing::Line));
}

#[test]
fn unix_headers() {
    let scratch = Scratch::new();
    let server = Server::start(&format!("unix:{}", scratch.path("a.sock").display()), "");
    over(Wire::Header, &cases(), || Stream::unix(server.address("unix"), Framing::Header));
}

#[test]
fn stdio_lines() {
    over(Wire::Line, &cases(), || Stdio::start("stdio:", Framing::Line));
}

#[test]
fn stdio_headers_detected() {
    over(Wire::Header, &cases(), || Stdio::start("stdio:", Framing::Header));
}

#[test]
fn stdio_headers() {
    over(Wire::Header, &cases(), || Stdio::start("stdio+header:", Framing::Header));
}

#[test]
fn https() {
    let (server, trust) = secure("https://127.0.0.1:0");
    over(Wire::Http, &cases(), || Http::tls(server.address("https"), &trust));
}

#[test]
fn websocket_on_the_https_port() {
    let (server, trust) = secure("https://127.0.0.1:0");
    over(Wire::Ws, &cases(), || Ws::tls(server.address("https"), &trust));
}

#[test]
fn secure_websocket_alone() {
    let (server, trust) = secure("wss://127.0.0.1:0");
    over(Wire::Ws, &cases(), || Ws::tls(server.address("wss"), &trust));
}

#[test]
fn tls_lines_detected() {
    let (server, trust) = secure("tls://127.0.0.1:0");
    over(Wire::Line, &cases(), || Stream::tls(server.address("tls"), &trust, Framing::Line));
}

#[test]
fn tls_headers() {
    let (server, trust) = secure("tls+header://127.0.0.1:0");
    let address = server.address("tls+header");
    over(Wire::Header, &cases(), || Stream::tls(address, &trust, Framing::Header));
}

/// A server with a certificate of its own, and what trusts it.
fn secure(endpoint: &str) -> (Server, Trust) {
    let scratch = Scratch::new();
    let file = scratch.path("cert.pem");
    let server = Server::start(endpoint, &format!("--tls-self-signed={}", file.display()));
    (server, Trust::in_file(&file))
}

#[test]
fn in_process() {
    over(Wire::Header, &cases(), Memory::connect);
}

/// A server whose only connection is its own stdin and stdout.
struct Stdio {
    stream: Stream,
    _server: Server,
}

impl Stdio {
    fn start(endpoint: &str, framing: Framing) -> Self {
        let (server, stream) = Stream::stdio(endpoint, framing);
        Self { stream, _server: server }
    }
}

impl Connection for Stdio {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        self.stream.send(message)
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        self.stream.receive()
    }
}

/// Runs each case that this wire can express, and lists what went wrong.
fn over<C: Connection>(wire: Wire, cases: &[Case], connect: impl Fn() -> C) {
    let mut failures = String::new();
    let mut count = (0, 0);
    for case in cases.iter().filter(|case| case.runs_over(wire)) {
        count.0 += 1;
        if let Err(fault) = run(case, &mut connect()) {
            count.1 += 1;
            let _ = write!(failures, "\n{case}\n  {fault}\n");
        }
    }
    assert!(count.0 > 100, "only {} cases run over this wire", count.0);
    assert!(count.1 == 0, "{} of {} cases failed:\n{failures}", count.1, count.0);
}

fn run(case: &Case, connection: &mut impl Connection) -> Result<(), String> {
    let mut bindings = Bindings::default();
    for (index, step) in case.steps.iter().enumerate() {
        take(step, connection, &mut bindings)
            .map_err(|fault| format!("step {} of {}: {fault}", index + 1, case.steps.len()))?;
    }
    probe(connection).map_err(|fault| format!("the probe after the last step: {fault}"))
}

fn take(
    step: &Step,
    connection: &mut impl Connection,
    bindings: &mut Bindings,
) -> Result<(), String> {
    match step {
        Step::Send(message) => connection.send(&bindings.fill(message)),
        Step::Expect(pattern) => expect(pattern, connection, bindings),
        Step::ExpectUnordered(patterns) => {
            let mut left: Vec<&Pattern> = patterns.iter().collect();
            while !left.is_empty() {
                expect_one_of(&mut left, connection, bindings)?;
            }
            Ok(())
        }
        // What comes next, at the latest the answer of the probe, shows that nothing came here.
        Step::Nothing => Ok(()),
    }
}

fn expect(
    pattern: &Pattern,
    connection: &mut impl Connection,
    bindings: &mut Bindings,
) -> Result<(), String> {
    let message =
        connection.receive().map_err(|fault| format!("{fault}\n  expected: {pattern}"))?;
    pattern.matches(&message, bindings)
}

/// Takes the pattern that the next message matches off the list.
fn expect_one_of(
    patterns: &mut Vec<&Pattern>,
    connection: &mut impl Connection,
    bindings: &mut Bindings,
) -> Result<(), String> {
    let expected =
        || patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n    or ");
    let message =
        connection.receive().map_err(|fault| format!("{fault}\n  expected: {}", expected()))?;
    match patterns.iter().position(|pattern| pattern.matches(&message, bindings).is_ok()) {
        Some(at) => {
            patterns.remove(at);
            Ok(())
        }
        None => {
            let found = String::from_utf8_lossy(&message);
            Err(format!("none of those due\n  expected: {}\n  found:    {found:.600}", expected()))
        }
    }
}

/// A call whose id no case uses: its answer must come next, and so nothing else did.
fn probe(connection: &mut impl Connection) -> Result<(), String> {
    connection.send(br#"{"jsonrpc":"2.0","method":"echo","params":["probe"],"id":"the probe"}"#)?;
    let answer = r#"{"jsonrpc":"2.0","result":["probe"],"id":"the probe"}"#;
    expect(&Pattern::parse(answer)?, connection, &mut Bindings::default())
}

/// The cases of all files.
fn cases() -> Vec<Case> {
    let directory = workspace().join("testdata/wire");
    let mut files: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "wire"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let group = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        cases.extend(parse(&group, &text).unwrap_or_else(|fault| panic!("{fault}")));
    }
    cases
}

/// A server that says what it was told to say, for the runner to judge.
struct Scripted(Vec<&'static str>);

impl Connection for Scripted {
    fn send(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        if self.0.is_empty() { Err("silence".into()) } else { Ok(self.0.remove(0).into()) }
    }
}

#[test]
fn the_runner_sees_what_is_wrong_missing_or_too_much() {
    let text = "@ section 4\n== a: b\n--> 1\n<-- {\"id\":1}\n<~~ 2\n<~~ 3\n<-!\n";
    let case = &parse("group", text).unwrap()[0];
    let judge = |answers: &[&'static str]| run(case, &mut Scripted(answers.to_vec()));
    let probed = r#"{"jsonrpc":"2.0","result":["probe"],"id":"the probe"}"#;
    assert_eq!(judge(&[r#"{"id":1}"#, "2", "3", probed]), Ok(()));
    assert_eq!(judge(&[r#"{"id":1}"#, "3", "2", probed]), Ok(()));
    for (answers, fault) in [
        (&[][..], "step 2 of 4: silence\n  expected: {\"id\":1}"),
        (&[r#"{"id":2}"#], "step 2 of 4: at `id`: expected 1, found 2"),
        (&[r#"{"id":1}"#, "2", "4"], "step 3 of 4: none of those due\n  expected: 3"),
        (&[r#"{"id":1}"#, "2", "2"], "step 3 of 4: none of those due\n  expected: 3"),
        (&[r#"{"id":1}"#, "2", "3", "5"], "the probe after the last step: at "),
        (&[r#"{"id":1}"#, "2", "3"], "the probe after the last step: silence"),
    ] {
        let judged = judge(answers).unwrap_err();
        assert!(judged.starts_with(fault), "{judged}");
    }
}
