//! The resource server: an MCP server that requires access tokens.
//!
//! [`Authorization`] is a `tower` layer in front of the HTTP service. It publishes the metadata of the
//! [`ProtectedResource`], verifies the bearer token of every other request with a [`TokenVerifier`], and gives
//! handlers the [`Access`] in [`Context::extensions`](antiphon::Context::extensions). It never reads a body. Host and
//! Origin are checked first, with the guard of the server.
//!
//! ```no_run
//! use antiphon::{Context, Router, Server};
//! use antiphon_mcp::auth::server::{
//!     Access, Authorization, JwtVerifier, ProtectedResource, RemoteKeys, require_scopes,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let resource = ProtectedResource::new("https://mcp.example/mcp")?
//!     .authorization_server("https://auth.example")?
//!     .scopes(["files:read"]);
//! let keys = RemoteKeys::new("https://auth.example/jwks.json")?;
//! let verifier = JwtVerifier::new("https://auth.example", resource.uri(), keys);
//! let authorization = Authorization::new(resource, verifier).require(["files:read"]);
//!
//! let router = Router::new().method("delete", |(): (), cx: Context| async move {
//!     require_scopes(cx.extensions().get::<Access>(), &["files:write"])?;
//!     Ok("deleted")
//! });
//! let server = Server::bind("http://127.0.0.1:8080/mcp").await?.http_layer(authorization);
//! server.serve(router).await?;
//! # Ok(()) }
//! ```

mod access;
mod authorization;
mod authorization_service;
mod bearer;
mod insufficient_scope;
mod introspection;
mod jwt_verifier;
mod protected_resource;
mod refusal;
mod remote_keys;
mod scope_hierarchy;
mod token_cache;
mod token_claims;
mod token_verifier;

pub use access::Access;
pub use authorization::Authorization;
pub use authorization_service::AuthorizationService;
pub use insufficient_scope::{InsufficientScope, require_scopes};
pub use introspection::Introspection;
pub use jwt_verifier::{JwtVerifier, VerificationKeys};
pub use protected_resource::{ProtectedResource, ResourceError};
pub use remote_keys::RemoteKeys;
pub use token_verifier::{TokenError, TokenVerifier};
