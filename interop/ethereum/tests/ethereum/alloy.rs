//! alloy's client: reads, batches, subscriptions, and a lost connection.
//!
//! `alloy-rpc-client` has the wires; `alloy-provider` adds types and transactions, and twice the compile time.

use std::time::Duration;

use alloy_rpc_client::{RpcClient, WsConnect};
use serde_json::{Value, json};

use crate::support::{ToyNode, within};

/// Bytes of 32, as alloy identifies a subscription.
type LocalId = alloy_primitives::B256;

async fn connect(url: &str) -> RpcClient {
    within(RpcClient::builder().connect(url)).await.unwrap()
}

/// A read, an error, and a batch of both.
async fn reads(node: &ToyNode, client: &RpcClient) {
    let number = node.mine().await;
    let chain: String = within(client.request_noparams("eth_chainId")).await.unwrap();
    assert_eq!(chain, "0x539");
    let block: Value =
        within(client.request("eth_getBlockByNumber", (&number, false))).await.unwrap();
    assert_eq!(block["number"], json!(number));
    let missing = within(client.request_noparams::<Value>("eth_toy")).await.unwrap_err();
    assert_eq!(missing.as_error_resp().unwrap().code, -32601, "{missing}");

    let mut batch = client.new_batch();
    let chain = batch.add_call::<_, String>("eth_chainId", &()).unwrap();
    let missing = batch.add_call::<_, String>("eth_toy", &()).unwrap();
    let logs =
        batch.add_call::<_, Vec<Value>>("eth_getLogs", &(json!({"fromBlock": number}),)).unwrap();
    within(batch.send()).await.unwrap();
    assert_eq!(chain.await.unwrap(), "0x539");
    assert_eq!(missing.await.unwrap_err().as_error_resp().unwrap().code, -32601);
    assert_eq!(logs.await.unwrap()[0]["blockNumber"], json!(number));
}

/// Two subscriptions, until one of them ends.
async fn subscriptions(node: &ToyNode, client: &RpcClient) {
    let id: LocalId = within(client.request("eth_subscribe", ("newHeads",))).await.unwrap();
    let filter = json!({"address": "0x5FbDB2315678afecb367f032d93F642f64180aa3"});
    let logs_id: LocalId = within(client.request("eth_subscribe", ("logs", filter))).await.unwrap();
    let mut heads = client.get_subscription::<Value>(id).await;
    let mut logs = client.get_subscription::<Value>(logs_id).await;
    let number = node.mine().await;
    assert_eq!(within(heads.recv()).await.unwrap()["number"], json!(number));
    assert_eq!(within(logs.recv()).await.unwrap()["blockNumber"], json!(number));

    client.expect_pubsub_frontend().unsubscribe(id).unwrap();
    // A call behind it: the node has unsubscribed when it replies.
    let _: String = within(client.request_noparams("eth_chainId")).await.unwrap();
    let number = node.mine().await;
    assert_eq!(within(logs.recv()).await.unwrap()["blockNumber"], json!(number));
    assert!(heads.is_empty());
}

#[tokio::test]
async fn alloy_reads_over_http() {
    let node = ToyNode::start().await;
    reads(&node, &connect(&node.http).await).await;
}

#[tokio::test]
async fn alloy_reads_and_subscribes_over_websocket_and_ipc() {
    let node = ToyNode::start().await;
    for url in [&*node.ws, node.ipc.to_str().unwrap()] {
        let client = connect(url).await;
        reads(&node, &client).await;
        subscriptions(&node, &client).await;
    }
}

#[tokio::test]
async fn alloy_connects_and_subscribes_again() {
    let node = ToyNode::start().await;
    let websocket = WsConnect::new(&node.ws).with_retry_interval(Duration::from_millis(20));
    subscribes_again(&node, within(RpcClient::builder().ws(websocket)).await.unwrap()).await;
    let node = ToyNode::start().await;
    subscribes_again(&node, connect(node.ipc.to_str().unwrap()).await).await;
}

/// The node cuts the connection. The client connects and subscribes again by itself.
async fn subscribes_again(node: &ToyNode, client: RpcClient) {
    let id: LocalId = within(client.request("eth_subscribe", ("newHeads",))).await.unwrap();
    let mut heads = client.get_subscription::<Value>(id).await;
    let before = node.mine().await;
    assert_eq!(within(heads.recv()).await.unwrap()["number"], json!(before));
    assert_eq!(node.control.call::<usize>("toy_disconnect", ()).await.unwrap(), 1);
    // A new block per try: one arrives as soon as alloy has subscribed again.
    let after = within(async {
        loop {
            node.mine().await;
            let arrival = tokio::time::timeout(Duration::from_millis(50), heads.recv());
            if let Ok(head) = arrival.await {
                return head.unwrap();
            }
        }
    });
    assert_ne!(after.await["number"], json!(before));
    let chain: String = within(client.request_noparams("eth_chainId")).await.unwrap();
    assert_eq!(chain, "0x539");
}
