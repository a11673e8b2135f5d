//! Proof of possession: tokens that are useless without a key of the client (RFC 9449).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http::Method;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use url::Url;

use super::OAuthError;
use crate::auth::web_url::origin;
use crate::auth::{JwsAlgorithm, Secret, SigningKey};

/// The algorithm of the key.
pub(super) const ALGORITHM: &str = "ES256";

/// The maximum number of servers whose nonces are remembered.
const MAX_NONCES: usize = 16;

/// The longest nonce that is accepted.
const MAX_NONCE_BYTES: usize = 512;

/// A key that proves the possession of tokens, and the nonces that servers require in the proofs.
pub(super) struct ProofKey {
    key: SigningKey,
    /// The last nonce of each server, by origin.
    nonces: Mutex<HashMap<String, String>>,
}

impl ProofKey {
    /// Creates a key. Also returns its form for a token store.
    pub(super) fn generate() -> Result<(Self, Secret), OAuthError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let key = key.map_err(|_| OAuthError::Interrupted)?;
        let saved = Secret::new(BASE64.encode(key.as_ref()));
        Ok((Self::from_pkcs8(key.as_ref())?, saved))
    }

    /// Restores a key from a token store.
    pub(super) fn restore(saved: &Secret) -> Option<Self> {
        Self::from_pkcs8(&BASE64.decode(saved.expose()).ok()?).ok()
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, OAuthError> {
        let key = SigningKey::from_pkcs8(JwsAlgorithm::ES256, der)?;
        Ok(Self { key, nonces: Mutex::default() })
    }

    /// Returns a proof for one request (RFC 9449, section 4.2). `token` is the token that the request carries.
    pub(super) fn proof(
        &self,
        method: &Method,
        url: &Url,
        token: Option<&Secret>,
    ) -> Result<String, OAuthError> {
        let mut id = [0; 16];
        SystemRandom::new().fill(&mut id).map_err(|_| OAuthError::Interrupted)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut claims = json!({
            "jti": BASE64.encode(id),
            "htm": method.as_str(),
            "htu": without_query(url),
            "iat": now,
        });
        if let Some(token) = token {
            claims["ath"] = json!(BASE64.encode(digest(&SHA256, token.expose().as_bytes())));
        }
        if let Some(nonce) = self.nonces().get(&origin(url)) {
            claims["nonce"] = json!(nonce);
        }
        let header = json!({ "typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self.jwk() });
        Ok(self.key.sign_with(&header, &claims)?)
    }

    /// The members that identify the key, and no others.
    fn jwk(&self) -> Value {
        let jwk = self.key.public_jwk();
        json!({ "kty": jwk["kty"], "crv": jwk["crv"], "x": jwk["x"], "y": jwk["y"] })
    }

    /// Remembers the nonce that a server requires. Returns whether it is a new one.
    pub(super) fn set_nonce(&self, url: &Url, nonce: &str) -> bool {
        let mut nonces = self.nonces();
        let origin = origin(url);
        let is_known = nonces.get(&origin).is_some_and(|known| known == nonce);
        let has_room = nonces.len() < MAX_NONCES || nonces.contains_key(&origin);
        if is_known || !has_room || nonce.is_empty() || nonce.len() > MAX_NONCE_BYTES {
            return false;
        }
        nonces.insert(origin, nonce.to_owned());
        true
    }

    fn nonces(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

impl fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProofKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(proof: &str) -> Value {
        let claims = proof.split('.').nth(1).unwrap();
        serde_json::from_slice(&BASE64.decode(claims).unwrap()).unwrap()
    }

    #[test]
    fn each_proof_is_for_one_request() {
        let (key, saved) = ProofKey::generate().unwrap();
        let url = Url::parse("https://m.example/mcp?x=y").unwrap();
        let token = Secret::new("t");
        let [first, second] =
            [0, 1].map(|_| claims(&key.proof(&Method::POST, &url, Some(&token)).unwrap()));
        assert_ne!(first["jti"], second["jti"]);
        assert_eq!(first["htm"], "POST");
        assert_eq!(first["htu"], "https://m.example/mcp");
        assert_eq!(first["ath"], BASE64.encode(digest(&SHA256, b"t")));
        assert_eq!(ProofKey::restore(&saved).unwrap().jwk(), key.jwk());
    }

    #[test]
    fn a_nonce_is_for_its_server_and_new_once() {
        let (key, _) = ProofKey::generate().unwrap();
        let [a, b] =
            ["https://a.example/x", "https://b.example"].map(|url| Url::parse(url).unwrap());
        assert!(key.set_nonce(&a, "n1") && key.set_nonce(&a, "n2"));
        assert!(!key.set_nonce(&a, "n2") && !key.set_nonce(&a, ""));
        assert_eq!(claims(&key.proof(&Method::GET, &a, None).unwrap())["nonce"], "n2");
        assert!(claims(&key.proof(&Method::GET, &b, None).unwrap()).get("nonce").is_none());
    }
}
