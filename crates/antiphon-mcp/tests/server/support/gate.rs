//! Gates that hold handlers until a test lets them go on, and counters of what they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_mcp::{RequestContext, ServerTool};
use tokio::sync::{Notify, Semaphore};

use super::within;

/// Holds handlers until it is opened. Counts those that have begun and those that were dropped or have ended.
#[derive(Clone)]
pub(crate) struct Gate(Arc<GateState>);

struct GateState {
    permits: Semaphore,
    begun: AtomicUsize,
    ended: AtomicUsize,
    changed: Notify,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(GateState {
            permits: Semaphore::new(0),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            changed: Notify::new(),
        }))
    }

    /// A tool that waits at this gate.
    pub(crate) fn tool(&self, name: &str) -> ServerTool {
        let gate = self.clone();
        ServerTool::new(name, move |(): (), _cx: RequestContext| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                "passed"
            }
        })
    }

    /// Counts a handler until the returned value is dropped.
    pub(crate) fn visit(&self) -> Visit {
        Visit::new(self.clone())
    }

    /// Waits at the gate.
    pub(crate) async fn pass(&self) {
        let _visit = self.visit();
        self.0.permits.acquire().await.unwrap().forget();
    }

    /// Lets this many handlers pass.
    pub(crate) fn open(&self, handlers: usize) {
        self.0.permits.add_permits(handlers);
    }

    /// Waits until this many handlers have begun.
    pub(crate) async fn begun(&self, handlers: usize) {
        self.until(|state| state.begun.load(Ordering::SeqCst) >= handlers).await;
    }

    /// Waits until this many handlers have ended or were dropped.
    pub(crate) async fn ended(&self, handlers: usize) {
        self.until(|state| state.ended.load(Ordering::SeqCst) >= handlers).await;
    }

    /// How many handlers have begun.
    pub(crate) fn count(&self) -> usize {
        self.0.begun.load(Ordering::SeqCst)
    }

    async fn until(&self, is_so: impl Fn(&GateState) -> bool) {
        within(async {
            loop {
                let changed = self.0.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if is_so(&self.0) {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }
}

/// A handler that runs.
pub(crate) struct Visit(Gate);

impl Visit {
    fn new(gate: Gate) -> Self {
        gate.0.begun.fetch_add(1, Ordering::SeqCst);
        gate.0.changed.notify_waiters();
        Self(gate)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::SeqCst);
        self.0.0.changed.notify_waiters();
    }
}
