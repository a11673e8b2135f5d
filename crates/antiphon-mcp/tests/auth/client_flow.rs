//! The way of a client from a challenge to a token, and through its later life.

use antiphon::http::{Method, StatusCode};
use antiphon_mcp::auth::client::{
    ClientAuthentication, FileTokenStore, Grant, HeadlessRedirect, OAuthClient, OAuthClientBuilder,
    OAuthError, PreRegisteredClient, TokenSource,
};
use antiphon_mcp::auth::server::{JwtVerifier, RemoteKeys};
use antiphon_mcp::auth::{Challenge, Secret};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::TemporaryDirectory;
use crate::support::authorization_server::AuthorizationServer;
use crate::support::http::send;
use crate::support::keys::signing_key;
use crate::support::mcp_server::{self, McpServer, call};

pub(crate) const REDIRECT: &str = "http://127.0.0.1:1/callback";

/// An MCP server and its authorization server.
pub(crate) struct Setup {
    pub(crate) issuer: AuthorizationServer,
    pub(crate) server: McpServer,
}

impl Setup {
    pub(crate) async fn start() -> Self {
        let issuer = AuthorizationServer::start().await;
        let keys = RemoteKeys::new(&format!("{}/jwks", issuer.issuer)).unwrap();
        let verifier = |url: &str| JwtVerifier::new(&issuer.issuer, url, keys);
        let required =
            |auth: antiphon_mcp::auth::server::Authorization| auth.require(["files:read"]);
        let server = mcp_server::start(verifier, required, &[&issuer.issuer]).await;
        Self { issuer, server }
    }

    pub(crate) fn client(&self) -> OAuthClientBuilder {
        let user = HeadlessRedirect::new(REDIRECT);
        OAuthClient::builder(&self.server.url, Grant::authorization_code(user))
    }

    /// Calls a method as an HTTP client does: with the token, and again after a challenge.
    pub(crate) async fn call(
        &self,
        client: &impl TokenSource,
        method: &str,
    ) -> Result<StatusCode, OAuthError> {
        let mut token = client.token(None).await?;
        for _ in 0..3 {
            let mut request = call(&self.server.url, method);
            if let Some(token) = &token {
                token.authorize(&Method::POST, &self.server.url, request.headers_mut())?;
            }
            let response = send(request).await;
            if response.status() == StatusCode::OK {
                return Ok(StatusCode::OK);
            }
            let mut challenge = Challenge::of_response(response.status(), response.headers());
            if let Some(token) = token {
                challenge = challenge.rejecting(token.secret().clone());
            }
            token = client.token(Some(challenge)).await?;
        }
        Ok(StatusCode::UNAUTHORIZED)
    }
}

#[tokio::test]
async fn a_client_registers_authorizes_and_calls() {
    let setup = Setup::start().await;
    let client = setup.client().client_name("tester").build().unwrap();
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);

    let [registration] = &setup.issuer.requests("/register")[..] else {
        panic!("one registration")
    };
    let registration: Value = serde_json::from_str(&registration["body"]).unwrap();
    assert_eq!(
        registration,
        json!({
            "client_name": "tester",
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        })
    );
    let [request] = &setup.issuer.requests("/authorize")[..] else { panic!("one authorization") };
    assert_eq!(request["resource"], setup.server.url);
    assert_eq!(request["code_challenge_method"], "S256");
    assert_eq!(request["response_type"], "code");
    assert_eq!(request["scope"], "files:read offline_access");
    let [request] = &setup.issuer.requests("/token")[..] else { panic!("one token request") };
    assert_eq!(request["resource"], setup.server.url);
}

#[tokio::test]
async fn requests_at_the_same_time_share_one_authorization() {
    let setup = Setup::start().await;
    let client = setup.client().build().unwrap();
    let calls = join_all((0..10).map(|_| setup.call(&client, "whoami"))).await;
    assert!(calls.into_iter().all(|status| status.unwrap() == StatusCode::OK));
    assert_eq!(setup.issuer.requests("/authorize").len(), 1);
}

#[tokio::test]
async fn an_expiring_token_is_refreshed_with_a_rotated_refresh_token() {
    let setup = Setup::start().await;
    // So soon that the client refreshes it before each request.
    setup.issuer.state().expires_in = 10;
    let client = setup.client().build().unwrap();
    for _ in 0..3 {
        assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    }
    assert_eq!(setup.issuer.requests("/authorize").len(), 1);
    let refreshes: Vec<String> = setup
        .issuer
        .requests("/token")
        .iter()
        .filter_map(|request| request.get("refresh_token").cloned())
        .collect();
    assert_eq!(refreshes.len(), 2);
    assert_ne!(refreshes[0], refreshes[1]);
}

#[tokio::test]
async fn a_refused_refresh_token_leads_to_a_new_authorization() {
    let setup = Setup::start().await;
    // The token is expired at once for the client, and within the leeway of the server.
    setup.issuer.state().expires_in = 0;
    let client = setup.client().build().unwrap();
    setup.call(&client, "whoami").await.unwrap();
    setup.issuer.state().next_error = Some("invalid_grant");
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    assert_eq!(setup.issuer.requests("/authorize").len(), 2);
}

#[tokio::test]
async fn a_token_that_cannot_be_refreshed_is_used_to_its_end() {
    let setup = Setup::start().await;
    setup.issuer.state().expires_in = 20;
    let client = setup.client().build().unwrap();
    setup.call(&client, "whoami").await.unwrap();
    setup.issuer.state().next_error = Some("temporarily_unavailable");
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    assert_eq!(setup.issuer.requests("/authorize").len(), 1);
}

#[tokio::test]
async fn programs_with_the_same_store_share_a_rotated_token() {
    let setup = Setup::start().await;
    setup.issuer.state().expires_in = 10;
    let directory = TemporaryDirectory::new();
    let program = || setup.client().store(FileTokenStore::new(&directory.0)).build().unwrap();
    let programs = [program(), program()];
    for _ in 0..2 {
        for program in &programs {
            assert_eq!(setup.call(program, "whoami").await.unwrap(), StatusCode::OK);
        }
    }
    assert_eq!(setup.issuer.requests("/authorize").len(), 1);
}

#[tokio::test]
async fn a_rejected_token_is_refreshed_before_the_user_is_asked() {
    let setup = Setup::start().await;
    let client = setup.client().build().unwrap();
    setup.call(&client, "whoami").await.unwrap();
    // All tokens of the old key are invalid from here on.
    setup.issuer.state().key = signing_key("2");
    let token = client.token(None).await.unwrap().unwrap();
    let challenge = Challenge::new(StatusCode::UNAUTHORIZED).rejecting(token.secret().clone());
    let fresh = client.token(Some(challenge)).await.unwrap().unwrap();
    assert_ne!(fresh, token);
    assert_eq!(setup.issuer.requests("/authorize").len(), 1);
}

#[tokio::test]
async fn tokens_and_registrations_outlive_the_program() {
    let setup = Setup::start().await;
    let directory = TemporaryDirectory::new();
    for _ in 0..2 {
        let store = FileTokenStore::new(&directory.0);
        let client = setup.client().store(store).build().unwrap();
        assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    }
    assert_eq!(setup.issuer.requests("/authorize").len(), 1);
    assert_eq!(setup.issuer.requests("/register").len(), 1);
}

#[tokio::test]
async fn a_registration_that_the_server_forgot_is_replaced() {
    let setup = Setup::start().await;
    setup.issuer.state().next_error = Some("invalid_client");
    let client = setup.client().build().unwrap();
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    assert_eq!(setup.issuer.requests("/register").len(), 2);
}

#[tokio::test]
async fn a_client_can_act_on_its_own_behalf() {
    let setup = Setup::start().await;
    let key = signing_key("client");
    let registered = PreRegisteredClient::new("worker")
        .authentication(ClientAuthentication::PrivateKeyJwt(key))
        .issuer(&setup.issuer.issuer);
    let client = OAuthClient::builder(&setup.server.url, Grant::ClientCredentials)
        .pre_registered(registered)
        .build()
        .unwrap();
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    let [request] = &setup.issuer.requests("/token")[..] else { panic!("one token request") };
    assert_eq!(request["client_id"], "worker");
    assert_eq!(request["scope"], "files:read");
    assert_eq!(request["resource"], setup.server.url);
    assert!(request.contains_key("client_assertion"));
}

#[tokio::test]
async fn the_url_of_its_metadata_is_the_id_of_a_client() {
    let setup = Setup::start().await;
    setup.issuer.state().metadata = json!({ "client_id_metadata_document_supported": true });
    let url = "https://app.example/client.json";
    let client = setup.client().client_metadata_url(url).build().unwrap();
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    assert!(setup.issuer.requests("/register").is_empty());
    assert_eq!(setup.issuer.requests("/authorize")[0]["client_id"], url);
}

#[test]
fn debug_output_contains_no_secrets() {
    let client = OAuthClient::builder("https://m.example", Grant::assertion(Secret::new("hush")))
        .pre_registered(PreRegisteredClient::new("id").secret(Secret::new("hush")))
        .build()
        .unwrap();
    let registered = PreRegisteredClient::new("id").secret(Secret::new("hush"));
    let challenge = Challenge::new(StatusCode::UNAUTHORIZED).rejecting(Secret::new("hush"));
    let text = format!("{client:?} {registered:?} {challenge:?}");
    assert!(!text.contains("hush"), "{text}");
}
