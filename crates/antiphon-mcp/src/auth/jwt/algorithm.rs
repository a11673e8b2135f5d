//! The signature algorithms (RFC 7518, section 3; RFC 8037).

use ring::signature::{
    self, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm, RsaEncoding, RsaParameters,
};

/// A signature algorithm with a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of RFC 7518")]
pub enum JwsAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl JwsAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    /// Returns the name, as in the header of a token.
    pub fn name(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }

    /// Returns the algorithm with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    pub(super) fn mechanism(self) -> Mechanism {
        use signature as ring;
        let rsa = |verify, sign| Mechanism::Rsa { verify, sign };
        match self {
            Self::RS256 => rsa(&ring::RSA_PKCS1_2048_8192_SHA256, &ring::RSA_PKCS1_SHA256),
            Self::RS384 => rsa(&ring::RSA_PKCS1_2048_8192_SHA384, &ring::RSA_PKCS1_SHA384),
            Self::RS512 => rsa(&ring::RSA_PKCS1_2048_8192_SHA512, &ring::RSA_PKCS1_SHA512),
            Self::PS256 => rsa(&ring::RSA_PSS_2048_8192_SHA256, &ring::RSA_PSS_SHA256),
            Self::PS384 => rsa(&ring::RSA_PSS_2048_8192_SHA384, &ring::RSA_PSS_SHA384),
            Self::PS512 => rsa(&ring::RSA_PSS_2048_8192_SHA512, &ring::RSA_PSS_SHA512),
            Self::ES256 => Mechanism::Ecdsa {
                curve: Curve::P256,
                verify: &ring::ECDSA_P256_SHA256_FIXED,
                sign: &ring::ECDSA_P256_SHA256_FIXED_SIGNING,
            },
            Self::ES384 => Mechanism::Ecdsa {
                curve: Curve::P384,
                verify: &ring::ECDSA_P384_SHA384_FIXED,
                sign: &ring::ECDSA_P384_SHA384_FIXED_SIGNING,
            },
            Self::EdDSA => Mechanism::Ed25519,
        }
    }
}

/// How an algorithm signs and verifies.
pub(super) enum Mechanism {
    Rsa {
        verify: &'static RsaParameters,
        sign: &'static dyn RsaEncoding,
    },
    Ecdsa {
        curve: Curve,
        verify: &'static EcdsaVerificationAlgorithm,
        sign: &'static EcdsaSigningAlgorithm,
    },
    Ed25519,
}

/// A curve of ECDSA keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Curve {
    P256,
    P384,
}

impl Curve {
    /// The bytes of one coordinate.
    pub(super) fn coordinate_bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }
}
