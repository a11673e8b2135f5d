//! The running progress reports of one connection: which tokens are in use, and who wants to know of a
//! cancellation?
//!
//! Invariant: there is one entry per [`WorkDoneProgress`](super::WorkDoneProgress) that has not ended. Tokens that are
//! not in the table are ignored.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::Params;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::types::{ProgressToken, WorkDoneProgressCancelParams};

/// The running progress reports of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reporters {
    running: Mutex<Running>,
    /// Whether the editor has announced `window.workDoneProgress`.
    can_create: AtomicBool,
}

#[derive(Debug, Default)]
struct Running {
    /// By a number, because an editor may use one token for two requests.
    reporters: HashMap<u64, Reporter>,
    last: u64,
}

#[derive(Debug)]
struct Reporter {
    token: ProgressToken,
    cancellation: CancellationToken,
}

/// The entry of one reporter. It is removed with this value.
#[derive(Debug)]
pub(super) struct Registered {
    reporters: Arc<Reporters>,
    number: u64,
}

impl Reporters {
    /// Adds a reporter with the token of a request, or with a new one of this side.
    pub(super) fn register(
        self: &Arc<Self>,
        token: Option<ProgressToken>,
        cancellation: CancellationToken,
    ) -> (ProgressToken, Registered) {
        let mut running = self.running();
        running.last += 1;
        let number = running.last;
        let token = token.unwrap_or_else(|| format!("antiphon-server-{number}").into());
        running.reporters.insert(number, Reporter { token: token.clone(), cancellation });
        (token, Registered { reporters: self.clone(), number })
    }

    /// Whether the editor shows progress that it has not asked for.
    pub(super) fn can_create(&self) -> bool {
        self.can_create.load(Ordering::Relaxed)
    }

    /// Reads the capabilities in the params of `initialize`.
    pub(crate) fn negotiate(&self, params: Option<&Params>) {
        #[derive(Default, Deserialize)]
        struct Initialize {
            capabilities: Capabilities,
        }
        #[derive(Default, Deserialize)]
        struct Capabilities {
            window: Option<Window>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Window {
            work_done_progress: Option<bool>,
        }
        let params = params.and_then(|params| params.as_json().decode::<Initialize>().ok());
        let window = params.and_then(|params| params.capabilities.window);
        let announced = window.and_then(|window| window.work_done_progress).unwrap_or_default();
        self.can_create.store(announced, Ordering::Relaxed);
    }

    /// Handles the params of `window/workDoneProgress/cancel`.
    pub(crate) fn cancel(&self, params: Option<&Params>) {
        let params = params
            .and_then(|params| params.as_json().decode::<WorkDoneProgressCancelParams>().ok());
        let Some(WorkDoneProgressCancelParams { token }) = params else { return };
        let running = self.running();
        let named = running.reporters.values().filter(|reporter| reporter.token == token);
        let named: Vec<_> = named.map(|reporter| reporter.cancellation.clone()).collect();
        // Without the lock, because a cancellation wakes tasks.
        drop(running);
        named.iter().for_each(CancellationToken::cancel);
    }

    /// No code that holds the lock can panic halfway through a change.
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.reporters.running().reporters.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancel(reporters: &Reporters, token: &str) {
        let params = format!(r#"{{"token":{token}}}"#);
        reporters.cancel(Some(&Params::parse(&params).unwrap()));
    }

    #[test]
    fn only_running_reporters_are_cancelled() {
        let reporters = Arc::new(Reporters::default());
        let [first, second, ours] = [0; 3].map(|_| CancellationToken::new());
        let (_, one) = reporters.register(Some(7.into()), first.clone());
        let (_, two) = reporters.register(Some(7.into()), second.clone());
        let (token, _three) = reporters.register(None, ours.clone());
        drop(one);
        cancel(&reporters, "7");
        cancel(&reporters, "\"7\"");
        reporters.cancel(None);
        assert!(!first.is_cancelled() && second.is_cancelled() && !ours.is_cancelled());
        drop(two);
        assert_eq!(reporters.running().reporters.len(), 1);
        cancel(&reporters, &serde_json::to_string(&token).unwrap());
        assert!(ours.is_cancelled());
    }

    #[test]
    fn the_capability_is_read_from_any_params() {
        let reporters = Reporters::default();
        for (params, announced) in [
            (r#"{"capabilities":{"window":{"workDoneProgress":true},"x":1}}"#, true),
            (r#"{"capabilities":{"window":{"workDoneProgress":false}}}"#, false),
            (r#"{"capabilities":{"window":{"workDoneProgress":true}}}"#, true),
            (r#"{"capabilities":{"window":null}}"#, false),
            ("[]", false),
        ] {
            reporters.negotiate(Some(&Params::parse(params).unwrap()));
            assert_eq!(reporters.can_create(), announced, "{params}");
        }
    }
}
