//! The body of a POST, as a policy sees it. It is decoded on first use.

use std::collections::HashMap;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A message or a batch, before any handler has run.
#[derive(Debug)]
pub struct HttpMessage {
    body: Bytes,
    entries: OnceLock<Vec<MessageEntry>>,
}

/// One entry of an [`HttpMessage`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageEntry {
    /// The version by the members `jsonrpc` and `version`.
    pub version: MessageVersion,
    /// The method, if it is a String. A response has none.
    pub method: Option<String>,
    /// Whether there is a member `id`, null included.
    pub has_id: bool,
}

/// The version of JSON-RPC that a message states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageVersion {
    /// `jsonrpc` is absent, null or "1.0".
    V1_0,
    /// `version` is "1.1".
    V1_1,
    /// `jsonrpc` is "2.0".
    V2_0,
    /// `jsonrpc` or `version` has another value.
    Unknown,
}

impl HttpMessage {
    pub(super) fn new(body: Bytes) -> Self {
        Self { body, entries: OnceLock::new() }
    }

    /// The body as it arrived.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the message is a batch.
    pub fn is_batch(&self) -> bool {
        is_array(&self.body)
    }

    /// The entries of a batch, or the one message. Empty where the body is not JSON. An entry that is
    /// not an Object is an entry without members.
    pub fn entries(&self) -> &[MessageEntry] {
        self.entries.get_or_init(|| objects(&self.body).iter().map(MessageEntry::new).collect())
    }

    /// The method of a message that is not a batch.
    pub fn method(&self) -> Option<&str> {
        let [only] = self.entries() else { return None };
        only.method.as_deref().filter(|_| !self.is_batch())
    }
}

type MessageMembers<'a> = HashMap<String, &'a RawValue>;

impl MessageEntry {
    fn new(members: &MessageMembers<'_>) -> Self {
        let text = |name: &str| members.get(name).map(|value| value.get());
        let version = match (text("jsonrpc"), text("version")) {
            (Some("\"2.0\""), _) => MessageVersion::V2_0,
            (None | Some("null" | "\"1.0\""), Some("\"1.1\"")) => MessageVersion::V1_1,
            (None | Some("null" | "\"1.0\""), None | Some("null" | "\"1.0\"")) => {
                MessageVersion::V1_0
            }
            _ => MessageVersion::Unknown,
        };
        let method = text("method").and_then(|method| serde_json::from_str(method).ok());
        Self { version, method, has_id: members.contains_key("id") }
    }
}

/// The error code of each response in an encoded reply; `None` for a result.
pub(super) fn error_codes(reply: &[u8]) -> Vec<Option<i64>> {
    #[derive(Deserialize)]
    struct ErrorCode {
        code: i64,
    }
    let code = |members: &MessageMembers<'_>| {
        let error: ErrorCode = serde_json::from_str(members.get("error")?.get()).ok()?;
        Some(error.code)
    };
    objects(reply).iter().map(code).collect()
}

/// The Objects of an Array, or the one Object.
fn objects(text: &[u8]) -> Vec<MessageMembers<'_>> {
    if !is_array(text) {
        return serde_json::from_slice(text).into_iter().collect();
    }
    let values: Vec<&RawValue> = serde_json::from_slice(text).unwrap_or_default();
    values.into_iter().map(members).collect()
}

fn members(value: &RawValue) -> MessageMembers<'_> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

fn is_array(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"[")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str) -> HttpMessage {
        HttpMessage::new(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn each_entry_has_its_version() {
        let batch = message(
            r#" [{"jsonrpc":"2.0","method":"a","id":1}, {"method":"b","id":null},
            {"version":"1.1","method":"c"}, {"jsonrpc":3}, 7]"#,
        );
        assert!(batch.is_batch() && batch.method().is_none());
        let seen: Vec<_> =
            batch.entries().iter().map(|e| (e.version, e.method.as_deref(), e.has_id)).collect();
        let expected = [
            (MessageVersion::V2_0, Some("a"), true),
            (MessageVersion::V1_0, Some("b"), true),
            (MessageVersion::V1_1, Some("c"), false),
            (MessageVersion::Unknown, None, false),
            (MessageVersion::V1_0, None, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(message(r#"{"method":"a\/b"}"#).method(), Some("a/b"));
        assert!(message("{").entries().is_empty());
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
