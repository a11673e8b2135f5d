//! The lifecycle of a server: which messages it serves before `initialize` and after `shutdown`.
//!
//! This module handles only the methods of the lifecycle. It never touches the connection: it reports when the server
//! must end, and with which status.
//!
//! Invariant: a message changes the phase before any later message is handled. `exit` is handled on arrival, before the
//! messages in the queue, and changes no phase: a `shutdown` in the queue is still handled.

use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon::ErrorObject;
use tokio::sync::watch;

use crate::error::server_not_initialized;

/// The phases of a server, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `initialize` has not arrived, or has failed.
    Created,
    /// `initialize` is being answered.
    Initializing,
    Running,
    /// `shutdown` has arrived.
    ShutDown,
}

/// The lifecycle of one connection.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: Mutex<Phase>,
    /// Whether the server has ended.
    ended: watch::Sender<bool>,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self { phase: Mutex::new(Phase::Created), ended: watch::Sender::new(false) }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a request, or returns the error for it. `initialize` and `shutdown` change the phase.
    pub(crate) fn admit_request(&self, method: &str) -> Result<(), ErrorObject> {
        let mut phase = self.phase();
        match (*phase, method) {
            (Phase::Created, "initialize") => *phase = Phase::Initializing,
            (Phase::ShutDown, _) => return Err(invalid("the server is shutting down")),
            (_, "initialize") => return Err(invalid("`initialize` was already requested")),
            (Phase::Created | Phase::Initializing, _) => return Err(server_not_initialized()),
            (Phase::Running, "shutdown") => *phase = Phase::ShutDown,
            (Phase::Running, _) => {}
        }
        Ok(())
    }

    /// Returns whether a notification is handled. All others are dropped, as the protocol requires.
    pub(crate) fn admits_notification(&self, method: &str) -> bool {
        method == "exit" || *self.phase() == Phase::Running
    }

    /// Records the outcome of `initialize`. The client may repeat it after a failure.
    pub(crate) fn initialized(&self, is_ok: bool) {
        let mut phase = self.phase();
        if *phase == Phase::Initializing {
            *phase = if is_ok { Phase::Running } else { Phase::Created };
        }
    }

    /// Returns whether `shutdown` has arrived. If so, `exit` ends the server with status 0.
    pub(crate) fn is_shut_down(&self) -> bool {
        *self.phase() == Phase::ShutDown
    }

    /// Ends the server after `exit`, or after the end of the editor's process.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Waits until the server must end.
    pub(crate) async fn ended(&self) {
        // The sender is in `self`, so it cannot be dropped meanwhile.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

fn invalid(reason: &'static str) -> ErrorObject {
    ErrorObject::new(antiphon::Code::INVALID_REQUEST.0, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of the answer to each request, in order; 0 if it runs.
    fn answers(lifecycle: &Lifecycle, methods: &[&str]) -> Vec<i64> {
        let code = |method: &&str| {
            lifecycle.admit_request(method).map_or_else(|error| error.code.0, |()| 0)
        };
        methods.iter().map(code).collect()
    }

    #[test]
    fn every_phase_has_its_answers() {
        let lifecycle = Lifecycle::new();
        let methods = ["textDocument/hover", "shutdown", "$/unknown"];
        assert_eq!(answers(&lifecycle, &methods), [-32002; 3]);
        assert_eq!(answers(&lifecycle, &["initialize"]), [0]);
        assert_eq!(answers(&lifecycle, &methods), [-32002; 3]);
        assert_eq!(answers(&lifecycle, &["initialize"]), [-32600]);
        lifecycle.initialized(true);
        assert_eq!(answers(&lifecycle, &["textDocument/hover", "$/unknown"]), [0, 0]);
        assert_eq!(answers(&lifecycle, &["initialize", "shutdown"]), [-32600, 0]);
        assert_eq!(answers(&lifecycle, &methods), [-32600; 3]);
        assert_eq!(answers(&lifecycle, &["initialize"]), [-32600]);
    }

    #[test]
    fn notifications_are_handled_between_initialize_and_shutdown() {
        let lifecycle = Lifecycle::new();
        let handled = |method: &str| lifecycle.admits_notification(method);
        assert!(!handled("textDocument/didOpen") && handled("exit"));
        answers(&lifecycle, &["initialize"]);
        assert!(!handled("textDocument/didOpen") && handled("exit"));
        lifecycle.initialized(true);
        assert!(handled("textDocument/didOpen") && handled("exit") && !lifecycle.is_shut_down());
        answers(&lifecycle, &["shutdown"]);
        assert!(!handled("textDocument/didOpen") && handled("exit") && lifecycle.is_shut_down());
    }

    #[test]
    fn a_failed_initialize_may_be_repeated() {
        let lifecycle = Lifecycle::new();
        answers(&lifecycle, &["initialize"]);
        lifecycle.initialized(false);
        assert_eq!(answers(&lifecycle, &["shutdown", "initialize"]), [-32002, 0]);
    }
}
