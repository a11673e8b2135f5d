//! One exchange: an outgoing message and its reply, which are matched by id.
//!
//! Every transport encodes calls and batches in the same way. This module matches the replies of
//! transports that carry one reply per message (HTTP and `RequestReply`). A duplex connection has the
//! replies of many messages in flight, so its `Session` matches them. Nothing here reads or writes a
//! socket.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use antiphon_core::{Entries, Id, Message, Payload, RawJson, Response};
use bytes::{BufMut, BytesMut};

use super::{BatchEntry, CallError, Invocation};
use crate::dialect::CallStyle;
pub(crate) use crate::dialect::encode_id;
use crate::log_excerpt::log_excerpt;

/// The results of the calls of a batch, in the order of the calls.
pub(crate) type BatchResults = Vec<Result<RawJson, CallError>>;

/// The ids of a caller without a session, counted from 1.
#[derive(Debug)]
pub(crate) struct RequestIds(AtomicU64);

impl Default for RequestIds {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl RequestIds {
    /// Returns the id that the user chose, or the next one.
    pub(crate) fn for_call(&self, call: &Invocation) -> Id {
        call.id.clone().unwrap_or_else(|| self.0.fetch_add(1, Ordering::Relaxed).into())
    }

    /// Returns one id for each call of a batch. The ids are consecutive: [`match_batch`] relies on it.
    pub(crate) fn for_batch(&self, entries: &[BatchEntry]) -> Range<u64> {
        let calls = count_calls(entries) as u64;
        let first = self.0.fetch_add(calls, Ordering::Relaxed);
        first..first + calls
    }
}

impl BatchEntry {
    pub(crate) fn invocation(&self) -> &Invocation {
        let (Self::Call(call) | Self::Notification(call)) = self;
        call
    }
}

/// Counts the entries that expect a response.
pub(crate) fn count_calls(entries: &[BatchEntry]) -> usize {
    entries.iter().filter(|entry| matches!(entry, BatchEntry::Call(_))).count()
}

/// Appends a batch, whose calls take these ids in order.
pub(crate) fn encode_batch(
    entries: &[BatchEntry],
    mut ids: Range<u64>,
    style: CallStyle,
    out: &mut BytesMut,
) {
    let mut separator = b'[';
    for entry in entries {
        out.put_u8(std::mem::replace(&mut separator, b','));
        entry.invocation().encode_head(style, out);
        match entry {
            BatchEntry::Call(_) => encode_counted_id(ids.next().unwrap_or_default(), out),
            BatchEntry::Notification(_) => style.end_notification(out),
        }
    }
    out.put_u8(b']');
}

/// Like [`encode_id`], for a counted id, without the creation of an [`Id`].
pub(crate) fn encode_counted_id(id: u64, out: &mut BytesMut) {
    out.extend_from_slice(b",\"id\":");
    out.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
    out.put_u8(b'}');
}

/// Returns the payload of this reply, unless the reply cannot be read as a whole. The error shows the
/// beginning of the reply, and the note.
pub(crate) fn readable(
    payload: Payload,
    reply: &[u8],
    note: impl FnOnce() -> String,
) -> Result<Payload, CallError> {
    match payload {
        Payload::One(Err(invalid)) => Err(CallError::unreadable_message(&invalid, reply, note())),
        payload => Ok(payload),
    }
}

/// Returns the result in the reply to a call.
pub(crate) fn match_call(id: &Id, reply: Payload) -> Result<RawJson, CallError> {
    match reply {
        Payload::One(Ok(Message::Response(response))) => match_response(id, response),
        Payload::One(Err(invalid)) => Err(CallError::unreadable(&invalid)),
        _ => Err(CallError::protocol("the reply is not a Response")),
    }
}

/// Returns the results in the reply to a batch whose calls have these ids.
pub(crate) fn match_batch(
    ids: Range<u64>,
    reply: Payload,
    style: CallStyle,
) -> Result<BatchResults, CallError> {
    match reply {
        Payload::Batch(replies) => Ok(match_entries(&ids, replies, style)),
        // The server refused the batch as a whole, so each call fails with the same error.
        Payload::One(Ok(Message::Response(Response { outcome: Err(error), .. }))) => {
            Ok(ids.map(|_| Err(CallError::Rpc(error.clone()))).collect())
        }
        Payload::One(Err(invalid)) => Err(CallError::unreadable(&invalid)),
        Payload::One(Ok(_)) => Err(CallError::protocol("the reply to a batch is not an Array")),
    }
}

/// Returns the error in the reply to a message without calls. Such a message expects no reply, so an
/// error in one can only refer to that message.
pub(crate) fn match_notification(reply: Payload) -> Result<(), CallError> {
    match reply {
        Payload::One(Ok(Message::Response(Response { outcome: Err(error), .. }))) => {
            Err(CallError::Rpc(error))
        }
        _ => Ok(()),
    }
}

/// The error of a call that is missing in the reply to its batch.
pub(crate) fn missing_reply() -> CallError {
    CallError::protocol("the reply to the batch lacks this call")
}

/// The error of a call that got no reply at all.
pub(crate) fn no_reply(cause: &str) -> CallError {
    CallError::protocol(format!("no reply to a call{cause}"))
}

fn match_response(id: &Id, response: Response) -> Result<RawJson, CallError> {
    match (is_same(id, &response.id), response.outcome) {
        (true, outcome) => outcome.map_err(CallError::Rpc),
        // The server could not read the id. The error still belongs to this call.
        (false, Err(error)) if response.id == Id::Null => Err(CallError::Rpc(error)),
        (false, _) => {
            let theirs = log_excerpt(response.id.as_str());
            Err(CallError::protocol(format!("the reply is for id {theirs}, the call had {id}")))
        }
    }
}

/// Whether two ids are equal. A peer that stores numbers as floats may write `1.0` for `1`.
fn is_same(ours: &Id, theirs: &Id) -> bool {
    ours == theirs || (ours.as_u64().is_some() && ours.as_u64() == theirs.as_u64())
}

/// Finds the reply to each call by its id, because a server may reply in any order (section 6). A call
/// with two replies fails, because neither is known to be the right one.
fn match_entries(ids: &Range<u64>, replies: Entries, style: CallStyle) -> BatchResults {
    let mut found: Vec<Option<Result<RawJson, CallError>>> = ids.clone().map(|_| None).collect();
    let position = |id: &Id| {
        let id = id.as_u64().filter(|id| ids.contains(id))?;
        usize::try_from(id - ids.start).ok()
    };
    let mut strays = Strays::default();
    for reply in replies {
        let (id, result) = match reply {
            Ok(Message::Response(Response { id, outcome })) => {
                (id, outcome.map_err(CallError::Rpc))
            }
            Ok(_) => continue,
            Err(invalid) => (invalid.id.clone(), Err(CallError::unreadable(&invalid))),
        };
        match position(&id).and_then(|position| found.get_mut(position)) {
            Some(slot @ None) => *slot = Some(result),
            Some(duplicate) => *duplicate = Some(Err(duplicate_reply(&id))),
            // Bitcoin nodes respond to 1.0 notifications, whose id is null.
            None if id == Id::Null && style != CallStyle::V2 => {}
            None => strays.add(&id),
        }
    }
    strays.report();
    found.into_iter().map(|result| result.unwrap_or_else(|| Err(missing_reply()))).collect()
}

/// The responses in the reply to a batch that belong to no call. They are logged once per reply, or a
/// server could fill the log. Their content is not logged, because it may be secret.
#[derive(Default)]
struct Strays {
    first: Option<String>,
    count: usize,
}

impl Strays {
    fn add(&mut self, id: &Id) {
        self.count += 1;
        self.first.get_or_insert_with(|| log_excerpt(id.as_str()));
    }

    fn report(&self) {
        if let Some(id) = &self.first {
            let count = self.count;
            tracing::warn!(
                id,
                count,
                "responses in the reply to a batch belong to none of its calls"
            );
        }
    }
}

fn duplicate_reply(id: &Id) -> CallError {
    let id = log_excerpt(id.as_str());
    CallError::protocol(format!("the reply to the batch has two responses for id {id}"))
}

#[cfg(test)]
mod tests {
    use antiphon_core::{Limits, decode};
    use bytes::Bytes;

    use super::*;

    fn payload(text: &str) -> Payload {
        decode(&Bytes::copy_from_slice(text.as_bytes()), &Limits::default().rules())
    }

    fn results(text: &str) -> Vec<String> {
        let results = match_batch(3..6, payload(text), CallStyle::V2).unwrap();
        let text = |result: Result<RawJson, CallError>| match result {
            Ok(result) => result.as_str().to_owned(),
            Err(error) => crate::error::ErrorChain(&error).to_string(),
        };
        results.into_iter().map(text).collect()
    }

    #[test]
    fn a_batch_is_encoded_with_consecutive_ids() {
        let ids = RequestIds::default();
        assert_eq!(ids.for_call(&Invocation::new("a", None)).as_str(), "1");
        let entries = [
            BatchEntry::Call(Invocation::new("a", None)),
            BatchEntry::Notification(Invocation::new("b", None)),
            BatchEntry::Call(Invocation::new("c", None)),
        ];
        let range = ids.for_batch(&entries);
        assert_eq!(range, 2..4);
        let mut out = BytesMut::new();
        encode_batch(&entries, range, CallStyle::V2, &mut out);
        let expected = r#"[{"jsonrpc":"2.0","method":"a","id":2},{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","method":"c","id":3}]"#;
        assert_eq!(out, expected);
    }

    #[test]
    fn replies_are_placed_by_their_ids() {
        let text = r#"[{"jsonrpc":"2.0","result":"c","id":5},{"jsonrpc":"2.0","result":"a","id":3.0},
            {"jsonrpc":"2.0","error":{"code":1,"message":"no"},"id":4}]"#;
        assert_eq!(results(text), [r#""a""#, "no (1)", r#""c""#]);
    }

    #[test]
    fn a_missing_a_doubled_and_a_foreign_reply_are_errors() {
        let text = r#"[{"jsonrpc":"2.0","result":1,"id":3},{"jsonrpc":"2.0","result":2,"id":3},
            {"jsonrpc":"2.0","result":2,"id":6},{"jsonrpc":"2.0","result":4,"id":"4"},
            {"jsonrpc":"2.0","result":5,"id":5}]"#;
        let [doubled, missing, fine] = &results(text)[..] else { panic!("three calls") };
        assert!(doubled.contains("two responses for id 3"), "{doubled}");
        assert!(missing.contains("lacks this call"), "{missing}");
        assert_eq!(fine, "5");
    }

    #[test]
    fn strays_are_counted_and_an_excerpt_of_one_id_is_kept() {
        let mut strays = Strays::default();
        strays.add(&Id::from("x".repeat(1_000).as_str()));
        (0..100).for_each(|id| strays.add(&Id::from(id)));
        assert_eq!(strays.count, 101);
        assert_eq!(strays.first.map(|id| id.len()), Some(64));
    }

    #[test]
    fn an_error_holds_only_an_excerpt_of_a_long_id() {
        let zeros = "0".repeat(1_000);
        let reply = |id: &str| format!(r#"{{"jsonrpc":"2.0","result":1,"id":{id}}}"#);
        let other = match_call(&Id::from(7), payload(&reply(&format!("8.{zeros}")))).unwrap_err();
        assert!(crate::error::ErrorChain(&other).to_string().len() < 200);
        let doubled = reply(&format!("3.{zeros}"));
        let [doubled, ..] = &results(&format!("[{doubled},{doubled}]"))[..] else { panic!() };
        assert!(doubled.contains("two responses") && doubled.len() < 200, "{doubled}");
    }

    #[test]
    fn a_batch_that_is_refused_as_a_whole_fails_each_call() {
        let refused = r#"{"jsonrpc":"2.0","error":{"code":-32010,"message":"no"},"id":null}"#;
        assert_eq!(results(refused), ["no (-32010)"; 3]);
        for text in [r#"{"jsonrpc":"2.0","result":1,"id":3}"#, "nonsense"] {
            let error = match_batch(3..6, payload(text), CallStyle::V2).unwrap_err();
            assert!(matches!(error, CallError::Protocol(_)), "{error:?}");
        }
    }

    #[test]
    fn a_call_takes_its_own_reply_and_an_error_without_an_id() {
        let id = Id::from(7);
        let text = |reply: &str| match match_call(&id, payload(reply)) {
            Ok(result) => result.as_str().to_owned(),
            Err(error) => crate::error::ErrorChain(&error).to_string(),
        };
        assert_eq!(text(r#"{"jsonrpc":"2.0","result":1,"id":7.0}"#), "1");
        let error = r#"{"jsonrpc":"2.0","error":{"code":1,"message":"no"},"id":null}"#;
        assert_eq!(text(error), "no (1)");
        assert!(text(r#"{"jsonrpc":"2.0","result":1,"id":8}"#).contains("is for id 8"));
        assert!(text("[]").contains("violated the protocol"));
    }
}
