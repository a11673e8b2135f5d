//! Requests over TLS.

use antiphon::http::StatusCode;
use antiphon::transport::http::{HeadDecision, HttpPolicy};
use antiphon::transport::tls::{SelfSigned, TlsClient};
use antiphon::{Connection, Router, Server};
use antiphon_mcp::auth::HttpFetch;
use antiphon_mcp::auth::server::{JwtVerifier, RemoteKeys};
use serde_json::json;

use crate::support::http::{json_response, redirect, serve};
use crate::support::keys::{ISSUER, claims, jwks, signing_key};
use crate::support::mcp_server::{self, call_with};

#[tokio::test]
async fn keys_come_over_tls_from_a_trusted_server_only() {
    let key = signing_key("1");
    let certificate = SelfSigned::new(["localhost"]).unwrap();
    let document = jwks(&[&key]).to_string();
    let server = Server::bind("https://localhost:0")
        .await
        .unwrap()
        .tls(certificate.server().unwrap())
        .page("/jwks", "application/json", move || document.clone());
    let url = format!("{}/jwks", server.endpoint().to_string().trim_end_matches('/'));
    tokio::spawn(server.serve(Router::new()));

    let trusting = TlsClient::new().extra_roots(certificate.certificate_pem()).unwrap();
    for (tls, status) in [
        (trusting, StatusCode::OK),
        (TlsClient::new().without_system_roots(), StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let keys = RemoteKeys::new(&url).unwrap().fetch(HttpFetch::new().tls(tls));
        let verifier = |audience: &str| JwtVerifier::new(ISSUER, audience, keys);
        let mcp = mcp_server::start(verifier, |auth| auth, &[ISSUER]).await;
        let token = key.sign(&claims(&mcp.url, &json!({}))).unwrap();
        assert_eq!(call_with(&mcp.url, "whoami", &token).await.status(), status);
    }
}

/// Redirects every request.
struct Redirect(String);

impl HttpPolicy for Redirect {
    fn on_head(&self, _request: &mut Connection) -> HeadDecision {
        HeadDecision::Respond(redirect(&self.0).map(Into::into))
    }
}

#[tokio::test]
async fn a_secure_url_does_not_lead_to_an_insecure_one() {
    let key = signing_key("1");
    let document = jwks(&[&key]);
    let insecure = serve(move |_| json_response(StatusCode::OK, &document)).await;
    let certificate = SelfSigned::new(["localhost"]).unwrap();
    let server = Server::bind("https://localhost:0").await.unwrap();
    let server =
        server.tls(certificate.server().unwrap()).http_policy(Redirect(insecure.url.clone()));
    let url = server.endpoint().to_string();
    tokio::spawn(server.serve(Router::new()));

    let tls = TlsClient::new().extra_roots(certificate.certificate_pem()).unwrap();
    let secure = RemoteKeys::new(&url).unwrap().fetch(HttpFetch::new().tls(tls));
    let direct = RemoteKeys::new(&insecure.url).unwrap();
    for (keys, status) in [(direct, StatusCode::OK), (secure, StatusCode::SERVICE_UNAVAILABLE)] {
        let verifier = |audience: &str| JwtVerifier::new(ISSUER, audience, keys);
        let mcp = mcp_server::start(verifier, |auth| auth, &[ISSUER]).await;
        let token = key.sign(&claims(&mcp.url, &json!({}))).unwrap();
        assert_eq!(call_with(&mcp.url, "whoami", &token).await.status(), status);
    }
}
