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

/// The params of an item message. Only the id decides whether it is one. A server may send a value of
/// another type in any further member; the message still counts, or a subscription would never end.
#[derive(Debug, Deserialize)]
pub(crate) struct ItemParams {
    pub(crate) subscription: RawJson,
    #[serde(default)]
    lost: Option<RawJson>,
    #[serde(default, deserialize_with = "present")]
    pub(super) result: Option<RawJson>,
    #[serde(default)]
    error: Option<RawJson>,
    #[serde(default)]
    closed: Option<RawJson>,
}

/// Reads `null` as an item, not as an absent member.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

impl ItemParams {
    /// Whether this is the last message of the subscription.
    pub(crate) fn is_last(&self) -> bool {
        self.error.is_some() || self.closed().is_some()
    }

    /// The number of items that the server has dropped before this one; 0 if it is not readable.
    pub(super) fn lost(&self) -> u64 {
        self.lost.as_ref().and_then(|lost| lost.decode().ok()).unwrap_or(0)
    }

    /// The error that ends the subscription. The data of an error has its original bytes. A value that is
    /// not an error object becomes the data of one.
    pub(super) fn error(&self) -> Option<ErrorObject> {
        let error = self.error.clone()?;
        Some(ErrorObject::from_json(error.clone()).unwrap_or_else(|| ErrorObject {
            data: Some(error),
            ..ErrorObject::new(-32000, "the subscription failed")
        }))
    }

    /// The reason of the end: a text, or any other value but null and false as JSON.
    pub(super) fn closed(&self) -> Option<String> {
        let closed = self.closed.as_ref().filter(|closed| closed.as_str() != "false")?;
        Some(closed.decode().unwrap_or_else(|_| closed.to_string()))
    }

    /// Reads the params of a notification; `None` if it is not an item message.
    pub(crate) fn read(params: Option<&Params>) -> Option<Self> {
        // A derived struct would also accept an Array.
        let params = params?.as_json();
        (params.kind() == JsonKind::Object).then(|| params.decode().ok()).flatten()
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
        assert_eq!((item.lost(), item.result), (0, Some(RawJson::NULL)));
        out.clear();
        encode_item(&head, 7, &RawJson::parse("1.50").unwrap(), &mut out);
        let item = read(&out);
        assert_eq!((item.lost(), item.result.unwrap().as_str()), (7, "1.50"));
        out.clear();
        encode_closing(&head, 2, &Closing::Over("enough"), &mut out);
        let closing = read(&out);
        assert_eq!((closing.lost(), closing.closed().as_deref()), (2, Some("enough")));
        out.clear();
        let error = ErrorObject::new(7, "no").with_data(&[1]);
        encode_closing(&head, 0, &Closing::Failed(error.clone()), &mut out);
        assert_eq!(read(&out).error(), Some(error));
    }

    #[test]
    fn other_notifications_are_not_item_messages() {
        for params in ["[1]", "{}", r#"{"result":1}"#] {
            assert!(ItemParams::read(Some(&Params::parse(params).unwrap())).is_none(), "{params}");
        }
        assert!(ItemParams::read(None).is_none());
    }

    #[test]
    fn a_member_of_another_type_does_not_hide_the_message() {
        let item = |members: &str| {
            let params = format!(r#"{{"subscription":1,{members}}}"#);
            ItemParams::read(Some(&Params::parse(&params).unwrap())).unwrap()
        };
        for (members, closed) in [
            (r#""closed":5"#, Some("5")),
            (r#""closed":{"a":1.50e400}"#, Some(r#"{"a":1.50e400}"#)),
            (r#""closed":"\ud800""#, Some(r#""\ud800""#)),
            (r#""closed":true,"lost":-1"#, Some("true")),
            (r#""closed":false,"lost":"many""#, None),
            (r#""closed":null,"error":null,"lost":null"#, None),
        ] {
            let item = item(members);
            assert_eq!((item.closed().as_deref(), item.error()), (closed, None), "{members}");
            assert_eq!((item.is_last(), item.lost()), (closed.is_some(), 0), "{members}");
        }
        for (error, code, data) in [
            (r#"{"code":7,"message":"no","data":1.50e400}"#, 7, Some("1.50e400")),
            (r#"{"code":7.0,"message":"no","data":null}"#, 7, Some("null")),
            (r#"{"code":7,"message":"no"}"#, 7, None),
            (r#"{"code":1e400}"#, -32000, Some(r#"{"code":1e400}"#)),
            (r#""gone""#, -32000, Some(r#""gone""#)),
        ] {
            let item = item(&format!(r#""error":{error}"#));
            let found = item.error().unwrap();
            let found_data = found.data.as_ref().map(RawJson::as_str);
            assert_eq!((found.code.0, found_data, item.is_last()), (code, data, true), "{error}");
        }
    }
}
