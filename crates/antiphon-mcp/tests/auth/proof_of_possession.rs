//! Tokens that are bound to a key of the client (RFC 9449).

use std::sync::{Arc, Mutex};

use antiphon::http::{HeaderValue, Request, Response, StatusCode};
use antiphon_mcp::auth::client::{Grant, HeadlessRedirect, OAuthClient};
use antiphon_mcp::client::McpClient;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::client_flow::REDIRECT;
use crate::support::authorization_server::AuthorizationServer;
use crate::support::http::{empty_response, json_response, serve};

const NONCE: &str = "nonce-1";

/// A server of one tool that accepts only bound tokens, and only proofs with its nonce. Records the claims of the proofs
/// that it accepts.
struct BoundServer {
    issuer: String,
    proofs: Arc<Mutex<Vec<Value>>>,
}

impl BoundServer {
    fn respond(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let host = request.headers()["host"].to_str().unwrap();
        match request.uri().path() {
            "/mcp" => self.answer(request).unwrap_or_else(|challenge| {
                let mut response = empty_response(StatusCode::UNAUTHORIZED);
                let headers = response.headers_mut();
                headers.insert("www-authenticate", HeaderValue::from_static(challenge));
                headers.insert("dpop-nonce", HeaderValue::from_static(NONCE));
                response
            }),
            "/.well-known/oauth-protected-resource/mcp" => json_response(
                StatusCode::OK,
                &json!({
                    "resource": format!("http://{host}/mcp"),
                    "authorization_servers": [self.issuer],
                }),
            ),
            _ => empty_response(StatusCode::NOT_FOUND),
        }
    }

    fn answer(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, &'static str> {
        let header = |name| request.headers().get(name).and_then(|it| it.to_str().ok());
        let token = header("authorization").and_then(|it| it.strip_prefix("DPoP "));
        let token = token.ok_or("DPoP algs=\"ES256\"")?;
        let mut proof = claims(header("dpop").unwrap());
        if proof["nonce"] != NONCE {
            return Err("DPoP error=\"use_dpop_nonce\"");
        }
        let expected = BASE64.encode(digest(&SHA256, token.as_bytes()));
        proof["is_of_token"] = json!(proof["ath"] == *expected);
        self.proofs.lock().unwrap().push(proof);
        let message: Value = serde_json::from_slice(request.body()).unwrap();
        let result = match message["method"].as_str().unwrap() {
            "server/discover" => {
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
            }
            "tools/list" => json!({ "tools": [] }),
            _ => json!({ "content": [{ "type": "text", "text": "done" }] }),
        };
        let response = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        Ok(json_response(StatusCode::OK, &response))
    }
}

fn claims(proof: &str) -> Value {
    let claims = BASE64.decode(proof.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice(&claims).unwrap()
}

#[tokio::test]
async fn each_request_of_the_mcp_client_has_its_own_proof() {
    let issuer = AuthorizationServer::start().await;
    issuer.state().metadata = json!({ "dpop_signing_alg_values_supported": ["ES256"] });
    let proofs = Arc::<Mutex<Vec<Value>>>::default();
    let server = BoundServer { issuer: issuer.issuer.clone(), proofs: proofs.clone() };
    let server = serve(move |request| server.respond(&request)).await;
    let url = format!("{}/mcp", server.url);

    let grant = Grant::authorization_code(HeadlessRedirect::new(REDIRECT));
    let tokens = OAuthClient::builder(&url, grant).proof_of_possession(true).build().unwrap();
    let client = McpClient::builder().credentials(tokens).connect(&*url).await.unwrap();
    let result = client.call_tool("work", json!({})).await.unwrap();
    assert_eq!(result.joined_text(), "done");

    let proofs = proofs.lock().unwrap();
    assert!(proofs.len() >= 2);
    for (at, proof) in proofs.iter().enumerate() {
        assert_eq!((&proof["htm"], &proof["htu"]), (&json!("POST"), &json!(url)));
        assert_eq!(proof["is_of_token"], true);
        assert!(proofs[..at].iter().all(|other| other["jti"] != proof["jti"]));
    }
    assert_eq!(issuer.requests("/authorize").len(), 1);
}
