//! A client that obtains more scopes during use.

use antiphon::http::StatusCode;
use antiphon_mcp::auth::client::{OAuthError, TokenSource as _};
use antiphon_mcp::auth::{Challenge, Scopes};

use crate::client_flow::Setup;

#[tokio::test]
async fn a_step_up_requests_the_old_and_the_new_scopes() {
    let setup = Setup::start().await;
    let client = setup.client().build().unwrap();
    assert_eq!(setup.call(&client, "whoami").await.unwrap(), StatusCode::OK);
    assert_eq!(setup.call(&client, "write").await.unwrap(), StatusCode::OK);
    let scopes: Vec<Scopes> = setup
        .issuer
        .requests("/authorize")
        .iter()
        .map(|request| Scopes::parse(&request["scope"]))
        .collect();
    assert_eq!(
        scopes,
        [
            Scopes::from(["files:read", "offline_access"]),
            Scopes::from(["files:read", "files:write", "offline_access"]),
        ]
    );
    assert_eq!(setup.issuer.requests("/register").len(), 1);
}

#[tokio::test]
async fn a_server_that_is_never_satisfied_is_given_up() {
    let setup = Setup::start().await;
    let client = setup.client().build().unwrap();
    setup.call(&client, "whoami").await.unwrap();
    let mut challenge = Challenge::new(StatusCode::FORBIDDEN);
    challenge.error = Some("insufficient_scope".to_owned());
    challenge.scope = Some(Scopes::from(["files:admin"]));
    let token = client.token(None).await.unwrap().unwrap();
    let token = client
        .token(Some(challenge.clone().rejecting(token.secret().clone())))
        .await
        .unwrap()
        .unwrap();
    let error = client.token(Some(challenge.rejecting(token.secret().clone()))).await.unwrap_err();
    assert!(matches!(error, OAuthError::StepUpFailed { .. }), "{error}");
    assert_eq!(setup.issuer.requests("/authorize").len(), 2);
}

#[tokio::test]
async fn other_reasons_for_status_403_need_no_new_token() {
    let setup = Setup::start().await;
    let client = setup.client().build().unwrap();
    let challenge = Challenge::new(StatusCode::FORBIDDEN);
    assert_eq!(client.token(Some(challenge)).await.unwrap(), None);
    assert!(setup.issuer.requests("/authorize").is_empty());
}
