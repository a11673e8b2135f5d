//! Progress that the server creates.
//!
//! Only the newest state of each progress is kept, so a slow reader skips states but never misses the end.
//!
//! Invariant: at most [`MAX_RUNNING`] tokens are in use at a time. A token is in the table from `create` to `end`;
//! reports with other tokens are ignored.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};

use antiphon::{BoxFuture, CallError, CloseReason, ErrorObject, Params, Peer};
use futures_core::Stream;

use super::progress_state::ProgressState;
use crate::WorkDoneReport;
use crate::error::request_failed;
use crate::types::{
    ProgressParams, ProgressToken, WorkDoneProgressCancelParams, WorkDoneProgressCreateParams,
    WorkDoneProgressEnd,
};

const MAX_RUNNING: usize = 100;

/// The progress that the server of one session has created.
#[derive(Debug, Default)]
pub(super) struct CreatedProgress(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    running: HashMap<ProgressToken, Arc<Current>>,
    /// The progress that no stream has returned yet.
    new: VecDeque<ProgressToken>,
    readers: Vec<Waker>,
}

impl Table {
    fn remove(&mut self, token: &ProgressToken) -> Option<Arc<Current>> {
        self.new.retain(|new| new != token);
        self.running.remove(token)
    }
}

/// The newest state of one progress.
#[derive(Debug, Default)]
struct Current(Mutex<Newest>);

#[derive(Debug, Default)]
struct Newest {
    state: ProgressState,
    /// The number of reports so far.
    number: u64,
    reader: Option<Waker>,
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
        let mut table = self.table();
        if table.running.contains_key(&token) {
            return Err(request_failed("this progress token is in use"));
        }
        if table.running.len() >= MAX_RUNNING {
            let reason = format!("{MAX_RUNNING} progress tokens are in use: send the `end` of one");
            return Err(request_failed(reason));
        }
        table.running.insert(token.clone(), Arc::default());
        table.new.push_back(token.clone());
        let readers = std::mem::take(&mut table.readers);
        drop(table);
        readers.into_iter().for_each(Waker::wake);
        Ok(Some(token))
    }

    /// Removes a token that the application rejected, and ends its stream.
    pub(super) fn forget(&self, token: &ProgressToken) {
        let forgotten = self.table().remove(token);
        if let Some(current) = forgotten {
            current.apply(WorkDoneReport::End(WorkDoneProgressEnd::default()));
        }
    }

    /// Handles the params of `$/progress`.
    pub(super) fn report(&self, params: Option<&Params>) {
        let params = params.and_then(|params| params.as_json().decode::<ProgressParams>().ok());
        let Some(ProgressParams { token, value }) = params else { return };
        let mut table = self.table();
        let Some(current) = table.running.get(&token).cloned() else { return };
        let report = match serde_json::from_value(value) {
            Ok(report) => report,
            Err(error) => return tracing::debug!(%error, "a progress report cannot be read"),
        };
        if matches!(report, WorkDoneReport::End(_)) {
            table.remove(&token);
        }
        drop(table);
        current.apply(report);
    }

    fn poll_new(&self, poller: &Poller<'_>) -> Poll<(ProgressToken, Arc<Current>)> {
        let mut table = self.table();
        while let Some(token) = table.new.pop_front() {
            if let Some(current) = table.running.get(&token).cloned() {
                return Poll::Ready((token, current));
            }
        }
        if !table.readers.iter().any(|waker| waker.will_wake(poller.waker())) {
            table.readers.push(poller.waker().clone());
        }
        Poll::Pending
    }

    /// No code that holds the lock can panic halfway through a change.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn apply(&self, report: WorkDoneReport) {
        let mut newest = self.newest();
        newest.state.apply(report);
        newest.number += 1;
        let reader = newest.reader.take();
        drop(newest);
        reader.into_iter().for_each(Waker::wake);
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A `Stream` of the progress that the server creates. Created by
/// [`ServerSession::progress`](super::ServerSession::progress).
///
/// It starts with the progress that already runs, and ends with the connection. Each progress goes to one stream. At
/// most 100 can run at a time; `create` fails beyond that.
pub struct ServerProgressStream {
    running: Arc<CreatedProgress>,
    peer: Peer,
    closed: BoxFuture<'static, CloseReason>,
}

/// A `Stream` of the states of one progress that the server created. It ends after the state with
/// [`ended`](ProgressState::ended), or with the connection.
///
/// If several states arrive before they are read, only the newest is read.
pub struct ServerProgress {
    token: ProgressToken,
    current: Arc<Current>,
    /// The number of the last state that was read.
    seen: u64,
    has_ended: bool,
    peer: Peer,
    closed: BoxFuture<'static, CloseReason>,
}

impl ServerProgressStream {
    pub(super) fn new(running: Arc<CreatedProgress>, peer: Peer) -> Self {
        Self { running, closed: closed(&peer), peer }
    }
}

fn closed(peer: &Peer) -> BoxFuture<'static, CloseReason> {
    let peer = peer.clone();
    Box::pin(async move { peer.closed().await })
}

impl Stream for ServerProgressStream {
    type Item = ServerProgress;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let Poll::Ready((token, current)) = self.running.poll_new(poller) else {
            return self.closed.as_mut().poll(poller).map(|_| None);
        };
        let (peer, closed) = (self.peer.clone(), closed(&self.peer));
        let has_ended = false;
        Poll::Ready(Some(ServerProgress { token, current, seen: 0, has_ended, peer, closed }))
    }
}

impl ServerProgress {
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
        if this.has_ended {
            return Poll::Ready(None);
        }
        let mut newest = this.current.newest();
        if newest.number > this.seen {
            this.seen = newest.number;
            this.has_ended = newest.state.ended;
            return Poll::Ready(Some(newest.state.clone()));
        }
        newest.reader = Some(poller.waker().clone());
        drop(newest);
        this.closed.as_mut().poll(poller).map(|_| None)
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
        assert_eq!(create(0).unwrap_err().message, "this progress token is in use");
        assert!(create(MAX_RUNNING).unwrap_err().message.contains("100 progress tokens"));
        for (token, value) in
            [(json!("unknown"), json!({"kind": "end"})), (json!(0), json!({"kind": "unknown"}))]
        {
            running.report(Some(&params(&json!({"token": token, "value": value}))));
            assert_eq!(running.table().running.len(), MAX_RUNNING);
        }
        running.report(Some(&params(&json!({"token": 0, "value": {"kind": "end"}}))));
        assert_eq!(running.table().new.len(), MAX_RUNNING - 1);
        create(0).unwrap();
    }
}
