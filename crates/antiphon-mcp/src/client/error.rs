//! The error of a client.

use std::time::Duration;

use antiphon::http::StatusCode;
use antiphon::{CallError, Cause, CloseReason, ConnectError, EndpointError, ErrorObject};

use crate::types::error_codes::{
    MissingRequiredClientCapability, URL_ELICITATION_REQUIRED, UnsupportedProtocolVersion,
};
use crate::types::{ElicitUrlParams, UrlElicitationRequired, error_codes, from_object};

/// The reason why a call of a client failed.
///
/// A tool that fails is not an error: [`CallToolResult::failed`](crate::types::CallToolResult::failed) is then true.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The text is not an endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The client could not connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server replied with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The connection failed.
    #[error(transparent)]
    Call(CallError),
    /// The HTTP request failed before a response.
    #[error("cannot reach {server}")]
    Unreachable {
        /// The server, without the path.
        server: String,
        /// The cause.
        source: Cause,
    },
    /// The response of the server ended too early.
    #[error("the response of the server ended early: {0}")]
    Interrupted(String),
    /// The server replied with an HTTP status of failure, and without JSON-RPC.
    #[error("the server replied with HTTP status {status}{}", excerpt(.body))]
    Status {
        /// The status.
        status: StatusCode,
        /// The beginning of the body.
        body: String,
    },
    /// The server requires other credentials.
    #[error(
        "the server requires authorization (status {status}); set credentials with `McpClientBuilder::credentials`"
    )]
    Unauthorized {
        /// The status: 401 or 403.
        status: StatusCode,
        /// The header `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The credentials could not be obtained.
    #[error("the credentials could not be obtained")]
    Credentials(#[source] Cause),
    /// There was no response within the timeout. The call was cancelled.
    #[error("no response within {0:?}; raise the timeout, or check what keeps the server busy")]
    TimedOut(Duration),
    /// The server violated the protocol.
    #[error("the server violated the protocol: {0}")]
    Protocol(String),
    /// The params cannot be encoded.
    #[error("the params of `{method}` cannot be encoded")]
    Encode {
        /// The method.
        method: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The result does not have the expected type.
    #[error("the result of `{method}` does not have the expected type")]
    Decode {
        /// The method.
        method: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The arguments do not match the schema of the tool. The call was not sent.
    #[error("the arguments do not match the input schema of the tool `{tool}`: {reason}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// What does not match.
        reason: String,
    },
    /// The structured result does not match the schema of the tool.
    #[error("the result does not match the output schema of the tool `{tool}`: {reason}")]
    InvalidResult {
        /// The tool.
        tool: String,
        /// What does not match.
        reason: String,
    },
    /// The tool failed, and the caller expected a typed result.
    #[error("the tool `{tool}` failed: {reason}")]
    ToolFailed {
        /// The tool.
        tool: String,
        /// The text of the result.
        reason: String,
    },
    /// The server has cancelled the task of a tool call.
    #[error("the task of the call was cancelled: {reason}")]
    TaskCancelled {
        /// Why, if the server says it.
        reason: String,
    },
    /// The connection ended before the handshake was complete. No call was sent.
    #[error("the server ended the connection during the handshake")]
    Handshake(#[source] CloseReason),
    /// Client and server have no revision in common.
    #[error(
        "the server supports the revisions {}, and none of them is enabled in this client",
        listed(.supported)
    )]
    NoCommonRevision {
        /// The revisions of the server.
        supported: Vec<String>,
    },
    /// The server or its revision does not have this feature.
    #[error("{0}")]
    Unsupported(String),
    /// The application could not answer a question of the server.
    #[error("the input request `{name}` ({method}) was not answered: {error}")]
    Input {
        /// The name of the request.
        name: String,
        /// Its method.
        method: String,
        /// The error of the handler.
        error: ErrorObject,
    },
    /// The server asked for input too often.
    #[error(
        "the server asked for input {0} times; raise `McpClientBuilder::max_input_rounds` if it needs more"
    )]
    TooManyInputRounds(usize),
    /// The HTTP session or the connection has ended, and the call was not processed. The client begins a new one and
    /// repeats the call, so this is rarely seen.
    #[error("the server has ended the session; the call was not processed")]
    SessionEnded,
}

impl McpError {
    /// The error object, if the server replied with an error.
    pub fn as_rpc(&self) -> Option<&ErrorObject> {
        match self {
            Self::Rpc(error) => Some(error),
            _ => None,
        }
    }

    /// The code, if the server replied with an error.
    pub fn code(&self) -> Option<i64> {
        self.as_rpc().map(|error| error.code.0)
    }

    /// The URLs that the user must visit before the call is repeated, if the server replied with -32042.
    pub fn url_elicitations(&self) -> Option<Vec<ElicitUrlParams>> {
        let error = self.as_rpc().filter(|error| error.code == URL_ELICITATION_REQUIRED)?;
        let data: UrlElicitationRequired = from_object(error.data.as_ref()?.as_str()).ok()?;
        Some(data.elicitations)
    }

    /// The capabilities that the server requires, if it replied with -32021.
    pub fn missing_capabilities(&self) -> Option<MissingRequiredClientCapability> {
        let required = error_codes::MISSING_REQUIRED_CLIENT_CAPABILITY;
        let error = self.as_rpc().filter(|error| error.code == required)?;
        from_object(error.data.as_ref()?.as_str()).ok()
    }

    /// The revisions of the server, if it replied with -32022.
    pub(super) fn supported_revisions(&self) -> Option<Vec<String>> {
        let code = error_codes::UNSUPPORTED_PROTOCOL_VERSION;
        let error = self.as_rpc().filter(|error| error.code == code)?;
        let data: UnsupportedProtocolVersion = from_object(error.data.as_ref()?.as_str()).ok()?;
        Some(data.supported)
    }

    /// Whether only a server of a modern revision sends this error.
    pub(super) fn is_modern(&self) -> bool {
        let codes = [
            error_codes::HEADER_MISMATCH,
            error_codes::MISSING_REQUIRED_CLIENT_CAPABILITY,
            error_codes::UNSUPPORTED_PROTOCOL_VERSION,
        ];
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// Whether the server replied with an error.
    pub(super) fn is_rpc(&self) -> bool {
        matches!(self, Self::Rpc(_))
    }

    /// Whether the response was lost on the way, so that another attempt may succeed.
    pub(super) fn is_loss(&self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::Unreachable { .. } | Self::TimedOut(_))
            || matches!(self, Self::Status { status, .. } if status.is_server_error())
    }

    /// Whether the connection is gone, so that no call can succeed.
    pub(crate) fn is_disconnect(&self) -> bool {
        matches!(
            self,
            Self::Call(CallError::Closed(_) | CallError::Interrupted(_)) | Self::Handshake(_)
        )
    }

    /// The error of a handshake: a connection that ends has executed no call.
    pub(super) fn in_handshake(self) -> Self {
        match self {
            Self::Call(CallError::Closed(reason) | CallError::Interrupted(reason)) => {
                Self::Handshake(reason)
            }
            other => other,
        }
    }
}

impl From<CallError> for McpError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => Self::Rpc(error),
            CallError::TimedOut(limit) => Self::TimedOut(limit),
            other => Self::Call(other),
        }
    }
}

/// The length of a text of the server in a message, in characters.
const EXCERPT: usize = 200;
/// The number of revisions of the server in a message.
const REVISIONS: usize = 16;

/// Returns the beginning of a body, on one line. A page of HTML is left out: it is for browsers.
fn excerpt(body: &str) -> String {
    let body = body.trim_start();
    if body.starts_with('<') {
        return " and a page of markup".to_owned();
    }
    match on_one_line(body).as_str() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

fn listed(revisions: &[String]) -> String {
    let mut names: Vec<_> =
        revisions.iter().take(REVISIONS).map(|name| format!("`{}`", on_one_line(name))).collect();
    if revisions.len() > REVISIONS {
        names.push("...".to_owned());
    }
    if names.is_empty() { "(none)".to_owned() } else { names.join(", ") }
}

/// Returns the beginning of a text, with one space for any white space.
fn on_one_line(text: &str) -> String {
    let words = text.split_whitespace().take(EXCERPT).collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}...", words.split_at(end).0),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(body: &str) -> String {
        let status = StatusCode::NOT_FOUND;
        McpError::Status { status, body: body.to_owned() }.to_string()
    }

    #[test]
    fn a_body_is_printed_on_one_bounded_line() {
        let prefix = "the server replied with HTTP status 404 Not Found";
        assert_eq!(status(" \n"), prefix);
        assert_eq!(status("no such\n  path\n"), format!("{prefix}: no such path"));
        assert_eq!(status("\n<!doctype html>\n<p>x"), format!("{prefix} and a page of markup"));
        assert_eq!(status(&"é".repeat(300)), format!("{prefix}: {}...", "é".repeat(EXCERPT)));
    }

    #[test]
    fn the_revisions_of_the_server_are_listed() {
        let message = |supported: &[&str]| {
            let supported = supported.iter().map(|name| (*name).to_owned()).collect();
            McpError::NoCommonRevision { supported }.to_string()
        };
        let found = message(&["2030-01-01", "a\nb"]);
        assert!(
            found.starts_with("the server supports the revisions `2030-01-01`, `a b`, and"),
            "{found}"
        );
        assert!(message(&[]).contains("revisions (none),"));
        assert!(
            message(&["x"; 100]).ends_with("`x`, ..., and none of them is enabled in this client")
        );
    }
}
