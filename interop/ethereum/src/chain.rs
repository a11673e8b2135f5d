//! The chain of the toy node: its blocks, their logs, and the channels of both.

use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon::{ErrorObject, Peer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::{Receiver, Sender};

/// The contract that each block has a log of.
const ADDRESS: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
/// The first topic of each log.
const TOPIC: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// The blocks and logs since the start, and the peers that have subscribed.
pub(crate) struct Chain {
    height: Mutex<u64>,
    heads: Sender<Value>,
    logs: Sender<Value>,
    subscribers: Mutex<Vec<Peer>>,
}

impl Default for Chain {
    fn default() -> Self {
        let (heads, logs) = (Sender::new(64), Sender::new(64));
        Self { height: Mutex::default(), heads, logs, subscribers: Mutex::default() }
    }
}

impl Chain {
    pub(crate) fn height(&self) -> String {
        quantity(*locked(&self.height))
    }

    /// Adds a block. Its log is sent after it.
    pub(crate) fn mine(&self) -> String {
        let mut height = locked(&self.height);
        *height += 1;
        // Without a subscriber, nobody receives it.
        let _ = self.heads.send(header(*height));
        let _ = self.logs.send(log(*height));
        quantity(*height)
    }

    /// Returns a block by its number or tag, or null.
    pub(crate) fn block(&self, tag: &str) -> Result<Value, ErrorObject> {
        let height = *locked(&self.height);
        let number = number(tag, height)?;
        Ok(if number <= height { block(number) } else { Value::Null })
    }

    pub(crate) fn block_of_hash(&self, wanted: &str) -> Value {
        let height = *locked(&self.height);
        (0..=height).find(|number| hash(*number) == wanted).map_or(Value::Null, block)
    }

    /// Returns the logs of a range of blocks, by default of the newest one.
    pub(crate) fn logs(&self, filter: &Filter) -> Result<Vec<Value>, ErrorObject> {
        let height = *locked(&self.height);
        let bound = |tag: &Option<String>| number(tag.as_deref().unwrap_or("latest"), height);
        let (from, to) = (bound(&filter.from_block)?.max(1), bound(&filter.to_block)?.min(height));
        Ok((from..=to).map(log).filter(|log| filter.selects(log)).collect())
    }

    pub(crate) fn subscribe_heads(&self, peer: &Peer) -> Receiver<Value> {
        locked(&self.subscribers).push(peer.clone());
        self.heads.subscribe()
    }

    pub(crate) fn subscribe_logs(&self, peer: &Peer) -> Receiver<Value> {
        locked(&self.subscribers).push(peer.clone());
        self.logs.subscribe()
    }

    /// Takes the peers that have subscribed since the last time.
    pub(crate) fn take_subscribers(&self) -> Vec<Peer> {
        std::mem::take(&mut *locked(&self.subscribers))
    }
}

/// The filter of `eth_getLogs` and of a subscription to logs.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Filter {
    from_block: Option<String>,
    to_block: Option<String>,
    /// One address or several.
    address: Value,
    /// Per position one topic, several, or null for any.
    topics: Vec<Value>,
}

impl Filter {
    pub(crate) fn selects(&self, log: &Value) -> bool {
        let is_topic = |(at, wanted): (usize, &Value)| is_one_of(wanted, &log["topics"][at]);
        is_one_of(&self.address, &log["address"]) && self.topics.iter().enumerate().all(is_topic)
    }
}

/// Whether a value is the wanted one, or one of a list. Hex digits have no case. Null wants any.
fn is_one_of(wanted: &Value, value: &Value) -> bool {
    match wanted {
        Value::Null => true,
        Value::String(wanted) => {
            value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(wanted))
        }
        Value::Array(list) => list.is_empty() || list.iter().any(|wanted| is_one_of(wanted, value)),
        _ => false,
    }
}

fn number(tag: &str, height: u64) -> Result<u64, ErrorObject> {
    match tag {
        "latest" | "pending" | "safe" | "finalized" => Ok(height),
        "earliest" => Ok(0),
        _ => tag
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| {
                ErrorObject::invalid_params().with_data("a block is a tag or a quantity in hex")
            }),
    }
}

fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// A number in 32 bytes, for hashes and data.
fn word(number: u64) -> String {
    format!("0x{number:064x}")
}

fn hash(number: u64) -> String {
    word(0xb10c_0000_0000 + number)
}

fn log(number: u64) -> Value {
    json!({
        "address": ADDRESS,
        "topics": [TOPIC, word(number % 2)],
        "data": word(number),
        "blockNumber": quantity(number),
        "blockHash": hash(number),
        "blockTimestamp": quantity(1_700_000_000 + number),
        "transactionHash": word(0x7a00_0000_0000 + number),
        "transactionIndex": "0x0",
        "logIndex": "0x0",
        "removed": false,
    })
}

fn header(number: u64) -> Value {
    let empty = word(0);
    json!({
        "number": quantity(number),
        "hash": hash(number),
        "parentHash": number.checked_sub(1).map_or_else(|| empty.clone(), hash),
        "timestamp": quantity(1_700_000_000 + number),
        "nonce": "0x0000000000000000",
        "difficulty": "0x0",
        "gasLimit": "0x1c9c380",
        "gasUsed": "0x0",
        "baseFeePerGas": "0x7",
        "miner": "0x0000000000000000000000000000000000000000",
        "extraData": "0x",
        "mixHash": empty,
        "logsBloom": format!("0x{}", "0".repeat(512)),
        "sha3Uncles": empty,
        "stateRoot": empty,
        "transactionsRoot": empty,
        "receiptsRoot": empty,
    })
}

fn block(number: u64) -> Value {
    let mut block = header(number);
    block["totalDifficulty"] = json!("0x0");
    block["size"] = json!("0x220");
    block["transactions"] = json!([]);
    block["uncles"] = json!([]);
    block
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
