//! The metadata document of a protected resource (RFC 9728, section 2).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Scopes;

/// The path of the document, without the path of the resource.
pub(crate) const WELL_KNOWN: &str = "oauth-protected-resource";

/// The metadata document of a protected resource (RFC 9728, section 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The canonical URI of the MCP server.
    pub resource: String,
    /// The issuers of the authorization servers.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// The scopes for basic use of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Scopes>,
    /// The ways to send a token. MCP allows the header only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bearer_methods_supported: Vec<String>,
    /// The name of the server for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The URL of documentation for developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
