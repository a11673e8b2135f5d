//! The handshake of legacy revisions.

use serde::{Deserialize, Serialize};

use super::capabilities::{ClientCapabilities, ServerCapabilities};
use super::implementation::Implementation;
use super::meta::Meta;
use super::tool::JsonObject;
use super::version::Revision;

/// The params of `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The revision that the client wants. It may be unknown to the server.
    pub protocol_version: String,
    /// What the client supports.
    pub capabilities: ClientCapabilities,
    /// The name of the client.
    pub client_info: Implementation,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl InitializeParams {
    /// Asks for a revision.
    pub fn new(
        revision: Revision,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        let protocol_version = revision.as_str().to_owned();
        Self { protocol_version, capabilities, client_info, meta: Meta::new() }
    }
}

/// The result of `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The revision that the server has chosen. It may be unknown to the client.
    pub protocol_version: String,
    /// What the server supports.
    pub capabilities: ServerCapabilities,
    /// The name of the server.
    pub server_info: Implementation,
    /// How to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl InitializeResult {
    /// Chooses a revision.
    pub fn new(
        revision: Revision,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        let protocol_version = revision.as_str().to_owned();
        Self { protocol_version, capabilities, server_info, ..Self::default() }
    }
}

setters! { InitializeResult { with_instructions => instructions: String } }
meta_setters! { InitializeParams, InitializeResult }
