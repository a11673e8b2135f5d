//! The binary against anvil and ganache, and with a document of the execution API.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::interop::script;
use crate::support::{Ended, Scratch, antiphon, run};

/// A node that mines a block per second. It is killed at the end.
pub(crate) struct Node {
    child: Child,
    port: u16,
}

impl Node {
    pub(crate) fn anvil(scratch: &Scratch) -> Self {
        let mut command =
            Command::new(part("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"));
        command.args(["--port", "0", "--chain-id", "1337", "--block-time", "1", "--ipc"]);
        command.arg(scratch.path("anvil.ipc"));
        Self::start(command)
    }

    fn ganache() -> Self {
        // Ganache takes no port 0.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("node");
        command.arg(part("node_modules/ganache/dist/node/cli.js"));
        command.args([&format!("--server.port={port}"), "--wallet.totalAccounts=1"]);
        command.args(["--chain.chainId=1337", "--chain.networkId=1337"]);
        command.args(["--miner.blockTime=1"]);
        Self::start(command)
    }

    /// Starts a node. The last line before it is ready ends with its port.
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("istening on")).expect("the node starts");
        // A full pipe would block the node.
        std::thread::spawn(move || lines.for_each(drop));
        Self { port: line.rsplit(':').next().unwrap().trim().parse().unwrap(), child }
    }

    pub(crate) fn endpoint(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a path in `interop`.
pub(crate) fn part(name: &str) -> PathBuf {
    let path = script(name);
    assert!(path.exists(), "{} is missing: run interop/setup", path.display());
    path
}

fn cli(words: &[&str]) -> Ended {
    run(antiphon().args(words).args(["--dialect", "ethereum"]), b"")
}

#[track_caller]
fn prints(words: &[&str]) -> String {
    let ended = cli(words);
    assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
    ended.stdout
}

fn calls_and_batches(endpoint: &str) {
    assert_eq!(prints(&["call", endpoint, "eth_chainId"]), "\"0x539\"\n");
    let block = prints(&["call", endpoint, "eth_getBlockByNumber", "earliest", "false"]);
    assert_eq!(serde_json::from_str::<Value>(&block).unwrap()["number"], "0x0");
    let missing = cli(&["call", endpoint, "eth_toy"]);
    assert_eq!(missing.code, Some(1), "{endpoint}: {}", missing.stderr);

    let entries = r#"[{"method":"eth_chainId","params":[]},{"method":"eth_toy","params":[]},{"method":"net_version","params":[]}]"#;
    let batch = cli(&["batch", endpoint, "-d", entries]);
    assert_eq!(batch.code, Some(1), "{endpoint}: {}", batch.stderr);
    let replies: Vec<Value> =
        batch.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(replies.len(), 3, "{}", batch.stdout);
    assert_eq!((&replies[0]["result"], &replies[2]["result"]), (&"0x539".into(), &"1337".into()));
    assert!(replies[1]["error"]["code"].is_i64(), "{}", batch.stdout);
}

/// Two blocks by the kind alone, and the clean end of the subscription.
fn subscribes(endpoint: &str) {
    let ended = cli(&["subscribe", endpoint, "newHeads", "--count", "2", "--verbose"]);
    assert_eq!(ended.code, Some(0), "{endpoint}: {}", ended.stderr);
    let number = |line: &str| {
        let head: Value = serde_json::from_str(line).unwrap();
        u64::from_str_radix(&head["number"].as_str().unwrap()[2..], 16).unwrap()
    };
    let numbers: Vec<u64> = ended.stdout.lines().map(number).collect();
    assert_eq!(numbers[1], numbers[0] + 1, "{}", ended.stdout);
    let last = ended.stderr.rsplit("--> ").next().unwrap();
    assert!(last.contains("eth_unsubscribe") && last.contains("true"), "{}", ended.stderr);
}

#[test]
#[ignore = "needs interop/setup"]
fn anvil_over_http_websocket_and_ipc() {
    let scratch = Scratch::new();
    let node = Node::anvil(&scratch);
    let ipc = format!("unix:{}", scratch.path("anvil.ipc").display());
    for endpoint in [&node.endpoint("http"), &node.endpoint("ws"), &ipc] {
        calls_and_batches(endpoint);
    }
    for endpoint in [&node.endpoint("ws"), &ipc] {
        subscribes(endpoint);
    }
    let ended = cli(&["subscribe", &node.endpoint("http"), "newHeads"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("use ws:// or wss://"), "{}", ended.stderr);
}

#[test]
#[ignore = "needs interop/setup"]
fn ganache_over_http_and_websocket() {
    let node = Node::ganache();
    calls_and_batches(&node.endpoint("http"));
    calls_and_batches(&node.endpoint("ws"));
    subscribes(&node.endpoint("ws"));
}

/// The document of `@metamask/api-specs`, as docs/dialects.md uses it.
#[test]
#[ignore = "needs interop/setup"]
fn a_document_of_the_execution_api_lists_describes_and_checks() {
    let document = part("node_modules/@metamask/api-specs/dist/build/openrpc.json");
    let schema = document.to_str().unwrap();
    let scratch = Scratch::new();
    let node = Node::anvil(&scratch);
    let endpoint = &*node.endpoint("http");

    let list = prints(&["list", endpoint, "--schema", schema]);
    for method in [
        "eth_blockNumber",
        "eth_getBalance",
        "eth_getLogs",
        "eth_sendRawTransaction",
        "eth_subscribe",
    ] {
        assert!(
            list.lines().any(|line| line.starts_with(&format!("{method}\t"))),
            "{method}: {list}"
        );
    }
    let described = prints(&["describe", endpoint, "eth_getBalance", "--schema", schema]);
    assert!(described.starts_with("eth_getBalance(Address, Block)\n"), "{described}");

    let account = "0xf39fd6e51aad88f6f4ce6ab8827279cff9b92266";
    let check = ["call", endpoint, "--check", "--schema", schema];
    let call = |words: &[&str]| cli(&[&check[..], words].concat());
    let balance = call(&["eth_getBalance", account, "latest"]);
    assert_eq!(balance.code, Some(0), "{}", balance.stderr);
    for (words, said) in [
        (&["eth_getBalance", "nobody", "latest"][..], "nothing was sent"),
        (&["eth_getBalance", account, "newest"], "nothing was sent"),
        (&["eth_getBlockByNumber", "0x01", "false"], "nothing was sent"),
        (&["eth_getBalence", account, "latest"], "eth_getBalance"),
    ] {
        let refused = call(words);
        assert_eq!(refused.code, Some(2), "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
    }
}
