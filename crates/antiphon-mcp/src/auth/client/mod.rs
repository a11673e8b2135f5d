//! The client: obtains the access tokens that MCP servers require.
//!
//! [`OAuthClient`] is a [`TokenSource`]: the HTTP client asks it for a token before each request, and again with the
//! [`Challenge`](super::Challenge) of a response with status 401 or 403. It finds the authorization server of the MCP
//! server, registers if necessary, runs a [`Grant`], and keeps the tokens in a [`TokenStore`].
//!
//! Invariant: tokens and client credentials belong to one issuer, and are never sent to another.
//!
//! ```no_run
//! use antiphon_mcp::auth::client::{FileTokenStore, Grant, LoopbackRedirect, OAuthClient};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let user = LoopbackRedirect::new(|url| eprintln!("Open this page to log in: {url}"));
//! let tokens = OAuthClient::builder("https://mcp.example/mcp", Grant::authorization_code(user))
//!     .client_name("my client")
//!     .store(FileTokenStore::new("/home/ada/.local/state/my-client/tokens"))
//!     .build()?;
//! # drop(tokens);
//! # Ok(()) }
//! ```

mod access_token;
mod assertion;
mod authorization_code;
mod authorization_response;
mod authorization_target;
mod authorize_user;
mod builder;
mod client_authentication;
mod error;
mod file_token_store;
mod flow_settings;
mod grant;
mod grant_request;
mod headless_redirect;
mod loopback_page;
mod loopback_redirect;
mod oauth_client;
mod proof_key;
mod registration;
mod resource_discovery;
mod retry_limits;
mod saved_credentials;
mod server_metadata;
mod token_endpoint;
mod token_flow;
mod token_source;
mod token_store;

pub use access_token::AccessToken;
pub use assertion::{AssertionSource, EnterpriseManaged};
pub use authorization_response::ResponseError;
pub use authorize_user::{AuthorizeUser, PendingAuthorization, UserError};
pub use builder::OAuthClientBuilder;
pub use client_authentication::ClientAuthentication;
pub use error::OAuthError;
pub use file_token_store::FileTokenStore;
pub use grant::Grant;
pub use headless_redirect::HeadlessRedirect;
pub use loopback_redirect::LoopbackRedirect;
pub use oauth_client::OAuthClient;
pub use registration::PreRegisteredClient;
pub use server_metadata::ServerMetadata;
pub use token_source::TokenSource;
pub use token_store::{MemoryTokenStore, TokenStore, TokenStoreError};
