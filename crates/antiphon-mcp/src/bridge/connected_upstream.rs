//! An upstream with its connection, which is opened again when it has broken.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use antiphon::{CallError, CloseReason};
use tokio::sync::{Mutex, watch};

use super::BridgeError;
use super::names::NameRules;
use super::open_calls::{OpenCalls, without_call};
use super::upstream::Upstream;
use crate::client::{McpClient, McpError};
use crate::server::Session;
use crate::types::{Implementation, LoggingLevel, ServerCapabilities, methods};

/// How long a legacy upstream may take to change its log level before a call is sent without that.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How many resources of one upstream are followed at once: each one is a request at the upstream.
const MAX_FOLLOWED: usize = 1_000;

/// An upstream with its connection, which is opened again when it has broken.
pub(super) struct ConnectedUpstream {
    /// Its place among the upstreams of the bridge.
    number: usize,
    upstream: Upstream,
    pub(super) calls: Arc<OpenCalls>,
    connection: Mutex<Option<Connection>>,
    /// How many attempts to connect again have failed.
    failures: AtomicU64,
    /// The number of the newest connection that has broken.
    broken: AtomicU64,
    /// The number of the newest connection.
    newest: watch::Sender<u64>,
    /// The least severe log messages that a legacy upstream sends on a connection.
    log_level: Mutex<Option<(u64, LoggingLevel)>>,
    /// The resources whose updates are told.
    followed: StdMutex<BTreeSet<String>>,
    is_modern: bool,
    capabilities: ServerCapabilities,
    info: Option<Implementation>,
    instructions: Option<String>,
}

/// One of the connections that an upstream has had.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) client: McpClient,
}

impl ConnectedUpstream {
    pub(super) async fn connect(
        number: usize,
        upstream: Upstream,
    ) -> Result<Arc<Self>, BridgeError> {
        let calls = Arc::new(OpenCalls::default());
        let client = upstream.connect(&calls).await.map_err(|source| upstream.failed(source))?;
        Ok(Arc::new(Self {
            number,
            calls,
            is_modern: client.revision().is_modern(),
            capabilities: client.server_capabilities(),
            info: client.server_info(),
            instructions: client.instructions(),
            connection: Mutex::new(Some(Connection { number: 1, client })),
            failures: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            newest: watch::Sender::new(1),
            log_level: Mutex::default(),
            followed: StdMutex::default(),
            upstream,
        }))
    }

    /// The connection. A broken one is replaced. Calls that have waited for an attempt to connect fail with it: if each
    /// of them tried on its own, the last one would wait for all.
    pub(super) async fn connection(&self) -> Result<Connection, McpError> {
        let failures = self.failures.load(Ordering::Acquire);
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|it| self.is_open(it)) {
            return Ok(open.clone());
        }
        *connection = None;
        if self.failures.load(Ordering::Acquire) != failures {
            let reason = CloseReason::from("the connection is lost, and connecting again failed");
            return Err(McpError::Call(CallError::Closed(reason)));
        }
        tracing::info!(upstream = self.endpoint(), "connecting again to an upstream");
        let connected = self.upstream.connect(&self.calls).await;
        let client = connected.inspect_err(|_| {
            self.failures.fetch_add(1, Ordering::Release);
        })?;
        let number = *self.newest.borrow() + 1;
        let opened = Connection { number, client };
        *connection = Some(opened.clone());
        self.newest.send_replace(number);
        Ok(opened)
    }

    /// The connection, if it is open.
    pub(super) async fn open_connection(&self) -> Option<Connection> {
        let mut connection = self.connection.lock().await;
        connection.take_if(|it| !self.is_open(it));
        connection.clone()
    }

    fn is_open(&self, connection: &Connection) -> bool {
        connection.number > self.broken.load(Ordering::Acquire) && !connection.client.is_closed()
    }

    /// Waits until there is a newer connection.
    pub(super) async fn connected_after(&self, number: u64) {
        // The sender lives as long as this.
        let _ = self.newest.subscribe().wait_for(|newest| *newest > number).await;
    }

    /// Runs a call. If the connection breaks, the next call connects again. Nothing is repeated: the call may have been
    /// carried out.
    pub(super) async fn run<T>(
        &self,
        call: impl AsyncFnOnce(Connection) -> Result<T, McpError>,
    ) -> Result<T, McpError> {
        let connection = self.connection().await?;
        let number = connection.number;
        let outcome = call(connection).await;
        if let Err(error) = &outcome
            && error.is_disconnect()
        {
            tracing::warn!(upstream = self.endpoint(), %error, "the connection to an upstream broke");
            self.broken.fetch_max(number, Ordering::AcqRel);
        }
        outcome
    }

    /// Lets a legacy upstream send log messages of this level. A modern one reads the level of each call.
    pub(super) async fn log_at(&self, connection: &Connection, level: LoggingLevel) {
        let Connection { number, client } = connection;
        if client.revision().is_modern() || client.server_capabilities().logging.is_none() {
            return;
        }
        let mut known = self.log_level.lock().await;
        let is_set = known.is_some_and(|(at, known)| at == *number && known <= level);
        if is_set {
            return;
        }
        // An upstream that refuses it, or does not answer, is not asked again on this connection.
        *known = Some((*number, level));
        let timeout = self.upstream.timeout.min(LOG_LEVEL_TIMEOUT);
        let set = tokio::time::timeout(timeout, without_call(client.set_level(level))).await;
        if !matches!(set, Ok(Ok(()))) {
            tracing::debug!(?set, "an upstream has not changed its log level");
        }
    }

    /// Tells a legacy upstream that the client of its session has roots, or other ones. A modern one asks in its calls.
    pub(super) async fn roots_changed(&self, session: Weak<Session>) {
        let Some(session) = session.upgrade().filter(|_| !self.is_modern) else { return };
        self.calls.belong_to(&session);
        drop(session);
        let Some(Connection { client, .. }) = self.open_connection().await else { return };
        if let Err(error) = self.within(client.notify(methods::ROOTS_CHANGED, ())).await {
            tracing::debug!(%error, "an upstream has not learned that roots have changed");
        }
    }

    /// Takes note that the updates of a resource are told. Returns false if they are told already, or if there are too
    /// many.
    pub(super) fn begin_following(&self, uri: &str) -> bool {
        let mut followed = self.followed();
        if followed.len() >= MAX_FOLLOWED {
            let upstream = self.endpoint();
            tracing::warn!(upstream, "the updates of too many resources are told already");
            return false;
        }
        followed.insert(uri.to_owned())
    }

    /// Takes note that the updates of a resource are not told any more, unless they are still wanted.
    pub(super) fn end_following(&self, uri: &str, is_wanted: impl FnOnce() -> bool) -> bool {
        let mut followed = self.followed();
        let is_ended = !is_wanted();
        if is_ended {
            followed.remove(uri);
        }
        is_ended
    }

    fn followed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits the time of a request of the bridge itself.
    pub(super) async fn within<T>(
        &self,
        response: impl Future<Output = Result<T, McpError>>,
    ) -> Result<T, McpError> {
        self.upstream.within(response).await
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn is_modern(&self) -> bool {
        self.is_modern
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.upstream.endpoint
    }

    pub(super) fn names(&self) -> &NameRules {
        &self.upstream.names
    }

    pub(super) fn capabilities(&self) -> ServerCapabilities {
        self.capabilities.clone()
    }

    pub(super) fn server_info(&self) -> Option<Implementation> {
        self.info.clone()
    }

    pub(super) fn instructions(&self) -> Option<String> {
        self.instructions.clone()
    }

    pub(super) fn unusable(&self, source: McpError) -> BridgeError {
        self.upstream.failed(source)
    }
}
