//! The scanner of antiphon-core.

use std::hint::black_box;

use antiphon_core::{Code, Message, Payload, Rules};
use bytes::Bytes;

use crate::verdict::Verdict;

pub(crate) fn decode(message: &Bytes) {
    match antiphon_core::decode(message, &Rules::default()) {
        Payload::One(entry) => drop(black_box(entry)),
        Payload::Batch(entries) => entries.for_each(|entry| drop(black_box(entry))),
    }
}

pub(crate) fn judge(message: &[u8]) -> Verdict {
    let message = Bytes::copy_from_slice(message);
    let entry = match antiphon_core::decode(&message, &Rules::default()) {
        Payload::One(entry) => entry,
        Payload::Batch(mut entries) => entries.next().expect("a batch is never empty"),
    };
    match entry {
        Ok(Message::Request(request)) => Verdict::Request { id: request.id.as_str().to_owned() },
        Ok(_) => Verdict::Notification,
        Err(invalid) if invalid.error.code == Code::PARSE_ERROR => Verdict::ParseError,
        Err(_) => Verdict::InvalidRequest,
    }
}
