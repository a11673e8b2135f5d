//! Which tokens a server accepts.

use antiphon::http::StatusCode;
use antiphon_mcp::auth::server::JwtVerifier;
use antiphon_mcp::auth::{Challenge, JwkSet, JwsAlgorithm};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use serde_json::{Value, json};

use crate::support::keys::{ISSUER, claims, jwks, key_set, now, signing_key};
use crate::support::mcp_server::{self, McpServer, call_with};

/// Tokens and keys that another implementation has made: jose for JavaScript.
const JOSE: &str = include_str!("fixtures/jose.json");

/// The reason of status 401.
async fn refusal(server: &McpServer, token: &str) -> String {
    let response = call_with(&server.url, "whoami", token).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let challenge = Challenge::of_response(response.status(), response.headers());
    assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
    let reason = challenge.error_description.unwrap();
    assert!(!reason.contains(token), "the reason repeats the token");
    reason
}

#[tokio::test]
async fn tokens_for_others_and_other_times_are_refused() {
    let key = signing_key("1");
    let keys = key_set(&[&key]);
    let server =
        mcp_server::start(|url| JwtVerifier::new(ISSUER, url, keys), |auth| auth, &[ISSUER]).await;
    for (changes, reason) in [
        (json!({ "aud": "https://other.example/mcp" }), "the token is for another audience"),
        (json!({ "aud": null }), "the token is for another audience"),
        (json!({ "iss": "https://evil.example" }), "the token is from another issuer"),
        (json!({ "exp": now() - 3600 }), "the token has expired"),
        (json!({ "exp": null }), "the token does not expire"),
        (json!({ "nbf": now() + 3600 }), "the token is not valid yet"),
    ] {
        let token = key.sign(&claims(&server.url, &changes)).unwrap();
        assert_eq!(refusal(&server, &token).await, reason, "{changes}");
    }
    let stranger = signing_key("1").sign(&claims(&server.url, &json!({}))).unwrap();
    assert_eq!(refusal(&server, &stranger).await, "the signature of the token is invalid");
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()))
}

#[tokio::test]
async fn tokens_that_name_weak_algorithms_are_refused() {
    let key = signing_key("1");
    let keys = key_set(&[&key]);
    let server =
        mcp_server::start(|url| JwtVerifier::new(ISSUER, url, keys), |auth| auth, &[ISSUER]).await;
    let claims = claims(&server.url, &json!({}));
    for name in ["none", "None", "NONE", ""] {
        let token = format!("{}.", unsigned(&json!({ "alg": name }), &claims));
        assert_eq!(refusal(&server, &token).await, "the algorithm of the token is not accepted");
    }
    // Key confusion: the public key as the shared secret of HMAC.
    let public = key.public_jwk()["x"].as_str().unwrap().to_owned();
    for secret in [public.clone().into_bytes(), BASE64.decode(&public).unwrap()] {
        let signed = unsigned(&json!({ "alg": "HS256", "kid": "1" }), &claims);
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let signature = BASE64.encode(hmac::sign(&secret, signed.as_bytes()));
        let token = format!("{signed}.{signature}");
        assert_eq!(refusal(&server, &token).await, "the algorithm of the token is not accepted");
    }
}

#[tokio::test]
async fn malformed_tokens_and_tokens_for_other_purposes_are_refused() {
    let key = signing_key("1");
    let keys = key_set(&[&key]);
    let server =
        mcp_server::start(|url| JwtVerifier::new(ISSUER, url, keys), |auth| auth, &[ISSUER]).await;
    let huge = "a".repeat(17 * 1024);
    for token in ["x", "a.b", "a.b.c.d", "..", &huge] {
        refusal(&server, token).await;
    }
    let valid = key.sign(&claims(&server.url, &json!({}))).unwrap();
    let (rest, signature) = valid.rsplit_once('.').unwrap();
    let (_, payload) = rest.split_once('.').unwrap();
    for (header, reason) in [
        (json!({ "alg": "EdDSA", "crit": ["b64"] }), "the token has a critical extension"),
        (json!({ "alg": "EdDSA", "typ": "dpop+jwt" }), "the token is not an access token"),
        (json!({ "alg": "EdDSA", "kid": "2" }), "the signature of the token is invalid"),
        (json!(["EdDSA", null, null, null]), "the token is not a JWT"),
    ] {
        let token = format!("{}.{payload}.{signature}", BASE64.encode(header.to_string()));
        let found = refusal(&server, &token).await;
        assert!(found.starts_with(reason), "{header}: {found}");
    }
}

#[tokio::test]
async fn the_tokens_of_another_implementation_are_accepted() {
    let jose: Value = serde_json::from_str(JOSE).unwrap();
    let keys = JwkSet::from_json(&json!({ "keys": jose["keys"] }).to_string()).unwrap();
    let audience = "https://mcp.example/mcp";
    for algorithm in JwsAlgorithm::ALL {
        let verifier = JwtVerifier::new(ISSUER, audience, keys.clone());
        let server = mcp_server::start(|_| verifier, |auth| auth, &[ISSUER]).await;
        let token = jose["tokens"][algorithm.name()].as_str().unwrap();
        let response = call_with(&server.url, "whoami", token).await;
        assert_eq!(response.status(), StatusCode::OK, "{algorithm:?}");
        // One changed character of the claims.
        let at = token.find('.').unwrap() + 10;
        let swapped = if &token[at..=at] == "A" { "B" } else { "A" };
        let changed = format!("{}{swapped}{}", &token[..at], &token[at + 1..]);
        assert_eq!(refusal(&server, &changed).await, "the signature of the token is invalid");
    }
}

#[tokio::test]
async fn an_algorithm_that_is_not_listed_is_refused() {
    let key = signing_key("1");
    let keys = JwkSet::from_json(&jwks(&[&key]).to_string()).unwrap();
    let verifier =
        |url: &str| JwtVerifier::new(ISSUER, url, keys).algorithms([JwsAlgorithm::ES256]);
    let server = mcp_server::start(verifier, |auth| auth, &[ISSUER]).await;
    let token = key.sign(&claims(&server.url, &json!({}))).unwrap();
    assert_eq!(refusal(&server, &token).await, "the algorithm of the token is not accepted");
}
