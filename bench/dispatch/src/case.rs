//! The messages that are dispatched.

use std::cell::OnceCell;

use bytes::Bytes;
use serde_json::{Value, json};

/// The number of entries of the batch.
pub(crate) const BATCH: usize = 100;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) request: Bytes,
    pub(crate) reply: Bytes,
    first: OnceCell<()>,
}

impl Case {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "hello" => Self::new("hello", &hello(7), &reply(7, "hello".into())),
            "add" => {
                let request = json!({"jsonrpc": "2.0", "method": "add", "params": [2, 3], "id": 7});
                Self::new("add", &request, &reply(7, 5.into()))
            }
            "batch" => {
                let requests: Vec<_> = (0..BATCH).map(hello).collect();
                let replies: Vec<_> = (0..BATCH).map(|id| reply(id, "hello".into())).collect();
                Self::new("batch", &requests.into(), &replies.into())
            }
            _ => return None,
        })
    }

    fn new(name: &'static str, request: &Value, reply: &Value) -> Self {
        let (request, reply) = (request.to_string().into(), reply.to_string().into());
        Self { name, request, reply, first: OnceCell::new() }
    }

    /// Checks the first reply in full and the others by length only, since reading each would cost
    /// more than the measured call.
    pub(crate) fn check(&self, reply: &[u8]) {
        self.first.get_or_init(|| assert_eq!(read(reply), read(&self.reply)));
        assert_eq!(reply.len(), self.reply.len(), "{}", String::from_utf8_lossy(reply));
    }
}

fn hello(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "method": "say_hello", "id": id})
}

fn reply(id: usize, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "result": result, "id": id})
}

fn read(reply: &[u8]) -> Value {
    serde_json::from_slice(reply).expect("a reply is JSON")
}
