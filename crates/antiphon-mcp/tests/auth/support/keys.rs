//! Keys and tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use antiphon_mcp::auth::{JwkSet, JwsAlgorithm, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};

pub(crate) const ISSUER: &str = "https://auth.example";

/// Returns a new key with this id.
pub(crate) fn signing_key(id: &str) -> SigningKey {
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    SigningKey::from_pkcs8(JwsAlgorithm::EdDSA, key.as_ref()).unwrap().key_id(id)
}

pub(crate) fn jwks(keys: &[&SigningKey]) -> Value {
    json!({ "keys": keys.iter().map(|key| key.public_jwk()).collect::<Vec<_>>() })
}

pub(crate) fn key_set(keys: &[&SigningKey]) -> JwkSet {
    JwkSet::from_json(&jwks(keys).to_string()).unwrap()
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The claims of a valid token, with changes. `null` removes a claim.
pub(crate) fn claims(audience: &str, changes: &Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER,
        "aud": audience,
        "sub": "ada",
        "exp": now() + 600,
        "scope": "files:read",
    });
    let members = claims.as_object_mut().unwrap();
    members.extend(changes.as_object().unwrap().clone());
    members.retain(|_, value| !value.is_null());
    claims
}
