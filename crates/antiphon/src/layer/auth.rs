//! Who may call?
//!
//! A call without credentials is answered -32013 and never reaches a handler, on any transport; a
//! notification without them is dropped. Credentials come with the HTTP request or the one that became
//! a WebSocket, in its `Authorization` header. Where there are no headers, the application attaches an
//! [`Identity`] to the connection ([`Server::on_connect`](crate::Server::on_connect)), or the other side
//! logs in by a method. An HTTP request of which every call is refused is a 401.
//!
//! Who was let in by one [`Auth`] is not known to another: each believes itself and the application.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Poller, Poll, ready};

use antiphon_core::{ErrorObject, Outcome, Params, RawJson};
use http::header::AUTHORIZATION;
use pin_project_lite::pin_project;
use serde::Deserialize;
use tower_layer::Layer;
use tower_service::Service;

pub use super::credentials::{Credentials, Identity};
use super::filter::Patterns;
use super::pass::IncomingCall;
use super::passage::Passage;
use super::session::Session;
use super::{BoxError, Wrapped, always_ready};
use crate::BoxFuture;
use crate::connection::Connection;
use crate::context::Context;
use crate::params;

/// Lets in who shows credentials that are known, and says who it is.
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
/// A token that only somebody else can judge:
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
pub struct Auth(Arc<Rules>);

#[derive(Clone, Default)]
struct Rules {
    /// Another one with every change, so that two with the same one let in the same. Who lets nobody
    /// in may have 0.
    mark: u64,
    known: Vec<(Credentials, Arc<Identity>)>,
    verify: Option<Verify>,
    open: Patterns,
    login: Option<Box<str>>,
}

static MARKS: AtomicU64 = AtomicU64::new(1);

type Verify = Arc<dyn Fn(Credentials) -> BoxFuture<'static, Option<Identity>> + Send + Sync>;

impl Auth {
    /// Lets nobody in yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in who shows this token, as this identity.
    #[must_use]
    pub fn bearer(self, token: impl Into<String>, identity: impl Into<Identity>) -> Self {
        self.known(Credentials::Bearer(token.into()), identity.into())
    }

    /// Lets in who shows this name and password.
    #[must_use]
    pub fn basic(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        let (user, password) = (user.into(), password.into());
        let identity = Identity::new(&*user);
        self.known(Credentials::Basic { user, password }, identity)
    }

    fn known(mut self, credentials: Credentials, identity: Identity) -> Self {
        self.rules().known.push((credentials, Arc::new(identity)));
        self
    }

    /// The rules, to be changed.
    fn rules(&mut self) -> &mut Rules {
        let rules = Arc::make_mut(&mut self.0);
        rules.mark = MARKS.fetch_add(1, Ordering::Relaxed);
        rules
    }

    /// Asks this about credentials that are not known, once a connection or HTTP request, whatever the
    /// answer is: who was refused may log in, or connect again. Each login is asked about.
    #[must_use]
    pub fn verify<F, Fut>(mut self, verify: F) -> Self
    where
        F: Fn(Credentials) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Identity>> + Send + 'static,
    {
        let verify: Verify = Arc::new(move |credentials| Box::pin(verify(credentials)));
        self.rules().verify = Some(verify);
        self
    }

    /// Lets everybody call these methods: names, or beginnings of names and a `*`.
    #[must_use]
    pub fn open<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.rules().open.extend(patterns);
        self
    }

    /// Serves a method by which a connection logs in: `["token"]`, `{"token": ..}` or `{"user": ..,
    /// "password": ..}`. It answers the name of the identity, which from then on is that of the
    /// connection. Where each message is a request of its own, over HTTP, there is nothing to log
    /// in to.
    ///
    /// After 16 logins that failed, none on this connection is judged any more. That makes guessing
    /// slow, not dear: see [the order of layers](super) for what charges it.
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

impl Connection {
    /// What an HTTP request of so many calls is told when every one of them was refused.
    #[cfg(feature = "http")]
    #[inline]
    pub(crate) fn challenge(&self, calls: usize) -> Option<&'static str> {
        let refused = self.session.get()?.refused();
        let challenge = "Bearer, Basic realm=\"antiphon\", charset=\"UTF-8\"";
        (refused > 0 && refused >= calls).then_some(challenge)
    }
}

/// Whether a call may pass.
enum Verdict {
    /// The context says who it is.
    Told,
    As(Arc<Identity>),
    Ask(Verify, Credentials),
    Unknown(&'static str),
}

impl Rules {
    fn judge(&self, cx: &Context) -> Verdict {
        if cx.get_by::<Identity>().is_some_and(|(_, by)| by == 0 || by == self.mark) {
            return Verdict::Told;
        }
        let session = cx.connection().session.get();
        match session.and_then(|session| session.verdict(self.mark)) {
            Some(Some(identity)) => return Verdict::As(identity),
            Some(None) => return Verdict::Unknown(NOT_VALID),
            None => {}
        }
        // Who stands in front of us may have judged another one of several.
        let mut shown = cx.connection().headers().get_all(AUTHORIZATION).iter();
        let (first, second) = (shown.next(), shown.next());
        if second.is_some() {
            return Verdict::Unknown("there are several `Authorization` headers; send one");
        }
        match first.map(Credentials::of_header) {
            None => Verdict::Unknown("credentials are missing"),
            Some(None) => Verdict::Unknown("credentials of this kind are not known"),
            Some(Some(credentials)) => self.judge_credentials(credentials),
        }
    }

    /// All of the known ones are compared, so that the time does not tell which one fits.
    fn judge_credentials(&self, credentials: Credentials) -> Verdict {
        let found = self.known.iter().fold(None, |found, (known, identity)| {
            if credentials.is(known) { Some(identity) } else { found }
        });
        match (found, &self.verify) {
            (Some(identity), _) => Verdict::As(identity.clone()),
            (None, Some(verify)) => Verdict::Ask(verify.clone(), credentials),
            (None, None) => Verdict::Unknown(NOT_VALID),
        }
    }

    fn is_open(&self, served: &IncomingCall) -> bool {
        self.open.match_any(served.call.method.as_str())
    }

    fn is_login(&self, served: &IncomingCall) -> bool {
        self.login.as_deref().is_some_and(|login| login == served.call.method.as_str())
    }
}

const NOT_VALID: &str = "the credentials are not valid";
const TOO_MANY: &str = "too many logins have failed on this connection; connect again";

/// Refuses a call, and keeps count of it.
fn refusal(cx: &Context, reason: &str) -> ErrorObject {
    Session::of(cx.connection()).refuse();
    ErrorObject::unauthorized().with_data(reason)
}

impl<S> Layer<S> for Auth {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { policy: self.clone(), inner }
    }
}

impl<S> Service<IncomingCall> for Wrapped<Auth, S>
where
    S: Service<IncomingCall, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
{
    type Response = RawJson;
    type Error = ErrorObject;
    type Future = Authenticated<S>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), ErrorObject>> {
        always_ready(poller)
    }

    fn call(&mut self, served: IncomingCall) -> Authenticated<S> {
        let rules = &self.policy.0;
        if rules.is_login(&served) {
            return self.log_in(served);
        }
        match rules.judge(&served.cx) {
            Verdict::Told => self.pass(served),
            Verdict::As(identity) => {
                let mark = rules.mark;
                self.pass(told(served, identity, mark))
            }
            Verdict::Unknown(_) if rules.is_open(&served) => self.pass(served),
            Verdict::Unknown(reason) => Authenticated::over(Err(refusal(&served.cx, reason))),
            Verdict::Ask(verify, credentials) => {
                let session = Session::of(served.cx.connection()).clone();
                let verdict = Box::pin(ask_once(session, verify, credentials, rules.mark));
                let open = rules.is_open(&served);
                self.wait(verdict, Asking::Call { service: self.inner.clone(), served, open })
            }
        }
    }
}

impl<S> Wrapped<Auth, S>
where
    S: Service<IncomingCall, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
{
    fn pass(&mut self, served: IncomingCall) -> Authenticated<S> {
        let passage = Some(Passage::enter(&mut self.inner, served));
        Authenticated { passage, asking: None, over: None, mark: 0 }
    }

    fn wait(&self, verdict: Asked, asking: Asking<S>) -> Authenticated<S> {
        let mark = self.policy.0.mark;
        Authenticated { passage: None, asking: Some((verdict, asking)), over: None, mark }
    }

    fn log_in(&self, IncomingCall { call, cx }: IncomingCall) -> Authenticated<S> {
        if cx.peer().is_err() {
            let reason = "there is no connection to log in to; set the `Authorization` header";
            return Authenticated::over(Err(refusal(&cx, reason)));
        }
        let credentials = match shown(call.params) {
            Ok(credentials) => credentials,
            Err(error) => return Authenticated::over(Err(error)),
        };
        if !Session::of(cx.connection()).may_log_in() {
            return Authenticated::over(Err(refusal(&cx, TOO_MANY)));
        }
        let mark = self.policy.0.mark;
        match self.policy.0.judge_credentials(credentials) {
            Verdict::Ask(verify, credentials) => {
                let verdict = verify(credentials);
                let verdict = Box::pin(async move { verdict.await.map(Arc::new) });
                self.wait(verdict, Asking::Login { cx })
            }
            Verdict::As(identity) => Authenticated::over(logged_in(&cx, Some(identity), mark)),
            Verdict::Told | Verdict::Unknown(_) => Authenticated::over(logged_in(&cx, None, mark)),
        }
    }
}

/// The entries of a batch wait for one answer.
async fn ask_once(
    session: Arc<Session>,
    verify: Verify,
    credentials: Credentials,
    mark: u64,
) -> Option<Arc<Identity>> {
    let _turn = session.asking.lock().await;
    if let Some(verdict) = session.verdict(mark) {
        return verdict;
    }
    let identity = verify(credentials).await.map(Arc::new);
    session.enter(mark, identity.clone());
    identity
}

fn told(served: IncomingCall, identity: Arc<Identity>, mark: u64) -> IncomingCall {
    IncomingCall { cx: served.cx.with_by(identity, mark), ..served }
}

fn logged_in(cx: &Context, identity: Option<Arc<Identity>>, mark: u64) -> Outcome {
    let Some(identity) = identity else { return Err(refusal(cx, NOT_VALID)) };
    Session::of(cx.connection()).logged_in(mark, &identity);
    RawJson::encode(identity.name()).map_err(|_| ErrorObject::internal_error())
}

/// What the params of a login show.
fn shown(params: Option<Params>) -> Result<Credentials, ErrorObject> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Login {
        #[serde(default)]
        token: Option<String>,
        #[serde(default)]
        user: Option<String>,
        #[serde(default)]
        password: Option<String>,
    }
    match params::read(params)? {
        Login { token: Some(token), user: None, password: None } => Ok(Credentials::Bearer(token)),
        Login { token: None, user: Some(user), password: Some(password) } => {
            Ok(Credentials::Basic { user, password })
        }
        _ => {
            Err(ErrorObject::invalid_params().with_data("log in by a token, or user and password"))
        }
    }
}

type Asked = BoxFuture<'static, Option<Arc<Identity>>>;

/// Who waits to be let in.
enum Asking<S> {
    Call { service: S, served: IncomingCall, open: bool },
    Login { cx: Context },
}

pin_project! {
    /// A call that is let in, refused, or asked about.
    pub struct Authenticated<S>
    where
        S: Service<IncomingCall>,
    {
        #[pin]
        passage: Option<Passage<S, IncomingCall>>,
        asking: Option<(Asked, Asking<S>)>,
        over: Option<Outcome>,
        // Who asks.
        mark: u64,
    }
}

impl<S: Service<IncomingCall>> Authenticated<S> {
    fn over(outcome: Outcome) -> Self {
        Self { passage: None, asking: None, over: Some(outcome), mark: 0 }
    }
}

impl<S> Future for Authenticated<S>
where
    S: Service<IncomingCall, Response = RawJson> + Clone,
    S::Error: Into<BoxError> + 'static,
{
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Outcome> {
        let mut this = self.project();
        if let Some(outcome) = this.over.take() {
            return Poll::Ready(outcome);
        }
        if let Some((verdict, _)) = this.asking {
            let identity = ready!(verdict.as_mut().poll(poller));
            match (this.asking.take(), identity) {
                (Some((_, Asking::Login { cx })), identity) => {
                    return Poll::Ready(logged_in(&cx, identity, *this.mark));
                }
                (Some((_, Asking::Call { mut service, served, .. })), Some(identity)) => {
                    let served = told(served, identity, *this.mark);
                    this.passage.set(Some(Passage::enter(&mut service, served)));
                }
                (Some((_, Asking::Call { mut service, served, open: true })), None) => {
                    this.passage.set(Some(Passage::enter(&mut service, served)));
                }
                (Some((_, Asking::Call { served, .. })), None) => {
                    return Poll::Ready(Err(refusal(&served.cx, NOT_VALID)));
                }
                (None, _) => {}
            }
        }
        match this.passage.as_pin_mut() {
            Some(passage) => passage.poll(poller),
            None => Poll::Pending,
        }
    }
}
