//! Authentication of callers: [`Auth`].
//!
//! Invariant: a call without valid credentials never reaches a handler, on any transport.

mod auth_call;
mod credentials;
mod decision;
mod login;
mod session;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use credentials::Credentials;

#[cfg(feature = "http")]
use decision::AuthDecision;

use super::pattern::Patterns;
use crate::BoxFuture;
#[cfg(feature = "http")]
use crate::connection::Connection;
use crate::identity::Identity;

/// Requires valid credentials, and adds the [`Identity`] of the caller to each call.
///
/// A call without valid credentials is rejected with -32013. A notification without them is dropped. If
/// every call of an HTTP request is rejected, the status is 401.
///
/// The credentials are in the `Authorization` header of the HTTP request, or of the request that opened the
/// WebSocket. On a transport without headers, the application attaches an [`Identity`] to the connection
/// ([`Server::on_connect`](crate::Server::on_connect)), or the client calls the
/// [`login`](Self::login) method.
///
/// Each `Auth` accepts only the identities that it verified itself or that the application attached. It
/// ignores an identity that another `Auth` accepted.
///
/// ```
/// use antiphon::layer::Auth;
/// use antiphon::{Context, Handler, Router};
///
/// let router = Router::new().method("whoami", |(): (), cx: Context| async move {
///     Ok(cx.identity().map(|identity| identity.name().to_owned()))
/// });
/// let service = router.layer(
///     Auth::new().bearer("s3cret", "ada").basic("bob", "pa55word").login("rpc.login"),
/// );
/// ```
///
/// Tokens that another service verifies:
///
/// ```
/// # use antiphon::layer::{Auth, Credentials};
/// # use antiphon::Identity;
/// # async fn look_up(token: &str) -> Option<String> { None }
/// let auth = Auth::new().verify(|credentials| async move {
///     let Credentials::Bearer(token) = credentials else { return None };
///     look_up(&token).await.map(Identity::from)
/// });
/// ```
#[derive(Clone, Default)]
pub struct Auth(Arc<AuthRules>);

#[derive(Clone, Default)]
struct AuthRules {
    /// Marks the identities that these rules accepted. It changes with the rules, so equal marks mean
    /// equal rules. Rules that accept nothing have 0.
    mark: u64,
    known: Vec<(Credentials, Arc<Identity>)>,
    verify: Option<Verifier>,
    open: Patterns,
    login: Option<Box<str>>,
}

static NEXT_MARK: AtomicU64 = AtomicU64::new(1);

type Verifier = Arc<dyn Fn(Credentials) -> BoxFuture<'static, Option<Identity>> + Send + Sync>;

impl Auth {
    /// Rejects every call until credentials are added, except calls of a connection to which the
    /// application has attached an [`Identity`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts this bearer token, as this identity.
    #[must_use]
    pub fn bearer(self, token: impl Into<String>, identity: impl Into<Identity>) -> Self {
        self.known(Credentials::Bearer(token.into()), identity.into())
    }

    /// Accepts this user name and password. The user name is the name of the identity.
    #[must_use]
    pub fn basic(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        let (user, password) = (user.into(), password.into());
        let identity = Identity::new(&*user);
        self.known(Credentials::Basic { user, password }, identity)
    }

    /// Returns the identity of a request with credentials of [`bearer`](Self::bearer) or [`basic`](Self::basic), for an
    /// HTTP policy that decides before the body is read. Any other `Auth` ignores this identity.
    #[cfg(feature = "http")]
    pub(crate) fn accept_header(&self, request: &Connection) -> Option<Identity> {
        match self.0.decide_header(request) {
            AuthDecision::Accept(identity) => Some(identity.accepted_by(self.0.mark)),
            AuthDecision::Verify(..) | AuthDecision::Known | AuthDecision::Reject(_) => None,
        }
    }

    fn known(mut self, credentials: Credentials, identity: Identity) -> Self {
        self.rules().known.push((credentials, Arc::new(identity)));
        self
    }

    /// Gives the rules a new mark, and returns them mutably.
    fn rules(&mut self) -> &mut AuthRules {
        let rules = Arc::make_mut(&mut self.0);
        rules.mark = NEXT_MARK.fetch_add(1, Ordering::Relaxed);
        rules
    }

    /// Calls this function for credentials that [`bearer`](Self::bearer) and [`basic`](Self::basic) do not
    /// list. A second call replaces the function.
    ///
    /// The credentials of a header are verified once per connection or HTTP request, whether they are
    /// accepted or not. A client that was rejected can log in or connect again. Each login is verified.
    #[must_use]
    pub fn verify<F, Fut>(mut self, verify: F) -> Self
    where
        F: Fn(Credentials) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Identity>> + Send + 'static,
    {
        let verify: Verifier = Arc::new(move |credentials| Box::pin(verify(credentials)));
        self.rules().verify = Some(verify);
        self
    }

    /// Allows these methods without credentials. A pattern is the name of a method, or a prefix followed
    /// by `*`.
    #[must_use]
    pub fn allow_anonymous<P: Into<String>>(
        mut self,
        patterns: impl IntoIterator<Item = P>,
    ) -> Self {
        self.rules().open.extend(patterns);
        self
    }

    /// Adds a login method with this name. Its params are `["token"]`, `{"token": ..}` or `{"user": ..,
    /// "password": ..}`. A second call replaces the name.
    ///
    /// It returns the name of the identity, which then applies to the whole connection. Over HTTP it
    /// fails, because each message is a separate HTTP request.
    ///
    /// After 16 failed logins, every further login on the connection is rejected. This only slows an
    /// attacker down: an attacker can connect again. See [the order of layers](super) for a rate limit.
    #[must_use]
    pub fn login(mut self, method: &str) -> Self {
        self.rules().login = Some(method.into());
        self
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("login", &self.0.login).finish_non_exhaustive()
    }
}
