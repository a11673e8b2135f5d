//! A toy Ethereum node, which the clients of other projects call.
//!
//! Its chain has no consensus and no accounts: `evm_mine` adds a block with one log. `toy_disconnect` closes
//! the connections that have subscribed, so that their clients must connect again.

mod chain;

use std::sync::Arc;

use antiphon::{Context, ErrorObject, Peer, Router, Topic};
use futures_util::stream::{self, Stream};
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use chain::{Chain, Filter};

type Node = Arc<Chain>;

/// The code of a call that the chain reverts, as nodes have it.
const REVERTED: i64 = 3;

/// Returns the service of a node with one block.
pub fn node() -> Router {
    Router::with_state(Node::default())
        .method("web3_clientVersion", |(): (), _: Node, _cx| async { Ok("antiphon-toy/1.0") })
        .method("net_version", |(): (), _: Node, _cx| async { Ok("1337") })
        .method("eth_chainId", |(): (), _: Node, _cx| async { Ok("0x539") })
        .method("eth_syncing", |(): (), _: Node, _cx| async { Ok(false) })
        .method("eth_blockNumber", |(): (), node: Node, _cx| async move { Ok(node.height()) })
        .method("eth_getBlockByNumber", block_by_number)
        .method("eth_getBlockByHash", block_by_hash)
        .method(
            "eth_getLogs",
            |(filter,): (Filter,), node: Node, _cx| async move { node.logs(&filter) },
        )
        .method("eth_call", call)
        .method("evm_mine", |_: Value, node: Node, _cx| async move { Ok(node.mine()) })
        .method("toy_disconnect", disconnect)
        .subscription(Topic::ethereum("newHeads"), |(): (), node: Node, cx: Context| async move {
            Ok(items(node.subscribe_heads(cx.peer().map_err(ErrorObject::internal)?), None))
        })
        .subscription(
            Topic::ethereum("logs"),
            |filters: Vec<Filter>, node: Node, cx: Context| async move {
                let logs = node.subscribe_logs(cx.peer().map_err(ErrorObject::internal)?);
                Ok(items(logs, filters.into_iter().next()))
            },
        )
        .into_router()
}

async fn block_by_number(
    (tag, _full): (String, bool),
    node: Node,
    _cx: Context,
) -> Result<Value, ErrorObject> {
    node.block(&tag)
}

async fn block_by_hash(
    (hash, _full): (String, bool),
    node: Node,
    _cx: Context,
) -> Result<Value, ErrorObject> {
    Ok(node.block_of_hash(&hash))
}

/// Returns the data of the call as its result. A call without data is reverted.
async fn call(params: Vec<Value>, _: Node, _cx: Context) -> Result<Value, ErrorObject> {
    let call = params.first().unwrap_or(&Value::Null);
    match call.get("data").or_else(|| call.get("input")) {
        Some(data) => Ok(data.clone()),
        None => Err(ErrorObject::new(REVERTED, "execution reverted: toy").with_data(REASON)),
    }
}

/// `Error("toy")`, encoded as Solidity does.
const REASON: &str = "0x08c379a0\
    0000000000000000000000000000000000000000000000000000000000000020\
    0000000000000000000000000000000000000000000000000000000000000003\
    746f790000000000000000000000000000000000000000000000000000000000";

async fn disconnect((): (), node: Node, _cx: Context) -> Result<usize, ErrorObject> {
    let peers: Vec<Peer> = node.take_subscribers();
    for peer in &peers {
        peer.close().await;
    }
    Ok(peers.len())
}

/// The items that a filter selects. A subscriber that is too slow loses the oldest.
fn items(receiver: Receiver<Value>, filter: Option<Filter>) -> impl Stream<Item = Value> {
    stream::unfold((receiver, filter), |(mut receiver, filter)| async move {
        loop {
            match receiver.recv().await {
                Ok(item) if filter.as_ref().is_none_or(|filter| filter.selects(&item)) => {
                    return Some((item, (receiver, filter)));
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    })
}
