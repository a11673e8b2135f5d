//! What a verified token allows.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::InsufficientScope;
use super::scope_hierarchy::ScopeHierarchy;
use crate::auth::Scopes;

/// What a verified token allows. Cheap to clone.
///
/// [`Authorization`](super::Authorization) inserts it in the extensions of each request, so handlers find it in
/// [`Context::extensions`](antiphon::Context::extensions).
///
/// ```
/// use antiphon_mcp::auth::server::Access;
///
/// let access = Access::new().with_subject("ada").with_scopes(["files:read"]);
/// assert!(access.has_scopes(&["files:read"]));
/// assert!(access.require(&["files:write"]).is_err());
/// ```
#[derive(Clone, Default)]
pub struct Access {
    grant: Arc<GrantedAccess>,
    /// The scopes that a handler of this request required in vain.
    refused: Arc<Mutex<Option<InsufficientScope>>>,
}

#[derive(Clone, Default)]
struct GrantedAccess {
    subject: Option<String>,
    client_id: Option<String>,
    issuer: Option<String>,
    scopes: Scopes,
    /// The granted scopes, and those that they imply.
    effective: Scopes,
    audience: Vec<String>,
    expires_at: Option<SystemTime>,
    claims: Map<String, Value>,
}

impl Access {
    /// Creates an access without scopes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the user, or the client that acts on its own behalf.
    #[must_use]
    pub fn with_subject(self, subject: impl Into<String>) -> Self {
        self.change(|grant| grant.subject = Some(subject.into()))
    }

    /// Sets the client that the token was issued to.
    #[must_use]
    pub fn with_client_id(self, client: impl Into<String>) -> Self {
        self.change(|grant| grant.client_id = Some(client.into()))
    }

    /// Sets the authorization server.
    #[must_use]
    pub fn with_issuer(self, issuer: impl Into<String>) -> Self {
        self.change(|grant| grant.issuer = Some(issuer.into()))
    }

    /// Sets the granted scopes.
    #[must_use]
    pub fn with_scopes(self, scopes: impl Into<Scopes>) -> Self {
        self.change(|grant| {
            grant.scopes = scopes.into();
            grant.effective = grant.scopes.clone();
        })
    }

    /// Sets the servers that the token is for.
    #[must_use]
    pub fn with_audience(self, audience: Vec<String>) -> Self {
        self.change(|grant| grant.audience = audience)
    }

    /// Sets when the token expires.
    #[must_use]
    pub fn with_expires_at(self, time: SystemTime) -> Self {
        self.change(|grant| grant.expires_at = Some(time))
    }

    /// Sets all claims of the token.
    #[must_use]
    pub fn with_claims(self, claims: Map<String, Value>) -> Self {
        self.change(|grant| grant.claims = claims)
    }

    fn change(mut self, change: impl FnOnce(&mut GrantedAccess)) -> Self {
        change(Arc::make_mut(&mut self.grant));
        self
    }

    /// Returns the user, or the client that acts on its own behalf.
    pub fn subject(&self) -> Option<&str> {
        self.grant.subject.as_deref()
    }

    /// Returns the client that the token was issued to.
    pub fn client_id(&self) -> Option<&str> {
        self.grant.client_id.as_deref()
    }

    /// Returns the authorization server.
    pub fn issuer(&self) -> Option<&str> {
        self.grant.issuer.as_deref()
    }

    /// Returns the granted scopes.
    pub fn scopes(&self) -> &Scopes {
        &self.grant.scopes
    }

    /// Returns the servers that the token is for.
    pub fn audience(&self) -> &[String] {
        &self.grant.audience
    }

    /// Returns when the token expires.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.grant.expires_at
    }

    /// Returns all claims of the token.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.grant.claims
    }

    /// Whether the token grants these scopes, directly or by the hierarchy of the server.
    pub fn has_scopes(&self, required: &[&str]) -> bool {
        self.grant.effective.contains_all(&required.into())
    }

    /// Requires these scopes for the current request. Name all scopes of the operation in one call, so that the client
    /// can obtain them at once.
    ///
    /// If it fails, the HTTP response gets status 403 and a challenge for these scopes, whatever the handler does next,
    /// unless the response is an event stream that has already started. To only ask, use
    /// [`has_scopes`](Self::has_scopes).
    ///
    /// # Errors
    /// Fails if the token does not grant all of them.
    pub fn require(&self, required: &[&str]) -> Result<(), InsufficientScope> {
        if self.has_scopes(required) {
            return Ok(());
        }
        let refused = InsufficientScope { required: required.into() };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused.clone());
        Err(refused)
    }

    /// Returns this access for one request.
    pub(super) fn for_request(&self) -> Self {
        Self { grant: self.grant.clone(), refused: Arc::default() }
    }

    /// Adds the scopes that the granted scopes imply.
    pub(super) fn within(self, hierarchy: &ScopeHierarchy) -> Self {
        if hierarchy.is_empty() {
            return self;
        }
        self.change(|grant| grant.effective = hierarchy.expand(&grant.scopes))
    }

    /// Takes the scopes that a handler required in vain.
    pub(super) fn take_refused(&self) -> Option<InsufficientScope> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("subject", &self.grant.subject)
            .field("client_id", &self.grant.client_id)
            .field("scopes", &self.grant.scopes)
            .finish_non_exhaustive()
    }
}
