//! Maps the failure of a command to its message, its exit code and a remedy.

use antiphon::core::Code;
use antiphon::{CallError, Endpoint};
use antiphon_mcp::client::McpError;
use antiphon_mcp::types::Revision;

use crate::exit::{CommandError, Exit};
use crate::openrpc::did_you_mean;
use crate::output;

/// Describes why there is no connection. `revision` is the one that the user has chosen.
pub(super) fn cannot_connect(
    error: &McpError,
    endpoint: &Endpoint,
    revision: Option<Revision>,
) -> CommandError {
    let failure = command_error(error);
    match (error, revision) {
        (McpError::Unauthorized { .. } | McpError::Credentials(_), _) => {
            failure.hint(login(&endpoint.to_string()))
        }
        (McpError::Status { .. }, _) => {
            failure.hint("is this the URL of an MCP server? its path is often /mcp")
        }
        (McpError::Rpc(_), Some(revision)) => failure
            .about(&format!("{endpoint} does not support revision {revision}"))
            .hint("without --revision, the newest that the server supports is used"),
        (McpError::NoCommonRevision { .. }, Some(_)) => {
            failure.hint("without --revision, the newest that the server supports is used")
        }
        (McpError::Rpc(error), None) if error.code == Code::METHOD_NOT_FOUND => {
            failure.about(&format!("{endpoint} is not an MCP server")).hint(
                "`antiphon call` calls any JSON-RPC service, and `antiphon mcp serve --from` makes MCP tools of it",
            )
        }
        _ => failure,
    }
}

/// Describes the failure of a call.
pub(super) fn command_error(error: &McpError) -> CommandError {
    match error {
        McpError::Rpc(error) => {
            let failure = CommandError::from(error.clone());
            match error.code {
                Code::METHOD_NOT_FOUND => failure.hint(
                    "the server does not have this feature; `antiphon mcp list` prints what it has",
                ),
                _ => failure,
            }
        }
        McpError::Unauthorized { status, .. } => {
            let what = format!("the server requires authorization (status {status})");
            CommandError::new(Exit::Transport, what).hint(login("ENDPOINT"))
        }
        McpError::Credentials(_) => {
            CommandError::caused(Exit::Transport, error).hint(login("ENDPOINT"))
        }
        McpError::Unreachable { .. } => {
            CommandError::caused(Exit::Transport, error).hint("is the server running there?")
        }
        McpError::InvalidArguments { .. } => CommandError::caused(Exit::Usage, error).hint(
            "name:=json sends a Number or another JSON value, name=text a String; \
             `antiphon mcp list --json` prints the schemas",
        ),
        McpError::TooManyInputRounds(rounds) => {
            let what = format!("the server asked for input {rounds} times");
            CommandError::new(Exit::Protocol, what)
        }
        _ => CommandError::caused(exit(error), error),
    }
}

/// Adds the hint for a name that the server may not know.
pub(super) fn unknown_name(failure: CommandError, name: &str, known: &[String]) -> CommandError {
    match hint_for_unknown(name, known) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Returns similar names, or where to find the names. `None` if the name is known, or none is.
pub(super) fn hint_for_unknown(name: &str, known: &[String]) -> Option<String> {
    if known.is_empty() || known.iter().any(|it| it == name) {
        return None;
    }
    let similar = did_you_mean::similar(name, known.iter().map(String::as_str));
    let hint = did_you_mean::did_you_mean(&similar).map(|hint| output::visible(&hint));
    Some(hint.unwrap_or_else(|| "`antiphon mcp list` prints the names".to_owned()))
}

fn exit(error: &McpError) -> Exit {
    match error {
        McpError::TimedOut(_) => Exit::Timeout,
        McpError::Call(CallError::TimedOut(_) | CallError::SendTimedOut(_)) => Exit::Timeout,
        McpError::Endpoint(_) | McpError::Encode { .. } => Exit::Usage,
        McpError::Call(CallError::Encode(_)) => Exit::Usage,
        McpError::Call(CallError::Protocol(_) | CallError::Decode { .. }) => Exit::Protocol,
        McpError::Protocol(_) | McpError::Decode { .. } | McpError::InvalidResult { .. } => {
            Exit::Protocol
        }
        McpError::ToolFailed { .. } | McpError::Input { .. } => Exit::PeerError,
        _ => Exit::Transport,
    }
}

fn login(endpoint: &str) -> String {
    format!("antiphon mcp login {endpoint}, or -H 'Authorization: Bearer ...'")
}
