//! What a server says about itself (2026-07-28).

use serde::{Deserialize, Serialize};

use super::capabilities::ServerCapabilities;
use super::implementation::Implementation;
use super::meta::Meta;
use super::pagination::Cacheable;
use super::request::ResultType;
use super::tool::JsonObject;
use super::version::Revision;

/// The result of `server/discover`. The name of the server is in `_meta`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions that the server supports. Some may be unknown to the client.
    pub supported_versions: Vec<String>,
    /// What the server supports.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the result may be cached.
    #[serde(flatten)]
    pub cache: Cacheable,
    /// The kind of result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl DiscoverResult {
    /// Describes a server.
    pub fn new(revisions: &[Revision], capabilities: ServerCapabilities) -> Self {
        let supported_versions = revisions.iter().map(|it| it.as_str().to_owned()).collect();
        let result_type = Some(ResultType::Complete);
        Self { supported_versions, capabilities, result_type, ..Self::default() }
    }

    /// The name of the server.
    pub fn server_info(&self) -> Option<Implementation> {
        self.meta.server_info()
    }

    /// The revisions that this crate knows too.
    pub fn revisions(&self) -> impl Iterator<Item = Revision> + '_ {
        self.supported_versions.iter().filter_map(|date| Revision::parse(date))
    }
}

setters! { DiscoverResult { with_instructions => instructions: String } }
meta_setters! { DiscoverResult }
