//! What a client refuses, and where it sends nothing.

use antiphon::http::{HeaderMap, Method, Response, StatusCode, Uri};
use antiphon_mcp::auth::client::{
    Grant, HeadlessRedirect, MemoryTokenStore, OAuthClient, OAuthClientBuilder, OAuthError,
    PreRegisteredClient, ResponseError, TokenSource as _,
};
use antiphon_mcp::auth::{Challenge, FetchError, Secret, WebUrlError};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::client_flow::{REDIRECT, Setup};
use crate::support::authorization_server::AuthorizationServer;
use crate::support::http::{HttpServer, empty_response, json_response, redirect, serve};

/// Runs a client against changed metadata of the authorization server.
async fn with_metadata(changes: Value) -> (Setup, OAuthError) {
    let setup = Setup::start().await;
    setup.issuer.state().metadata = changes;
    let client = setup.client().build().unwrap();
    let error = setup.call(&client, "whoami").await.unwrap_err();
    (setup, error)
}

#[tokio::test]
async fn a_server_without_pkce_is_refused() {
    for methods in [json!(null), json!(["plain"])] {
        let (setup, error) =
            with_metadata(json!({ "code_challenge_methods_supported": methods })).await;
        assert!(matches!(error, OAuthError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("PKCE"), "{error}");
        assert!(setup.issuer.requests("/authorize").is_empty());
        assert!(setup.issuer.requests("/register").is_empty());
    }
}

#[tokio::test]
async fn the_metadata_of_another_issuer_is_refused() {
    let (setup, error) = with_metadata(json!({ "issuer": "https://honest.example" })).await;
    assert!(matches!(error, OAuthError::ServerMetadata { .. }), "{error}");
    assert!(error.to_string().contains("https://honest.example"), "{error}");
    assert!(setup.issuer.requests("/authorize").is_empty());
}

#[tokio::test]
async fn insecure_endpoints_are_refused() {
    for endpoint in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
        let (setup, error) = with_metadata(json!({ endpoint: "http://auth.example/x" })).await;
        assert!(matches!(error, OAuthError::Url(_)), "{endpoint}: {error}");
        assert!(setup.issuer.requests("/token").is_empty());
    }
}

#[tokio::test]
async fn a_client_that_cannot_register_names_the_remedy() {
    let (_, error) = with_metadata(json!({ "registration_endpoint": null })).await;
    assert!(matches!(error, OAuthError::NotRegistered { .. }), "{error}");
    assert!(error.to_string().contains("configure its client id"), "{error}");
}

#[tokio::test]
async fn a_code_of_another_response_is_not_redeemed() {
    for (issuer, state, expected) in [
        (Some("https://evil.example"), None, "not from the issuer"),
        (None, None, "does not name its issuer"),
        (Some(""), None, "not from the issuer"),
        (None, Some("guessed"), "belongs to another request"),
    ] {
        let setup = Setup::start().await;
        setup.issuer.state().response_issuer = issuer.map(str::to_owned);
        setup.issuer.state().response_state = state.map(str::to_owned);
        let client = setup.client().build().unwrap();
        let error = setup.call(&client, "whoami").await.unwrap_err();
        assert!(matches!(error, OAuthError::Authorization(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(setup.issuer.requests("/token").is_empty());
    }
}

#[tokio::test]
async fn an_announced_issuer_that_is_right_is_accepted() {
    let setup = Setup::start().await;
    setup.issuer.state().metadata =
        json!({ "authorization_response_iss_parameter_supported": null });
    let client = setup.client().build().unwrap();
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    let error = ResponseError::NoIssuer("https://a.example".to_owned());
    assert!(error.to_string().contains("https://a.example"));
}

/// An MCP server that answers with its metadata.
async fn resource_server(
    metadata: impl Fn(&str) -> Response<Bytes> + Send + Sync + 'static,
) -> HttpServer {
    serve(move |request| metadata(request.uri().path())).await
}

fn client_of(url: &str) -> OAuthClientBuilder {
    OAuthClient::builder(url, Grant::authorization_code(HeadlessRedirect::new(REDIRECT)))
}

async fn refusal(url: &str, challenge: Challenge) -> OAuthError {
    client_of(url).build().unwrap().token(Some(challenge)).await.unwrap_err()
}

fn unauthorized() -> Challenge {
    Challenge::new(StatusCode::UNAUTHORIZED)
}

#[tokio::test]
async fn metadata_about_another_resource_is_refused() {
    let server = resource_server(|_| {
        let metadata = json!({
            "resource": "https://bank.example/mcp",
            "authorization_servers": ["https://auth.example"],
        });
        json_response(StatusCode::OK, &metadata)
    });
    let error = refusal(&server.await.url, unauthorized()).await;
    assert!(matches!(error, OAuthError::ResourceMismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_metadata_bomb_is_not_read() {
    let server = resource_server(|_| Response::new(Bytes::from(vec![b'['; 1 << 20]))).await;
    let error = refusal(&server.url, unauthorized()).await;
    assert!(matches!(error, OAuthError::Fetch(FetchError::TooLarge { .. })), "{error}");
    let deep = "[".repeat(100_000);
    let server = resource_server(move |_| Response::new(Bytes::from(deep.clone()))).await;
    let mut challenge = unauthorized();
    challenge.resource_metadata = Some(format!("{}/x", server.url));
    let error = refusal(&server.url, challenge).await;
    assert!(matches!(error, OAuthError::Fetch(FetchError::Json { .. })), "{error}");
}

#[tokio::test]
async fn redirects_to_other_schemes_and_endless_redirects_are_refused() {
    for target in ["http://metadata.example/x", "file:///etc/passwd", "ftp://127.0.0.1/x"] {
        let server = resource_server(move |_| redirect(target)).await;
        let error = refusal(&server.url, unauthorized()).await;
        assert!(matches!(error, OAuthError::Fetch(FetchError::Url(_))), "{target}: {error}");
    }
    let server = resource_server(|_| redirect("/again")).await;
    let error = refusal(&server.url, unauthorized()).await;
    assert!(matches!(error, OAuthError::Fetch(FetchError::Redirect { .. })), "{error}");
}

#[tokio::test]
async fn a_challenge_cannot_name_any_url() {
    let server = resource_server(|_| empty_response(StatusCode::NOT_FOUND)).await;
    for url in ["http://metadata.example/x", "file:///etc/passwd", "https://u:p@a.example", "x"] {
        let mut challenge = unauthorized();
        challenge.resource_metadata = Some(url.to_owned());
        let error = refusal(&server.url, challenge).await;
        assert!(matches!(error, OAuthError::Url(_)), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_public_server_cannot_lead_into_the_network_of_the_client() {
    for target in ["https://169.254.169.254/latest", "https://[fd00::1]/", "https://localhost/x"] {
        let mut challenge = unauthorized();
        challenge.resource_metadata = Some(target.to_owned());
        let error = refusal("https://8.8.8.8/mcp", challenge).await;
        let OAuthError::Fetch(FetchError::Url(WebUrlError::Private(url))) = &error else {
            panic!("{target}: {error}")
        };
        assert_eq!(url, target);
    }
}

#[tokio::test]
async fn a_token_is_not_sent_to_another_server() {
    let client = client_of("https://a.example/mcp").build().unwrap();
    let authorize = |url: &'static str| {
        let url = Uri::from_static(url);
        let mut headers = HeaderMap::new();
        let authorized = antiphon_mcp::client::Credentials::authorize(
            &client,
            "t",
            &Method::POST,
            &url,
            &mut headers,
        );
        authorized.map(|()| headers.len())
    };
    assert_eq!(authorize("https://a.example:443/other").unwrap(), 1);
    for url in ["https://b.example/mcp", "http://a.example/mcp", "https://a.example:8443/mcp"] {
        let error = authorize(url).unwrap_err().to_string();
        assert!(error.contains("https://a.example/mcp") && error.contains(url), "{error}");
    }
}

#[tokio::test]
async fn without_metadata_the_error_names_what_was_tried() {
    let server = resource_server(|_| empty_response(StatusCode::NOT_FOUND)).await;
    let client = client_of(&format!("{}/mcp", server.url)).legacy_discovery(false).build().unwrap();
    let error = client.token(Some(unauthorized())).await.unwrap_err().to_string();
    assert!(error.contains("/.well-known/oauth-protected-resource/mcp, "), "{error}");
}

#[tokio::test]
async fn the_credentials_of_one_issuer_never_reach_another() {
    let setup = Setup::start().await;
    // The id of the client is the same everywhere, so nothing but the issuer tells its tokens apart.
    let metadata = json!({ "client_id_metadata_document_supported": true });
    setup.issuer.state().metadata = metadata.clone();
    let client = setup.client().client_metadata_url("https://app.example/c.json").build().unwrap();
    setup.call(&client, "whoami").await.unwrap();
    let token = client.token(None).await.unwrap().unwrap();

    // The MCP server at the same URL now trusts another authorization server.
    let other = AuthorizationServer::start().await;
    other.state().metadata = metadata;
    let (resource, issuer) = (setup.server.url.clone(), other.issuer.clone());
    let metadata = resource_server(move |_| {
        let metadata = json!({ "resource": resource, "authorization_servers": [issuer] });
        json_response(StatusCode::OK, &metadata)
    });
    let metadata = metadata.await;
    let mut challenge = unauthorized().rejecting(token.secret().clone());
    challenge.resource_metadata = Some(metadata.url.clone());
    let fresh = client.token(Some(challenge)).await.unwrap().unwrap();
    assert_ne!(fresh, token);

    let [request] = &other.requests("/token")[..] else { panic!("one token request") };
    assert_eq!(request["grant_type"], "authorization_code");
    // The old issuer sees nothing of this.
    assert_eq!(setup.issuer.requests("/token").len(), 1);
}

#[tokio::test]
async fn configured_credentials_are_not_sent_to_another_issuer() {
    let setup = Setup::start().await;
    let registered =
        PreRegisteredClient::new("id").secret(Secret::new("hush")).issuer("https://auth.example");
    let client = setup.client().pre_registered(registered).build().unwrap();
    let error = setup.call(&client, "whoami").await.unwrap_err();
    assert!(matches!(error, OAuthError::OtherIssuer { .. }), "{error}");
    assert!(setup.issuer.requests("/authorize").is_empty());
}

#[tokio::test]
async fn credentials_without_an_issuer_stay_bound_after_a_restart() {
    let setup = Setup::start().await;
    let store = Arc::new(MemoryTokenStore::new());
    let client = || {
        OAuthClient::builder(&setup.server.url, Grant::ClientCredentials)
            .pre_registered(PreRegisteredClient::new("worker").secret(Secret::new("hush")))
            .store(store.clone())
            .build()
            .unwrap()
    };
    setup.call(&client(), "whoami").await.unwrap();

    let other = AuthorizationServer::start().await;
    let (resource, issuer) = (setup.server.url.clone(), other.issuer.clone());
    let metadata = resource_server(move |_| {
        let metadata = json!({ "resource": resource, "authorization_servers": [issuer] });
        json_response(StatusCode::OK, &metadata)
    });
    let metadata = metadata.await;
    let restarted = client();
    let token = restarted.token(None).await.unwrap().unwrap();
    let mut challenge = unauthorized().rejecting(token.secret().clone());
    challenge.resource_metadata = Some(metadata.url.clone());
    let error = restarted.token(Some(challenge)).await.unwrap_err();
    assert!(matches!(error, OAuthError::OtherIssuer { .. }), "{error}");
    assert!(other.requests("/token").is_empty());
}

#[tokio::test]
async fn a_server_that_rejects_every_token_does_not_ask_the_user_forever() {
    let setup = Setup::start().await;
    let client = setup.client().offline_access(false).build().unwrap();
    let mut rejected = None;
    let error = loop {
        let mut challenge = unauthorized();
        challenge.rejected = rejected;
        // Without a refresh token, each token takes an authorization.
        setup.issuer.state().next_error = None;
        match client.token(Some(challenge)).await {
            Ok(token) => rejected = token.map(|token| token.secret().clone()),
            Err(error) => break error,
        }
        assert!(setup.issuer.requests("/token").len() < 50, "the client never gives up");
        setup.issuer.state().forget_refresh_tokens();
    };
    assert!(matches!(error, OAuthError::TooManyAuthorizations(_)), "{error}");
}
