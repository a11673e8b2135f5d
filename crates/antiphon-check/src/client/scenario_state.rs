//! The state that the connections of a scenario share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::codec::ClientWire;
use super::record::ScenarioRecord;
use super::scenario::ServerScript;

/// The total time that calls are held although no other joins them.
const HOLD_BUDGET: Duration = Duration::from_millis(2000);

/// A running scenario.
#[derive(Debug)]
pub(super) struct ScenarioState {
    pub(super) script: ServerScript,
    pub(super) wire: ClientWire,
    /// The result of ordinary responses; without one, the params of the call.
    pub(super) result: Option<String>,
    record: Mutex<ScenarioRecord>,
    /// The rest of that time, in milliseconds. A client that makes one call after the other must not
    /// time out because of it.
    hold_budget: AtomicU64,
    is_over: watch::Sender<bool>,
}

impl ScenarioState {
    pub(super) fn new(script: ServerScript, wire: ClientWire, result: Option<String>) -> Self {
        let hold_budget = AtomicU64::new(HOLD_BUDGET.as_millis() as u64);
        let (record, is_over) = (Mutex::default(), watch::Sender::new(false));
        Self { script, wire, result, record, hold_budget, is_over }
    }

    /// Ends the scenario: the client process ended.
    pub(super) fn end(&self) {
        self.is_over.send_replace(true);
    }

    pub(super) async fn is_over(self: Arc<Self>) {
        let _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    pub(super) fn may_hold(&self) -> bool {
        self.hold_budget.load(Ordering::Relaxed) > 0
    }

    pub(super) fn record_hold(&self, time: Duration) {
        let time = time.as_millis() as u64;
        let _ = self.hold_budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(time))
        });
    }

    pub(super) fn record(&self) -> MutexGuard<'_, ScenarioRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
