//! Wrong and late messages on a connection that several cases use: which case is blamed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use super::endless::Peer;
use super::{Judged, judged};
use crate::support::Scratch;

/// Runs these cases, whose ordinary method is `a`.
fn checked(endpoint: &str, cases: &str, flags: &[&str]) -> Judged {
    let scratch = Scratch::new();
    let file = scratch.path("late.wire");
    std::fs::write(&file, cases).unwrap();
    let file = file.display().to_string();
    judged(&[&[endpoint, &file, "--method", "a"], flags].concat())
}

const QUIET: &str = r#"
@ section 5
== called: a call is answered
--> {"jsonrpc":"2.0","method":"a","id":1}
<-- {"jsonrpc":"2.0","result":19,"id":1}
== quiet: what is quiet is not answered
@ level choice
--> {"jsonrpc":"2.0","method":"quiet"}
<-!
== called-again: a call is answered
--> {"jsonrpc":"2.0","method":"a","id":1}
<-- {"jsonrpc":"2.0","result":19,"id":1}
"#;

/// It arrives early on one connection, and late on the next. The previous case had all its responses.
#[test]
fn is_the_fault_of_the_case_that_expects_none() {
    let was_early = AtomicBool::new(false);
    let peer = Peer::start(move |socket| serve(socket, || !was_early.swap(true, Ordering::SeqCst)));
    let judged = checked(&peer.endpoint("tcp+line"), QUIET, &[]);
    let verdicts = ["called", "quiet", "called-again"].map(|name| judged.verdict(name));
    assert_eq!(verdicts, ["passed", "differs", "passed"], "{}", judged.findings());
}

/// It arrives while the next case runs, in place of the response to its call.
#[test]
fn is_not_the_fault_of_the_next_case() {
    let peer = Peer::start(|socket| serve(socket, || false));
    let judged = checked(&peer.endpoint("tcp+line"), QUIET, &[]);
    let verdicts = ["called", "quiet", "called-again"].map(|name| judged.verdict(name));
    assert_eq!(verdicts, ["passed", "differs", "passed"], "{}", judged.findings());
    let reason = judged.case("quiet")["reason"].as_str().unwrap();
    assert!(reason.starts_with("after the reply to the next call"), "{reason}");
}

/// Responds to notifications too: at once, or after the next response.
fn serve(mut socket: &TcpStream, mut is_early: impl FnMut() -> bool) -> io::Result<()> {
    const UNASKED: &str = "{\"jsonrpc\":\"2.0\",\"result\":0,\"id\":null}\n";
    let mut behind = "";
    for line in BufReader::new(socket).lines() {
        let line = line?;
        if line.contains("quiet") {
            if is_early() {
                socket.write_all(UNASKED.as_bytes())?;
            } else {
                behind = UNASKED;
            }
            continue;
        }
        let call: serde_json::Value = serde_json::from_str(&line)?;
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":{}}}\n", call["id"]);
        socket.write_all((answer + std::mem::take(&mut behind)).as_bytes())?;
    }
    Ok(())
}

const GARBAGE: &str = r#"
@ section 5
== called: a call is answered
--> {"jsonrpc":"2.0","method":"a","id":1}
<-- {"jsonrpc":"2.0","result":19,"id":1}
== garbage: text that is not JSON is -32700
--> garbage
<-- {"jsonrpc":"2.0","error":{"code":-32700},"id":null}
== called-later: a call is answered
--> {"jsonrpc":"2.0","method":"b","id":2}
<-- {"jsonrpc":"2.0","result":19,"id":2}
== invalid: a message without a method is -32600
--> {"jsonrpc":"2.0","id":3}
<-- {"jsonrpc":"2.0","error":{"code":-32600},"id":null}
"#;

/// Sends the Parse error of garbage only when `b` is called, and rejects no invalid message.
const LATE: &str = r#"
while IFS= read -r line; do
    case $line in
    garbage) due='{"jsonrpc":"2.0","error":{"code":-32700,"message":"late"},"id":null}'; continue ;;
    *'"b"'*) printf '%s\n' "$due" ;;
    '{"jsonrpc":"2.0","id":3}') continue ;;
    esac
    id=${line##*'"id":'}
    printf '{"jsonrpc":"2.0","result":19,"id":%s\n' "$id"
done
"#;

/// The case that was silent got its error after all. The next case got its result.
#[test]
fn clears_the_case_that_waited_for_it() {
    let scratch = Scratch::new();
    let script = scratch.path("late.sh");
    std::fs::write(&script, LATE).unwrap();
    let endpoint = format!("exec:sh {}", script.display());
    let judged = checked(&endpoint, GARBAGE, &["--timeout", "300ms"]);
    let verdicts =
        ["called", "garbage", "called-later", "invalid"].map(|name| judged.verdict(name));
    assert_eq!(verdicts, ["passed", "passed", "passed", "failed"], "{}", judged.findings());
    assert_eq!(judged.case("invalid")["fault"], "silent", "{}", judged.findings());
}

/// Two cases with one id, and one with an id that contains it.
const ONE_ID: &str = r#"
@ section 5
== eleven: a call is answered
--> {"jsonrpc":"2.0","method":"a","id":11}
<-- {"jsonrpc":"2.0","result":19,"id":11}
== first: a call is answered
--> {"jsonrpc":"2.0","method":"a","id":1}
<-- {"jsonrpc":"2.0","result":19,"id":1}
== other: a call is answered
--> {"jsonrpc":"2.0","method":"a","id":2}
<-- {"jsonrpc":"2.0","result":19,"id":2}
== second: a call is answered
--> {"jsonrpc":"2.0","method":"b","id":1}
<-- {"jsonrpc":"2.0","result":19,"id":1}
"#;

/// Checks a server whose responses to `b` are `wrong`, where it is not the first call on its connection.
fn checked_with(wrong: impl Fn() -> String + Send + Sync + 'static) -> Judged {
    let peer = Peer::start(move |mut socket| {
        for (at, line) in BufReader::new(socket).lines().enumerate() {
            let call: serde_json::Value = serde_json::from_str(&line?)?;
            let answer = if at > 0 && call["method"] == "b" {
                wrong()
            } else {
                format!("{{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":{}}}\n", call["id"])
            };
            socket.write_all(answer.as_bytes())?;
        }
        Ok(())
    });
    checked(&peer.endpoint("tcp+line"), ONE_ID, &["--timeout", "300ms"])
}

/// Checks that only the last case fails, and that the finding names the cause.
fn is_the_fault_of_the_last_case(judged: &Judged) {
    let verdicts = ["eleven", "first", "other", "second"].map(|name| judged.verdict(name));
    assert_eq!(verdicts, ["passed", "passed", "passed", "failed"], "{}", judged.findings());
    let reason = judged.case("second")["reason"].as_str().unwrap();
    assert!(
        reason.contains("only on a connection that earlier cases used (the last one: other)"),
        "{reason}"
    );
}

/// An earlier case sent the same id, so the response could be a late one. But no right response follows.
#[test]
fn a_wrong_response_on_a_used_connection_is_the_fault_of_its_case() {
    let wrong = || "{\"jsonrpc\":\"2.0\",\"result\":0,\"id\":1}\n".to_owned();
    is_the_fault_of_the_last_case(&checked_with(wrong));
}

/// Over HTTP, no response can be late.
#[test]
fn a_wrong_response_on_a_used_http_connection_is_the_fault_of_its_case() {
    let peer = Peer::start(|mut socket| {
        let mut reader = BufReader::new(socket);
        for at in 0.. {
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                if reader.read_line(&mut line)? == 0 {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let call: serde_json::Value = serde_json::from_slice(&body)?;
            let result = if at > 0 && call["method"] == "b" { 0 } else { 19 };
            let answer =
                format!("{{\"jsonrpc\":\"2.0\",\"result\":{result},\"id\":{}}}", call["id"]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
            write!(socket, "{head}{}\r\n\r\n{answer}", answer.len())?;
        }
        Ok(())
    });
    is_the_fault_of_the_last_case(&checked(&peer.endpoint("http"), ONE_ID, &[]));
}

#[test]
fn a_response_with_the_id_of_an_earlier_case_is_the_fault_of_its_case() {
    let earlier = || "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":2}\n".to_owned();
    is_the_fault_of_the_last_case(&checked_with(earlier));
}

#[test]
fn a_response_with_an_id_of_no_case_is_the_fault_of_its_case() {
    let unknown = || "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":99}\n".to_owned();
    is_the_fault_of_the_last_case(&checked_with(unknown));
}

/// A late message arrives once. Here, a second run of the case has the same finding.
#[test]
fn a_second_response_on_a_used_connection_is_the_fault_of_its_case() {
    const RIGHT: &str = "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n";
    const WRONG: &str = "{\"jsonrpc\":\"2.0\",\"result\":0,\"id\":1}\n";
    is_the_fault_of_the_last_case(&checked_with(|| RIGHT.repeat(2)));
    is_the_fault_of_the_last_case(&checked_with(|| format!("{WRONG}{RIGHT}")));
}

/// The server sends a second response to `first` only when `b` is called, before or after the right one.
#[test]
fn a_late_response_is_the_fault_of_the_earlier_case_with_that_id() {
    for is_before in [true, false] {
        let was_late = AtomicBool::new(false);
        let judged = checked_with(move || {
            let right = "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n".to_owned();
            let late = "{\"jsonrpc\":\"2.0\",\"result\":18,\"id\":1}\n".to_owned();
            match was_late.swap(true, Ordering::SeqCst) {
                true => right,
                false if is_before => late + &right,
                false => right + &late,
            }
        });
        let verdicts = ["eleven", "first", "other", "second"].map(|name| judged.verdict(name));
        assert_eq!(verdicts, ["passed", "failed", "passed", "passed"], "{}", judged.findings());
        let reason = judged.case("first")["reason"].as_str().unwrap();
        assert!(reason.starts_with("after the reply to the next call"), "{reason}");
    }
}

/// Returns this text once, before the right response to `b`.
fn once(late: &'static str) -> impl Fn() -> String + Send + Sync {
    let was_late = AtomicBool::new(false);
    move || {
        let late = if was_late.swap(true, Ordering::SeqCst) { "" } else { late };
        format!("{late}{{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}}\n")
    }
}

#[test]
fn each_late_response_is_the_fault_of_its_case() {
    let judged = checked_with(once(concat!(
        "{\"jsonrpc\":\"2.0\",\"result\":18,\"id\":1}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"log\"}\n",
        "{\"jsonrpc\":\"2.0\",\"result\":18,\"id\":2}\n",
    )));
    let verdicts = ["eleven", "first", "other", "second"].map(|name| judged.verdict(name));
    assert_eq!(verdicts, ["passed", "failed", "failed", "passed"], "{}", judged.findings());
}

/// The first message may be late. The second one can belong to no earlier case.
#[test]
fn a_wrong_response_behind_a_late_one_is_the_fault_of_its_case() {
    is_the_fault_of_the_last_case(&checked_with(once(concat!(
        "{\"jsonrpc\":\"2.0\",\"result\":18,\"id\":1}\n",
        "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":99}\n",
    ))));
}
