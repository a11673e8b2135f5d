//! The body of a POST, as a policy sees it. It is decoded on first use.
//!
//! Entries are read one at a time, and only the members that are asked for are kept: a policy sees the
//! body before the decoder has enforced any limit.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A message or a batch, before any handler has run.
///
/// ```
/// use antiphon::Connection;
/// use antiphon::http::{Response, StatusCode};
/// use antiphon::transport::http::{HttpBody, HttpMessage, HttpPolicy, MessageDecision};
///
/// /// Rejects batches, and calls of `debug.*` from other hosts.
/// struct Restricted;
///
/// impl HttpPolicy for Restricted {
///     fn on_message(&self, request: &mut Connection, message: &HttpMessage) -> MessageDecision {
///         let is_local = request.remote.is_some_and(|address| address.ip().is_loopback());
///         let is_debug = message.method().is_some_and(|method| method.starts_with("debug."));
///         if message.is_batch() || is_debug && !is_local {
///             let mut response = Response::new(HttpBody::from("not allowed here"));
///             *response.status_mut() = StatusCode::FORBIDDEN;
///             return MessageDecision::Respond(response);
///         }
///         MessageDecision::Dispatch
///     }
/// }
/// ```
#[derive(Debug)]
pub struct HttpMessage {
    body: Bytes,
    /// The maximum number of entries in a batch.
    batch_entries: usize,
    entries: OnceLock<Vec<MessageEntry>>,
}

/// One entry of an [`HttpMessage`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageEntry {
    /// The version that the members `jsonrpc` and `version` state.
    pub version: MessageVersion,
    /// The method, if it is a String. A response has none.
    pub method: Option<String>,
    /// Whether there is a member `id`, even if it is null.
    pub has_id: bool,
}

/// The version of JSON-RPC that a message states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageVersion {
    /// `jsonrpc` is absent, null or "1.0".
    V1_0,
    /// As `V1_0`, and `version` is "1.1".
    V1_1,
    /// `jsonrpc` is "2.0".
    V2_0,
    /// `jsonrpc` has another value.
    Unknown,
}

impl HttpMessage {
    pub(super) fn new(body: Bytes, batch_entries: usize) -> Self {
        Self { body, batch_entries, entries: OnceLock::new() }
    }

    /// Returns the body as it arrived.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns whether the message is a batch.
    pub fn is_batch(&self) -> bool {
        is_array(&self.body)
    }

    /// Returns the entries of a batch, or the one message. Decoded by the first call. An entry that is not
    /// an Object is an entry without members.
    ///
    /// Empty if the body is not JSON, if it is not a batch and not an Object, or if the batch is longer than
    /// [`Limits::batch_entries`](crate::Limits::batch_entries).
    pub fn entries(&self) -> &[MessageEntry] {
        let read = || read_objects(&self.body, MEMBERS, self.batch_entries, MessageEntry::new);
        self.entries.get_or_init(read)
    }

    /// Returns the method of a message that is not a batch.
    pub fn method(&self) -> Option<&str> {
        if self.is_batch() {
            return None;
        }
        self.entries().first()?.method.as_deref()
    }
}

/// The members that a [`MessageEntry`] is made of.
const MEMBERS: [&str; 4] = ["jsonrpc", "version", "method", "id"];

impl MessageEntry {
    fn new(members: [Option<&RawValue>; 4]) -> Self {
        let [jsonrpc, version, method, id] = members.map(|value| value.map(RawValue::get));
        // `null` and a missing member are both `Ok(None)`.
        let text = |member: Option<&str>| serde_json::from_str(member.unwrap_or("null")).ok();
        let [jsonrpc, version, method]: [Option<Option<String>>; 3] =
            [jsonrpc, version, method].map(text);
        let states_1_1 = version.flatten().as_deref() == Some("1.1");
        let version = match jsonrpc.as_ref().map(Option::as_deref) {
            Some(Some("2.0")) => MessageVersion::V2_0,
            Some(None | Some("1.0")) if states_1_1 => MessageVersion::V1_1,
            Some(None | Some("1.0")) => MessageVersion::V1_0,
            _ => MessageVersion::Unknown,
        };
        Self { version, method: method.flatten(), has_id: id.is_some() }
    }
}

/// The error code of each response in an encoded reply; `None` for a result.
pub(super) fn error_codes(reply: &[u8]) -> Vec<Option<i64>> {
    #[derive(Deserialize)]
    struct ErrorCode {
        code: i64,
    }
    let code = |[error]: [Option<&RawValue>; 1]| {
        let error: ErrorCode = serde_json::from_str(error?.get()).ok()?;
        Some(error.code)
    };
    read_objects(reply, ["error"], usize::MAX, code)
}

/// Reads the Objects of an Array, or the one Object. Returns nothing if the text is not JSON, or if the
/// Array has more than `limit` values. A value of the Array that is not an Object has no members.
pub(super) fn read_objects<T, const N: usize>(
    text: &[u8],
    names: [&str; N],
    limit: usize,
    mut read: impl FnMut([Option<&RawValue>; N]) -> T,
) -> Vec<T> {
    let mut objects = Vec::new();
    if !is_array(text) {
        objects.extend(members(text, names).map(read));
        return objects;
    }
    let push = |value: &RawValue| {
        if objects.len() >= limit {
            return false;
        }
        objects.push(read(members(value.get().as_bytes(), names).unwrap_or([None; N])));
        true
    };
    if from_slice(text, Values(push)).is_none() {
        return Vec::new();
    }
    objects
}

/// The members of an Object with these names. The last one of a name counts.
fn members<'a, const N: usize>(
    text: &'a [u8],
    names: [&str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    from_slice(text, Members(names))
}

fn from_slice<'a, S: DeserializeSeed<'a>>(text: &'a [u8], seed: S) -> Option<S::Value> {
    let mut text = serde_json::Deserializer::from_slice(text);
    let value = seed.deserialize(&mut text).ok()?;
    text.end().ok().map(|()| value)
}

/// Passes each value of an Array to a function, until it returns false. That is an error.
struct Values<F>(F);

impl<'de, F: FnMut(&'de RawValue) -> bool> DeserializeSeed<'de> for Values<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&'de RawValue) -> bool> Visitor<'de> for Values<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an Array within its limit")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        while let Some(value) = values.next_element()? {
            if !(self.0)(value) {
                return Err(A::Error::custom("the Array has too many values"));
            }
        }
        Ok(())
    }
}

/// Reads the members of an Object that have one of these names.
struct Members<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Members<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an Object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some((name, value)) = members.next_entry::<String, &RawValue>()? {
            for (found, wanted) in found.iter_mut().zip(self.0) {
                if name == wanted {
                    *found = Some(value);
                }
            }
        }
        Ok(found)
    }
}

fn is_array(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"[")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str) -> HttpMessage {
        HttpMessage::new(Bytes::from_static(text.as_bytes()), 5)
    }

    #[test]
    fn each_entry_has_its_version() {
        let batch = message(
            r#" [{"jsonrpc":"2.0","method":"a","id":1}, {"method":"b","id":null},
            {"version":"1.1","method":"c"}, {"jsonrpc":3}, {"jsonrpc":"\u0032.0","version":7}]"#,
        );
        assert!(batch.is_batch() && batch.method().is_none());
        let seen: Vec<_> =
            batch.entries().iter().map(|e| (e.version, e.method.as_deref(), e.has_id)).collect();
        let expected = [
            (MessageVersion::V2_0, Some("a"), true),
            (MessageVersion::V1_0, Some("b"), true),
            (MessageVersion::V1_1, Some("c"), false),
            (MessageVersion::Unknown, None, false),
            (MessageVersion::V2_0, None, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(message("[7]").entries()[0].version, MessageVersion::V1_0);
        assert_eq!(message(r#"{"version":7}"#).entries()[0].version, MessageVersion::V1_0);
        assert_eq!(message(r#"{"method":"a\/b"}"#).method(), Some("a/b"));
        assert!(message("{").entries().is_empty());
    }

    #[test]
    fn a_batch_over_the_limit_has_no_entries() {
        assert_eq!(message("[0,0,0,0,0]").entries().len(), 5);
        assert!(message("[0,0,0,0,0,0]").entries().is_empty());
        assert!(message("[0,0").entries().is_empty());
        assert!(message("[0]0").entries().is_empty());
    }

    #[test]
    fn the_method_of_a_batch_is_known_without_decoding() {
        let batch = message(r#"[{"method":"a"}]"#);
        assert_eq!(batch.method(), None);
        assert!(batch.entries.get().is_none());
    }

    #[test]
    fn the_last_member_of_a_name_counts() {
        assert_eq!(message(r#"{"method":"a","meth\u006fd":"b"}"#).method(), Some("b"));
    }

    #[test]
    fn codes_are_read_from_either_shape_of_a_response() {
        let codes = |text: &str| error_codes(text.as_bytes());
        assert_eq!(codes(r#"{"jsonrpc":"2.0","result":1,"id":1}"#), [None]);
        assert_eq!(
            codes(
                r#"[{"error":{"code":-32601,"message":"m"},"id":1},{"result":1,"error":null,"id":2}]"#
            ),
            [Some(-32601), None]
        );
    }
}
