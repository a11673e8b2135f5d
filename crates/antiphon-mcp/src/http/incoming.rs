//! The body of a POST, as far as its route depends on it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::server::borrowed_text;

/// The members of a message.
#[derive(Deserialize)]
pub(super) struct Incoming<'a> {
    /// `Some` for null, which is not a valid id: the engine refuses it.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "borrowed_text")]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// Reads a member that is there, even if it is null.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(member: D) -> Result<Option<&'a RawValue>, D::Error> {
    Deserialize::deserialize(member).map(Some)
}

impl<'a> Incoming<'a> {
    /// Reads a message; `None` if the body is not an Object, or a member has the wrong type. The engine then reports the
    /// error.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        if !body.trim_ascii_start().starts_with(b"{") {
            return None;
        }
        // From a text, whose members need no check of their own.
        serde_json::from_str(std::str::from_utf8(body).ok()?).ok()
    }

    /// The id of a request; `None` for other messages.
    pub(super) fn request_id(&self) -> Option<&'a RawValue> {
        self.id.filter(|id| self.method.is_some() && id.get() != "null")
    }

    /// Whether the message is a response.
    pub(super) fn is_response(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }
}
