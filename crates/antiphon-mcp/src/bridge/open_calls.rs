//! The calls of clients that an upstream is serving: whom it can ask.
//!
//! A legacy server on stdio calls its client without saying for which request. Then the client is asked whose call began
//! last. A question that arrives within the call itself, as from a modern server, finds its call exactly.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use antiphon::RawJson;
use tokio::sync::mpsc;

use super::elicitations::Elicitations;
use crate::server::{RequestContext, Session};
use crate::types::{ElicitationCompleteParams, LoggingMessageParams, ProgressParams, methods};

tokio::task_local! {
    /// The call that the current task serves; `None` for a request of the bridge itself.
    static CURRENT: Option<OpenCall>;
}

/// How many signals of one call may wait for its client. Further ones are dropped: they are only hints.
const WAITING_SIGNALS: usize = 64;

/// A call that an upstream is serving.
#[derive(Clone)]
pub(super) struct OpenCall {
    pub(super) number: u64,
    pub(super) cx: RequestContext,
    signals: mpsc::Sender<Signal>,
}

/// What an upstream says while it serves a call.
pub(super) enum Signal {
    Progress(ProgressParams),
    Log(LoggingMessageParams),
    ElicitationComplete(String),
}

/// The calls that an upstream is serving.
#[derive(Default)]
pub(super) struct OpenCalls {
    table: Mutex<CallTable>,
    pub(super) elicitations: Elicitations,
    /// The session that the upstream belongs to, once its client can be asked. Weak, because the session owns the
    /// upstream.
    session: OnceLock<Weak<Session>>,
}

#[derive(Default)]
struct CallTable {
    last: u64,
    calls: Vec<OpenCall>,
}

impl OpenCalls {
    /// Runs a call. Signals that arrive in the meantime reach its client.
    pub(super) async fn run<T>(
        self: &Arc<Self>,
        cx: &RequestContext,
        call: impl AsyncFnOnce(OpenCall) -> T,
    ) -> T {
        let (signals, mut waiting) = mpsc::channel(WAITING_SIGNALS);
        let open = self.open(cx.clone(), signals);
        let _guard = CallGuard { calls: self.clone(), number: open.number };
        let mut calling = std::pin::pin!(CURRENT.scope(Some(open.clone()), call(open)));
        loop {
            tokio::select! {
                // The call first, so that an upstream that sends signals without end cannot hold its result back.
                biased;
                outcome = calling.as_mut() => {
                    // What came before the result goes out before it.
                    while let Ok(signal) = waiting.try_recv() {
                        tell(cx, signal).await;
                    }
                    return outcome;
                }
                Some(signal) = waiting.recv() => tell(cx, signal).await,
            }
        }
    }

    /// The call that a question or a log message belongs to.
    pub(super) fn current(&self) -> Option<OpenCall> {
        CURRENT.try_with(Option::clone).unwrap_or_else(|_| self.table().calls.last().cloned())
    }

    /// The session that the upstream belongs to; `None` if clients share it, or before its client can be asked.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        self.session.get()?.upgrade()
    }

    /// Lets the upstream ask the client of a session outside of calls.
    pub(super) fn belong_to(&self, session: &Arc<Session>) {
        let _ = self.session.set(Arc::downgrade(session));
    }

    /// Tells the client of an elicitation that it is complete, before or after the result of its call.
    pub(super) fn complete_elicitation(&self, id: String) {
        let Some(elicitation) = self.elicitations.take(&id) else { return };
        let open = self.table().calls.iter().find(|it| it.number == elicitation.call).cloned();
        match (open, elicitation.session()) {
            (Some(call), _) => call.signal(Signal::ElicitationComplete(id)),
            (None, Some(session)) => drop(tokio::spawn(tell_session(session, id))),
            (None, None) => {}
        }
    }

    fn open(&self, cx: RequestContext, signals: mpsc::Sender<Signal>) -> OpenCall {
        let mut table = self.table();
        table.last += 1;
        let call = OpenCall { number: table.last, cx, signals };
        table.calls.push(call.clone());
        call
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenCall {
    pub(super) fn signal(&self, signal: Signal) {
        let _ = self.signals.try_send(signal);
    }
}

/// Runs a request of the bridge itself. A question that arrives in it has no client.
pub(super) async fn without_call<T>(request: impl Future<Output = T>) -> T {
    CURRENT.scope(None, request).await
}

async fn tell(cx: &RequestContext, signal: Signal) {
    match signal {
        Signal::Progress(it) => cx.progress(it.progress, it.total, it.message.as_deref()).await,
        Signal::Log(it) => cx.log_of(it.logger.as_deref(), it.level, &it.data).await,
        Signal::ElicitationComplete(id) => cx.elicitation_completed(&id).await,
    }
}

async fn tell_session(session: Arc<Session>, elicitation: String) {
    let params = RawJson::encode(&ElicitationCompleteParams::new(elicitation));
    if let Ok(params) = params {
        let _ = session.link().notify(methods::ELICITATION_COMPLETE, params).await;
    }
}

/// Removes a call from the table when it ends.
struct CallGuard {
    calls: Arc<OpenCalls>,
    number: u64,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.calls.table().calls.retain(|call| call.number != self.number);
    }
}
