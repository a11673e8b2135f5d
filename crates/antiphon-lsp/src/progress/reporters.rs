//! The running progress of one connection: which tokens are valid, and which reporter does a cancellation reach?
//!
//! Invariant: the token of a request is valid until its response, or, if several running requests have this token,
//! until the last response. A reporter that is created or used later sends nothing. A cancellation with an unknown
//! token is ignored.

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
    /// The tokens of running requests, and the number of requests with each token.
    tokens: HashMap<ProgressToken, usize>,
    /// One entry per [`WorkDoneProgress`](super::WorkDoneProgress) or [`PartialResults`](super::PartialResults). The
    /// key is a number, because an editor may use one token for two requests.
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
    /// Adds a reporter. `Some(token)` is the token of a request: if no running request has it, the reporter is already
    /// ended. `None` creates a new token.
    pub(super) fn register(
        self: &Arc<Self>,
        peer: Peer,
        token: Option<ProgressToken>,
        cancellation: CancellationToken,
    ) -> (Arc<ReportLine>, Registered) {
        let mut running = self.running();
        running.last += 1;
        let (number, is_of_request) = (running.last, token.is_some());
        let line = Arc::new(match token {
            Some(token) if running.tokens.contains_key(&token) => ReportLine::new(peer, token),
            Some(token) => ReportLine::ended(peer, token),
            None => ReportLine::new(peer, format!("antiphon-server-{number}").into()),
        });
        let reporter = Reporter { line: line.clone(), is_of_request, cancellation };
        running.reporters.insert(number, reporter);
        (line, Registered { reporters: self.clone(), number })
    }

    /// Returns a guard for the tokens of a request, which are valid until it is dropped. That happens before the
    /// response. Returns `None` if the params have no token.
    pub(crate) fn request(self: &Arc<Self>, params: Option<&Params>) -> Option<RunningRequest> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WithTokens {
            work_done_token: Option<ProgressToken>,
            partial_result_token: Option<ProgressToken>,
        }
        let json = params?.as_json();
        // Most params have no token; this check avoids decoding them twice.
        let names = [&b"workDoneToken"[..], b"partialResultToken"];
        names.iter().find(|name| memchr::memmem::find(json.as_bytes(), name).is_some())?;
        let params = json.decode::<WithTokens>().ok()?;
        let tokens = [params.work_done_token, params.partial_result_token];
        let tokens: Vec<_> = tokens.into_iter().flatten().collect();
        let mut running = self.running();
        for token in &tokens {
            *running.tokens.entry(token.clone()).or_default() += 1;
        }
        Some(RunningRequest { reporters: self.clone(), tokens })
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

    /// Ignores lock poisoning, because no code panics while it holds the lock.
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Ends the validity of a token for one request. Returns the reporters that must end: none while another request
    /// with the token runs, because they may belong to it.
    fn remove(&mut self, token: &ProgressToken) -> Vec<Arc<ReportLine>> {
        if let Some(count) = self.tokens.get_mut(token).filter(|count| **count > 1) {
            *count -= 1;
            return Vec::new();
        }
        self.tokens.remove(token);
        let of_request = |it: &&Reporter| it.is_of_request && it.line.token == *token;
        self.reporters.values().filter(of_request).map(|it| it.line.clone()).collect()
    }
}

/// A running request whose caller wants progress or partial results.
#[derive(Debug)]
pub(crate) struct RunningRequest {
    reporters: Arc<Reporters>,
    tokens: Vec<ProgressToken>,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        for token in &self.tokens {
            let ending = self.reporters.running().remove(token);
            ending.iter().for_each(|line| line.end());
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
        let params = Params::parse(r#"{"workDoneToken":7}"#).unwrap();
        let _request = reporters.request(Some(&params)).unwrap();
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

    #[tokio::test]
    async fn a_token_of_two_requests_is_valid_until_the_last_response() {
        let (ours, _theirs) = antiphon::transport::memory::pair();
        let client = antiphon::Client::builder().over(ours);
        let reporters = Arc::new(Reporters::default());
        let params = Params::parse(r#"{"workDoneToken":7,"partialResultToken":7}"#).unwrap();
        let [first, second] = [0; 2].map(|_| reporters.request(Some(&params)).unwrap());
        let register = || {
            let token = CancellationToken::new();
            reporters.register(client.peer().unwrap(), Some(7.into()), token)
        };
        let (line, _registered) = register();
        drop(first);
        assert!(!line.has_ended() && !register().0.has_ended());
        drop(second);
        assert!(line.has_ended() && register().0.has_ended());
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
