//! The responses of an MCP server that requires tokens.

use std::time::Duration;

use antiphon::http::{Request, StatusCode};
use antiphon_mcp::auth::server::{Authorization, JwtVerifier};
use antiphon_mcp::auth::{Challenge, Scopes, SigningKey};
use bytes::Bytes;
use serde_json::json;

use crate::support::http::send;
use crate::support::keys::{ISSUER, claims, key_set, signing_key};
use crate::support::mcp_server::{self, McpServer, body, call, call_with};

/// A server that accepts the tokens of a key.
async fn start(
    key: &SigningKey,
    settings: impl FnOnce(Authorization) -> Authorization,
) -> McpServer {
    let verifier = |url: &str| JwtVerifier::new(ISSUER, url, key_set(&[key]));
    mcp_server::start(verifier, settings, &[ISSUER]).await
}

#[tokio::test]
async fn a_request_without_a_token_is_told_where_to_get_one() {
    let server = start(&signing_key("1"), |auth| auth.require(["files:read"])).await;
    let response = send(call(&server.url, "whoami")).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let challenge = Challenge::of_response(response.status(), response.headers());
    assert_eq!(challenge.scope, Some(Scopes::from(["files:read"])));
    assert_eq!(challenge.error, None);
    // A page can read it.
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert_eq!(response.headers()["access-control-expose-headers"], "www-authenticate");

    let metadata = challenge.resource_metadata.unwrap();
    assert_eq!(metadata, format!("{}/.well-known/oauth-protected-resource/mcp", server.origin));
    let root = format!("{}/.well-known/oauth-protected-resource", server.origin);
    for url in [metadata, root] {
        let response = send(Request::get(url).body(Bytes::new()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert_eq!(
            body(&response),
            json!({
                "resource": server.url,
                "authorization_servers": [ISSUER],
                "scopes_supported": ["files:read"],
                "bearer_methods_supported": ["header"],
            })
        );
    }
}

#[tokio::test]
async fn handlers_see_the_access_and_not_the_token() {
    let key = signing_key("1");
    let server = start(&key, |auth| auth).await;
    let token = key.sign(&claims(&server.url, &json!({}))).unwrap();
    let response = call_with(&server.url, "whoami", &token).await;
    assert_eq!(response.status(), StatusCode::OK);
    let seen = json!({
        "subject": "ada", "scopes": "files:read", "identity": "ada", "hasHeader": false,
    });
    assert_eq!(body(&response)["result"], seen);
}

#[tokio::test]
async fn only_the_authorization_header_is_read() {
    let key = signing_key("1");
    let server = start(&key, |auth| auth).await;
    let token = key.sign(&claims(&server.url, &json!({}))).unwrap();
    let in_query = call(&format!("{}?access_token={token}", server.url), "whoami");
    assert_eq!(send(in_query).await.status(), StatusCode::UNAUTHORIZED);

    let mut twice = call(&server.url, "whoami");
    for _ in 0..2 {
        twice.headers_mut().append("authorization", format!("Bearer {token}").parse().unwrap());
    }
    let response = send(twice).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let challenge = Challenge::of_response(response.status(), response.headers());
    assert_eq!(challenge.error.as_deref(), Some("invalid_request"));
}

#[tokio::test]
async fn a_token_without_the_required_scopes_gets_a_step_up_challenge() {
    let key = signing_key("1");
    let server = start(&key, |auth| auth.require(["files:read", "files:list"])).await;
    let token = key.sign(&claims(&server.url, &json!({}))).unwrap();
    let response = call_with(&server.url, "whoami", &token).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let challenge = Challenge::of_response(response.status(), response.headers());
    assert!(challenge.is_step_up());
    assert_eq!(challenge.scope, Some(Scopes::from(["files:read", "files:list"])));
}

#[tokio::test]
async fn a_handler_can_require_more_scopes() {
    let key = signing_key("1");
    let server = start(&key, |auth| auth.imply("files", ["files:write"])).await;
    let token = |scope: &str| key.sign(&claims(&server.url, &json!({ "scope": scope }))).unwrap();
    let response = call_with(&server.url, "write", &token("files:read")).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let challenge = Challenge::of_response(response.status(), response.headers());
    assert!(challenge.is_step_up());
    assert_eq!(challenge.scope, Some(Scopes::from(["files:write"])));
    // The JSON-RPC error is still there, for clients that cannot step up.
    assert_eq!(body(&response)["error"]["data"], json!({ "requiredScopes": ["files:write"] }));

    for scope in ["files:write", "files"] {
        let response = call_with(&server.url, "write", &token(scope)).await;
        assert_eq!(response.status(), StatusCode::OK, "{scope}");
        assert_eq!(body(&response)["result"], "written");
    }
    // The refusal of one request does not stick to the token.
    assert_eq!(
        call_with(&server.url, "whoami", &token("files:read")).await.status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_cached_token_keeps_the_refusals_of_its_requests_apart() {
    let key = signing_key("1");
    let server = start(&key, |auth| auth.cache(8, Duration::from_secs(60))).await;
    let token = key.sign(&claims(&server.url, &json!({}))).unwrap();
    call_with(&server.url, "whoami", &token).await;
    let (url, held) = (server.url.clone(), token.clone());
    let held = tokio::spawn(async move { call_with(&url, "held_write", &held).await });
    server.hold.is_reached.notified().await;
    assert_eq!(call_with(&server.url, "whoami", &token).await.status(), StatusCode::OK);
    server.hold.release.notify_one();
    assert_eq!(held.await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn preflight_requests_and_open_paths_need_no_token() {
    let server = start(&signing_key("1"), |auth| auth.open_path("/health")).await;
    let preflight = Request::options(&server.url)
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .body(Bytes::new())
        .unwrap();
    // The guard of the service answers: this Origin is not allowed.
    assert_eq!(send(preflight).await.status(), StatusCode::FORBIDDEN);
    let health = Request::get(format!("{}/health", server.origin)).body(Bytes::new()).unwrap();
    assert_eq!(send(health).await.status(), StatusCode::NOT_FOUND);
    let other = Request::get(format!("{}/other", server.origin)).body(Bytes::new()).unwrap();
    assert_eq!(send(other).await.status(), StatusCode::UNAUTHORIZED);
}
