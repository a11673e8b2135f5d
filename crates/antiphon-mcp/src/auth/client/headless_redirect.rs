//! Authorization without a user, for tests.

use antiphon::BoxFuture;
use bytes::Bytes;
use http::Request;

use super::{AuthorizeUser, PendingAuthorization, UserError};
use crate::auth::HttpFetch;
use crate::auth::http_fetch::location;
use crate::auth::web_url::UrlRule;

/// Fetches the authorization URL itself, and takes the query of the redirect. For tests with an authorization server
/// that does not ask the user.
#[derive(Clone, Debug)]
pub struct HeadlessRedirect {
    redirect_uri: String,
    fetch: HttpFetch,
}

impl HeadlessRedirect {
    /// Uses this redirect URI. Nothing listens there.
    pub fn new(redirect_uri: impl Into<String>) -> Self {
        Self { redirect_uri: redirect_uri.into(), fetch: HttpFetch::new() }
    }

    /// Sets the HTTP settings.
    #[must_use]
    pub fn fetch(mut self, fetch: HttpFetch) -> Self {
        self.fetch = fetch;
        self
    }

    async fn follow(self, url: String) -> Result<String, UserError> {
        let other = |error: &dyn std::fmt::Display| UserError::Other(error.to_string());
        let rule = UrlRule::Local;
        let url = rule.parse(&url).map_err(|error| other(&error))?;
        let response = self.fetch.send(&url, rule, Request::new(Bytes::new())).await;
        let response = response.map_err(|error| other(&error))?;
        let target = location(&url, &response).filter(|_| response.status().is_redirection());
        let target = target.filter(|target| target.as_str().starts_with(&self.redirect_uri));
        let target = target.ok_or_else(|| {
            UserError::Other(format!(
                "the authorization server answered with status {} and no redirect to {}",
                response.status(),
                self.redirect_uri
            ))
        })?;
        Ok(target.query().unwrap_or_default().to_owned())
    }
}

impl AuthorizeUser for HeadlessRedirect {
    fn prepare(&self) -> BoxFuture<'_, Result<Box<dyn PendingAuthorization>, UserError>> {
        let pending: Box<dyn PendingAuthorization> = Box::new(self.clone());
        Box::pin(async { Ok(pending) })
    }
}

impl PendingAuthorization for HeadlessRedirect {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn authorize(self: Box<Self>, url: String) -> BoxFuture<'static, Result<String, UserError>> {
        Box::pin((*self).follow(url))
    }
}
