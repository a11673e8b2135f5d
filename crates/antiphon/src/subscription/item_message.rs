//! The notification that carries an item.
//!
//! Its params are `{"subscription": id, "result": item}`, as in Ethereum. A reader may ignore the further
//! members: `lost` is the number of items dropped before this one. The last message has `closed`, a
//! reason, or `error`, an error object.

use antiphon_core::{ErrorObject, Id, JsonKind, Method, Params, RawJson};
use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;

/// The first bytes of every item message of a subscription.
pub(super) fn head(method: &str, id: &Id) -> Bytes {
    let mut out = BytesMut::new();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    out.extend_from_slice(Method::new(method).as_json().as_bytes());
    out.extend_from_slice(b",\"params\":{\"subscription\":");
    out.extend_from_slice(id.as_bytes());
    out.freeze()
}

/// An upper estimate of the length of a message.
pub(super) fn about_len(head: &Bytes, item: &RawJson) -> usize {
    head.len() + item.as_bytes().len() + 40
}

pub(super) fn encode_item(head: &Bytes, lost: u64, item: &RawJson, out: &mut BytesMut) {
    out.extend_from_slice(head);
    if lost > 0 {
        out.extend_from_slice(format!(",\"lost\":{lost}").as_bytes());
    }
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(item.as_bytes());
    out.extend_from_slice(b"}}");
}

/// The reason of a subscription that ends because its server shuts down, and may restart.
pub(crate) const SHUTTING_DOWN: &str = "shutting down";

/// The reason why the serving side ends a subscription.
#[derive(Clone, Debug)]
pub(crate) enum Closing {
    /// There are no more items.
    Over(&'static str),
    Failed(ErrorObject),
}

pub(super) fn encode_closing(head: &Bytes, lost: u64, closing: &Closing, out: &mut BytesMut) {
    out.extend_from_slice(head);
    if lost > 0 {
        out.extend_from_slice(format!(",\"lost\":{lost}").as_bytes());
    }
    match closing {
        Closing::Over(reason) => {
            out.extend_from_slice(b",\"closed\":");
            out.extend_from_slice(Method::new(reason).as_json().as_bytes());
        }
        Closing::Failed(error) => {
            out.extend_from_slice(b",\"error\":");
            error.encode(out);
        }
    }
    out.put_slice(b"}}");
}

/// The params of an item message.
#[derive(Debug, Deserialize)]
pub(crate) struct ItemParams {
    pub(crate) subscription: RawJson,
    #[serde(default)]
    pub(super) lost: u64,
    #[serde(default, deserialize_with = "present")]
    pub(super) result: Option<RawJson>,
    #[serde(default)]
    pub(super) error: Option<ItemError>,
    #[serde(default)]
    pub(super) closed: Option<String>,
}

/// An error object, or any other value that a server sends instead.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ItemError {
    Object {
        code: i64,
        message: String,
        #[serde(default)]
        data: Option<serde_json::Value>,
    },
    Other(serde_json::Value),
}

/// Reads `null` as an item, not as an absent member.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

impl ItemParams {
    /// Whether this is the last message of the subscription.
    pub(crate) fn is_last(&self) -> bool {
        self.error.is_some() || self.closed.is_some()
    }

    /// Reads the params of a notification; `None` if it is not an item message.
    pub(crate) fn read(params: Option<&Params>) -> Option<Self> {
        // A derived struct would also accept an Array.
        let params = params?.as_json();
        (params.kind() == JsonKind::Object).then(|| params.decode().ok()).flatten()
    }
}

impl From<ItemError> for ErrorObject {
    fn from(failure: ItemError) -> Self {
        match failure {
            ItemError::Object { code, message, data } => {
                let error = Self::new(code, message);
                data.map_or(error.clone(), |data| error.with_data(&data))
            }
            ItemError::Other(text) => Self::new(-32000, "the subscription failed").with_data(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &BytesMut) -> ItemParams {
        let rules = antiphon_core::Rules::default();
        let message = antiphon_core::decode(&message.clone().freeze(), &rules);
        let antiphon_core::Payload::One(Ok(antiphon_core::Message::Notification(item))) = message
        else {
            panic!("{message:?}");
        };
        assert_eq!(item.method.as_str(), "a\"b");
        ItemParams::read(item.params.as_ref()).unwrap()
    }

    #[test]
    fn an_encoded_message_is_read_back() {
        let head = head("a\"b", &Id::from("0x1"));
        let mut out = BytesMut::new();
        encode_item(&head, 0, &RawJson::NULL, &mut out);
        let item = read(&out);
        assert_eq!((item.lost, item.result), (0, Some(RawJson::NULL)));
        out.clear();
        encode_item(&head, 7, &RawJson::parse("1.50").unwrap(), &mut out);
        let item = read(&out);
        assert_eq!((item.lost, item.result.unwrap().as_str()), (7, "1.50"));
        out.clear();
        encode_closing(&head, 2, &Closing::Over("enough"), &mut out);
        let closing = read(&out);
        assert_eq!((closing.lost, closing.closed.as_deref()), (2, Some("enough")));
        out.clear();
        let error = ErrorObject::new(7, "no").with_data(&[1]);
        encode_closing(&head, 0, &Closing::Failed(error.clone()), &mut out);
        assert_eq!(ErrorObject::from(read(&out).error.unwrap()), error);
    }

    #[test]
    fn other_notifications_are_not_item_messages() {
        for params in ["[1]", "{}", r#"{"result":1}"#, r#"{"subscription":1,"lost":-1}"#] {
            assert!(ItemParams::read(Some(&Params::parse(params).unwrap())).is_none(), "{params}");
        }
        assert!(ItemParams::read(None).is_none());
    }
}
