//! Authorization of MCP over HTTP (OAuth 2.1), both sides.
//!
//! [`server`] protects an MCP server: it publishes which authorization servers it trusts, and verifies the bearer
//! token of each request. [`client`] obtains such tokens. Transports other than HTTP take their credentials from
//! the environment, so nothing here applies to them.
//!
//! Invariant: no log, error or `Debug` output contains a token, a secret or an authorization code.

mod address_policy;
mod challenge;
pub mod client;
mod http_fetch;
mod jwt;
mod resource_metadata;
mod scopes;
mod secret;
pub mod server;
mod web_url;

pub use challenge::Challenge;
pub use http_fetch::{FetchError, HttpFetch};
pub use jwt::{JwkSet, JwsAlgorithm, KeyError, SigningKey};
pub use resource_metadata::ResourceMetadata;
pub use scopes::Scopes;
pub use secret::Secret;
pub use web_url::WebUrlError;
