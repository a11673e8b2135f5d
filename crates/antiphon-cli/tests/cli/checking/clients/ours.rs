//! Antiphon's own clients, on every wire: no failure, no warning, no different choice.

use std::process::ExitCode;
use std::time::Duration;

use antiphon::transport::stream::FramedStream;
use antiphon::{CallError, Client, Framing};
use tokio::net::unix::pipe;
use tokio::runtime::Builder;

use super::{antiphon_call, client, endpoint, judged};

/// The number of scenarios that every wire has at least.
const LEAST: u64 = 70;

#[track_caller]
fn passes(flags: &[&str], client: &[String]) {
    let judged = judged(flags, client);
    let wrong = ["failed", "warned", "differs"].map(|verdict| judged.count(verdict));
    assert_eq!(wrong, [0, 0, 0], "{}", judged.findings());
    assert_eq!(judged.code, Some(0));
    assert!(judged.count("passed") >= LEAST, "only {} scenarios are run", judged.count("passed"));
}

/// `antiphon call` has one call in flight; the client below has two, and a batch.
#[track_caller]
fn both_pass(over: &str) {
    passes(
        &["-j8", "--over", over],
        &antiphon_call(&["call", "{endpoint}", "subtract", "42", "23"]),
    );
    all_pass(&["-j8", "--over", over], &client("ours::two_calls"));
}

/// Like `passes`, and no scenario is skipped because of missing calls.
#[track_caller]
fn all_pass(flags: &[&str], client: &[String]) {
    let judged = judged(flags, client);
    let found: Vec<&str> = ["failed", "warned", "differs"].map(|v| judged.names(v)).concat();
    assert!(found.is_empty(), "{}", judged.findings());
    let lacking = judged.report["cases"].as_array().unwrap().iter().find(|case| {
        case["reason"].as_str().is_some_and(|reason| {
            reason.starts_with("the client") && !reason.contains("more than one")
        })
    });
    let is_http = flags.contains(&"http");
    assert!(is_http || lacking.is_none(), "{lacking:?}");
}

#[test]
fn http() {
    both_pass("http");
}

#[test]
fn websocket() {
    both_pass("ws");
}

#[test]
fn tcp_lines() {
    both_pass("tcp");
}

#[test]
fn tcp_headers() {
    both_pass("tcp+header");
}

#[test]
fn unix() {
    both_pass("unix");
}

#[test]
fn stdio_lines() {
    all_pass(&["-j8", "--over", "stdio"], &on_stdio(Framing::Line));
}

#[test]
fn stdio_headers() {
    all_pass(&["-j8", "--over", "stdio", "--framing", "header"], &on_stdio(Framing::Header));
}

/// The test harness prints to stdout, which must not reach the wire. So stdout goes to stderr, and the wire
/// is file descriptor 3.
fn on_stdio(framing: Framing) -> Vec<String> {
    let name = if framing == Framing::Line { "ours::line_on_3" } else { "ours::header_on_3" };
    let shell = ["sh", "-c", "exec \"$@\" 3>&1 1>&2", "sh"].map(str::to_owned);
    [shell.to_vec(), client(name)].concat()
}

#[test]
#[ignore = "a client, which check-client starts"]
fn two_calls() -> ExitCode {
    let Some(endpoint) = endpoint() else { return ExitCode::FAILURE };
    ended(async {
        let builder = Client::builder().timeout(Duration::from_secs(5));
        match builder.connect(&endpoint).await {
            Ok(client) => calls(client).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    })
}

#[test]
#[ignore = "a client, which check-client starts"]
fn line_on_3() -> ExitCode {
    piped(Framing::Line)
}

#[test]
#[ignore = "a client, which check-client starts"]
fn header_on_3() -> ExitCode {
    piped(Framing::Header)
}

fn piped(framing: Framing) -> ExitCode {
    ended(async move {
        let options = pipe::OpenOptions::new();
        let receiver = options.open_receiver("/dev/stdin").map_err(|error| error.to_string())?;
        let sender = options.open_sender("/dev/fd/3").map_err(|error| error.to_string())?;
        let wire = FramedStream::new(tokio::io::join(receiver, sender), Some(framing), 32 << 20);
        let client = Client::builder().timeout(Duration::from_secs(5)).over(wire);
        calls(client).await.map_err(|error| error.to_string())
    })
}

/// Exits, so that the harness prints nothing more.
fn ended(work: impl Future<Output = Result<(), String>>) -> ! {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let code = match runtime.block_on(work) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    };
    std::process::exit(code)
}

/// Makes two calls at once, and then a batch.
async fn calls(client: Client) -> Result<(), CallError> {
    let (one, two) = futures_util::future::try_join(
        client.call::<serde_json::Value>("one", [1]).into_future(),
        client.call::<serde_json::Value>("two", [2]).into_future(),
    )
    .await?;
    let scenario = std::env::var("ANTIPHON_SCENARIO").unwrap_or_default();
    if scenario.starts_with("answers-") {
        assert_eq!((one, two), (serde_json::json!([1]), serde_json::json!([2])));
    }
    let mut batch = client.batch();
    let slots = [batch.call::<serde_json::Value>("one", [1]), batch.call("two", [2])];
    let mut replies = batch.send().await?;
    for slot in slots {
        replies.take(slot)?;
    }
    client.close().await;
    Ok(())
}
