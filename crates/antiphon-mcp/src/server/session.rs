//! The session of a legacy client: what `initialize` has agreed on, and the way to call the client.
//!
//! A session belongs to one duplex connection, or to one `Mcp-Session-Id` over HTTP.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use antiphon::{BoxFuture, CallError, Context, ErrorObject, Peer, RawJson};

use super::McpServer;
use super::changes::{Change, ChangeFilter, ChangeListener, ChangeListeners, WaitingChanges};
use crate::types::{ClientCapabilities, Implementation, InitializeParams, LoggingLevel, Revision};

/// What `initialize` has agreed on.
///
/// It lives as long as the session, so the client's part stays text: as a tree of values, it could take sixteen times as
/// much memory.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) revision: Revision,
    capabilities: Option<RawJson>,
    client: Option<RawJson>,
}

impl Agreement {
    /// An agreement with a client of which nothing else is known.
    fn of_unknown(revision: Revision) -> Self {
        Self { revision, capabilities: None, client: None }
    }

    /// # Errors
    /// Fails if what the client has sent cannot be encoded again.
    pub(crate) fn new(revision: Revision, params: &InitializeParams) -> Result<Self, ErrorObject> {
        let capabilities = RawJson::encode(&params.capabilities).map_err(ErrorObject::internal)?;
        let client = RawJson::encode(&params.client_info).map_err(ErrorObject::internal)?;
        Ok(Self { revision, capabilities: Some(capabilities), client: Some(client) })
    }

    pub(crate) fn capabilities(&self) -> Option<ClientCapabilities> {
        self.capabilities.as_ref()?.decode().ok()
    }

    pub(crate) fn client(&self) -> Option<Implementation> {
        self.client.as_ref()?.decode().ok()
    }

    /// Whether the client may send batches: only 2025-03-26 has them.
    pub(crate) fn allows_batches(&self) -> bool {
        self.revision == Revision::V2025_03_26
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.capabilities, &self.client].into_iter().flatten();
        texts.map(|text| text.as_bytes().len()).sum()
    }
}

/// The session of one legacy client.
pub(crate) struct Session {
    agreement: OnceLock<Agreement>,
    /// The lowest level of log messages that the client gets.
    log_level: Mutex<LoggingLevel>,
    /// The server of this session, if it has its own.
    own_server: OnceLock<McpServer>,
    link: Box<dyn SessionLink>,
}

/// The way from a server to the client of a session.
pub(crate) trait SessionLink: Send + Sync {
    /// Calls the client. `cx` is the request that the call belongs to, if there is one.
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: RawJson,
        cx: Option<&'a Context>,
    ) -> BoxFuture<'a, Result<RawJson, CallError>>;

    /// Begins to tell the client the changes of the server.
    fn listen(&self, listeners: &ChangeListeners);

    /// Changes what the client is told.
    fn filter(&self, change: &mut dyn FnMut(&mut ChangeFilter));

    /// Tells the client one change that concerns only this session.
    fn tell(&self, change: &Change);

    /// Notifies the client outside of any request.
    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: RawJson,
    ) -> BoxFuture<'a, Result<(), CallError>>;

    /// Waits for the end of the session. `None` if it ends with each request, so that it cannot own anything.
    fn ended(&self) -> Option<BoxFuture<'static, ()>>;
}

impl Session {
    pub(crate) fn new(link: impl SessionLink + 'static) -> Self {
        let log_level = Mutex::new(LoggingLevel::Info);
        let (agreement, own_server) = (OnceLock::new(), OnceLock::new());
        Self { agreement, log_level, own_server, link: Box::new(link) }
    }

    /// Returns what `initialize` has agreed on; `None` before.
    pub(crate) fn agreement(&self) -> Option<&Agreement> {
        self.agreement.get()
    }

    /// Begins the session. Returns false if it has begun already.
    pub(crate) fn begin(&self, agreement: Agreement, listeners: &ChangeListeners) -> bool {
        let is_first = self.agreement.set(agreement).is_ok();
        if is_first {
            self.link.listen(listeners);
        }
        is_first
    }

    /// Begins the session of a single request, of whose client nothing is known.
    pub(crate) fn assume(&self, revision: Revision) {
        let _ = self.agreement.set(Agreement::of_unknown(revision));
    }

    /// Gives the session a server of its own. Returns false if it has one.
    pub(crate) fn set_server(&self, server: McpServer) -> bool {
        self.own_server.set(server).is_ok()
    }

    /// Returns the server of this session, if it has its own.
    pub(crate) fn own_server(&self) -> Option<&McpServer> {
        self.own_server.get()
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    pub(crate) fn log_level(&self) -> LoggingLevel {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn link(&self) -> &dyn SessionLink {
        &*self.link
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("agreement", &self.agreement).finish_non_exhaustive()
    }
}

/// The link of a session that is one duplex connection.
pub(crate) struct PeerLink {
    peer: Peer,
    changes: Arc<WaitingChanges>,
}

impl PeerLink {
    pub(crate) fn new(peer: Peer) -> Self {
        Self { peer, changes: Arc::new(WaitingChanges::new(ChangeFilter::lists())) }
    }
}

impl SessionLink for PeerLink {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: RawJson,
        _: Option<&'a Context>,
    ) -> BoxFuture<'a, Result<RawJson, CallError>> {
        Box::pin(async move { self.peer.call(method, params).await })
    }

    fn listen(&self, listeners: &ChangeListeners) {
        let listener: Arc<dyn ChangeListener> = self.changes.clone();
        listeners.add(Arc::downgrade(&listener));
        let (peer, changes) = (self.peer.clone(), self.changes.clone());
        // Ends with the connection. Not a task of the connection, because a shutdown would wait for it.
        tokio::spawn(async move {
            tokio::select! {
                _ = peer.closed() => {}
                () = tell(&peer, &changes) => {}
            }
        });
    }

    fn filter(&self, change: &mut dyn FnMut(&mut ChangeFilter)) {
        self.changes.filter(change);
    }

    fn tell(&self, change: &Change) {
        self.changes.push(change);
    }

    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: RawJson,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move { self.peer.notify(method, params).await })
    }

    fn ended(&self) -> Option<BoxFuture<'static, ()>> {
        let peer = self.peer.clone();
        Some(Box::pin(async move {
            peer.closed().await;
        }))
    }
}

/// Tells a client the changes of the server, until the client is gone.
async fn tell(peer: &Peer, changes: &WaitingChanges) {
    loop {
        for change in changes.next().await {
            if peer.notify(change.method(), change.params(None)).await.is_err() {
                return;
            }
        }
    }
}

/// The link of requests over HTTP that have no session: the client can be neither called nor told.
pub(crate) struct NoLink;

impl SessionLink for NoLink {
    fn call<'a>(
        &'a self,
        _: &'a str,
        _: RawJson,
        cx: Option<&'a Context>,
    ) -> BoxFuture<'a, Result<RawJson, CallError>> {
        let error = match cx {
            Some(cx) => CallError::CannotCallBack(cx.connection().transport),
            None => CallError::Unsupported("session"),
        };
        Box::pin(std::future::ready(Err(error)))
    }

    fn listen(&self, _: &ChangeListeners) {}

    fn filter(&self, _: &mut dyn FnMut(&mut ChangeFilter)) {}

    fn tell(&self, _: &Change) {}

    fn notify<'a>(&'a self, _: &'a str, _: RawJson) -> BoxFuture<'a, Result<(), CallError>> {
        let error = CallError::Unsupported("session");
        Box::pin(std::future::ready(Err(error)))
    }

    fn ended(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// Adds a resource to the changes that a client is told. Returns false if there are too many.
pub(crate) fn subscribe(session: &Session, uri: &str) -> bool {
    let mut is_added = true;
    session.link().filter(&mut |filter| is_added = filter.subscribe(uri));
    is_added
}

/// Removes a resource from the changes that a client is told.
pub(crate) fn unsubscribe(session: &Session, uri: &str) {
    session.link().filter(&mut |filter| filter.unsubscribe(uri));
}
