//! The timed messages.

use bytes::Bytes;
use serde_json::{Value, json};

const SIZE: usize = 64 * 1024;

pub(crate) fn all() -> [(&'static str, Bytes); 4] {
    let batch: Vec<_> = (0..100).map(|id| call(id, None)).collect();
    [
        ("small call", text(&call(1, None))),
        ("batch of 100", text(&batch.into())),
        ("64 KiB of objects", text(&call(1, Some(objects())))),
        ("64 KiB in one string", text(&call(1, Some(json!(["x".repeat(SIZE)]))))),
    ]
}

fn call(id: u64, params: Option<Value>) -> Value {
    let mut call = json!({"jsonrpc": "2.0", "method": "say_hello"});
    if let Some(params) = params {
        call["params"] = params;
    }
    call["id"] = id.into();
    call
}

/// Typical records of services: names, numbers, flags, a nested list.
fn objects() -> Value {
    let record = |id: usize| {
        json!({
            "id": id, "name": format!("record number {id}"), "price": 1.5 * id as f64,
            "active": id.is_multiple_of(2), "tags": ["one", "two", "three"], "parent": null,
        })
    };
    let size = record(100).to_string().len() + 1;
    (0..SIZE / size).map(record).collect()
}

fn text(message: &Value) -> Bytes {
    message.to_string().into()
}
