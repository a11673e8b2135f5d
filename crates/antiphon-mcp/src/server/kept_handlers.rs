//! Handlers that wait for the answer of a modern client.
//!
//! By default a handler runs again from its start when the answers are there, so the server keeps nothing. A handler
//! that cannot run twice, such as a call that is passed on to another server, is kept here instead. Their number and
//! their time are limited, and they end with their server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon::{BoxFuture, Outcome};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::context::RequestContext;
use super::request_state::{StateError, random_id};

/// A handler that waits, with its context.
pub(crate) struct KeptHandler {
    pub(crate) running: BoxFuture<'static, Outcome>,
    pub(crate) cx: RequestContext,
}

/// The handlers of a server that wait.
pub(crate) struct KeptHandlers {
    limit: usize,
    kept: Mutex<HashMap<String, KeptEntry>>,
}

struct KeptEntry {
    handler: KeptHandler,
    /// Ends the handler if nobody comes back, or with the server.
    _timer: AbortOnDropHandle<()>,
}

impl KeptHandlers {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, kept: Mutex::default() })
    }

    /// Keeps a handler for this time, or until `ended`. Returns its id; `None` if the server keeps too many.
    pub(crate) fn keep(
        self: &Arc<Self>,
        handler: KeptHandler,
        lifetime: Duration,
        ended: CancellationToken,
    ) -> Result<Option<String>, StateError> {
        let id = random_id()?;
        let mut kept = self.kept();
        if kept.len() >= self.limit {
            return Ok(None);
        }
        let (weak, expired) = (Arc::downgrade(self), id.clone());
        let timer = tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(lifetime) => {}
                () = ended.cancelled() => {}
            }
            if let Some(handlers) = weak.upgrade() {
                drop(handlers.take(&expired));
            }
        });
        kept.insert(id.clone(), KeptEntry { handler, _timer: AbortOnDropHandle::new(timer) });
        Ok(Some(id))
    }

    /// Takes the handler with this id.
    pub(crate) fn take(&self, id: &str) -> Option<KeptHandler> {
        self.kept().remove(id).map(|entry| entry.handler)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, KeptEntry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
