//! The service behind [`Authorization`](super::Authorization).

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use antiphon::layer::BoxError;
use antiphon::transport::http::HttpBody;
use antiphon::{BoxFuture, Identity};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use super::authorization::AuthorizationRules;
use super::{Access, refusal};

/// The service that requires access tokens, around another service.
#[derive(Clone)]
pub struct AuthorizationService<S> {
    rules: Arc<AuthorizationRules>,
    inner: S,
}

impl<S> AuthorizationService<S> {
    pub(super) fn new(rules: Arc<AuthorizationRules>, inner: S) -> Self {
        Self { rules, inner }
    }
}

impl<S, B, R> Service<Request<B>> for AuthorizationService<S>
where
    S: Service<Request<B>, Response = Response<R>, Error: Send, Future: Send>
        + Clone
        + Send
        + 'static,
    B: Send + 'static,
    R: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<HttpBody>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<HttpBody>, S::Error>>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(poller)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let rules = self.rules.clone();
        // The service that is ready is used, and its clone takes its place.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            if let Some(response) = rules.foreign(&head) {
                return Ok(response);
            }
            if rules.resource.is_metadata_path(head.uri.path()) {
                return Ok(refusal::document(&head.method, &rules.resource));
            }
            if rules.is_open(&head) {
                let response = inner.call(Request::from_parts(head, body)).await?;
                return Ok(response.map(HttpBody::new));
            }
            let access = match rules.authorize(&head).await {
                Ok(access) => access,
                Err(response) => return Ok(response),
            };
            head.headers.remove(AUTHORIZATION);
            insert(&mut head.extensions, &access);
            let response = inner.call(Request::from_parts(head, body)).await?;
            Ok(step_up(&rules, &access, response.map(HttpBody::new)))
        })
    }
}

fn insert(extensions: &mut http::Extensions, access: &Access) {
    if let Some(name) = access.subject().or(access.client_id()) {
        extensions.insert(Identity::new(name).with(access.clone()));
    }
    extensions.insert(access.clone());
}

/// Adds the challenge to a response whose handler required more scopes. The JSON-RPC error stays its body.
fn step_up(
    rules: &AuthorizationRules,
    access: &Access,
    mut response: Response<HttpBody>,
) -> Response<HttpBody> {
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"));
    if is_stream {
        return response;
    }
    if let Some(refused) = access.take_refused() {
        *response.status_mut() = StatusCode::FORBIDDEN;
        refusal::insert_challenge(response.headers_mut(), refused.challenge(&rules.resource));
    }
    response
}

impl<S> fmt::Debug for AuthorizationService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationService")
            .field("resource", &self.rules.resource.uri())
            .finish_non_exhaustive()
    }
}
