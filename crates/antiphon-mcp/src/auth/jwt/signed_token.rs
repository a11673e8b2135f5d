//! A token in compact form, before and after the verification of its signature (RFC 7515, section 5.2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{JwkSet, JwsAlgorithm};

/// The maximum size of a token in bytes. Headers are rarely larger.
const MAX_BYTES: usize = 16 * 1024;

/// A token whose signature is not verified yet. Its claims are inaccessible.
pub(crate) struct SignedToken<'a> {
    algorithm: JwsAlgorithm,
    key_id: Option<String>,
    kind: Option<String>,
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

/// The reason why a token is refused. Names no content of the token.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum SignedTokenError {
    #[error("the token is not a JWT")]
    Malformed,
    #[error("the token is too large")]
    TooLarge,
    #[error("the algorithm of the token is not accepted")]
    Algorithm,
    #[error("the token has a critical extension that is not known")]
    Critical,
    #[error("the signature of the token is invalid")]
    Signature,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl<'a> SignedToken<'a> {
    pub(crate) fn parse(token: &'a str) -> Result<Self, SignedTokenError> {
        if token.len() > MAX_BYTES {
            return Err(SignedTokenError::TooLarge);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(SignedTokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(SignedTokenError::Malformed)?;
        let header: Header = object(header)?;
        if header.crit.is_some() {
            return Err(SignedTokenError::Critical);
        }
        Ok(Self {
            algorithm: JwsAlgorithm::from_name(&header.alg).ok_or(SignedTokenError::Algorithm)?,
            key_id: header.kid,
            kind: header.typ,
            signed,
            claims,
            signature: BASE64.decode(signature).map_err(|_| SignedTokenError::Malformed)?,
        })
    }

    pub(crate) fn algorithm(&self) -> JwsAlgorithm {
        self.algorithm
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// The `typ` of the header, without the prefix of a media type.
    pub(crate) fn kind(&self) -> Option<&str> {
        let kind = self.kind.as_deref()?;
        let prefix = kind.get(..12).filter(|prefix| prefix.eq_ignore_ascii_case("application/"));
        Some(prefix.map_or(kind, |prefix| &kind[prefix.len()..]))
    }

    /// Whether the set has a key that may have signed the token.
    pub(crate) fn has_candidate(&self, keys: &JwkSet) -> bool {
        keys.candidates(self.algorithm, self.key_id()).next().is_some()
    }

    /// Verifies the signature with the keys of a set, and returns the claims.
    pub(crate) fn verify(&self, keys: &JwkSet) -> Result<Map<String, Value>, SignedTokenError> {
        let mut keys = keys.candidates(self.algorithm, self.key_id());
        let message = self.signed.as_bytes();
        if !keys.any(|key| key.verify(self.algorithm, message, &self.signature)) {
            return Err(SignedTokenError::Signature);
        }
        object(self.claims)
    }
}

fn object<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, SignedTokenError> {
    let text = BASE64.decode(part).map_err(|_| SignedTokenError::Malformed)?;
    // serde also reads a struct from an Array.
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(SignedTokenError::Malformed);
    }
    serde_json::from_slice(&text).map_err(|_| SignedTokenError::Malformed)
}
