//! simd-json with its tape: it parses every value and overwrites the text.
//!
//! Its figures include a copy of the text: a server that passes params on unchanged needs one.

use std::cell::RefCell;
use std::hint::black_box;

use bytes::Bytes;
use simd_json::prelude::*;
use simd_json::tape::Value;
use simd_json::{Buffers, to_tape_with_buffers};

use crate::verdict::Verdict;

thread_local! {
    static SPACE: RefCell<(Vec<u8>, Buffers)> = RefCell::default();
}

pub(crate) fn decode(message: &Bytes) {
    SPACE.with_borrow_mut(|(copy, buffers)| {
        copy.clear();
        copy.extend_from_slice(message);
        let tape = to_tape_with_buffers(copy, buffers).expect("it is JSON");
        let value = tape.as_value();
        match value.as_array() {
            Some(entries) => entries.iter().for_each(|entry| read(&entry)),
            None => read(&value),
        }
    });
}

fn read(request: &Value<'_, '_>) {
    for member in ["jsonrpc", "method", "params", "id"] {
        black_box(request.get(member));
    }
}

pub(crate) fn judge(message: &[u8]) -> Verdict {
    let mut copy = message.to_vec();
    match simd_json::to_tape(&mut copy) {
        Ok(tape) => {
            let value = tape.as_value();
            let entry = value.as_array().and_then(|entries| entries.iter().next());
            judged(&entry.unwrap_or(value)).unwrap_or(Verdict::InvalidRequest)
        }
        Err(_) => Verdict::ParseError,
    }
}

fn judged(request: &Value<'_, '_>) -> Option<Verdict> {
    let request = request.as_object()?;
    let params = request.get("params");
    let is_valid = request.get("jsonrpc")?.as_str() == Some("2.0")
        && request.get("method")?.is_str()
        && params.is_none_or(|params| params.is_array() || params.is_object());
    let id = request.get("id");
    is_valid.then(|| id.map_or(Verdict::Notification, |id| Verdict::Request { id: written(&id) }))
}

/// The id, serialized again, since its original text is overwritten.
fn written(id: &Value<'_, '_>) -> String {
    id.encode()
}
