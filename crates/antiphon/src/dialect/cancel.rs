//! The cancellation of a call on the wire.

use std::collections::HashMap;

use antiphon_core::{Code, ErrorObject, Id, Method, Notification, Params, RawJson};
use bytes::BytesMut;

use super::CallStyle;

/// The notification that cancels a call, and the response to a cancelled call.
///
/// ```
/// use antiphon::{Cancellation, Dialect};
///
/// // `{"method": "cancel", "params": {"id": 7}}` cancels the call with the id 7, without a response.
/// let dialect = Dialect::plain().cancellation(Cancellation::new("cancel", "id").silent());
/// # drop(dialect);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancellation {
    method: Method,
    member: String,
    answers: bool,
}

impl Cancellation {
    /// Creates a cancellation. `method` is the name of the notification, and `member` is the name of the param that
    /// holds the id of the call.
    /// The cancelled call gets the error -32800.
    pub fn new(method: &str, member: &str) -> Self {
        Self { method: Method::new(method), member: member.to_owned(), answers: true }
    }

    /// Sends no response to a cancelled call.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.answers = false;
        self
    }

    /// The response to a cancelled call; `None` for no response.
    pub(crate) fn answer(&self) -> Option<ErrorObject> {
        self.answers.then(|| ErrorObject::new(Code::CANCELLED.0, "Request cancelled"))
    }

    /// The id of the call that this notification cancels: `None` if it is not a cancellation,
    /// `Some(None)` if it is one without a valid id.
    pub(crate) fn cancels(&self, notification: &Notification) -> Option<Option<Id>> {
        if notification.method.as_bytes() != self.method.as_bytes() {
            return None;
        }
        Some(notification.params.as_ref().and_then(|params| self.id(params)))
    }

    fn id(&self, params: &Params) -> Option<Id> {
        let mut members: HashMap<String, RawJson> = params.as_json().decode().ok()?;
        Id::from_json(members.remove(&self.member)?)
    }

    /// Writes the message that cancels this call.
    pub(crate) fn encode(&self, id: &str, style: CallStyle, out: &mut BytesMut) {
        let member = Method::new(&self.member);
        let params = format!("{{{}:{id}}}", member.as_json());
        let params =
            Params::parse(&params).expect("an Object with one member, which is a JSON text");
        style.encode_head(&self.method, Some(&params), out);
        style.end_notification(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_core::{Message, Payload, Rules, decode};

    #[test]
    fn an_encoded_cancellation_is_recognised() {
        for (cancellation, text) in [
            (Cancellation::new("$/cancelRequest", "id"), r#""params":{"id":7}"#),
            (Cancellation::new("notifications/cancelled", "requestId"), r#"{"requestId":7}"#),
        ] {
            let mut out = BytesMut::new();
            cancellation.encode("7", CallStyle::V2, &mut out);
            assert!(String::from_utf8_lossy(&out).contains(text), "{out:?}");
            let Payload::One(Ok(Message::Notification(note))) =
                decode(&out.freeze(), &Rules::default())
            else {
                panic!("not a notification");
            };
            assert_eq!(cancellation.cancels(&note), Some(Some(Id::from(7))));
            for params in [None, Some("[7]"), Some("{}"), Some(r#"{"id":{}}"#)] {
                let params = params.map(|params| Params::parse(params).unwrap());
                let note = Notification { params, ..note.clone() };
                assert_eq!(cancellation.cancels(&note), Some(None));
            }
            let other = Notification { method: Method::new("other"), ..note };
            assert_eq!(cancellation.cancels(&other), None);
        }
    }
}
