//! Progress that the server creates.
//!
//! Only the newest state of each progress operation is kept, so a slow reader skips states but never misses the end.
//!
//! Invariant: at most [`MAX_RUNNING`] tokens are in use at a time. A token is in the table from `create` to `end`;
//! reports with other tokens are ignored. At most [`MAX_UNREAD`] progress operations wait for a reader.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};

use antiphon::{BoxFuture, CallError, CloseReason, ErrorObject, Params, Peer};
use futures_core::Stream;
use tokio::sync::watch;

use super::progress_state::ProgressState;
use crate::WorkDoneReport;
use crate::error::request_failed;
use crate::types::{
    ProgressParams, ProgressToken, WorkDoneProgressCancelParams, WorkDoneProgressCreateParams,
    WorkDoneProgressEnd,
};

const MAX_RUNNING: usize = 100;
const MAX_UNREAD: usize = 200;

/// The progress that the server of one session has created.
#[derive(Debug, Default)]
pub(super) struct CreatedProgress(watch::Sender<Table>);

#[derive(Debug, Default)]
struct Table {
    running: HashMap<ProgressToken, watch::Sender<ProgressState>>,
    /// The progress operations that no stream has returned yet, also those that have ended.
    unread: VecDeque<(ProgressToken, States)>,
}

/// The states of one progress operation.
type States = watch::Receiver<ProgressState>;

impl Table {
    fn create(&mut self, token: &ProgressToken) -> Result<(), ErrorObject> {
        if self.running.contains_key(token) {
            let token = serde_json::to_string(token).unwrap_or_default();
            let reason = format!("the progress token {token} is in use: choose another token");
            return Err(request_failed(reason));
        }
        if self.running.len() >= MAX_RUNNING {
            let reason = format!("{MAX_RUNNING} progress tokens are in use: send the `end` of one");
            return Err(request_failed(reason));
        }
        let (sender, states) = watch::channel(ProgressState::default());
        self.running.insert(token.clone(), sender);
        self.unread.push_back((token.clone(), states));
        if self.unread.len() > MAX_UNREAD {
            // There is one that has ended, because fewer can run.
            self.unread.remove(self.unread.iter().position(|(_, it)| has_ended(it)).unwrap_or(0));
        }
        Ok(())
    }

    /// Removes a token that the application rejected. Streams do not return its progress any more.
    fn forget(&mut self, token: &ProgressToken) -> Option<watch::Sender<ProgressState>> {
        self.unread.retain(|(unread, states)| unread != token || has_ended(states));
        self.running.remove(token)
    }

    fn report(&mut self, token: &ProgressToken, report: WorkDoneReport) {
        let is_end = matches!(report, WorkDoneReport::End(_));
        if let Some(states) = self.running.get(token) {
            states.send_modify(|state| state.apply(report));
        }
        if is_end {
            self.running.remove(token);
        }
    }
}

fn has_ended(states: &States) -> bool {
    states.borrow().ended
}

impl CreatedProgress {
    /// Adds the token of `window/workDoneProgress/create`, and returns it. Returns `None` for unreadable params; the
    /// handler responds to them.
    pub(super) fn create(
        &self,
        params: Option<&Params>,
    ) -> Result<Option<ProgressToken>, ErrorObject> {
        let params = params
            .and_then(|params| params.as_json().decode::<WorkDoneProgressCreateParams>().ok());
        let Some(WorkDoneProgressCreateParams { token }) = params else { return Ok(None) };
        let mut created = Ok(());
        self.0.send_if_modified(|table| {
            created = table.create(&token);
            created.is_ok()
        });
        created.map(|()| Some(token))
    }

    /// Removes a token that the application rejected, and ends its stream.
    pub(super) fn forget(&self, token: &ProgressToken) {
        self.edit(|table| {
            if let Some(states) = table.forget(token) {
                let end = WorkDoneReport::End(WorkDoneProgressEnd::default());
                states.send_modify(|state| state.apply(end));
            }
        });
    }

    /// Handles the params of `$/progress`.
    pub(super) fn report(&self, params: Option<&Params>) {
        let params = params.and_then(|params| params.as_json().decode::<ProgressParams>().ok());
        let Some(ProgressParams { token, value }) = params else { return };
        if !self.0.borrow().running.contains_key(&token) {
            return;
        }
        match serde_json::from_value(value) {
            Ok(report) => self.edit(|table| table.report(&token, report)),
            Err(error) => tracing::debug!(%error, "a progress report cannot be read"),
        }
    }

    /// Waits for progress that no stream has returned yet.
    async fn next(self: Arc<Self>, peer: Peer) -> Result<(ProgressToken, States), CloseReason> {
        let mut table = self.0.subscribe();
        loop {
            tokio::select! {
                biased;
                _ = table.wait_for(|table| !table.unread.is_empty()) => {}
                reason = peer.closed() => return Err(reason),
            }
            // Another stream may take it first.
            let mut taken = None;
            self.edit(|table| taken = table.unread.pop_front());
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }

    /// Changes the table without waking the streams, which wait for new progress only.
    fn edit(&self, change: impl FnOnce(&mut Table)) {
        self.0.send_if_modified(|table| {
            change(table);
            false
        });
    }
}

/// A `Stream` of the progress that the server creates. Created by
/// [`ServerSession::progress`](super::ServerSession::progress).
///
/// The stream first returns the progress that no stream has returned yet, also if it has ended. It ends with the
/// connection. If there are several streams, each progress operation is returned by only one of them.
///
/// If 100 operations are running, the session rejects the next `create`. If more than 200 wait for a reader, the
/// session drops the oldest one that has ended.
pub struct ServerProgressStream {
    created: Arc<CreatedProgress>,
    peer: Peer,
    /// Waits for the next progress. `None` after the end.
    next: Option<BoxFuture<'static, Result<(ProgressToken, States), CloseReason>>>,
}

/// A `Stream` of the states of one progress operation that the server created. It ends after the state with
/// [`ended`](ProgressState::ended), or with the connection.
///
/// If several states arrive before they are read, only the newest is read.
pub struct ServerProgress {
    token: ProgressToken,
    peer: Peer,
    /// Waits for the next state. `None` after the end.
    next: Option<BoxFuture<'static, Option<(ProgressState, States)>>>,
}

impl ServerProgressStream {
    pub(super) fn new(created: Arc<CreatedProgress>, peer: Peer) -> Self {
        let next: BoxFuture<'static, _> = Box::pin(created.clone().next(peer.clone()));
        Self { created, peer, next: Some(next) }
    }
}

impl Stream for ServerProgressStream {
    type Item = ServerProgress;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(next) = &mut this.next else { return Poll::Ready(None) };
        let Ok((token, states)) = ready!(next.as_mut().poll(poller)) else {
            this.next = None;
            return Poll::Ready(None);
        };
        this.next = Some(Box::pin(this.created.clone().next(this.peer.clone())));
        Poll::Ready(Some(ServerProgress::new(token, states, this.peer.clone())))
    }
}

/// Waits for a state that was not read yet. Returns `None` after the end.
async fn next_state(mut states: States, peer: Peer) -> Option<(ProgressState, States)> {
    tokio::select! {
        biased;
        // Fails after the last state, because the sender is dropped at the end.
        changed = states.changed() => changed.ok()?,
        _ = peer.closed() => return None,
    }
    let state = states.borrow_and_update().clone();
    Some((state, states))
}

impl ServerProgress {
    fn new(token: ProgressToken, states: States, peer: Peer) -> Self {
        let next: BoxFuture<'static, _> = Box::pin(next_state(states, peer.clone()));
        Self { token, peer, next: Some(next) }
    }

    /// Returns the token that the server chose.
    pub fn token(&self) -> &ProgressToken {
        &self.token
    }

    /// Asks the server to cancel the work. The server decides when to stop, and the stream continues until the end.
    pub async fn cancel(&self) -> Result<(), CallError> {
        let params = WorkDoneProgressCancelParams::new(self.token.clone());
        self.peer.notify("window/workDoneProgress/cancel", params).await
    }
}

impl Stream for ServerProgress {
    type Item = ProgressState;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(next) = &mut this.next else { return Poll::Ready(None) };
        let Some((state, states)) = ready!(next.as_mut().poll(poller)) else {
            this.next = None;
            return Poll::Ready(None);
        };
        this.next = Some(Box::pin(next_state(states, this.peer.clone())));
        Poll::Ready(Some(state))
    }
}

impl fmt::Debug for ServerProgressStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerProgressStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerProgress").field("token", &self.token).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn params(json: &Value) -> Params {
        Params::parse(&json.to_string()).unwrap()
    }

    #[test]
    fn the_tokens_are_bounded_and_removed_at_the_end() {
        let running = CreatedProgress::default();
        let create = |token: usize| running.create(Some(&params(&json!({ "token": token }))));
        for token in 0..MAX_RUNNING {
            create(token).unwrap();
        }
        assert_eq!(
            create(0).unwrap_err().message,
            "the progress token 0 is in use: choose another token"
        );
        assert!(create(MAX_RUNNING).unwrap_err().message.contains("100 progress tokens"));
        for (token, value) in
            [(json!("unknown"), json!({"kind": "end"})), (json!(0), json!({"kind": "unknown"}))]
        {
            running.report(Some(&params(&json!({"token": token, "value": value}))));
            assert_eq!(running.0.borrow().running.len(), MAX_RUNNING);
        }
        running.report(Some(&params(&json!({"token": 0, "value": {"kind": "end"}}))));
        create(0).unwrap();
        for _ in 0..MAX_UNREAD {
            running.report(Some(&params(&json!({"token": 0, "value": {"kind": "end"}}))));
            create(0).unwrap();
        }
        let table = running.0.borrow();
        assert_eq!((table.running.len(), table.unread.len()), (MAX_RUNNING, MAX_UNREAD));
        let running = table.unread.iter().filter(|(_, states)| !has_ended(states)).count();
        assert_eq!(running, MAX_RUNNING, "only ended progress is dropped");
    }
}
