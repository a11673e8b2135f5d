//! Error codes of the protocol and their data. `antiphon::Code` has the codes of JSON-RPC.

use serde::{Deserialize, Serialize};

use super::capabilities::ClientCapabilities;
use super::version::Revision;

/// The resource does not exist (legacy; 2026-07-28 uses -32602).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// An HTTP header does not match the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client does not have (2026-07-28).
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The server does not support the revision (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// The user must visit URLs first (2025-11-25). The data is a
/// [`UrlElicitationRequired`](super::UrlElicitationRequired).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The data of the error [`UNSUPPORTED_PROTOCOL_VERSION`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnsupportedProtocolVersion {
    /// The revisions that the server supports.
    pub supported: Vec<String>,
    /// The revision that the client asked for.
    #[serde(default)]
    pub requested: String,
}

impl UnsupportedProtocolVersion {
    /// Names both sides.
    pub fn new(supported: &[Revision], requested: impl Into<String>) -> Self {
        let supported = supported.iter().map(|it| it.as_str().to_owned()).collect();
        Self { supported, requested: requested.into() }
    }
}

/// The data of the error [`MISSING_REQUIRED_CLIENT_CAPABILITY`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingRequiredClientCapability {
    /// The capabilities that the client needs.
    pub required_capabilities: ClientCapabilities,
}

impl MissingRequiredClientCapability {
    /// Names the capabilities.
    pub fn new(required_capabilities: ClientCapabilities) -> Self {
        Self { required_capabilities }
    }
}
