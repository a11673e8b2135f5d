//! One session of a legacy client over HTTP: its running calls, the calls to its client, and its streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon::transport::http::EventSender;
use antiphon::{
    BoxFuture, CallError, CancellationToken, Connection, Context, ErrorObject, Identity, RawJson,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::endpoint_limits::EndpointLimits;
use super::event_log::{EventLog, UnknownEvent};
use super::incoming::Incoming;
use super::options::StreamableHttp;
use super::outgoing_calls::OutgoingCalls;
use crate::server::{
    Agreement, Change, ChangeFilter, ChangeListener, ChangeListeners, Session, SessionLink,
};

pub(crate) struct HttpSession {
    id: String,
    /// Who has begun the session. Nobody else can use it.
    principal: Principal,
    session: Arc<Session>,
    shared: Arc<SharedState>,
    /// The running calls by the text of their ids.
    calls: Mutex<HashMap<Box<str>, CancellationToken>>,
    max_calls: usize,
    /// The calls of all sessions.
    all_calls: Arc<Semaphore>,
    last_used: Mutex<Instant>,
}

/// Who sends a request, as far as a layer around HTTP knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Principal(Option<Arc<str>>);

impl Principal {
    pub(super) fn of(request: &Connection) -> Self {
        Self(request.extensions.get::<Identity>().map(|identity| identity.name().into()))
    }
}

/// The part of a session that its link and its streams share.
pub(super) struct SharedState {
    outgoing: OutgoingCalls,
    pub(super) log: EventLog,
    filter: Mutex<ChangeFilter>,
    ended: CancellationToken,
}

impl HttpSession {
    pub(super) fn new(
        id: String,
        principal: Principal,
        options: &StreamableHttp,
        limits: &EndpointLimits,
    ) -> Self {
        let shared = Arc::new(SharedState {
            outgoing: OutgoingCalls::default(),
            log: EventLog::new(
                options.event_log_events,
                options.event_log_bytes,
                limits.log.clone(),
            ),
            filter: Mutex::new(ChangeFilter::lists()),
            ended: CancellationToken::new(),
        });
        Self {
            id,
            principal,
            session: Arc::new(Session::new(HttpLink(shared.clone()))),
            shared,
            calls: Mutex::default(),
            max_calls: options.session_calls.max(1),
            all_calls: limits.calls.clone(),
            last_used: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Whether its client may send batches.
    pub(super) fn allows_batches(&self) -> bool {
        self.session.agreement().is_some_and(Agreement::allows_batches)
    }

    /// The memory of what its client has sent with `initialize`.
    pub(super) fn handshake_bytes(&self) -> usize {
        self.session.agreement().map_or(0, Agreement::bytes)
    }

    pub(super) fn shared(&self) -> &Arc<SharedState> {
        &self.shared
    }

    /// Marks the session as used now.
    pub(super) fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long the session has been idle; `None` while a call runs or a stream is read.
    pub(super) fn idle(&self) -> Option<Duration> {
        if !self.calls().is_empty() || self.shared.log.has_reader() {
            return None;
        }
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        Some(last_used.elapsed())
    }

    /// Notes a call that runs.
    ///
    /// # Errors
    /// Fails if a call with this id runs already, or if too many calls run.
    pub(super) fn begin_call(self: &Arc<Self>, id: &str) -> Result<RunningCall, ErrorObject> {
        let mut calls = self.calls();
        // Checked under the lock that ends the calls: nobody could cancel a call that begins after its session has ended.
        if self.shared.ended.is_cancelled() {
            return Err(ErrorObject::invalid_request().with_data("the session has ended"));
        }
        if calls.contains_key(id) {
            let reason = "a request with this id is running";
            return Err(ErrorObject::invalid_request().with_data(reason));
        }
        if calls.len() >= self.max_calls {
            return Err(ErrorObject::server_busy("too many calls of this session are running"));
        }
        let Ok(permit) = self.all_calls.clone().try_acquire_owned() else {
            return Err(ErrorObject::server_busy("too many calls of all sessions are running"));
        };
        let cancelled = CancellationToken::new();
        calls.insert(id.into(), cancelled.clone());
        drop(calls);
        Ok(RunningCall { session: self.clone(), id: id.into(), cancelled, _permit: permit })
    }

    /// Cancels the call with this id, if it runs.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(cancelled) = self.calls().get(id) {
            cancelled.cancel();
        }
    }

    /// Delivers a response of the client. Returns false if it is not a valid one.
    pub(super) fn deliver(&self, response: &Incoming<'_>) -> bool {
        self.shared.outgoing.deliver(response)
    }

    /// Opens the session's own stream, or resumes the stream of an event.
    pub(super) fn read(
        &self,
        last_event: Option<&str>,
        reader: EventSender,
    ) -> Result<(), UnknownEvent> {
        match last_event {
            Some(last_event) => self.shared.log.resume(last_event, reader),
            None => {
                self.shared.log.attach(reader);
                Ok(())
            }
        }
    }

    /// Ends the session: cancels its calls and closes its streams.
    pub(super) fn end(&self) {
        self.shared.ended.cancel();
        self.calls().values().for_each(CancellationToken::cancel);
        self.shared.outgoing.end();
        self.shared.log.end();
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Box<str>, CancellationToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that runs, until it is dropped.
pub(super) struct RunningCall {
    session: Arc<HttpSession>,
    id: Box<str>,
    cancelled: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl RunningCall {
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.session.touch();
        self.session.calls().remove(&self.id);
    }
}

/// The way from the server to the client of a session.
struct HttpLink(Arc<SharedState>);

impl SessionLink for HttpLink {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: RawJson,
        cx: Option<&'a Context>,
    ) -> BoxFuture<'a, Result<RawJson, CallError>> {
        let send = async move |message| match cx {
            Some(cx) => cx.send_message(message).await,
            None => {
                self.0.log.send(message);
                Ok(())
            }
        };
        Box::pin(async move { self.0.outgoing.call(method, &params, send).await })
    }

    fn listen(&self, listeners: &ChangeListeners) {
        let listener: Arc<dyn ChangeListener> = self.0.clone();
        listeners.add(Arc::downgrade(&listener));
    }

    fn filter(&self, change: &mut dyn FnMut(&mut ChangeFilter)) {
        change(&mut self.0.filter.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn tell(&self, change: &Change) {
        self.0.log.tell(change);
    }

    fn notify<'a>(
        &'a self,
        method: &'a str,
        params: RawJson,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        self.0.log.notify(method, &params);
        Box::pin(std::future::ready(Ok(())))
    }

    fn ended(&self) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(self.0.ended.clone().cancelled_owned()))
    }
}

impl ChangeListener for SharedState {
    fn changed(&self, change: &Change) {
        if self.wants(change) {
            self.log.tell(change);
        }
    }

    fn wants(&self, change: &Change) -> bool {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner).wants(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_begins_after_the_end() {
        let options = StreamableHttp::new();
        let limits = EndpointLimits::new(&options);
        let session = HttpSession::new("s".to_owned(), Principal::default(), &options, &limits);
        let session = Arc::new(session);
        let running = session.begin_call("1").unwrap();
        session.end();
        assert!(running.cancelled.is_cancelled());
        // A request that has found the session before its end.
        assert!(session.begin_call("2").is_err());
    }
}
