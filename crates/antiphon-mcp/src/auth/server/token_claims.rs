//! The claims of a token (RFC 7519, section 4.1; RFC 9068), and of an introspection response (RFC 7662).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::{Access, TokenError};
use crate::auth::Scopes;

/// The latest time that a claim may name. Later times overflow some clocks.
const LATEST: f64 = 253_402_300_799.0;

/// What the claims of a token must say.
#[derive(Clone, Debug)]
pub(super) struct ClaimRules {
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    pub(super) leeway: Duration,
}

impl ClaimRules {
    /// Checks the claims of a token, and returns what it allows.
    pub(super) fn check(
        &self,
        claims: Map<String, Value>,
        now: SystemTime,
    ) -> Result<Access, TokenError> {
        if text(&claims, "iss") != Some(&self.issuer) {
            return Err(TokenError::invalid("the token is from another issuer"));
        }
        self.check_audience(&claims)?;
        let expires_at = self.check_times(&claims, now)?;
        Ok(access(claims).with_expires_at(expires_at))
    }

    /// RFC 8707, section 2: a token for another server is refused.
    pub(super) fn check_audience(&self, claims: &Map<String, Value>) -> Result<(), TokenError> {
        let audience = audience(claims);
        if audience.iter().any(|audience| self.audiences.contains(audience)) {
            return Ok(());
        }
        Err(TokenError::invalid("the token is for another audience"))
    }

    pub(super) fn check_times(
        &self,
        claims: &Map<String, Value>,
        now: SystemTime,
    ) -> Result<SystemTime, TokenError> {
        let expires_at =
            time(claims, "exp")?.ok_or_else(|| TokenError::invalid("the token does not expire"))?;
        if expires_at.checked_add(self.leeway).is_some_and(|end| end <= now) {
            return Err(TokenError::invalid("the token has expired"));
        }
        let latest = now.checked_add(self.leeway);
        if time(claims, "nbf")?.zip(latest).is_some_and(|(start, latest)| start > latest) {
            return Err(TokenError::invalid("the token is not valid yet"));
        }
        Ok(expires_at)
    }
}

/// Returns what claims allow.
pub(super) fn access(claims: Map<String, Value>) -> Access {
    let mut access = Access::new().with_scopes(scopes(&claims)).with_audience(audience(&claims));
    if let Some(subject) = text(&claims, "sub") {
        access = access.with_subject(subject);
    }
    if let Some(client) = text(&claims, "client_id").or_else(|| text(&claims, "azp")) {
        access = access.with_client_id(client);
    }
    if let Some(issuer) = text(&claims, "iss") {
        access = access.with_issuer(issuer);
    }
    access.with_claims(claims)
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str()
}

fn audience(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Reads `scope` (RFC 9068) or `scp`, which some servers use, as a text or as an Array.
fn scopes(claims: &Map<String, Value>) -> Scopes {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(scopes)) => Scopes::parse(scopes),
        Some(Value::Array(scopes)) => scopes.iter().filter_map(Value::as_str).collect(),
        _ => Scopes::new(),
    }
}

fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<SystemTime>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=LATEST).contains(seconds));
    match seconds {
        Some(seconds) => Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds))),
        None => Err(TokenError::invalid(format!("the claim {name} of the token is not a time"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn check(changes: Value) -> Result<Access, TokenError> {
        let rules = ClaimRules {
            issuer: "https://a.example".to_owned(),
            audiences: vec!["https://m.example/mcp".to_owned()],
            leeway: Duration::from_secs(30),
        };
        let mut claims = json!({
            "iss": "https://a.example", "aud": "https://m.example/mcp", "exp": NOW + 10, "sub": "ada",
        });
        let (Value::Object(claims), Value::Object(changes)) = (&mut claims, changes) else {
            return Err(TokenError::invalid("the changes are no Object"));
        };
        claims.extend(changes);
        claims.retain(|_, value| !value.is_null());
        rules.check(claims.clone(), UNIX_EPOCH + Duration::from_secs(NOW))
    }

    #[test]
    fn claims_of_other_servers_and_times_are_refused() {
        for (changes, reason) in [
            (json!({ "iss": "https://a.example/" }), "another issuer"),
            (json!({ "iss": null }), "another issuer"),
            (json!({ "iss": ["https://a.example"] }), "another issuer"),
            (json!({ "aud": "https://m.example" }), "another audience"),
            (json!({ "aud": ["https://m.example/mcp/"] }), "another audience"),
            (json!({ "aud": null }), "another audience"),
            (json!({ "aud": { "https://m.example/mcp": 1 } }), "another audience"),
            (json!({ "exp": null }), "does not expire"),
            (json!({ "exp": NOW - 30 }), "has expired"),
            (json!({ "exp": "later" }), "not a time"),
            (json!({ "exp": -1 }), "not a time"),
            (json!({ "exp": 1e300 }), "not a time"),
            (json!({ "nbf": NOW + 31 }), "not valid yet"),
        ] {
            let error = check(changes.clone()).unwrap_err().to_string();
            assert!(error.contains(reason), "{changes}: {error}");
        }
    }

    #[test]
    fn the_leeway_applies_to_both_times() {
        let access = check(json!({ "exp": NOW - 29, "nbf": NOW + 30 })).unwrap();
        assert_eq!(access.subject(), Some("ada"));
        assert!(check(json!({ "exp": (NOW as f64) + 0.5 })).is_ok());
    }

    #[test]
    fn the_longest_leeway_is_no_overflow() {
        let rules =
            ClaimRules { issuer: String::new(), audiences: Vec::new(), leeway: Duration::MAX };
        let claims = json!({ "exp": 1, "nbf": NOW + 1 });
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        assert!(rules.check_times(claims.as_object().unwrap(), now).is_ok());
    }

    #[test]
    fn scopes_are_read_in_every_usual_form() {
        for (changes, scopes) in [
            (json!({ "scope": "b a" }), "a b"),
            (json!({ "scope": ["a", "b"] }), "a b"),
            (json!({ "scp": ["a"] }), "a"),
            (json!({ "scp": "a b" }), "a b"),
            (json!({ "scope": 7 }), ""),
        ] {
            assert_eq!(check(changes).unwrap().scopes().to_string(), scopes);
        }
    }

    #[test]
    fn one_of_several_audiences_suffices() {
        assert!(check(json!({ "aud": ["https://x.example", "https://m.example/mcp"] })).is_ok());
    }
}
