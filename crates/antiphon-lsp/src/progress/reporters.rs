//! The running progress of one connection: which tokens are in use, and which reporter does a cancellation reach?
//!
//! Invariant: there is one entry per [`WorkDoneProgress`](super::WorkDoneProgress) that has not ended. A cancellation
//! with an unknown token is ignored.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::{Params, Peer};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::report_line::ReportLine;
use crate::types::{ProgressToken, WorkDoneProgressCancelParams};

/// The running progress of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reporters {
    running: Mutex<Running>,
    /// Whether the editor has announced `window.workDoneProgress`.
    can_create: AtomicBool,
}

#[derive(Debug, Default)]
struct Running {
    /// The key is a number, because an editor may use one token for two requests.
    reporters: HashMap<u64, Reporter>,
    last: u64,
}

#[derive(Debug)]
struct Reporter {
    line: Arc<ReportLine>,
    /// Whether the progress belongs to a request. If so, it ends with the response.
    is_of_request: bool,
    cancellation: CancellationToken,
}

/// A guard for the entry of one reporter. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct Registered {
    reporters: Arc<Reporters>,
    number: u64,
}

impl Reporters {
    /// Adds a reporter with the token of a request, or with a new token.
    pub(super) fn register(
        self: &Arc<Self>,
        peer: Peer,
        token: Option<ProgressToken>,
        cancellation: CancellationToken,
    ) -> (Arc<ReportLine>, Registered) {
        let mut running = self.running();
        running.last += 1;
        let (number, is_of_request) = (running.last, token.is_some());
        let token = token.unwrap_or_else(|| format!("antiphon-server-{number}").into());
        let line = Arc::new(ReportLine::new(peer, token));
        let reporter = Reporter { line: line.clone(), is_of_request, cancellation };
        running.reporters.insert(number, reporter);
        (line, Registered { reporters: self.clone(), number })
    }

    /// Returns a guard that ends the progress of a request when it is dropped, which happens before the response.
    /// Returns `None` if the params have no token.
    pub(crate) fn request(self: &Arc<Self>, params: Option<&Params>) -> Option<RunningRequest> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WithToken {
            work_done_token: Option<ProgressToken>,
        }
        let json = params?.as_json();
        // Most params have no token; this check avoids decoding them twice.
        memchr::memmem::find(json.as_bytes(), b"workDoneToken")?;
        let token = json.decode::<WithToken>().ok()?.work_done_token?;
        Some(RunningRequest { reporters: self.clone(), token })
    }

    /// Returns whether the editor accepts progress outside of requests.
    pub(super) fn can_create(&self) -> bool {
        self.can_create.load(Ordering::Relaxed)
    }

    /// Stores the capabilities in the params of `initialize`.
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
        let named = self.named(&token, |reporter| reporter.cancellation.clone());
        named.iter().for_each(CancellationToken::cancel);
    }

    /// Returns a value for each reporter with this token. The lock is released on return, because the caller may wake
    /// tasks.
    fn named<T>(&self, token: &ProgressToken, of: impl Fn(&Reporter) -> T) -> Vec<T> {
        let running = self.running();
        running.reporters.values().filter(|it| it.line.token == *token).map(of).collect()
    }

    /// No code that holds the lock can panic halfway through a change.
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running request whose caller wants progress.
#[derive(Debug)]
pub(crate) struct RunningRequest {
    reporters: Arc<Reporters>,
    token: ProgressToken,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let of_request =
            |reporter: &Reporter| reporter.is_of_request.then(|| reporter.line.clone());
        for line in self.reporters.named(&self.token, of_request).into_iter().flatten() {
            line.end();
        }
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

    #[tokio::test]
    async fn only_running_reporters_are_cancelled() {
        let (ours, _theirs) = antiphon::transport::memory::pair();
        let client = antiphon::Client::builder().over(ours);
        let peer = || client.peer().unwrap();
        let reporters = Arc::new(Reporters::default());
        let [first, second, ours] = [0; 3].map(|_| CancellationToken::new());
        let (_, one) = reporters.register(peer(), Some(7.into()), first.clone());
        let (_, two) = reporters.register(peer(), Some(7.into()), second.clone());
        let (line, _three) = reporters.register(peer(), None, ours.clone());
        drop(one);
        cancel(&reporters, "7");
        cancel(&reporters, "\"7\"");
        reporters.cancel(None);
        assert!(!first.is_cancelled() && second.is_cancelled() && !ours.is_cancelled());
        drop(two);
        assert_eq!(reporters.running().reporters.len(), 1);
        cancel(&reporters, &serde_json::to_string(&line.token).unwrap());
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
