//! JSON Web Tokens that are signed with asymmetric keys (RFC 7515, RFC 7517, RFC 7519).
//!
//! There is no HMAC and no `none` here, so a public key can never be mistaken for a shared secret.
//!
//! Rejected: `jsonwebtoken`. It has no backend for `ring`, and its functions use a backend that is set once per
//! process, which is the choice of an application. Its other backends are a second TLS library or an `rsa` crate with
//! an open advisory (RUSTSEC-2023-0071).

mod algorithm;
mod jwk;
mod signed_token;
mod signing_key;

pub use algorithm::JwsAlgorithm;
pub use jwk::JwkSet;
pub(crate) use jwk::JwkSetDocument;
pub(crate) use signed_token::{SignedToken, SignedTokenError};
pub use signing_key::{KeyError, SigningKey};
