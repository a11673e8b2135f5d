//! Our client against anvil and ganache: calls, errors, batches and subscriptions on each wire that they have.

use antiphon::{CallError, Client, Dialect, Reconnect, Topic};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::{Folder, free_port, part, started, within};

const ACCOUNT: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cff9b92266";

async fn anvil(folder: &Folder) -> (Child, u16) {
    let mut command = Command::new(part("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"));
    command.args(["--port", "0", "--chain-id", "1337", "--ipc"]).arg(folder.0.join("anvil.ipc"));
    let (child, line) = started(command, "Listening on").await;
    (child, line.rsplit(':').next().unwrap().trim().parse().unwrap())
}

async fn ganache() -> (Child, u16) {
    let port = free_port();
    let mut command = Command::new("node");
    command.arg(part("node_modules/ganache/dist/node/cli.js")).arg(format!("--server.port={port}"));
    command.args(["--wallet.totalAccounts=1", "--chain.chainId=1337"]);
    (started(command, "Listening on").await.0, port)
}

async fn connect(endpoint: &str) -> Client {
    let builder = Client::builder().dialect(Dialect::ethereum());
    within(builder.connect(endpoint)).await.unwrap_or_else(|error| panic!("{endpoint}: {error:?}"))
}

/// Calls, an error, and a batch with an error in it.
async fn calls(client: &Client, unknown_method: i64) {
    assert_eq!(client.call::<String>("eth_chainId", ()).await.unwrap(), "0x539");
    let block: Value = client.call("eth_getBlockByNumber", ("earliest", false)).await.unwrap();
    assert_eq!(block["number"], "0x0");
    let balance: String = client.call("eth_getBalance", (ACCOUNT, "latest")).await.unwrap();
    assert!(balance.starts_with("0x"), "{balance}");
    let CallError::Rpc(error) = client.call::<Value>("eth_toy", ()).await.unwrap_err() else {
        panic!("not an error response");
    };
    assert_eq!(error.code.0, unknown_method, "{error}");

    let mut batch = client.batch();
    let chain = batch.call::<String>("eth_chainId", ());
    let missing = batch.call::<Value>("eth_toy", ());
    let height = batch.call::<String>("eth_blockNumber", ());
    let mut replies = batch.send().await.unwrap();
    assert_eq!(replies.take(chain).unwrap(), "0x539");
    assert!(matches!(replies.take(missing), Err(CallError::Rpc(_))));
    assert!(replies.take(height).unwrap().starts_with("0x"));
}

/// New blocks arrive until the subscription ends.
async fn subscription(client: &Client) {
    let mut heads = client.subscribe::<Value>(Topic::ethereum("newHeads"), ()).await.unwrap();
    let filter = (json!({"address": ACCOUNT}),);
    let logs = client.subscribe::<Value>(Topic::ethereum("logs"), filter).await.unwrap();
    for _ in 0..2 {
        let _: Value = client.call("evm_mine", ()).await.unwrap();
        let head = within(heads.next()).await.unwrap().unwrap();
        let height: String = client.call("eth_blockNumber", ()).await.unwrap();
        assert_eq!(head["number"], json!(height));
    }
    within(logs.unsubscribe()).await.unwrap();
    within(heads.unsubscribe()).await.unwrap();
    assert_eq!(client.call::<String>("eth_chainId", ()).await.unwrap(), "0x539");
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn anvil_serves_our_client_on_each_wire() {
    let folder = Folder::new();
    let (_anvil, port) = anvil(&folder).await;
    let ipc = format!("unix:{}", folder.0.join("anvil.ipc").display());
    let (http, ws) = (format!("http://127.0.0.1:{port}"), format!("ws://127.0.0.1:{port}"));
    // anvil has another code for an unknown method on a connection than over HTTP.
    for (endpoint, unknown_method) in [(&http, -32601), (&ws, -32602), (&ipc, -32602)] {
        calls(&connect(endpoint).await, unknown_method).await;
    }
    for endpoint in [&ws, &ipc] {
        subscription(&connect(endpoint).await).await;
    }
    let error = connect(&http).await.subscribe::<Value>(Topic::ethereum("newHeads"), ()).await;
    assert!(matches!(error.map(drop), Err(CallError::CannotCallBack(_))));
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn ganache_serves_our_client_on_each_wire() {
    let (_ganache, port) = ganache().await;
    for scheme in ["http", "ws"] {
        // Ganache has -32700 for an unknown method.
        calls(&connect(&format!("{scheme}://127.0.0.1:{port}")).await, -32700).await;
    }
    subscription(&connect(&format!("ws://127.0.0.1:{port}")).await).await;
}

#[tokio::test]
#[ignore = "needs interop/setup"]
async fn our_client_subscribes_again_after_anvil_has_restarted() {
    let port = free_port();
    let start = || async {
        let mut command =
            Command::new(part("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"));
        command.args(["--port", &port.to_string()]);
        started(command, "Listening on").await.0
    };
    let mut first = start().await;
    let builder = Client::builder().dialect(Dialect::ethereum()).reconnect(Reconnect::new());
    let client = within(builder.connect(&*format!("ws://127.0.0.1:{port}"))).await.unwrap();
    let mut heads = client.subscribe::<Value>(Topic::ethereum("newHeads"), ()).await.unwrap();
    let _: Value = client.call("evm_mine", ()).await.unwrap();
    assert_eq!(within(heads.next()).await.unwrap().unwrap()["number"], "0x1");
    first.kill().await.unwrap();
    let _second = start().await;
    // The gap is reported once the client has subscribed again.
    assert!(within(heads.next()).await.unwrap().is_err());
    let _: Value = client.call("evm_mine", ()).await.unwrap();
    assert_eq!(within(heads.next()).await.unwrap().unwrap()["number"], "0x1");
}
