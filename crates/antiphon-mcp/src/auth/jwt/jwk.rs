//! The public keys of an authorization server (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{ED25519, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

use super::algorithm::{Curve, Mechanism};
use super::{JwsAlgorithm, KeyError};

/// The maximum number of keys of a set. The rest is ignored.
const MAX_KEYS: usize = 64;

/// The maximum number of keys that are tried for a token without a key id.
const MAX_CANDIDATES: usize = 8;

/// A set of public keys (RFC 7517, section 5). Keys of other kinds in it are ignored, among them shared secrets.
///
/// ```
/// use antiphon_mcp::auth::JwkSet;
///
/// let keys = JwkSet::from_json(
///     r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1",
///         "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
/// )?;
/// assert_eq!(keys.len(), 1);
/// # Ok::<(), antiphon_mcp::auth::KeyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct JwkSet(Vec<PublicKey>);

#[derive(Clone, Debug)]
pub(crate) struct PublicKey {
    id: Option<String>,
    algorithm: Option<JwsAlgorithm>,
    material: PublicMaterial,
}

#[derive(Clone, Debug)]
enum PublicMaterial {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    Ecdsa(Curve, Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
pub(crate) struct JwkSetDocument {
    keys: Vec<Value>,
}

/// The members of a key in a JSON document.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl JwkSet {
    /// Parses a set, or a single key.
    ///
    /// # Errors
    /// Fails if the text is neither, or contains no key that verifies signatures.
    pub fn from_json(text: &str) -> Result<Self, KeyError> {
        let value: Value = serde_json::from_str(text).map_err(|_| KeyError::Json)?;
        let keys = match value.get("keys") {
            Some(Value::Array(keys)) => keys.clone(),
            _ => vec![value],
        };
        let set = Self::from(JwkSetDocument { keys });
        if set.is_empty() { Err(KeyError::NoKey) } else { Ok(set) }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the keys that may have signed a token with this algorithm and key id.
    pub(crate) fn candidates<'a>(
        &'a self,
        algorithm: JwsAlgorithm,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = &'a PublicKey> {
        let is_candidate = move |key: &&PublicKey| {
            key.fits(algorithm) && id.is_none_or(|id| key.id.as_deref() == Some(id))
        };
        self.0.iter().filter(is_candidate).take(MAX_CANDIDATES)
    }
}

impl From<JwkSetDocument> for JwkSet {
    fn from(document: JwkSetDocument) -> Self {
        Self(document.keys.into_iter().take(MAX_KEYS).filter_map(PublicKey::parse).collect())
    }
}

impl PublicKey {
    /// Returns `None` for a key of another kind or for another purpose.
    fn parse(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let is_for_signatures = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && jwk
                .key_ops
                .as_ref()
                .is_none_or(|uses| uses.iter().any(|purpose| purpose == "verify"));
        if !is_for_signatures {
            return None;
        }
        let algorithm = match &jwk.alg {
            Some(name) => Some(JwsAlgorithm::from_name(name)?),
            None => None,
        };
        Some(Self { material: PublicMaterial::of(&jwk)?, id: jwk.kid, algorithm })
    }

    /// Whether the key can verify this algorithm. The key decides this, and never the token.
    fn fits(&self, algorithm: JwsAlgorithm) -> bool {
        let fits = match (&self.material, algorithm.mechanism()) {
            (PublicMaterial::Rsa { .. }, Mechanism::Rsa { .. })
            | (PublicMaterial::Ed25519(_), Mechanism::Ed25519) => true,
            (PublicMaterial::Ecdsa(curve, _), Mechanism::Ecdsa { curve: expected, .. }) => {
                *curve == expected
            }
            _ => false,
        };
        fits && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Whether the signature of a message is valid.
    pub(crate) fn verify(&self, algorithm: JwsAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, algorithm.mechanism()) {
            (PublicMaterial::Rsa { n, e }, Mechanism::Rsa { verify, .. }) => {
                RsaPublicKeyComponents { n, e }.verify(verify, message, signature)
            }
            (PublicMaterial::Ecdsa(_, point), Mechanism::Ecdsa { verify, .. }) => {
                UnparsedPublicKey::new(verify, point).verify(message, signature)
            }
            (PublicMaterial::Ed25519(key), Mechanism::Ed25519) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

impl PublicMaterial {
    fn of(jwk: &Jwk) -> Option<Self> {
        match (&*jwk.kty, jwk.crv.as_deref()) {
            ("RSA", _) => {
                Some(Self::Rsa { n: number(jwk.n.as_ref()?)?, e: number(jwk.e.as_ref()?)? })
            }
            ("EC", Some("P-256")) => Self::ecdsa(Curve::P256, jwk),
            ("EC", Some("P-384")) => Self::ecdsa(Curve::P384, jwk),
            ("OKP", Some("Ed25519")) => {
                let key = BASE64.decode(jwk.x.as_ref()?).ok()?;
                (key.len() == 32).then_some(Self::Ed25519(key))
            }
            _ => None,
        }
    }

    fn ecdsa(curve: Curve, jwk: &Jwk) -> Option<Self> {
        let mut point = vec![4];
        for coordinate in [&jwk.x, &jwk.y] {
            let coordinate = BASE64.decode(coordinate.as_ref()?).ok()?;
            if coordinate.len() != curve.coordinate_bytes() {
                return None;
            }
            point.extend(coordinate);
        }
        Some(Self::Ecdsa(curve, point))
    }
}

/// Decodes a number. `ring` refuses leading zeros, which some servers send.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64.decode(text).ok()?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Some(bytes.into_iter().skip(zeros).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_cannot_verify_are_ignored() {
        let keys = r#"{"keys":[
            {"kty":"oct","k":"c2VjcmV0","kid":"shared"},
            {"kty":"EC","crv":"P-521","x":"AA","y":"AA"},
            {"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"short"},
            {"kty":"RSA","n":"AQAB","e":"AQAB","use":"enc"},
            {"kty":"RSA","n":"AQAB","e":"AQAB","alg":"HS256"},
            {"kty":"RSA","n":"AQAB","e":"AQAB","key_ops":["encrypt"]},
            7, {}, {"kty":"RSA"},
            {"kty":"RSA","n":"AAEAAQ","e":"AQAB","kid":"good"}
        ]}"#;
        let set = JwkSet::from_json(keys).unwrap();
        assert_eq!(set.len(), 1);
        assert_eq!(set.candidates(JwsAlgorithm::RS256, Some("good")).count(), 1);
        assert_eq!(set.candidates(JwsAlgorithm::ES256, Some("good")).count(), 0);
        assert_eq!(set.candidates(JwsAlgorithm::RS256, Some("bad")).count(), 0);
        assert!(matches!(JwkSet::from_json("{}"), Err(KeyError::NoKey)));
        assert!(matches!(JwkSet::from_json("x"), Err(KeyError::Json)));
    }

    #[test]
    fn a_key_with_an_algorithm_verifies_no_other() {
        let set =
            JwkSet::from_json(r#"{"kty":"RSA","n":"AQAB","e":"AQAB","alg":"PS256"}"#).unwrap();
        assert_eq!(set.candidates(JwsAlgorithm::PS256, None).count(), 1);
        assert_eq!(set.candidates(JwsAlgorithm::RS256, None).count(), 0);
    }
}
