//! The keys of an authorization server at a URL.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::http::{Response, StatusCode};
use antiphon_mcp::auth::SigningKey;
use antiphon_mcp::auth::server::{JwtVerifier, RemoteKeys};
use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::http::{HttpServer, empty_response, json_response, serve};
use crate::support::keys::{ISSUER, claims, jwks, signing_key};
use crate::support::mcp_server::{self, McpServer, call_with};

/// A server of keys, which counts its requests.
struct KeyServer {
    document: Arc<Mutex<Option<Value>>>,
    requests: Arc<AtomicUsize>,
    http: HttpServer,
}

impl KeyServer {
    async fn start(document: Option<Value>) -> Self {
        let document = Arc::new(Mutex::new(document));
        let requests = Arc::new(AtomicUsize::new(0));
        let (shared, count) = (document.clone(), requests.clone());
        let http = serve(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            match &*shared.lock().unwrap() {
                Some(document) => json_response(StatusCode::OK, document),
                None => empty_response(StatusCode::INTERNAL_SERVER_ERROR),
            }
        });
        Self { document, requests, http: http.await }
    }

    fn set(&self, document: Option<Value>) {
        *self.document.lock().unwrap() = document;
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn keys(&self) -> RemoteKeys {
        RemoteKeys::new(&self.http.url).unwrap()
    }
}

async fn start(keys: RemoteKeys) -> McpServer {
    mcp_server::start(|url| JwtVerifier::new(ISSUER, url, keys), |auth| auth, &[ISSUER]).await
}

async fn status(server: &McpServer, key: &SigningKey) -> StatusCode {
    let token = key.sign(&claims(&server.url, &json!({}))).unwrap();
    call_with(&server.url, "whoami", &token).await.status()
}

#[tokio::test]
async fn tokens_with_unknown_keys_cause_no_storm_of_requests() {
    let key = signing_key("1");
    let keys = KeyServer::start(Some(jwks(&[&key]))).await;
    let server = start(keys.keys()).await;
    let stranger = signing_key("2");
    for _ in 0..3 {
        let statuses = join_all((0..20).map(|_| status(&server, &stranger))).await;
        assert!(statuses.iter().all(|status| *status == StatusCode::UNAUTHORIZED), "{statuses:?}");
    }
    assert_eq!(status(&server, &key).await, StatusCode::OK);
    assert_eq!(keys.requests(), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it() {
    let (old, new) = (signing_key("1"), signing_key("2"));
    let keys = KeyServer::start(Some(jwks(&[&old]))).await;
    let server = start(keys.keys().min_interval(Duration::ZERO)).await;
    assert_eq!(status(&server, &old).await, StatusCode::OK);
    keys.set(Some(jwks(&[&new])));
    assert_eq!(status(&server, &new).await, StatusCode::OK);
    assert_eq!(status(&server, &old).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn old_keys_stay_in_use_while_the_server_fails() {
    let key = signing_key("1");
    let keys = KeyServer::start(Some(jwks(&[&key]))).await;
    let each_time = keys.keys().min_interval(Duration::ZERO).max_age(Duration::ZERO);
    let server = start(each_time).await;
    assert_eq!(status(&server, &key).await, StatusCode::OK);
    keys.set(None);
    assert_eq!(status(&server, &key).await, StatusCode::OK);
    assert_eq!(keys.requests(), 2);
}

#[tokio::test]
async fn without_keys_no_token_is_judged() {
    let key = signing_key("1");
    let keys = KeyServer::start(None).await;
    let server = start(keys.keys().min_interval(Duration::ZERO)).await;
    let response = call_with(&server.url, "whoami", &key.sign(&json!({})).unwrap()).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    keys.set(Some(jwks(&[&key])));
    assert_eq!(status(&server, &key).await, StatusCode::OK);
}

#[tokio::test]
async fn a_huge_document_is_not_read() {
    let key = signing_key("1");
    let http = serve(|_| Response::new(Bytes::from(vec![b' '; 1 << 20]))).await;
    let server = start(RemoteKeys::new(&http.url).unwrap()).await;
    assert_eq!(status(&server, &key).await, StatusCode::SERVICE_UNAVAILABLE);
}
