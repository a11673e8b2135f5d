//! Authorization in the browser of the user, with a redirect to this machine (RFC 8252, section 7.3).

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use antiphon::BoxFuture;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use url::Url;

use super::loopback_page::{self, ExpectedRedirect};
use super::{AuthorizeUser, PendingAuthorization, UserError};

type ShowUrl = dyn Fn(&str) + Send + Sync;

/// The maximum number of connections at a time. Browsers open some in advance.
const MAX_CONNECTIONS: usize = 8;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Receives the redirect at `http://127.0.0.1:PORT/callback`, once per authorization.
///
/// It opens no browser: the application shows the URL, or opens it. By default, it uses any free port and waits for five
/// minutes. Requests that do not carry the state of the authorization are answered with an error and ignored.
#[derive(Clone)]
pub struct LoopbackRedirect {
    show: Arc<ShowUrl>,
    port: u16,
    wait: Duration,
}

struct PendingRedirect {
    show: Arc<ShowUrl>,
    listener: TcpListener,
    redirect_uri: String,
    wait: Duration,
}

impl LoopbackRedirect {
    /// Calls this function with the URL that the user must open.
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { show: Arc::new(show), port: 0, wait: Duration::from_secs(300) }
    }

    /// Listens on this port. Some authorization servers accept only the port that the client is registered with.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets how long to wait for the user.
    #[must_use]
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = limit;
        self
    }

    async fn listen(&self) -> io::Result<PendingRedirect> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await?;
        let redirect_uri = format!("http://{}/callback", listener.local_addr()?);
        Ok(PendingRedirect { show: self.show.clone(), listener, redirect_uri, wait: self.wait })
    }
}

impl AuthorizeUser for LoopbackRedirect {
    fn prepare(&self) -> BoxFuture<'_, Result<Box<dyn PendingAuthorization>, UserError>> {
        Box::pin(async {
            let pending = self.listen().await.map_err(|source| UserError::Listen {
                address: format!("127.0.0.1:{}", self.port),
                source,
            })?;
            Ok(Box::new(pending) as Box<dyn PendingAuthorization>)
        })
    }
}

impl PendingRedirect {
    async fn receive(self, url: String) -> Result<String, UserError> {
        let expected = ExpectedRedirect { path: "/callback", state: state(&url) };
        (self.show)(&url);
        let seconds = self.wait.as_secs();
        timeout(self.wait, self.accept(expected)).await.map_err(|_| UserError::Timeout(seconds))
    }

    /// Returns the query of the first request that carries the state.
    async fn accept(&self, expected: ExpectedRedirect) -> String {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) => connections.push(loopback_page::serve(stream, &expected)),
                        // Out of file descriptors, for example: the next attempt fails too, if it is at once.
                        Err(_) => sleep(ACCEPT_PAUSE).await,
                    }
                }
                Some(query) = connections.next() => {
                    if let Some(query) = query {
                        return query;
                    }
                }
            }
        }
    }
}

/// Returns the state of an authorization URL: the last one, because the client appends it to what the server has
/// published.
fn state(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let states = url.query_pairs().filter(|(name, _)| name == "state");
    states.last().map(|(_, state)| state.into_owned())
}

impl PendingAuthorization for PendingRedirect {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn authorize(self: Box<Self>, url: String) -> BoxFuture<'static, Result<String, UserError>> {
        Box::pin((*self).receive(url))
    }
}

impl fmt::Debug for LoopbackRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackRedirect").field("port", &self.port).finish_non_exhaustive()
    }
}
