//! Tokens that their authorization server verifies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::http::StatusCode;
use antiphon_mcp::auth::Secret;
use antiphon_mcp::auth::server::{Authorization, Introspection};
use serde_json::{Value, json};

use crate::support::http::{HttpServer, empty_response, json_response, serve};
use crate::support::keys::{ISSUER, now};
use crate::support::mcp_server::{self, McpServer, body, call_with};

/// The answer of an endpoint, and the tokens that it was asked for.
#[derive(Clone, Default)]
struct Endpoint {
    answer: Arc<Mutex<Value>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    async fn serve(&self) -> HttpServer {
        let endpoint = self.clone();
        serve(move |request| {
            // "id:s%3A1"
            if request.headers()["authorization"] != "Basic aWQ6cyUzQTE=" {
                return empty_response(StatusCode::UNAUTHORIZED);
            }
            let form = String::from_utf8_lossy(request.body()).into_owned();
            endpoint.asked.lock().unwrap().push(form);
            json_response(StatusCode::OK, &endpoint.answer.lock().unwrap())
        })
        .await
    }
}

async fn start(
    http: &HttpServer,
    secret: &str,
    settings: impl FnOnce(Authorization) -> Authorization,
) -> McpServer {
    let secret = Secret::new(secret);
    let verifier = |url: &str| Introspection::new(&http.url, "id", &secret, url).unwrap();
    mcp_server::start(verifier, settings, &[ISSUER]).await
}

#[tokio::test]
async fn only_active_tokens_for_this_server_are_accepted() {
    let endpoint = Endpoint::default();
    let http = endpoint.serve().await;
    let server = start(&http, "s:1", |auth| auth).await;
    let url = &server.url;
    for (answer, status) in [
        (json!({ "active": true, "aud": url, "sub": "ada", "exp": now() + 60 }), StatusCode::OK),
        (json!({ "active": true, "aud": [url], "client_id": "worker" }), StatusCode::OK),
        (json!({ "active": false, "aud": url }), StatusCode::UNAUTHORIZED),
        (json!({ "active": "true", "aud": url }), StatusCode::UNAUTHORIZED),
        (json!({ "aud": url }), StatusCode::UNAUTHORIZED),
        (json!({ "active": true }), StatusCode::UNAUTHORIZED),
        (json!({ "active": true, "aud": "https://other.example" }), StatusCode::UNAUTHORIZED),
        (json!({ "active": true, "aud": url, "exp": now() - 600 }), StatusCode::UNAUTHORIZED),
        (json!([]), StatusCode::SERVICE_UNAVAILABLE),
    ] {
        *endpoint.answer.lock().unwrap() = answer.clone();
        assert_eq!(call_with(url, "whoami", "opaque").await.status(), status, "{answer}");
    }
    assert_eq!(endpoint.asked.lock().unwrap()[0], "token=opaque&token_type_hint=access_token");
}

#[tokio::test]
async fn a_cached_token_is_asked_for_once() {
    let endpoint = Endpoint::default();
    let http = endpoint.serve().await;
    let server = start(&http, "s:1", |auth| auth.cache(4, Duration::from_secs(60))).await;
    *endpoint.answer.lock().unwrap() =
        json!({ "active": true, "aud": server.url, "client_id": "worker" });
    for _ in 0..3 {
        let response = call_with(&server.url, "whoami", "opaque").await;
        assert_eq!(body(&response)["result"]["identity"], "worker");
    }
    assert_eq!(endpoint.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn wrong_credentials_of_the_server_are_not_the_fault_of_the_token() {
    let http = Endpoint::default().serve().await;
    let server = start(&http, "wrong", |auth| auth).await;
    let response = call_with(&server.url, "whoami", "opaque").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}
