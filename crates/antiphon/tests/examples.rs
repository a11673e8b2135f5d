//! Runs the examples as processes, and checks that the documents mention them.
//!
//! `cargo test` builds the examples whose features are enabled. The others are skipped.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// The timeout of each step.
const PATIENCE: Duration = Duration::from_secs(30);

/// An example that ends by itself: its name, whether its features are enabled, and parts of its output in
/// order.
type Ending = (&'static str, bool, &'static [&'static str]);

const ENDING: &[Ending] = &[
    (
        "hello",
        cfg!(feature = "tcp"),
        &[
            "listening on tcp://127.0.0.1:",
            "42 - 23 = 19",
            "by name: 19",
            r#"(-32602): {"path":"[0]""#,
        ],
    ),
    (
        "typed",
        cfg!(all(feature = "macros", feature = "tcp")),
        &["42 - 23 = 19", "3 of 5", "1 + 3 + 5 = 9", "the step is zero (-32051)"],
    ),
    (
        "chat",
        cfg!(all(feature = "macros", feature = "ws")),
        &[
            r#"[Bob] joined; already here: ["Ada"]"#,
            "[Bob] Ada: Is",
            r#"["Bob laughs"]"#,
            "[Ada] Bob:",
        ],
    ),
    (
        "subscriptions",
        cfg!(feature = "tcp"),
        &["tick 2", "items were lost", "starts again", "there is a gap", "tick 0", "tick 2"],
    ),
    (
        "progress",
        cfg!(feature = "tcp"),
        &["0 %", "50 %", "100 %", "indexed", "cancel the call", "was cancelled"],
    ),
    (
        "middleware",
        cfg!(feature = "http"),
        &[
            "without a token: Unauthorized (-32013)",
            r#"with a token: "ada""#,
            "a call that takes too long: Request timed out (-32012)",
            r#"another call: "ada""#,
            "over the rate limit: Rate limit exceeded (-32014)",
            r#"antiphon_calls_total{method="whoami",kind="request"} 4"#,
        ],
    ),
    (
        "http_policy",
        cfg!(feature = "http"),
        &["401 Unauthorized", r#"200 OK {"jsonrpc":"2.0","result":"savings""#, "404 Not Found {"],
    ),
    (
        "event_stream",
        cfg!(feature = "http"),
        &[
            "content-type: text/event-stream",
            r#"data: {"jsonrpc":"2.0","method":"indexed","params":["a.rs"]}"#,
            r#"["b.rs"]"#,
            r#"data: {"jsonrpc":"2.0","result":2,"id":1}"#,
        ],
    ),
    (
        "fallback",
        cfg!(feature = "http"),
        &["40 + 2 = 42", "/fallback.rs: 200 //! A service and static files", "/missing.rs: 404"],
    ),
    (
        "tls",
        cfg!(all(feature = "tls", feature = "ws")),
        &["on https", "on wss", "is not from a trusted authority"],
    ),
    (
        "request_reply",
        true,
        &[
            "42 - 23 = 19",
            "the server logs: a notification expects no reply",
            "in a batch: 2",
            "and an error: Invalid params (-32602)",
        ],
    ),
    (
        "kanban",
        cfg!(all(feature = "macros", feature = "openrpc", feature = "unix", feature = "ws")),
        &[
            "ada adds `write the guide`",
            "refused: there is no such card (2)",
            "cards in Done after the restart: 1",
            "archived over the Unix socket: 1",
            "over HTTP without a token: Unauthorized (-32013)",
        ],
    ),
    ("stdio", cfg!(all(feature = "child", feature = "stdio")), &["Count { lines: 2, words: 6 }"]),
    (
        "speak_first",
        cfg!(feature = "tcp"),
        &["what is your name?", "calls: 1", "calls: 2", "another connection: 1", "closed it"],
    ),
    (
        "foreign_transport",
        true,
        &["192.0.2.7:4000 calls over length-prefixed", "ended with its transport"],
    ),
    (
        "tap",
        cfg!(feature = "http"),
        &[
            "tcp opened",
            "tcp --> request 1: {",
            r#"tcp <-- response 1: {"jsonrpc":"2.0","result":42,"id":1}"#,
            "tcp closed: ",
            "http --> request 1: {",
            r#"http <-- response 1: {"jsonrpc":"2.0","result":42,"id":1}"#,
        ],
    ),
];

/// The examples that serve until they are stopped. Each has a test of its own.
const SERVING: [&str; 2] = ["axum", "proxy"];

fn names() -> BTreeSet<String> {
    let ending = ENDING.iter().map(|(name, ..)| *name);
    ending.chain(SERVING).map(str::to_owned).collect()
}

/// The path of an example, which cargo puts beside the folder of this test's binary.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = test.parent().unwrap().parent().unwrap().join("examples").join(file);
    let remedy = "`cargo test` without `--test` builds it, and so does `cargo build --examples`";
    assert!(path.exists(), "{} is missing: {remedy}", path.display());
    path
}

fn command(name: &str) -> Command {
    let mut command = Command::new(built(name));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    command
}

#[tokio::test]
async fn every_example_ends_and_prints_the_expected_output() {
    for (name, _, expected) in ENDING.iter().filter(|(_, is_on, _)| *is_on) {
        let ended = timeout(PATIENCE, command(name).stderr(Stdio::piped()).output()).await;
        let output = ended.unwrap_or_else(|_| panic!("{name} does not end")).unwrap();
        let (printed, log) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{name}: {}\n{printed}{log}", output.status);
        let mut rest = &*printed;
        for part in *expected {
            let Some((_, behind)) = rest.split_once(part) else {
                panic!("{name} does not print `{part}` where it should:\n{printed}{log}");
            };
            rest = behind;
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The examples that serve until they are stopped.
#[cfg(feature = "ws")]
mod serving {
    use antiphon::Client;
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    use tokio::process::Child;

    use super::*;

    /// Starts an example, and returns the first line of its output.
    async fn start(name: &str, args: &[&str]) -> (Child, String) {
        let mut child = command(name).args(args).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        (child, line.unwrap_or_else(|| panic!("{name} ends without a word")))
    }

    /// Stops a program as Ctrl-C does.
    #[cfg(feature = "axum")]
    async fn interrupt(child: &Child) {
        let id = child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().await;
        assert!(sent.unwrap().success());
    }

    #[cfg(feature = "axum")]
    #[tokio::test]
    async fn an_axum_application_serves_its_path_by_post_and_by_websocket() {
        let (mut child, line) = start("axum", &["127.0.0.1:0"]).await;
        let http = line.strip_prefix("JSON-RPC is at ").unwrap();
        let http: antiphon::Endpoint = http.parse().unwrap();
        for endpoint in [http.as_ws(), http.clone()] {
            let client = Client::connect(endpoint).await.unwrap();
            let greeting = client.call::<String>("greet", ("Ada",)).timeout(PATIENCE).await;
            assert_eq!(greeting.unwrap(), "hello, Ada from 127.0.0.1");
        }
        let open = Client::connect(http.as_ws()).await.unwrap();
        interrupt(&child).await;
        timeout(PATIENCE, open.peer().unwrap().closed()).await.expect("the WebSocket ends");
        let ended = timeout(PATIENCE, child.wait()).await.expect("the application ends");
        assert!(ended.unwrap().success());
    }

    #[cfg(all(feature = "child", feature = "stdio"))]
    #[tokio::test]
    async fn the_proxy_serves_a_stdio_tool_over_http() {
        let tool = format!("exec:'{}' serve", built("stdio").display());
        let (mut child, line) = start("proxy", &[&tool, "http://127.0.0.1:0"]).await;
        let (address, _) = line.split_once(" forwards to ").unwrap();
        let client = Client::connect(address).await.unwrap();
        let count: serde_json::Value =
            client.call("count", ("one two",)).timeout(PATIENCE).await.unwrap();
        assert_eq!(count, serde_json::json!({"lines": 1, "words": 2}));
        child.kill().await.unwrap();
    }
}

#[test]
fn every_example_is_tested_here_and_shown_in_the_guide() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let there = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    assert_eq!(there.collect::<BTreeSet<_>>(), names());

    let guide = document("docs/guide.md");
    let words: Vec<&str> = guide.split_whitespace().collect();
    for name in names() {
        let is_run = words.windows(2).any(|pair| pair == ["--example", &name]);
        assert!(is_run, "the guide does not run {name}");
        let link = format!("(../crates/antiphon/examples/{name}.rs)");
        assert!(guide.contains(&link), "the guide does not link to {name}");
    }
}

/// The code on the page is compiled in `bench/`.
#[test]
fn the_compared_service_is_the_one_that_is_compiled() {
    let program = document("bench/prices/src/main.rs");
    let (_, shown) = program.split_once("\n\n").unwrap();
    let page = document("docs/coming-from-jsonrpsee.md");
    assert!(page.contains(shown), "the page does not show bench/prices/src/main.rs as it is");
}

/// A file of the repository.
fn document(path: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
