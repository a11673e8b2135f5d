//! The private key of a client or of an issuer.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::JwsAlgorithm;
use super::algorithm::{Curve, Mechanism};

/// The reason why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not a private key in PEM.
    #[error("the text is not a private key in PEM; use a key that starts with BEGIN PRIVATE KEY")]
    Pem,
    /// The key does not fit the algorithm.
    #[error("the private key does not fit {algorithm}: {reason}", algorithm = .algorithm.name())]
    Unfit {
        /// The algorithm.
        algorithm: JwsAlgorithm,
        /// The reason.
        reason: String,
    },
    /// The text is not JSON.
    #[error("the key set is not JSON; use a JWK set as in RFC 7517")]
    Json,
    /// The set has no key that verifies signatures.
    #[error("the key set has no RSA, P-256, P-384 or Ed25519 key for signatures")]
    NoKey,
    /// The key cannot sign.
    #[error("the private key cannot sign")]
    Sign,
}

/// A private key that signs tokens. The `Debug` output omits it.
#[derive(Clone)]
pub struct SigningKey {
    algorithm: JwsAlgorithm,
    id: Option<String>,
    material: Arc<PrivateMaterial>,
}

enum PrivateMaterial {
    Rsa(RsaKeyPair),
    Ecdsa(Curve, EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a private key in PEM (PKCS #8).
    ///
    /// # Errors
    /// Fails if the text is not such a key, or if the key does not fit the algorithm.
    pub fn from_pem(algorithm: JwsAlgorithm, pem: &str) -> Result<Self, KeyError> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyError::Pem)?;
        Self::from_pkcs8(algorithm, key.secret_pkcs8_der())
    }

    /// Reads a private key in DER (PKCS #8).
    ///
    /// # Errors
    /// Fails if the key does not fit the algorithm.
    pub fn from_pkcs8(algorithm: JwsAlgorithm, der: &[u8]) -> Result<Self, KeyError> {
        let material = match algorithm.mechanism() {
            Mechanism::Rsa { .. } => RsaKeyPair::from_pkcs8(der).map(PrivateMaterial::Rsa),
            Mechanism::Ecdsa { curve, sign, .. } => {
                EcdsaKeyPair::from_pkcs8(sign, der, &SystemRandom::new())
                    .map(|key| PrivateMaterial::Ecdsa(curve, key))
            }
            Mechanism::Ed25519 => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(PrivateMaterial::Ed25519)
            }
        };
        let material =
            material.map_err(|error| KeyError::Unfit { algorithm, reason: error.to_string() })?;
        Ok(Self { algorithm, id: None, material: Arc::new(material) })
    }

    /// Sets the key id, for the header of tokens.
    #[must_use]
    pub fn key_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> JwsAlgorithm {
        self.algorithm
    }

    /// Signs claims, and returns the token in compact form.
    ///
    /// # Errors
    /// Fails if the key cannot sign, for example because the system has no randomness.
    pub fn sign(&self, claims: &Value) -> Result<String, KeyError> {
        let mut header = json!({ "alg": self.algorithm.name(), "typ": "JWT" });
        if let (Some(id), Some(header)) = (&self.id, header.as_object_mut()) {
            header.insert("kid".to_owned(), json!(id));
        }
        self.sign_with(&header, claims)
    }

    /// Signs claims under a complete header.
    pub(crate) fn sign_with(&self, header: &Value, claims: &Value) -> Result<String, KeyError> {
        let signed =
            format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = self.signature(signed.as_bytes())?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match (&*self.material, self.algorithm.mechanism()) {
            (PrivateMaterial::Rsa(key), Mechanism::Rsa { sign, .. }) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(sign, &random, message, &mut signature).map_err(|_| KeyError::Sign)?;
                Ok(signature)
            }
            (PrivateMaterial::Ecdsa(_, key), _) => {
                let signature = key.sign(&random, message).map_err(|_| KeyError::Sign)?;
                Ok(signature.as_ref().to_vec())
            }
            (PrivateMaterial::Ed25519(key), _) => Ok(key.sign(message).as_ref().to_vec()),
            (PrivateMaterial::Rsa(_), _) => Err(KeyError::Sign),
        }
    }

    /// Returns the public key as a JWK, for a key set or for the metadata document of a client.
    pub fn public_jwk(&self) -> Value {
        let mut jwk = match &*self.material {
            PrivateMaterial::Rsa(key) => {
                let key: ring::rsa::PublicKeyComponents<Vec<u8>> = key.public().into();
                json!({ "kty": "RSA", "n": BASE64.encode(key.n), "e": BASE64.encode(key.e) })
            }
            PrivateMaterial::Ecdsa(curve, key) => ecdsa_jwk(*curve, key.public_key().as_ref()),
            PrivateMaterial::Ed25519(key) => {
                let x = BASE64.encode(key.public_key());
                json!({ "kty": "OKP", "crv": "Ed25519", "x": x })
            }
        };
        if let Some(members) = jwk.as_object_mut() {
            members.insert("alg".to_owned(), json!(self.algorithm.name()));
            members.insert("use".to_owned(), json!("sig"));
            if let Some(id) = &self.id {
                members.insert("kid".to_owned(), json!(id));
            }
        }
        jwk
    }
}

/// Returns the JWK of an uncompressed point.
fn ecdsa_jwk(curve: Curve, point: &[u8]) -> Value {
    let name = match curve {
        Curve::P256 => "P-256",
        Curve::P384 => "P-384",
    };
    let coordinates = point.get(1..).unwrap_or_default();
    let (x, y) = coordinates.split_at(coordinates.len() / 2);
    json!({ "kty": "EC", "crv": name, "x": BASE64.encode(x), "y": BASE64.encode(y) })
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
