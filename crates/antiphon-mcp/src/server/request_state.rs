//! The state of a modern request that waits for input: what the client keeps for the server.
//!
//! The client sends the state back with the answers, so the server itself keeps nothing. The state is signed, expires,
//! is bounded, and belongs to one principal and one request. Anything else is refused.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{digest, hmac, rand};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest state, before it is encoded. A longer one is not sent.
const MAX_BYTES: usize = 64 * 1024;
/// The bytes of a signature: HMAC with SHA-256.
const TAG_BYTES: usize = 32;

/// Signs states and checks them.
#[derive(Clone)]
pub(crate) struct StateSigner {
    key: hmac::Key,
    lifetime: Duration,
}

/// What a request has learned before it needed more input.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RequestState {
    /// The answers so far, by the key of their question.
    #[serde(default, rename = "a", skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<(String, Box<RawValue>)>,
    /// The results of steps that must not run twice.
    #[serde(default, rename = "s", skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<(String, Box<RawValue>)>,
    /// How often the client has been asked.
    #[serde(default, rename = "r")]
    pub(crate) rounds: u32,
    /// The handler that this server has kept, if it keeps handlers.
    #[serde(default, rename = "h", skip_serializing_if = "Option::is_none")]
    pub(crate) handler: Option<String>,
}

/// The state with what it is bound to.
#[derive(Serialize, Deserialize)]
struct BoundState {
    /// Seconds since 1970.
    #[serde(rename = "e")]
    expires: u64,
    /// A digest of the principal and the request.
    #[serde(rename = "b")]
    binding: String,
    // Not flattened: that would break the raw values.
    #[serde(rename = "q")]
    state: RequestState,
}

/// The reason why a state is refused or cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateError {
    #[error("it was not issued by this server, or it was changed")]
    Forged,
    #[error("it has expired; repeat the request without it")]
    Expired,
    #[error("it belongs to another request or another caller")]
    Foreign,
    #[error("its handler has ended, or continues already; repeat the request without it")]
    Gone,
    #[error("the answers and steps of the request take more than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("the system has no random numbers")]
    NoRandom,
}

impl StateSigner {
    /// Creates a signer with this key. Servers that serve the same clients need the same key.
    pub(crate) fn new(key: &[u8], lifetime: Duration) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), lifetime }
    }

    /// Creates a signer with a key that no other process has.
    pub(crate) fn random(lifetime: Duration) -> Result<Self, StateError> {
        let random = rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random);
        key.map(|key| Self { key, lifetime }).map_err(|_| StateError::NoRandom)
    }

    /// Returns this signer with another lifetime of its states.
    pub(crate) fn with_lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime, ..self }
    }

    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Signs a state for the request with this binding.
    pub(crate) fn seal(&self, state: RequestState, binding: &str) -> Result<String, StateError> {
        let expires = now().saturating_add(self.lifetime.as_secs().max(1));
        let bound = BoundState { expires, binding: binding.to_owned(), state };
        let mut sealed = serde_json::to_vec(&bound).map_err(|_| StateError::TooLarge)?;
        if sealed.len() > MAX_BYTES {
            return Err(StateError::TooLarge);
        }
        let tag = hmac::sign(&self.key, &sealed);
        sealed.extend_from_slice(tag.as_ref());
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Checks a state that a client has sent with the request of this binding.
    pub(crate) fn open(&self, sealed: &str, binding: &str) -> Result<RequestState, StateError> {
        // Four characters are three bytes: nothing longer was ever sent.
        if sealed.len() > (MAX_BYTES + TAG_BYTES).div_ceil(3) * 4 {
            return Err(StateError::Forged);
        }
        let sealed = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| StateError::Forged)?;
        let split = sealed.len().checked_sub(TAG_BYTES).ok_or(StateError::Forged)?;
        let (text, tag) = sealed.split_at(split);
        hmac::verify(&self.key, text, tag).map_err(|_| StateError::Forged)?;
        let bound: BoundState = serde_json::from_slice(text).map_err(|_| StateError::Forged)?;
        if bound.expires <= now() {
            return Err(StateError::Expired);
        }
        if bound.binding != binding {
            return Err(StateError::Foreign);
        }
        Ok(bound.state)
    }
}

/// The digest that binds a state to its principal and its request.
pub(crate) fn binding(principal: Option<&str>, method: &str, salient: &[&str]) -> String {
    let mut digest = digest::Context::new(&digest::SHA256);
    // No principal differs from one without a name.
    digest.update(&[u8::from(principal.is_some())]);
    let parts = [principal.unwrap_or_default(), method];
    for part in parts.iter().chain(salient) {
        // The length keeps two parts apart from one that is made of both.
        digest.update(&(part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    URL_SAFE_NO_PAD.encode(digest.finish())
}

/// Creates an id that nobody can guess: 128 random bits.
pub(crate) fn random_id() -> Result<String, StateError> {
    let random: [u8; 16] =
        rand::generate(&rand::SystemRandom::new()).map_err(|_| StateError::NoRandom)?.expose();
    Ok(URL_SAFE_NO_PAD.encode(random))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl fmt::Debug for StateSigner {
    /// Does not print the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateSigner").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn state() -> RequestState {
        let answer = RawValue::from_string(r#"{"action":"accept"}"#.to_owned()).unwrap();
        RequestState { answers: vec![("a".to_owned(), answer)], rounds: 1, ..Default::default() }
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let signer = StateSigner::random(HOUR).unwrap();
        let sealed = signer.seal(state(), "b").unwrap();
        let opened = signer.open(&sealed, "b").unwrap();
        assert_eq!(opened.rounds, 1);
        assert_eq!(opened.answers[0].1.get(), r#"{"action":"accept"}"#);
    }

    #[test]
    fn a_forged_expired_or_foreign_state_is_refused() {
        let signer = StateSigner::new(b"key", HOUR);
        let sealed = signer.seal(state(), "b").unwrap();
        assert_eq!(signer.open(&sealed, "c").unwrap_err(), StateError::Foreign);
        let other = StateSigner::new(b"other key", HOUR);
        assert_eq!(other.open(&sealed, "b").unwrap_err(), StateError::Forged);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(signer.open(&changed, "b").is_err(), "changed at {at}");
        }
        for odd in ["", "A", "====", &"A".repeat(200_000)] {
            assert_eq!(signer.open(odd, "b").unwrap_err(), StateError::Forged);
        }
        let bound = BoundState { expires: now(), binding: "b".to_owned(), state: state() };
        let mut text = serde_json::to_vec(&bound).unwrap();
        let tag = hmac::sign(&signer.key, &text);
        text.extend_from_slice(tag.as_ref());
        let old = URL_SAFE_NO_PAD.encode(text);
        assert_eq!(signer.open(&old, "b").unwrap_err(), StateError::Expired);
    }

    #[test]
    fn a_state_is_bounded() {
        let signer = StateSigner::random(HOUR).unwrap();
        let long = serde_json::value::to_raw_value(&"x".repeat(MAX_BYTES)).unwrap();
        let state = RequestState { steps: vec![("s".to_owned(), long)], ..Default::default() };
        assert_eq!(signer.seal(state, "b").unwrap_err(), StateError::TooLarge);
    }

    #[test]
    fn bindings_differ_by_every_part() {
        let all = [
            binding(None, "tools/call", &["a"]),
            binding(Some("ada"), "tools/call", &["a"]),
            binding(Some(""), "tools/call", &["a"]),
            binding(None, "tools/call", &["a", ""]),
            binding(None, "tools/calla", &[]),
            binding(None, "prompts/get", &["a"]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{at}");
        }
    }
}
