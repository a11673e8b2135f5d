//! The steps from a challenge to a token: discovery, registration, grant, storage.
//!
//! One flow runs at a time, and the other requests wait for its result. It runs in a task of its own: a request that is
//! cancelled must not lose a refresh token that the server has just rotated.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Mutex;

use super::authorization_target::AuthorizationTarget;
use super::flow_settings::FlowSettings;
use super::retry_limits::RetryLimits;
use super::saved_credentials::{self, SavedToken, registration_key, token_key};
use super::token_endpoint::IssuedToken;
use super::{AccessToken, OAuthError, ServerMetadata};
use crate::auth::{Challenge, Scopes, Secret};

/// A token that ends sooner is refreshed.
const MIN_REST: Duration = Duration::from_secs(30);

pub(super) struct TokenFlow {
    pub(super) settings: FlowSettings,
    session: Mutex<FlowSession>,
    /// A copy of the current token, for requests that need no flow.
    current: RwLock<CurrentToken>,
}

#[derive(Clone)]
enum CurrentToken {
    NotLoaded,
    None,
    Some(SavedToken),
}

/// What one flow leaves for the next.
#[derive(Default)]
struct FlowSession {
    token: Option<SavedToken>,
    limits: RetryLimits,
}

impl TokenFlow {
    pub(super) fn new(settings: FlowSettings) -> Self {
        let current = RwLock::new(CurrentToken::NotLoaded);
        Self { settings, session: Mutex::default(), current }
    }

    /// Returns the token for a request if no flow is necessary.
    pub(super) fn ready(&self) -> Option<Option<AccessToken>> {
        match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            CurrentToken::NotLoaded => None,
            CurrentToken::None => Some(None),
            CurrentToken::Some(token) => {
                token.lasts(MIN_REST).then(|| Some(self.settings.access_token(token)))
            }
        }
    }

    /// Returns a token of this flow as requests carry it. One that was replaced in the meantime counts as unbound, since
    /// the server refuses it anyway.
    pub(super) fn access_token(&self, token: &str) -> AccessToken {
        match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            CurrentToken::Some(saved) if saved.token.expose() == token => {
                self.settings.access_token(saved)
            }
            _ => AccessToken::bearer(Secret::new(token)),
        }
    }

    /// Runs a flow.
    pub(super) async fn run(
        self: Arc<Self>,
        challenge: Option<Challenge>,
    ) -> Result<Option<AccessToken>, OAuthError> {
        let mut session = self.session.lock().await;
        // Another program with the same store may have refreshed the token.
        let key = token_key(self.settings.server.as_str());
        let saved: Option<SavedToken> =
            saved_credentials::load(&*self.settings.store, &key).await?;
        if let Some(saved) = saved {
            self.settings.registration.bind(&saved.issuer);
            session.token = Some(saved);
        }
        // Without its key, a bound token is useless.
        let has_key = self.settings.proof_key().await?.is_some();
        session.token.take_if(|token| token.is_bound && !has_key);
        let done = match challenge {
            None => self.before_request(&mut session).await,
            Some(challenge) => self.answer(&mut session, challenge).await,
        };
        let current = session.token.clone().map_or(CurrentToken::None, CurrentToken::Some);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        done
    }

    async fn before_request(
        &self,
        session: &mut FlowSession,
    ) -> Result<Option<AccessToken>, OAuthError> {
        let Some(token) = session.token.clone() else { return Ok(None) };
        if token.lasts(MIN_REST) {
            return Ok(Some(self.settings.access_token(&token)));
        }
        let still_valid = token.lasts(Duration::ZERO).then(|| self.settings.access_token(&token));
        match self.refresh_early(session, token).await {
            Ok(None) => Ok(still_valid),
            Err(_) if still_valid.is_some() => Ok(still_valid),
            refreshed => refreshed,
        }
    }

    /// Refreshes a token that is about to expire. The issuer is the one that issued it.
    async fn refresh_early(
        &self,
        session: &mut FlowSession,
        token: SavedToken,
    ) -> Result<Option<AccessToken>, OAuthError> {
        if token.refresh_token.is_none() {
            return Ok(None);
        }
        let FlowSettings { fetch, rule, .. } = &self.settings;
        // Without metadata, the challenge of the MCP server leads to it.
        match ServerMetadata::discover(&token.issuer, fetch, *rule).await {
            Ok(server) => self.refresh(session, token, &server).await,
            Err(_) => Ok(None),
        }
    }

    async fn answer(
        &self,
        session: &mut FlowSession,
        challenge: Challenge,
    ) -> Result<Option<AccessToken>, OAuthError> {
        let is_step_up = challenge.is_step_up();
        if challenge.status == StatusCode::FORBIDDEN && !is_step_up {
            return Ok(None);
        }
        // Another request has obtained a token in the meantime.
        let newer = session
            .token
            .as_ref()
            .filter(|token| Some(&token.token) != challenge.rejected.as_ref());
        if let Some(token) = newer.filter(|token| token.lasts(Duration::ZERO)) {
            return Ok(Some(self.settings.access_token(token)));
        }
        if let Some(token) = &session.token
            && self.has_new_nonce(&challenge).await?
        {
            return Ok(Some(self.settings.access_token(token)));
        }
        let target = AuthorizationTarget::discover(&self.settings, &challenge).await?;
        self.forget_other_issuers(session, &target).await?;
        let scopes = {
            let requested = session.token.as_ref().map(|token| &token.requested);
            target.scopes(&self.settings, &challenge, requested)
        };
        if is_step_up {
            session.limits.step_up(challenge.scope.as_ref().unwrap_or(&scopes))?;
        } else if let Some(token) = session.token.clone()
            && token.requested.contains_all(&scopes)
            && let Some(token) = self.refresh(session, token, &target.server).await?
        {
            return Ok(Some(token));
        }
        session.limits.authorize()?;
        self.authorize(session, &target, scopes).await.map(Some)
    }

    /// Whether the challenge only asks for another nonce in the proof (RFC 9449, section 9).
    async fn has_new_nonce(&self, challenge: &Challenge) -> Result<bool, OAuthError> {
        let key = self.settings.proof_key().await?;
        let nonce = challenge.dpop_nonce.as_deref();
        let is_asked = challenge.error.as_deref() == Some("use_dpop_nonce");
        let is_new = key.zip(nonce).filter(|_| is_asked);
        Ok(is_new.is_some_and(|(key, nonce)| key.set_nonce(&self.settings.server, nonce)))
    }

    /// The MCP server has moved to another authorization server, or to another resource.
    async fn forget_other_issuers(
        &self,
        session: &mut FlowSession,
        target: &AuthorizationTarget,
    ) -> Result<(), OAuthError> {
        let is_other = |token: &mut SavedToken| {
            token.issuer != target.server.issuer || token.resource != target.resource
        };
        if session.token.take_if(is_other).is_some() {
            self.settings.store.remove(&token_key(self.settings.server.as_str())).await?;
        }
        Ok(())
    }

    /// Uses the refresh token. Returns `None` if there is none, or if the server refuses it.
    async fn refresh(
        &self,
        session: &mut FlowSession,
        mut token: SavedToken,
        server: &ServerMetadata,
    ) -> Result<Option<AccessToken>, OAuthError> {
        let Some(refresh_token) = token.refresh_token.clone() else { return Ok(None) };
        let client =
            self.settings.registration.known(&self.settings.registration_context(server)).await?;
        let Some(client) = client.filter(|client| client.client_id == token.client_id) else {
            return Ok(None);
        };
        let form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh_token.expose().to_owned()),
            ("resource", token.resource.clone()),
        ];
        match self.settings.endpoint(server, &client).await?.request(form).await {
            Ok(issued) => {
                let rotated = issued.refresh_token.clone().or(Some(refresh_token));
                self.keep(session, SavedToken { refresh_token: rotated, ..token }, issued)
                    .await
                    .map(Some)
            }
            Err(OAuthError::TokenRefused { .. }) => {
                token.refresh_token = None;
                let key = token_key(self.settings.server.as_str());
                saved_credentials::save(&*self.settings.store, &key, &token).await?;
                session.token = Some(token);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs the grant. A registration that the server has forgotten is replaced once.
    async fn authorize(
        &self,
        session: &mut FlowSession,
        target: &AuthorizationTarget,
        scopes: Scopes,
    ) -> Result<AccessToken, OAuthError> {
        let (client, issued) = match self.settings.attempt(target, &scopes).await {
            Err((error, true)) if error.is_refusal("invalid_client") => {
                self.settings.store.remove(&registration_key(&target.server.issuer)).await?;
                self.settings.attempt(target, &scopes).await.map_err(|(error, _)| error)?
            }
            attempt => attempt.map_err(|(error, _)| error)?,
        };
        let token = SavedToken::new(target, client.client_id, scopes, &issued);
        self.keep(session, token, issued).await
    }

    /// Saves an issued token.
    async fn keep(
        &self,
        session: &mut FlowSession,
        token: SavedToken,
        issued: IssuedToken,
    ) -> Result<AccessToken, OAuthError> {
        let token = SavedToken { token: issued.token.clone(), ..token }.expiring(issued.expires_at);
        session.token = Some(token.clone());
        let key = token_key(self.settings.server.as_str());
        saved_credentials::save(&*self.settings.store, &key, &token).await?;
        Ok(self.settings.access_token(&token))
    }
}
