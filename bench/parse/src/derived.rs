//! Derived envelopes with borrowed raw values: serde_json, and sonic-rs with its lazy values.

use std::borrow::Cow;
use std::hint::black_box;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use sonic_rs::LazyValue;

use crate::verdict::Verdict;

#[derive(Deserialize)]
struct Request<'a, R> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    params: Option<R>,
    id: Option<R>,
}

/// A value in its original text.
trait Raw {
    fn text(&self) -> &str;
}

impl Raw for &RawValue {
    fn text(&self) -> &str {
        self.get()
    }
}

impl Raw for LazyValue<'_> {
    fn text(&self) -> &str {
        self.as_raw_str()
    }
}

fn is_batch(message: &[u8]) -> bool {
    message.trim_ascii_start().first() == Some(&b'[')
}

pub(crate) fn serde_slice(message: &Bytes) {
    if is_batch(message) {
        black_box(serde_json::from_slice::<Vec<Request<'_, &RawValue>>>(message).is_ok());
    } else {
        black_box(serde_json::from_slice::<Request<'_, &RawValue>>(message).is_ok());
    }
}

/// Input from a wire must be checked for UTF-8 first.
pub(crate) fn serde_str(message: &Bytes) {
    let text = str::from_utf8(message).expect("it is UTF-8");
    if is_batch(message) {
        black_box(serde_json::from_str::<Vec<Request<'_, &RawValue>>>(text).is_ok());
    } else {
        black_box(serde_json::from_str::<Request<'_, &RawValue>>(text).is_ok());
    }
}

pub(crate) fn sonic(message: &Bytes) {
    if is_batch(message) {
        black_box(sonic_rs::from_slice::<Vec<Request<'_, LazyValue<'_>>>>(message).is_ok());
    } else {
        black_box(sonic_rs::from_slice::<Request<'_, LazyValue<'_>>>(message).is_ok());
    }
}

pub(crate) fn judge_serde_slice(message: &[u8]) -> Verdict {
    let decoded = if is_batch(message) {
        serde_json::from_slice::<Vec<Request<'_, &RawValue>>>(message).map(first)
    } else {
        serde_json::from_slice(message)
    };
    decoded.map_or_else(|error| fault(error.is_data()), judged)
}

pub(crate) fn judge_serde_str(message: &[u8]) -> Verdict {
    let Ok(text) = str::from_utf8(message) else { return Verdict::ParseError };
    let decoded = if is_batch(message) {
        serde_json::from_str::<Vec<Request<'_, &RawValue>>>(text).map(first)
    } else {
        serde_json::from_str(text)
    };
    decoded.map_or_else(|error| fault(error.is_data()), judged)
}

pub(crate) fn judge_sonic(message: &[u8]) -> Verdict {
    let decoded = if is_batch(message) {
        sonic_rs::from_slice::<Vec<Request<'_, LazyValue<'_>>>>(message).map(first)
    } else {
        sonic_rs::from_slice(message)
    };
    decoded.map_or_else(|error| fault(error.is_unmatched_type()), judged)
}

fn first<T>(mut entries: Vec<T>) -> T {
    entries.remove(0)
}

/// The error itself distinguishes invalid JSON from an invalid Request.
fn fault(is_json: bool) -> Verdict {
    if is_json { Verdict::InvalidRequest } else { Verdict::ParseError }
}

fn judged(request: Request<'_, impl Raw>) -> Verdict {
    let params = request.params.as_ref().map(|params| params.text().as_bytes()[0]);
    if request.jsonrpc != "2.0" || !matches!(params, None | Some(b'[' | b'{')) {
        return Verdict::InvalidRequest;
    }
    black_box(request.method);
    request.id.map_or(Verdict::Notification, |id| Verdict::Request { id: id.text().to_owned() })
}
