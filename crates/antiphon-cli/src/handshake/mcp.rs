//! The handshake of MCP up to version 2025-11-25: `initialize` and `notifications/initialized`.
//!
//! Later versions have no handshake. A server of such a version rejects `initialize`, and the error explains this.

use antiphon::{CallError, Client, Code, Invocation, Params, RawJson};
use serde_json::{Map, Value, json};

use super::params;
use crate::answers::Answers;
use crate::exit::{CommandError, Exit};

/// The versions with a handshake. The first is proposed, and a server may choose another.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The error code for an unsupported version, since MCP 2026-07-28.
const UNSUPPORTED_VERSION: Code = Code(-32022);

/// The params of `initialize`. A rule with a result for its request, or `--ask`, declares a
/// capability.
pub(super) fn initialize_params(answers: &Answers) -> Result<Params, CommandError> {
    let mut capabilities = Map::new();
    for (method, capability) in [
        ("roots/list", "roots"),
        ("sampling/createMessage", "sampling"),
        ("elicitation/create", "elicitation"),
    ] {
        if answers.has_result_for(method) {
            capabilities.insert(capability.to_owned(), json!({}));
        }
    }
    let initialize = json!({
        "protocolVersion": VERSIONS[0],
        "capabilities": capabilities,
        "clientInfo": super::client_info(),
    });
    params("initialize", &initialize)
}

/// Checks the version that the server has chosen, and completes the handshake.
pub(super) async fn accept(client: &Client, result: &RawJson) -> Result<(), CommandError> {
    let chosen = result.decode::<Value>().ok();
    let chosen = chosen.as_ref().and_then(|result| result.get("protocolVersion")?.as_str());
    match chosen {
        Some(version) if VERSIONS.contains(&version) => {}
        Some(version) => {
            let what = format!("the server chose MCP version {version}");
            let known = format!("supported versions: {}", VERSIONS.join(", "));
            return Err(CommandError::new(Exit::Protocol, what).hint(known));
        }
        None => {
            let what = "the result of `initialize` has no protocolVersion";
            return Err(CommandError::new(Exit::Protocol, what).hint("is it an MCP server?"));
        }
    }
    let initialized = Invocation::new("notifications/initialized", None);
    client.caller().post(initialized).await.map_err(CommandError::from)
}

/// Explains an error of `initialize`.
pub(super) fn refused(error: CallError) -> CommandError {
    let is_modern = matches!(
        &error,
        CallError::Rpc(error)
            if [Code::METHOD_NOT_FOUND, UNSUPPORTED_VERSION].contains(&error.code)
    );
    let failure = CommandError::from(error);
    if is_modern {
        return failure.hint("a server of MCP 2026-07-28 has no handshake: use --no-init");
    }
    failure
}
