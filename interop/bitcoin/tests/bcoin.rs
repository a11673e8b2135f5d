//! Our client against bcoin, which answers every call in 1.0, and real clients with the cookie of our command.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use antiphon::http::header::AUTHORIZATION;
use antiphon::layer::Credentials;
use antiphon::{CallError, Client, Dialect, RawJson, Version};
use interop_bitcoin::GENESIS;

const PASSWORD: &str = "pa55word";

/// A program that serves on the port that it prints. It is killed when it is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Starts bcoin, and returns it with its URL.
fn bcoin() -> (Program, String) {
    assert!(
        interop().join("node_modules/.installed").exists(),
        "bcoin is missing: run interop/setup"
    );
    let mut node = Command::new("node");
    node.arg(interop().join("bcoin_node.mjs")).args(["0", PASSWORD]).stdout(Stdio::piped());
    let mut program = Program(node.spawn().expect("node starts"));
    let stdout = program.0.stdout.take().expect("it is piped");
    let line = BufReader::new(stdout).lines().next().expect("bcoin prints its port").unwrap();
    let port = line.strip_prefix("listening ").expect("bcoin prints its port");
    (program, format!("http://127.0.0.1:{port}"))
}

async fn connect(url: &str, password: &str, version: Version) -> Client {
    let credentials = Credentials::Basic { user: "x".to_owned(), password: password.to_owned() };
    Client::builder()
        .dialect(Dialect::bitcoin().version(version))
        .header(AUTHORIZATION, credentials.to_header().unwrap())
        .connect(url)
        .await
        .unwrap()
}

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> i64 {
    match outcome {
        Err(CallError::Rpc(error)) => error.code.0,
        other => panic!("no error response: {other:?}"),
    }
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn our_client_calls_bcoin_in_both_versions() {
    let (_bcoin, url) = bcoin();
    for version in [Version::V1, Version::V2] {
        let client = connect(&url, PASSWORD, version).await;
        assert_eq!(client.call::<u64>("getblockcount", ()).await.unwrap(), 0, "{version:?}");
        assert_eq!(client.call::<String>("getblockhash", (0,)).await.unwrap(), GENESIS);
        let difficulty = client.call::<RawJson>("getdifficulty", ()).await.unwrap();
        assert_eq!(difficulty.as_str(), "4.6565423739069247e-10");
        assert_eq!(code(client.call::<String>("getblockhash", (7,)).await), -8);
        assert_eq!(code(client.call::<String>("unknown", ()).await), -32601);
        client.notify("getblockcount", ()).await.unwrap();

        let mut batch = client.batch();
        let hash = batch.call::<String>("getblockhash", (0,));
        let none = batch.call::<String>("getblockhash", (7,));
        let unknown = batch.call::<String>("unknown", ());
        let mut replies = batch.send().await.unwrap();
        assert_eq!(replies.take(hash).unwrap(), GENESIS);
        assert_eq!((code(replies.take(none)), code(replies.take(unknown))), (-8, -32601));
    }
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn a_wrong_password_is_refused() {
    let (_bcoin, url) = bcoin();
    for version in [Version::V1, Version::V2] {
        let client = connect(&url, "wrong", version).await;
        let refused = client.call::<u64>("getblockcount", ()).await.unwrap_err();
        assert!(refused.to_string().contains("401"), "{refused}");
    }
}
