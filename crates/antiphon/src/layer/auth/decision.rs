//! Decides whether a call is accepted, without running a verifier.

use std::sync::Arc;

use antiphon_core::ErrorObject;

use super::session::AuthSession;
use super::{AuthRules, Credentials, Verifier};
use crate::connection::Connection;
use crate::context::Context;
use crate::identity::Identity;
use crate::service::IncomingCall;

pub(super) const INVALID: &str = "the credentials are not valid";

/// The decision about one call.
pub(super) enum AuthDecision {
    /// Accepted. The context already contains the identity.
    Known,
    /// Accepted, as this identity.
    Accept(Arc<Identity>),
    /// Not decided. The credentials must be verified.
    Verify(Verifier, Credentials),
    /// Rejected, for this reason.
    Reject(&'static str),
}

impl AuthRules {
    pub(super) fn decide(&self, cx: &Context) -> AuthDecision {
        // The layer that added an identity to the call marks it, and so does the policy that attached it to the
        // request. An identity from the application has no mark.
        let mark = cx
            .get_marked::<Identity>()
            .map(|(who, mark)| if mark == 0 { who.mark() } else { mark });
        if mark.is_some_and(|mark| mark == 0 || mark == self.mark) {
            return AuthDecision::Known;
        }
        self.decide_header(cx.connection())
    }

    /// Decides by the headers of the request, or of the upgrade that opened the WebSocket.
    pub(super) fn decide_header(&self, connection: &Connection) -> AuthDecision {
        let session = AuthSession::get(connection);
        match session.and_then(|session| session.result(self.mark)) {
            Some(Some(identity)) => return AuthDecision::Accept(identity),
            Some(None) => return AuthDecision::Reject(INVALID),
            None => {}
        }
        match Credentials::of_request(connection.headers()) {
            Ok(credentials) => self.decide_credentials(credentials),
            Err(reason) => AuthDecision::Reject(reason),
        }
    }

    /// Compares all known credentials, so that the time does not reveal which one matches.
    pub(super) fn decide_credentials(&self, credentials: Credentials) -> AuthDecision {
        let found = self.known.iter().fold(None, |found, (known, identity)| {
            if credentials.is(known) { Some(identity) } else { found }
        });
        match (found, &self.verify) {
            (Some(identity), _) => AuthDecision::Accept(identity.clone()),
            (None, Some(verify)) => AuthDecision::Verify(verify.clone(), credentials),
            (None, None) => AuthDecision::Reject(INVALID),
        }
    }

    pub(super) fn is_open(&self, request: &IncomingCall) -> bool {
        self.open.match_any(request.call.method.as_str())
    }

    pub(super) fn is_login(&self, request: &IncomingCall) -> bool {
        self.login.as_deref().is_some_and(|login| login == request.call.method.as_str())
    }
}

/// Returns the error of a rejected call, and counts the call.
pub(super) fn reject(cx: &Context, reason: &str) -> ErrorObject {
    AuthSession::of(cx.connection()).add_refused_call();
    ErrorObject::unauthorized().with_data(reason)
}
