//! The errors of handlers: what the model sees, and what the client sees.
//!
//! A tool that fails has a result with `isError`, so that the model can read the reason and try again. A request that
//! cannot be served has a JSON-RPC error, which models do not see.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use antiphon::{CallError, Code, ErrorChain, ErrorObject};

use crate::types::error_codes::{
    MISSING_REQUIRED_CLIENT_CAPABILITY, MissingRequiredClientCapability, URL_ELICITATION_REQUIRED,
};
use crate::types::{CallToolResult, ClientCapabilities, ElicitUrlParams, UrlElicitationRequired};

/// The failure of a tool.
///
/// `?` turns every error into a tool execution error: the model reads the error and its causes. The errors that concern
/// the client stay JSON-RPC errors: [`ErrorObject`], and an [`AskError`] of a client that lacks a capability.
///
/// ```
/// use antiphon_mcp::ToolError;
///
/// fn parse(text: &str) -> Result<i64, ToolError> {
///     if text.is_empty() {
///         return Err(ToolError::new("give a number"));
///     }
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub struct ToolError(Kind);

enum Kind {
    /// The result that the model reads.
    Result(Box<CallToolResult>),
    /// The error of the request.
    Request(ErrorObject),
}

impl ToolError {
    /// Creates a tool execution error with the reason that the model reads.
    pub fn new(reason: impl Into<String>) -> Self {
        Self::result(CallToolResult::error(reason))
    }

    /// Creates a tool execution error from a result, whose `isError` is set.
    pub fn result(result: CallToolResult) -> Self {
        Self(Kind::Result(Box::new(result.with_is_error(true))))
    }

    /// Creates a JSON-RPC error. The model does not see it.
    pub fn request(error: ErrorObject) -> Self {
        Self(Kind::Request(error))
    }

    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        match request_error(error) {
            Some(error) => Self::request(error),
            None => Self::new(ErrorChain(error).to_string()),
        }
    }

    /// Creates the error -32042 of 2025-11-25: the user must first complete these elicitations. A client shows their
    /// URLs, and then repeats the call. For modern clients, use
    /// [`RequestContext::elicit_url`](crate::RequestContext::elicit_url).
    pub fn url_elicitation_required(elicitations: Vec<ElicitUrlParams>) -> Self {
        let message = "This request needs an elicitation by URL";
        let data = UrlElicitationRequired::new(elicitations);
        Self::request(ErrorObject::new(URL_ELICITATION_REQUIRED, message).with_data(&data))
    }

    /// Returns the result of the call, or the error of the request.
    pub(crate) fn into_result(self) -> Result<CallToolResult, ErrorObject> {
        match self.0 {
            Kind::Result(result) => Ok(*result),
            Kind::Request(error) => Err(error),
        }
    }
}

impl<E: Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Result(result) => f.write_str(&result.joined_text()),
            Kind::Request(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Result(result) => f.debug_tuple("ToolError").field(result).finish(),
            Kind::Request(error) => f.debug_tuple("ToolError").field(error).finish(),
        }
    }
}

/// The failure of a resource, a prompt or a completion: a JSON-RPC error.
///
/// `?` turns every error into -32603 with the message of the error. [`ErrorObject`] and [`AskError`] keep their codes.
pub struct RequestError(pub(crate) ErrorObject);

impl RequestError {
    /// Creates an error with this code.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self(ErrorObject::new(code, message))
    }

    /// Creates the error -32602: an argument is invalid.
    pub fn invalid_params(reason: &str) -> Self {
        Self(super::request::invalid_params("", reason))
    }

    /// Creates the error of a request from the failure of a tool: for code that tools and prompts share.
    pub fn from_tool(error: ToolError) -> Self {
        match error.into_result() {
            Ok(result) => Self::new(Code::INTERNAL_ERROR.0, result.joined_text()),
            Err(error) => Self(error),
        }
    }

    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        Self(request_error(error).unwrap_or_else(|| {
            ErrorObject::new(Code::INTERNAL_ERROR.0, ErrorChain(error).to_string())
        }))
    }

    /// Creates the error of a resource that does not exist, in the revision of the client.
    pub fn resource_not_found(cx: &super::RequestContext, uri: &str) -> Self {
        Self(super::resource::not_found(cx, uri))
    }
}

impl<E: Error + 'static> From<E> for RequestError {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The JSON-RPC error that an error stands for.
fn request_error(error: &(dyn Error + 'static)) -> Option<ErrorObject> {
    if let Some(error) = error.downcast_ref::<ErrorObject>() {
        return Some(error.clone());
    }
    #[cfg(feature = "auth")]
    if let Some(error) = error.downcast_ref::<crate::auth::server::InsufficientScope>() {
        return Some(error.clone().into());
    }
    error.downcast_ref::<AskError>()?.request_error()
}

/// The reason why the client has not answered a question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client has not declared the capability.
    #[error("the client does not support `{method}`")]
    Unsupported {
        /// The method of the question.
        method: &'static str,
        /// The capability that the client would have to declare.
        required: Box<ClientCapabilities>,
        /// Whether the client is a modern one, for which the error has a code.
        is_modern: bool,
    },
    /// The client has answered something that the question does not allow.
    #[error("the client has answered `{method}` with an invalid value: {reason}")]
    InvalidAnswer {
        /// The method of the question.
        method: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The question, or all questions of the request, are over a limit of the server.
    #[error("`{method}` cannot be asked: {reason}")]
    OverLimit {
        /// The method of the question.
        method: &'static str,
        /// The limit.
        reason: &'static str,
    },
    /// The call to a legacy client failed.
    #[error("the client did not answer `{method}`")]
    Call {
        /// The method of the question.
        method: &'static str,
        /// The reason.
        source: CallError,
    },
}

impl AskError {
    /// The JSON-RPC error that this error becomes; `None` if it is a matter of the tool.
    pub(crate) fn request_error(&self) -> Option<ErrorObject> {
        match self {
            Self::Unsupported { required, is_modern: true, .. } => {
                Some(missing_capability((**required).clone()))
            }
            Self::InvalidAnswer { .. } => {
                Some(ErrorObject::new(Code::INVALID_PARAMS.0, self.to_string()))
            }
            _ => None,
        }
    }
}

/// The error -32021: the client would have to declare these capabilities.
pub(crate) fn missing_capability(required: ClientCapabilities) -> ErrorObject {
    let message = "the request needs a capability that the client has not declared";
    ErrorObject::new(MISSING_REQUIRED_CLIENT_CAPABILITY, message)
        .with_data(&MissingRequiredClientCapability::new(required))
}
