//! JSON-RPC messages: requests, notifications, responses, and their parts.
//!
//! This module does not decode or encode: see `decode` and `encode`.
//!
//! Invariant: a message is either valid, or an [`Invalid`], whose `intent` tells whether it gets a response.
//! There is no half-decoded state.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::batch::Entries;
use crate::error::{Code, ErrorObject};
use crate::id::Id;
use crate::json::RawJson;
use crate::method::Method;
use crate::scan::{JsonKind, SyntaxError, TOO_DEEP};
use crate::trace_context::TraceContext;
use crate::version::Versions;

/// A call that expects a response (section 4).
///
/// ```
/// use antiphon_core::{Method, Params, Request};
/// use bytes::BytesMut;
///
/// let params = Some(Params::parse("[42,23]")?);
/// let request = Request { id: 1.into(), method: Method::new("subtract"), params, trace: None };
/// let mut out = BytesMut::new();
/// request.encode(&mut out);
/// assert_eq!(out, r#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}"#);
/// # Ok::<(), antiphon_core::ParamsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The id, which the Response repeats.
    pub id: Id,
    /// The method to call.
    pub method: Method,
    /// The parameters, if there are any.
    pub params: Option<Params>,
    /// The trace context, if the message has one.
    pub trace: Option<Box<TraceContext>>,
}

/// A call without a response (section 4.1).
///
/// ```
/// use antiphon_core::{Method, Notification};
/// use bytes::BytesMut;
///
/// let mut out = BytesMut::new();
/// Notification { method: Method::new("update"), params: None, trace: None }.encode(&mut out);
/// assert_eq!(out, r#"{"jsonrpc":"2.0","method":"update"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The method to call.
    pub method: Method,
    /// The parameters, if there are any.
    pub params: Option<Params>,
    /// The trace context, if the message has one.
    pub trace: Option<Box<TraceContext>>,
}

/// The response to a Request (section 5).
///
/// ```
/// use antiphon_core::{ErrorObject, Response};
/// use bytes::BytesMut;
///
/// let mut out = BytesMut::new();
/// Response { id: 1.into(), outcome: Err(ErrorObject::method_not_found()) }.encode(&mut out);
/// assert!(out.starts_with(br#"{"jsonrpc":"2.0","error":{"code":-32601"#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The id of the Request.
    pub id: Id,
    /// The result or the error.
    pub outcome: Outcome,
}

/// The outcome of a call: its result or its error.
pub type Outcome = Result<RawJson, ErrorObject>;

/// One valid message.
///
/// ```
/// use antiphon_core::{Message, Payload, Rules, decode};
///
/// let frame = br#"{"jsonrpc":"2.0","method":"ping","id":1}"#[..].into();
/// match decode(&frame, &Rules::default()) {
///     Payload::One(Ok(Message::Request(request))) => assert_eq!(request.method, "ping"),
///     other => println!("{other:?}"),
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A call that expects a response.
    Request(Request),
    /// A call without a response.
    Notification(Notification),
    /// The response to a Request.
    Response(Response),
}

/// One entry of a payload: a message, or the reason why it is not valid.
pub type Entry = Result<Message, Invalid>;

/// The content of one frame.
///
/// ```
/// use antiphon_core::{Payload, Rules, decode};
///
/// let batch = br#"[{"jsonrpc":"2.0","method":"ping"}, 1]"#[..].into();
/// assert!(matches!(decode(&batch, &Rules::default()), Payload::Batch(entries) if entries.len() == 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A single message.
    One(Entry),
    /// A batch. It is never empty (section 6), except with [`Versions::Bitcoin`](crate::Versions::Bitcoin).
    Batch(Entries),
}

/// An entry that is not a valid message.
///
/// ```
/// use antiphon_core::{ErrorObject, Id, Intent, Invalid};
///
/// let invalid = Invalid {
///     id: Id::Null,
///     error: ErrorObject::new(-32600, "no method"),
///     intent: Intent::Request,
/// };
/// assert!(!invalid.is_over_limit());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The id if it could be read, or null.
    pub id: Id,
    /// The error that describes what is wrong.
    pub error: ErrorObject,
    /// The kind of message that it was meant to be.
    pub intent: Intent,
}

impl Invalid {
    /// Returns the entry for an empty batch, which section 6 forbids.
    pub fn empty_batch(versions: Versions) -> Self {
        let error = ErrorObject::invalid_request().with_data("a batch may not be empty");
        Self { id: versions.unreadable_id(), error, intent: Intent::Request }
    }

    /// Whether it was rejected because of a limit, so that it might be valid under larger limits.
    pub fn is_over_limit(&self) -> bool {
        let too_deep = |data: &RawJson| data.as_str().contains(TOO_DEEP);
        self.error.code == Code::BATCH_TOO_LARGE
            || (self.error.code == Code::PARSE_ERROR
                && self.error.data.as_ref().is_some_and(too_deep))
    }
}

/// The kind of message that an invalid entry was meant to be. It decides whether the entry gets a
/// response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A Request, or an unrecognisable message. It gets `error` as its response.
    Request,
    /// A Notification. It gets no response. A decoder returns this only with
    /// [`Versions::Bitcoin`](crate::Versions::Bitcoin).
    Notification,
    /// A Response. It never gets a response, because otherwise two peers could exchange errors forever.
    Response,
}

/// The parameters of a call: an Array or an Object, never anything else (section 4.2).
///
/// ```
/// use antiphon_core::Params;
///
/// let by_position = Params::encode(&(42, 23))?.expect("two params");
/// assert_eq!(by_position.as_json().as_str(), "[42,23]");
/// assert!(Params::encode(&())?.is_none());
/// assert!(Params::parse("42").is_err());
/// # Ok::<(), antiphon_core::ParamsError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Params(RawJson);

impl Params {
    /// Takes a JSON value as parameters.
    ///
    /// # Errors
    /// Fails if the value is not an Array or an Object.
    pub fn from_json(value: RawJson) -> Result<Self, ParamsError> {
        match value.kind() {
            JsonKind::Array | JsonKind::Object => Ok(Self(value)),
            kind => Err(ParamsError::Unstructured(kind)),
        }
    }

    /// Like `from_json`, for a value that is known to be an Array or an Object.
    pub(crate) fn of_structured(value: RawJson) -> Self {
        Self(value)
    }

    /// Parses JSON text as parameters.
    ///
    /// # Errors
    /// Fails if the text is not JSON, or is not an Array or an Object.
    pub fn parse(text: &str) -> Result<Self, ParamsError> {
        Self::from_json(RawJson::parse(text.to_owned())?)
    }

    /// Serializes parameters: a tuple, slice or `Vec` by position, a struct or map by name.
    ///
    /// A value that serializes to `null` gives no parameters: `()`, `None`, and also a NaN or an infinity.
    ///
    /// # Errors
    /// Fails if the value cannot be serialized, or is a single value such as a number or a string.
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

/// An error for a value that cannot be params.
///
/// ```
/// use antiphon_core::{Params, ParamsError};
///
/// assert!(matches!(Params::encode(&5), Err(ParamsError::Unstructured(_))));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// The value is not an Array or an Object.
    #[error("params must be an Array or an Object, found {0}; wrap a single value as `(value,)`")]
    Unstructured(JsonKind),
    /// The text is not JSON.
    #[error("params are not JSON")]
    Syntax(#[from] SyntaxError),
    /// The value cannot be serialized.
    #[error("params do not serialize")]
    Serialize(#[source] Arc<serde_json::Error>),
}

impl From<serde_json::Error> for ParamsError {
    fn from(error: serde_json::Error) -> Self {
        Self::Serialize(Arc::new(error))
    }
}

/// An error of the side that creates the params, so the caller gets -32603 and the error is logged.
///
/// ```
/// use antiphon_core::{Code, ErrorObject, Params};
///
/// fn forward(value: u64) -> Result<Option<Params>, ErrorObject> {
///     Ok(Params::encode(&value)?)
/// }
///
/// assert_eq!(forward(5).unwrap_err().code, Code::INTERNAL_ERROR);
/// ```
impl From<ParamsError> for ErrorObject {
    fn from(error: ParamsError) -> Self {
        Self::internal(error)
    }
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
    fn a_request_is_small_enough_to_move_inline() {
        assert!(size_of::<Request>() <= 128, "{} bytes", size_of::<Request>());
    }
}
