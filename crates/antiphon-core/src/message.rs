//! What two peers say to each other.
//!
//! A message either is valid, or it is an [`Invalid`] that knows whom to tell. There is no third
//! state and no half-decoded one.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Serialize;

use crate::batch::Entries;
use crate::error::{Code, ErrorObject};
use crate::escape::unescape;
use crate::id::Id;
use crate::json::RawJson;
use crate::members::ValueSpan;
use crate::scan::{JsonKind, SyntaxError, TOO_DEEP};
use crate::trace::TraceContext;

/// A call that wants an answer (section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the answer will carry.
    pub id: Id,
    /// What to do.
    pub method: Method,
    /// With what.
    pub params: Option<Params>,
    /// Where it stands in a trace, if it says so.
    pub trace: Option<Box<TraceContext>>,
}

/// A call that wants none (section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// What to do.
    pub method: Method,
    /// With what.
    pub params: Option<Params>,
    /// Where it stands in a trace, if it says so.
    pub trace: Option<Box<TraceContext>>,
}

/// The answer to a Request (section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Whose answer it is.
    pub id: Id,
    /// Exactly one of `result` and `error`.
    pub outcome: Outcome,
}

/// How a call ended.
pub type Outcome = Result<RawJson, ErrorObject>;

/// One valid message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A call that wants an answer.
    Request(Request),
    /// A call that wants none.
    Notification(Notification),
    /// An answer.
    Response(Response),
}

/// One place in a payload: a message, or why it is none.
pub type Entry = Result<Message, Invalid>;

/// What one frame holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A single message.
    One(Entry),
    /// An Array of them, never empty (section 6).
    Batch(Entries),
}

/// An entry that is no valid message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The id where it could be read, else null.
    pub id: Id,
    /// What is wrong with it.
    pub error: ErrorObject,
    /// What it tried to be.
    pub intent: Intent,
}

impl Invalid {
    /// Whether it might be valid to somebody with larger limits.
    pub fn is_over_limit(&self) -> bool {
        let says = |data: &RawJson| data.as_str().contains(TOO_DEEP);
        self.error.code == Code::BATCH_TOO_LARGE
            || (self.error.code == Code::PARSE_ERROR && self.error.data.as_ref().is_some_and(says))
    }
}

/// What an invalid entry tried to be; it decides whether anybody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A Request, or nothing recognisable: it is answered with the error.
    Request,
    /// A Response: never answered, or two peers could complain of each other for ever.
    Response,
}

/// The name of a method, as it was written and as it reads.
#[derive(Clone)]
pub struct Method {
    quoted: RawJson,
    /// In one word, for names that are seldom escaped: a Request of up to 128 bytes is moved without a call.
    unescaped: Option<Box<Unescaped>>,
}

#[derive(Clone)]
struct Unescaped(Box<str>);

impl Method {
    /// A name to call.
    pub fn new(name: &str) -> Self {
        Self::from_json(RawJson::encode(name).expect("a str serializes"))
            .expect("a str serializes to a String")
    }

    /// The name that this JSON value is, if it is a String.
    pub fn from_json(quoted: RawJson) -> Option<Self> {
        if quoted.kind() != JsonKind::String {
            return None;
        }
        let unescaped = unescaped(quoted.as_bytes());
        Some(Self { quoted, unescaped })
    }

    /// The same for a String that stands in a frame, and perhaps is known to be without escapes.
    #[inline(always)]
    pub(crate) fn at(place: ValueSpan, frame: &Bytes, may_escape: bool) -> Self {
        let unescaped = if may_escape { unescaped(place.of(frame)) } else { None };
        Self { quoted: place.json(frame), unescaped }
    }

    /// The name as it reads: `textDocument\/hover` is `textDocument/hover`.
    pub fn as_str(&self) -> &str {
        match &self.unescaped {
            Some(name) => &name.0,
            None => {
                let quoted = self.quoted.as_str();
                &quoted[1..quoted.len() - 1]
            }
        }
    }

    /// The name as it reads, as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.unescaped {
            Some(name) => name.0.as_bytes(),
            None => {
                let quoted = self.quoted.as_bytes();
                &quoted[1..quoted.len() - 1]
            }
        }
    }

    /// The name as it was written, in quotes.
    pub fn as_json(&self) -> &RawJson {
        &self.quoted
    }
}

/// What a String with escapes says.
fn unescaped(quoted: &[u8]) -> Option<Box<Unescaped>> {
    match unescape(quoted) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(Box::new(Unescaped(String::from_utf8_lossy(&text).into()))),
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Method {}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parameters of a call: an Array or an Object, never anything else (section 4.2).
#[derive(Clone, PartialEq, Eq)]
pub struct Params(RawJson);

impl Params {
    /// The parameters that this JSON value is.
    pub fn from_json(value: RawJson) -> Result<Self, ParamsError> {
        match value.kind() {
            JsonKind::Array | JsonKind::Object => Ok(Self(value)),
            kind => Err(ParamsError::Unstructured(kind)),
        }
    }

    /// The same for what is known to be an Array or an Object.
    pub(crate) fn of_structured(value: RawJson) -> Self {
        Self(value)
    }

    /// Checks a text.
    pub fn parse(text: &str) -> Result<Self, ParamsError> {
        Self::from_json(RawJson::parse(text.to_owned())?)
    }

    /// Serializes parameters: a tuple, slice or `Vec` by position, a struct or map by name.
    ///
    /// `()` and `None` mean that there are none.
    pub fn encode(params: &(impl Serialize + ?Sized)) -> Result<Option<Self>, ParamsError> {
        let value = RawJson::encode(params)?;
        if value.kind() == JsonKind::Null { Ok(None) } else { Self::from_json(value).map(Some) }
    }

    /// The parameters as JSON.
    pub fn as_json(&self) -> &RawJson {
        &self.0
    }

    /// The parameters as JSON.
    pub fn into_json(self) -> RawJson {
        self.0
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Why a value cannot be params.
#[derive(Debug, thiserror::Error)]
pub enum ParamsError {
    /// Only an Array or an Object can.
    #[error("params must be an Array or an Object, found {0}; wrap a single value as `(value,)`")]
    Unstructured(JsonKind),
    /// The text is not JSON.
    #[error("params are not JSON")]
    Syntax(#[from] SyntaxError),
    /// The value does not serialize.
    #[error("params do not serialize")]
    Serialize(#[from] serde_json::Error),
}

impl From<Request> for Message {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

impl From<Notification> for Message {
    fn from(notification: Notification) -> Self {
        Self::Notification(notification)
    }
}

impl From<Response> for Message {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_moved_without_a_call() {
        assert!(size_of::<Request>() <= 128, "{} bytes", size_of::<Request>());
    }
}
