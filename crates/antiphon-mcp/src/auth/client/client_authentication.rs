//! How a client authenticates at the token endpoint (RFC 6749, section 2.3; RFC 7523, section 2.2).

use std::time::{SystemTime, UNIX_EPOCH};

use antiphon::layer::Credentials;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http::HeaderValue;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::json;

use super::{OAuthError, ServerMetadata};
use crate::auth::{Secret, SigningKey};

/// How a client authenticates at the token endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// Not at all: a public client.
    None,
    /// With a secret, in the way that the server supports. Without a statement of the server, in the header.
    Secret(Secret),
    /// With a secret in the header (`client_secret_basic`).
    SecretBasic(Secret),
    /// With a secret in the form (`client_secret_post`).
    SecretPost(Secret),
    /// With a token that it signs (`private_key_jwt`).
    PrivateKeyJwt(SigningKey),
}

/// The registration of a client with one authorization server.
#[derive(Clone, Debug)]
pub(super) struct RegisteredClient {
    pub(super) client_id: String,
    pub(super) authentication: ClientAuthentication,
}

/// The lifetime of an assertion in seconds.
const ASSERTION_SECONDS: u64 = 120;

pub(super) const NONE: &str = "none";
pub(super) const BASIC: &str = "client_secret_basic";
pub(super) const POST: &str = "client_secret_post";

impl ClientAuthentication {
    /// Decides in which way a secret is sent.
    fn resolved(&self, server: &ServerMetadata) -> Result<Self, OAuthError> {
        let Self::Secret(secret) = self else { return Ok(self.clone()) };
        // RFC 8414, section 2: without a statement, the header.
        let Some(methods) = &server.token_endpoint_auth_methods_supported else {
            return Ok(Self::SecretBasic(secret.clone()));
        };
        let supports = |name: &str| methods.iter().any(|method| method == name);
        match () {
            () if supports(BASIC) => Ok(Self::SecretBasic(secret.clone())),
            () if supports(POST) => Ok(Self::SecretPost(secret.clone())),
            () if supports(NONE) => Ok(Self::None),
            () => Err(server.lacks("client_secret_basic or client_secret_post")),
        }
    }
}

impl RegisteredClient {
    /// Adds the authentication to the form of a token request. Returns the `Authorization` header, if there is one.
    pub(super) fn authenticate(
        &self,
        server: &ServerMetadata,
        form: &mut Vec<(&'static str, String)>,
    ) -> Result<Option<HeaderValue>, OAuthError> {
        match self.authentication.resolved(server)? {
            ClientAuthentication::None | ClientAuthentication::Secret(_) => {
                form.push(("client_id", self.client_id.clone()));
            }
            ClientAuthentication::SecretBasic(secret) => {
                return Ok(self.basic(&secret));
            }
            ClientAuthentication::SecretPost(secret) => {
                form.push(("client_id", self.client_id.clone()));
                form.push(("client_secret", secret.expose().to_owned()));
            }
            ClientAuthentication::PrivateKeyJwt(key) => {
                const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                form.push(("client_id", self.client_id.clone()));
                form.push(("client_assertion_type", ASSERTION.to_owned()));
                form.push(("client_assertion", self.assertion(&key, &server.issuer)?));
            }
        }
        Ok(None)
    }

    /// RFC 6749, section 2.3.1: both are form-encoded first.
    fn basic(&self, secret: &Secret) -> Option<HeaderValue> {
        let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let (user, password) = (encode(&self.client_id), encode(secret.expose()));
        Credentials::Basic { user, password }.to_header().ok()
    }

    /// RFC 7523, section 3. The audience is the issuer, so that no other server accepts the assertion.
    fn assertion(&self, key: &SigningKey, issuer: &str) -> Result<String, OAuthError> {
        let mut id = [0; 16];
        SystemRandom::new().fill(&mut id).map_err(|_| OAuthError::Interrupted)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(key.sign(&json!({
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": issuer,
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
            "jti": BASE64.encode(id),
        }))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(
        authentication: ClientAuthentication,
        methods: Option<&[&str]>,
    ) -> (String, Option<String>) {
        let server = ServerMetadata {
            token_endpoint_auth_methods_supported: methods
                .map(|methods| methods.iter().map(|method| (*method).to_owned()).collect()),
            ..ServerMetadata::default()
        };
        let client = RegisteredClient { client_id: "my id".to_owned(), authentication };
        let mut form = Vec::new();
        let header = client.authenticate(&server, &mut form).unwrap();
        let form: Vec<_> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (form.join("&"), header.map(|header| header.to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_secret_is_sent_as_the_server_supports_it() {
        let secret = || ClientAuthentication::Secret(Secret::new("s:1"));
        // "my+id:s%3A1"
        let basic = (String::new(), Some("Basic bXkraWQ6cyUzQTE=".to_owned()));
        let post = ("client_id=my id&client_secret=s:1".to_owned(), None);
        assert_eq!(send(secret(), None), basic);
        assert_eq!(send(secret(), Some(&[POST, BASIC])), basic);
        assert_eq!(send(secret(), Some(&[POST])), post);
        assert_eq!(send(secret(), Some(&[NONE])), ("client_id=my id".to_owned(), None));
        assert_eq!(send(ClientAuthentication::SecretPost(Secret::new("s:1")), None), post);
    }
}
