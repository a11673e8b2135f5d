//! The calls of clients that an upstream is serving: whom it can ask.
//!
//! A legacy server on stdio calls its client without saying for which request. Then the client is asked whose call began
//! last. A question that arrives within the call itself, as from a modern server, finds its call exactly.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::server::RequestContext;
use crate::types::{LoggingMessageParams, ProgressParams};

tokio::task_local! {
    /// The call that the current task serves.
    static CURRENT: OpenCall;
}

/// How many signals of one call may wait for its client. Further ones are dropped: they are only hints.
const WAITING_SIGNALS: usize = 64;

/// A call that an upstream is serving.
#[derive(Clone)]
pub(super) struct OpenCall {
    number: u64,
    pub(super) cx: RequestContext,
    signals: mpsc::Sender<Signal>,
}

/// What an upstream says while it serves a call.
pub(super) enum Signal {
    Progress(ProgressParams),
    Log(LoggingMessageParams),
}

/// The calls that an upstream is serving.
#[derive(Default)]
pub(super) struct OpenCalls(Mutex<CallTable>);

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
        call: impl AsyncFnOnce(SignalSender) -> T,
    ) -> T {
        let (signals, mut waiting) = mpsc::channel(WAITING_SIGNALS);
        let open = self.open(cx.clone(), signals.clone());
        let _guard = CallGuard { calls: self.clone(), number: open.number };
        let mut calling = std::pin::pin!(CURRENT.scope(open, call(SignalSender(signals))));
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
        let current = CURRENT.try_with(OpenCall::clone).ok();
        current.or_else(|| self.table().calls.last().cloned())
    }

    fn open(&self, cx: RequestContext, signals: mpsc::Sender<Signal>) -> OpenCall {
        let mut table = self.table();
        table.last += 1;
        let call = OpenCall { number: table.last, cx, signals };
        table.calls.push(call.clone());
        call
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenCall {
    pub(super) fn signal(&self, signal: Signal) {
        let _ = self.signals.try_send(signal);
    }
}

/// Passes the progress of a call on.
pub(super) struct SignalSender(mpsc::Sender<Signal>);

impl SignalSender {
    pub(super) fn progress(&self, progress: ProgressParams) {
        let _ = self.0.try_send(Signal::Progress(progress));
    }
}

async fn tell(cx: &RequestContext, signal: Signal) {
    match signal {
        Signal::Progress(it) => cx.progress(it.progress, it.total, it.message.as_deref()).await,
        Signal::Log(it) => cx.log_of(it.logger.as_deref(), it.level, &it.data).await,
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
