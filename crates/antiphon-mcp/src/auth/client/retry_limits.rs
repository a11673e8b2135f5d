//! Limits on authorizations, so that a server that is never satisfied does not ask the user forever.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::OAuthError;
use crate::auth::Scopes;

/// The maximum number of authorizations within [`AUTHORIZATION_WINDOW`].
const MAX_AUTHORIZATIONS: usize = 5;
const AUTHORIZATION_WINDOW: Duration = Duration::from_secs(60);

/// How long a set of scopes is not requested again, after a server required it in vain.
const STEP_UP_WINDOW: Duration = Duration::from_secs(600);

/// The maximum number of sets that are remembered.
const MAX_STEP_UPS: usize = 64;

/// The recent authorizations of a client.
#[derive(Debug, Default)]
pub(super) struct RetryLimits {
    authorizations: VecDeque<Instant>,
    step_ups: HashMap<Scopes, Instant>,
}

impl RetryLimits {
    /// Counts an authorization.
    pub(super) fn authorize(&mut self) -> Result<(), OAuthError> {
        self.authorizations.retain(|time| time.elapsed() < AUTHORIZATION_WINDOW);
        if self.authorizations.len() >= MAX_AUTHORIZATIONS {
            return Err(OAuthError::TooManyAuthorizations(MAX_AUTHORIZATIONS));
        }
        self.authorizations.push_back(Instant::now());
        Ok(())
    }

    /// Counts a step-up to these scopes. The same scopes can be requested once: a server that requires them again is not
    /// satisfied by them.
    pub(super) fn step_up(&mut self, required: &Scopes) -> Result<(), OAuthError> {
        self.step_ups.retain(|_, time| time.elapsed() < STEP_UP_WINDOW);
        if self.step_ups.contains_key(required) || self.step_ups.len() >= MAX_STEP_UPS {
            return Err(OAuthError::StepUpFailed { scopes: required.clone() });
        }
        self.step_ups.insert(required.clone(), Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn authorizations_are_limited_for_a_while() {
        let mut limits = RetryLimits::default();
        for _ in 0..MAX_AUTHORIZATIONS {
            limits.authorize().unwrap();
        }
        assert!(limits.authorize().is_err());
        tokio::time::advance(AUTHORIZATION_WINDOW).await;
        assert!(limits.authorize().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_scopes_are_requested_once() {
        let mut limits = RetryLimits::default();
        limits.step_up(&["a"].into()).unwrap();
        limits.step_up(&["a", "b"].into()).unwrap();
        assert!(limits.step_up(&["b", "a"].into()).is_err());
        tokio::time::advance(STEP_UP_WINDOW).await;
        assert!(limits.step_up(&["a"].into()).is_ok());
    }
}
