//! An unexpected response, early on one connection and late on the next: which case is blamed.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use super::endless::Peer;
use super::judged;
use crate::support::Scratch;

const CASES: &str = r#"
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

/// The previous case is not blamed: it had all its responses.
#[test]
fn is_the_fault_of_the_case_that_expects_none() {
    let was_early = AtomicBool::new(false);
    let peer = Peer::start(move |socket| serve(socket, &was_early));
    let scratch = Scratch::new();
    let file = scratch.path("late.wire");
    std::fs::write(&file, CASES).unwrap();
    let file = file.display().to_string();
    let judged = judged(&[&peer.endpoint("tcp+line"), &file, "--method", "a"]);
    let verdicts = ["called", "quiet", "called-again"].map(|name| judged.verdict(name));
    assert_eq!(verdicts, ["passed", "differs", "passed"], "{}", judged.findings());
}

/// Responds to notifications too: the first time at once, and then after the next response.
fn serve(mut socket: &TcpStream, was_early: &AtomicBool) -> io::Result<()> {
    const UNASKED: &str = "{\"jsonrpc\":\"2.0\",\"result\":0,\"id\":null}\n";
    let mut behind = "";
    for line in BufReader::new(socket).lines() {
        let line = line?;
        if line.contains("quiet") {
            if was_early.swap(true, Ordering::SeqCst) {
                behind = UNASKED;
            } else {
                socket.write_all(UNASKED.as_bytes())?;
            }
            continue;
        }
        let call: serde_json::Value = serde_json::from_str(&line)?;
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":{}}}\n", call["id"]);
        socket.write_all((answer + std::mem::take(&mut behind)).as_bytes())?;
    }
    Ok(())
}
