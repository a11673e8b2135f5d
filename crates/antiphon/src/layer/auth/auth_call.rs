//! One call on its way through [`Auth`]: accepted, rejected, or waiting for a verification.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::Outcome;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::decision::{AuthDecision, INVALID, reject};
use super::session::AuthSession;
use super::{Auth, Credentials, Verifier, login};
use crate::BoxFuture;
use crate::context::Context;
use crate::identity::Identity;
use crate::layer::policy::Policy;
use crate::service::{CallService, IncomingCall, ReadyCall};

impl<S: CallService<IncomingCall>> Policy<S, IncomingCall> for Auth {
    type Future = AuthCall<S>;

    fn call(&self, inner: &mut S, request: IncomingCall) -> AuthCall<S> {
        let (rules, mark) = (&self.0, self.0.mark);
        if rules.is_login(&request) {
            return self.log_in(request);
        }
        match rules.decide(&request.cx) {
            AuthDecision::Known => AuthCall::forward(inner, request),
            AuthDecision::Accept(identity) => {
                AuthCall::forward(inner, with_identity(request, identity, mark))
            }
            AuthDecision::Reject(_) if rules.is_open(&request) => AuthCall::forward(inner, request),
            AuthDecision::Reject(reason) => AuthCall::done(Err(reject(&request.cx, reason))),
            AuthDecision::Verify(verify, credentials) => {
                let session = AuthSession::of(request.cx.connection());
                let identity = Box::pin(verify_once(session, verify, credentials, mark));
                let is_open = rules.is_open(&request);
                let purpose =
                    VerificationPurpose::Call { service: inner.clone(), request, is_open };
                AuthCall::verify(Verification { identity, purpose, mark })
            }
        }
    }
}

impl Auth {
    fn log_in<S: CallService<IncomingCall>>(&self, request: IncomingCall) -> AuthCall<S> {
        let IncomingCall { call, cx } = request;
        let credentials = match login::start(call, &cx) {
            Ok(credentials) => credentials,
            Err(error) => return AuthCall::done(Err(error)),
        };
        let mark = self.0.mark;
        match self.0.decide_credentials(credentials) {
            AuthDecision::Verify(verify, credentials) => {
                let identity = verify(credentials);
                let identity = Box::pin(async move { identity.await.map(Arc::new) });
                let purpose = VerificationPurpose::Login { cx };
                AuthCall::verify(Verification { identity, purpose, mark })
            }
            AuthDecision::Accept(identity) => {
                AuthCall::done(login::finish(&cx, Some(identity), mark))
            }
            AuthDecision::Known | AuthDecision::Reject(_) => {
                AuthCall::done(login::finish(&cx, None, mark))
            }
        }
    }
}

/// Verifies credentials once per session: the other entries of a batch wait for the result.
async fn verify_once(
    session: Arc<AuthSession>,
    verify: Verifier,
    credentials: Credentials,
    mark: u64,
) -> Option<Arc<Identity>> {
    let _turn = session.verifying.lock().await;
    if let Some(identity) = session.result(mark) {
        return identity;
    }
    let identity = verify(credentials).await.map(Arc::new);
    session.set_result(mark, identity.clone());
    identity
}

fn with_identity(request: IncomingCall, identity: Arc<Identity>, mark: u64) -> IncomingCall {
    IncomingCall { cx: request.cx.with_marked(identity, mark), ..request }
}

/// A verification in progress.
struct Verification<S> {
    identity: BoxFuture<'static, Option<Arc<Identity>>>,
    purpose: VerificationPurpose<S>,
    mark: u64,
}

enum VerificationPurpose<S> {
    Call { service: S, request: IncomingCall, is_open: bool },
    Login { cx: Context },
}

pin_project! {
    /// The future of a call that is accepted, rejected, or waiting for a verification.
    pub struct AuthCall<S>
    where
        S: Service<IncomingCall>,
    {
        #[pin]
        call: Option<ReadyCall<S, IncomingCall>>,
        verification: Option<Verification<S>>,
        outcome: Option<Outcome>,
    }
}

impl<S: CallService<IncomingCall>> AuthCall<S> {
    fn forward(inner: &mut S, request: IncomingCall) -> Self {
        let call = Some(ReadyCall::new(inner, request));
        Self { call, verification: None, outcome: None }
    }

    fn verify(verification: Verification<S>) -> Self {
        Self { call: None, verification: Some(verification), outcome: None }
    }

    fn done(outcome: Outcome) -> Self {
        Self { call: None, verification: None, outcome: Some(outcome) }
    }
}

impl<S: CallService<IncomingCall>> Verification<S> {
    /// Continues with the verified identity: with the call to the inner service, or with an outcome.
    fn finish(
        self,
        identity: Option<Arc<Identity>>,
    ) -> Result<ReadyCall<S, IncomingCall>, Outcome> {
        match (self.purpose, identity) {
            (VerificationPurpose::Login { cx }, identity) => {
                Err(login::finish(&cx, identity, self.mark))
            }
            (VerificationPurpose::Call { mut service, request, .. }, Some(identity)) => {
                let request = with_identity(request, identity, self.mark);
                Ok(ReadyCall::new(&mut service, request))
            }
            (VerificationPurpose::Call { mut service, request, is_open: true }, None) => {
                Ok(ReadyCall::new(&mut service, request))
            }
            (VerificationPurpose::Call { request, .. }, None) => {
                Err(Err(reject(&request.cx, INVALID)))
            }
        }
    }
}

impl<S: CallService<IncomingCall>> Future for AuthCall<S> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Outcome> {
        let mut this = self.project();
        if let Some(outcome) = this.outcome.take() {
            return Poll::Ready(outcome);
        }
        if let Some(verification) = this.verification {
            let identity = ready!(verification.identity.as_mut().poll(poller));
            if let Some(verification) = this.verification.take() {
                match verification.finish(identity) {
                    Ok(call) => this.call.set(Some(call)),
                    Err(outcome) => return Poll::Ready(outcome),
                }
            }
        }
        match this.call.as_pin_mut() {
            Some(call) => call.poll(poller),
            None => Poll::Pending,
        }
    }
}
