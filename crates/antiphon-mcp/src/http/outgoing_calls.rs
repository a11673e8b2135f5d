//! The calls of a server to the client of a session: they go out on a stream, and their responses come in by a POST.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon::{CallError, CloseReason, ErrorObject, RawJson};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::incoming::Incoming;

/// The largest number of calls that wait for the client of one session.
const MAX_WAITING: usize = 256;

/// The calls that wait for their responses.
#[derive(Default)]
pub(super) struct OutgoingCalls(Mutex<WaitingCalls>);

#[derive(Default)]
struct WaitingCalls {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<RawJson, ErrorObject>>>,
    is_ended: bool,
}

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a RawJson,
}

impl OutgoingCalls {
    /// Calls the client. `send` writes the request to a stream.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &RawJson,
        send: impl AsyncFnOnce(Bytes) -> Result<(), CallError>,
    ) -> Result<RawJson, CallError> {
        let (id, response) = self.open()?;
        // Forgets the call if this future is dropped.
        let _guard = CallGuard { calls: self, id };
        let request = Request { jsonrpc: "2.0", id, method, params };
        let text = serde_json::to_vec(&request).map_err(|error| CallError::Encode(error.into()))?;
        send(Bytes::from(text)).await?;
        match response.await {
            Ok(outcome) => outcome.map_err(CallError::Rpc),
            Err(_ended) => Err(CallError::Closed(CloseReason::from("the session has ended"))),
        }
    }

    fn open(&self) -> Result<(u64, oneshot::Receiver<Result<RawJson, ErrorObject>>), CallError> {
        let mut calls = self.calls();
        if calls.is_ended {
            return Err(CallError::Closed(CloseReason::from("the session has ended")));
        }
        if calls.waiting.len() >= MAX_WAITING {
            let error = ErrorObject::server_busy("too many calls wait for the client");
            return Err(CallError::Rpc(error));
        }
        calls.last += 1;
        let id = calls.last;
        let (sender, receiver) = oneshot::channel();
        calls.waiting.insert(id, sender);
        Ok((id, receiver))
    }

    /// Delivers a response. Returns false for a message that is not a valid one. A response to a call that is not known
    /// is dropped.
    pub(super) fn deliver(&self, message: &Incoming<'_>) -> bool {
        let outcome = match (message.result, message.error) {
            (Some(result), None) => {
                RawJson::parse(result.get().to_owned()).map_err(ErrorObject::internal)
            }
            (None, Some(error)) => match serde_json::from_str::<ErrorObject>(error.get()) {
                Ok(error) => Err(error),
                Err(_) => return false,
            },
            _ => return false,
        };
        let id = message.id.map(RawValue::get).and_then(|id| id.parse().ok());
        if let Some(sender) = id.and_then(|id: u64| self.calls().waiting.remove(&id)) {
            let _ = sender.send(outcome);
        }
        true
    }

    /// Fails all calls.
    pub(super) fn end(&self) {
        let mut calls = self.calls();
        calls.is_ended = true;
        calls.waiting.clear();
    }

    fn calls(&self) -> MutexGuard<'_, WaitingCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct CallGuard<'a> {
    calls: &'a OutgoingCalls,
    id: u64,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.calls.calls().waiting.remove(&self.id);
    }
}
