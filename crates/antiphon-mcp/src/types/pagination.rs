//! Lists in pages, and how long a result may be cached.

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use super::number;

/// The position of a page in a list. Only the server knows its meaning.
pub type Cursor = String;

/// The params of a request for one page of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PaginatedParams {
    /// The page; `None` for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl PaginatedParams {
    /// Asks for the first page.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { PaginatedParams { with_cursor => cursor: Cursor } }
meta_setters! { PaginatedParams }

/// How long a result may be cached (2026-07-28). Legacy revisions have neither member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Cacheable {
    /// The lifetime in milliseconds. A negative one is read as 0.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share the cached result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
}

impl Cacheable {
    /// Sets both members.
    pub fn new(ttl_ms: u64, cache_scope: CacheScope) -> Self {
        Self { ttl_ms: Some(ttl_ms), cache_scope: Some(cache_scope) }
    }
}

/// Who may share a cached result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// Every user.
    Public,
    /// One user: the authorization context of the request. A scope of a later revision is read as this one.
    #[default]
    #[serde(other)]
    Private,
}
