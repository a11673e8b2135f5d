//! Error objects and their codes, as section 5.1 defines them.
//!
//! This module does not decide when an error is sent.
//!
//! Invariant: every code that this project sends is defined here. The server codes from -32005 to
//! -32010 are those of jsonrpsee.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error_chain::ErrorChain;
use crate::json::RawJson;

/// The code of an error (section 5.1): any integer.
///
/// ```
/// use antiphon_core::{Code, ErrorObject};
///
/// assert_eq!(ErrorObject::invalid_params().code, Code::INVALID_PARAMS);
/// assert_eq!(ErrorObject::invalid_params().code, -32602);
/// assert_eq!(ErrorObject::new(7, "out of tea").code, Code(7));
/// assert_eq!(ErrorObject::new(Code::CANCELLED.into(), "too late").code, Code::CANCELLED);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(pub i64);

impl Code {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a Request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The method does not take these params.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The server failed.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The server does not accept batches.
    pub const BATCHES_NOT_SUPPORTED: Self = Self(-32005);
    /// The connection has reached its limit of subscriptions.
    pub const TOO_MANY_SUBSCRIPTIONS: Self = Self(-32006);
    /// The message is over the size limit.
    pub const REQUEST_TOO_LARGE: Self = Self(-32007);
    /// The response is over the size limit.
    pub const RESPONSE_TOO_LARGE: Self = Self(-32008);
    /// The server is at its limit of work, or is shutting down.
    pub const SERVER_BUSY: Self = Self(-32009);
    /// The batch is over the limit of entries.
    pub const BATCH_TOO_LARGE: Self = Self(-32010);
    /// The handler did not finish in time.
    pub const TIMED_OUT: Self = Self(-32012);
    /// The call has no credentials, or invalid ones. This crate does not use -32001: LSP and jsonrpsee use
    /// it for an unknown error, MCP for a timeout.
    pub const UNAUTHORIZED: Self = Self(-32013);
    /// The caller is over its rate limit. `data` is `{"retryAfterMs": n}`.
    pub const RATE_LIMITED: Self = Self(-32014);
    /// The call was cancelled.
    pub const CANCELLED: Self = Self(-32800);
}

impl From<i64> for Code {
    fn from(code: i64) -> Self {
        Self(code)
    }
}

impl From<Code> for i64 {
    fn from(code: Code) -> Self {
        code.0
    }
}

impl PartialEq<i64> for Code {
    fn eq(&self, code: &i64) -> bool {
        self.0 == *code
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The `error` member of a Response (section 5.1).
///
/// ```
/// use antiphon_core::ErrorObject;
///
/// let error = ErrorObject::new(-32050, "no such user").with_data(&["ada"]);
/// assert_eq!(error.to_string(), "no such user (-32050): [\"ada\"]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The kind of error.
    pub code: Code,
    /// A short description, one sentence.
    pub message: Cow<'static, str>,
    /// Additional information, any JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub data: Option<RawJson>,
}

impl ErrorObject {
    /// Creates an error of the application. The specification reserves the codes from -32768 to -32000.
    ///
    /// A [`Code`] needs `.into()`. The parameter is not generic, so that the type of a code that is parsed or
    /// converted can be inferred.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: Code(code), message: message.into(), data: None }
    }

    /// Adds `data`. A value that cannot be serialized is left out.
    #[must_use]
    pub fn with_data(mut self, data: &(impl Serialize + ?Sized)) -> Self {
        self.data = RawJson::encode(data).ok();
        self
    }

    /// Parse error, -32700: the bytes are not JSON.
    pub fn parse_error() -> Self {
        Self::of(Code::PARSE_ERROR, "Parse error")
    }

    /// Invalid Request, -32600: the JSON is not a Request.
    pub fn invalid_request() -> Self {
        Self::of(Code::INVALID_REQUEST, "Invalid Request")
    }

    /// Method not found, -32601.
    pub fn method_not_found() -> Self {
        Self::of(Code::METHOD_NOT_FOUND, "Method not found")
    }

    /// Invalid params, -32602.
    pub fn invalid_params() -> Self {
        Self::of(Code::INVALID_PARAMS, "Invalid params")
    }

    /// Internal error, -32603: the server failed.
    pub fn internal_error() -> Self {
        Self::of(Code::INTERNAL_ERROR, "Internal error")
    }

    /// Internal error, -32603, for a failure whose text the caller must not see: it may contain addresses
    /// or secrets. The error and its causes are logged with `tracing`, at error level.
    ///
    /// ```
    /// use antiphon_core::ErrorObject;
    ///
    /// fn load(path: &str) -> Result<String, ErrorObject> {
    ///     std::fs::read_to_string(path).map_err(ErrorObject::internal)
    /// }
    ///
    /// assert_eq!(load("/no/such/file").unwrap_err(), ErrorObject::internal_error());
    /// ```
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        tracing::error!(error = %ErrorChain(&*error.into()), "a call failed");
        Self::internal_error()
    }

    /// Too many subscriptions, -32006; `data` has the limit.
    pub fn too_many_subscriptions(limit: usize) -> Self {
        Self::of(Code::TOO_MANY_SUBSCRIPTIONS, "Too many subscriptions")
            .with_data(&format_args!("the limit is {limit} per connection"))
    }

    /// Request too large, -32007; `data` has the limit.
    pub fn request_too_large(limit: usize) -> Self {
        Self::of(Code::REQUEST_TOO_LARGE, "Request too large")
            .with_data(&format_args!("the limit is {limit} bytes"))
    }

    /// Response too large, -32008; `data` has the limit.
    pub fn response_too_large(limit: usize) -> Self {
        Self::of(Code::RESPONSE_TOO_LARGE, "Response too large")
            .with_data(&format_args!("the limit is {limit} bytes"))
    }

    /// Server busy, -32009; `data` has the reason.
    pub fn server_busy(reason: &'static str) -> Self {
        Self::of(Code::SERVER_BUSY, "Server busy").with_data(reason)
    }

    /// Batch too large, -32010; `data` has the limit.
    pub fn batch_too_large(limit: usize) -> Self {
        Self::of(Code::BATCH_TOO_LARGE, "Batch too large")
            .with_data(&format_args!("the limit is {limit} entries"))
    }

    /// Request timed out, -32012: the handler did not finish in time.
    pub fn timed_out() -> Self {
        Self::of(Code::TIMED_OUT, "Request timed out")
    }

    /// Unauthorized, -32013: the credentials are missing or invalid.
    pub fn unauthorized() -> Self {
        Self::of(Code::UNAUTHORIZED, "Unauthorized")
    }

    /// Rate limit exceeded, -32014; `wait` is the time until the next try. `data` is `{"retryAfterMs": n}`.
    pub fn rate_limited(wait: Duration) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wait {
            retry_after_ms: u128,
        }
        // Rounded up, so that a retry after this time is never too early.
        let retry_after_ms = wait.as_nanos().div_ceil(1_000_000);
        Self::of(Code::RATE_LIMITED, "Rate limit exceeded").with_data(&Wait { retry_after_ms })
    }

    const fn of(code: Code, message: &'static str) -> Self {
        Self { code, message: Cow::Borrowed(message), data: None }
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)?;
        self.data.as_ref().map_or(Ok(()), |data| write!(f, ": {data}"))
    }
}

impl Error for ErrorObject {}

/// Reads a member that is present. `null` is a value too, and not the same as no member.
fn present<'de, D: serde::Deserializer<'de>>(json: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(json).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_object_is_written_and_read_as_the_specification_has_it() {
        for text in [
            r#"{"code":-32601,"message":"Method not found"}"#,
            r#"{"code":7,"message":"tea","data":{"cups":1.50}}"#,
            r#"{"code":7,"message":"tea","data":null}"#,
        ] {
            let error: ErrorObject = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&error).unwrap(), text);
        }
    }
}
