//! The newest diagnostics of each document.
//!
//! They are kept in the order of arrival. A slow reader skips older diagnostics of the same document, but misses no
//! document.
//!
//! Invariant: at most [`MAX_DOCUMENTS`] documents and about [`MAX_BYTES`] of JSON are kept. Beyond that, the document
//! with the oldest diagnostics is removed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll, Waker};

use antiphon::{BoxFuture, CallError, CloseReason, Params, Peer};
use futures_core::Stream;

use crate::file_uri::DocumentKey;
use crate::types::PublishDiagnosticsParams;

const MAX_DOCUMENTS: usize = 10_000;
const MAX_BYTES: usize = 256 << 20;

/// The newest diagnostics of each document of one session.
#[derive(Debug, Default)]
pub(super) struct Published(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The diagnostics by the number of their arrival.
    published: BTreeMap<u64, Entry>,
    by_document: HashMap<DocumentKey, u64>,
    last: u64,
    bytes: usize,
    /// The readers that wait for more.
    readers: Vec<Waker>,
}

#[derive(Debug)]
struct Entry {
    diagnostics: PublishDiagnosticsParams,
    bytes: usize,
}

impl Table {
    fn insert(&mut self, diagnostics: PublishDiagnosticsParams, bytes: usize) {
        self.last += 1;
        if let Some(old) = self.by_document.insert(DocumentKey::new(&diagnostics.uri), self.last) {
            self.remove(old);
        }
        self.bytes += bytes;
        self.published.insert(self.last, Entry { diagnostics, bytes });
        while self.published.len() > MAX_DOCUMENTS
            || (self.bytes > MAX_BYTES && self.published.len() > 1)
        {
            let Some((&first, _)) = self.published.first_key_value() else { break };
            if let Some(entry) = self.remove(first) {
                self.by_document.remove(&DocumentKey::new(&entry.diagnostics.uri));
            }
        }
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.published.remove(&number)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn of(&self, document: &DocumentKey) -> Option<(u64, &PublishDiagnosticsParams)> {
        let number = *self.by_document.get(document)?;
        Some((number, &self.published.get(&number)?.diagnostics))
    }

    fn after(&self, seen: u64) -> Option<(u64, PublishDiagnosticsParams)> {
        let (&number, entry) = self.published.range(seen + 1..).next()?;
        Some((number, entry.diagnostics.clone()))
    }
}

impl Published {
    /// Stores the params of `textDocument/publishDiagnostics`. Invalid params are logged and ignored.
    pub(super) fn publish(&self, params: Option<&Params>) {
        let Some(json) = params.map(Params::as_json) else { return };
        let diagnostics = match json.decode() {
            Ok(diagnostics) => diagnostics,
            Err(error) => return tracing::warn!(%error, "the server published invalid diagnostics"),
        };
        let mut table = self.table();
        table.insert(diagnostics, json.as_str().len());
        let readers = std::mem::take(&mut table.readers);
        drop(table);
        readers.into_iter().for_each(Waker::wake);
    }

    /// Returns the number of the newest diagnostics.
    pub(super) fn last(&self) -> u64 {
        self.table().last
    }

    pub(super) fn of(&self, document: &DocumentKey) -> Option<PublishDiagnosticsParams> {
        self.table().of(document).map(|(_, diagnostics)| diagnostics.clone())
    }

    /// Waits for diagnostics of a document that arrive after this number and are not for an older version.
    pub(super) async fn newer(
        &self,
        document: &DocumentKey,
        seen: u64,
        version: i32,
        peer: &Peer,
    ) -> Result<PublishDiagnosticsParams, CallError> {
        let find = |table: &Table| {
            let (number, diagnostics) = table.of(document)?;
            let is_newer = diagnostics.version.is_none_or(|published| published >= version);
            (number > seen && is_newer).then(|| diagnostics.clone())
        };
        let found = poll_fn(|poller| self.poll(poller, find));
        tokio::select! {
            biased;
            found = found => Ok(found),
            reason = peer.closed() => Err(CallError::Closed(reason)),
        }
    }

    fn poll<T>(&self, poller: &Poller<'_>, find: impl Fn(&Table) -> Option<T>) -> Poll<T> {
        let mut table = self.table();
        if let Some(found) = find(&table) {
            return Poll::Ready(found);
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

/// A `Stream` of the diagnostics that the server publishes. Created by
/// [`ServerSession::diagnostics`](super::ServerSession::diagnostics).
///
/// It starts with the diagnostics that have already arrived: the newest of each document, in the order of arrival. It
/// ends with the connection. Several streams receive the same diagnostics.
///
/// If new diagnostics of a document arrive before the old ones are read, the stream skips the old ones. It keeps the
/// newest 10,000 documents, with at most 256 MiB of JSON in total.
pub struct Diagnostics {
    published: Arc<Published>,
    /// The number of the last diagnostics that were read.
    seen: u64,
    closed: BoxFuture<'static, CloseReason>,
}

impl Diagnostics {
    pub(super) fn new(published: Arc<Published>, peer: Peer) -> Self {
        Self { published, seen: 0, closed: Box::pin(async move { peer.closed().await }) }
    }
}

impl Stream for Diagnostics {
    type Item = PublishDiagnosticsParams;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        match this.published.poll(poller, |table| table.after(this.seen)) {
            Poll::Ready((number, diagnostics)) => {
                this.seen = number;
                Poll::Ready(Some(diagnostics))
            }
            Poll::Pending => this.closed.as_mut().poll(poller).map(|_| None),
        }
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnostics").field("seen", &self.seen).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(document: usize) -> PublishDiagnosticsParams {
        PublishDiagnosticsParams::new(document.to_string().into(), None, vec![])
    }

    fn key(uri: &str) -> DocumentKey {
        DocumentKey::new(&uri.into())
    }

    #[test]
    fn the_documents_and_bytes_that_are_kept_are_bounded() {
        let mut table = Table::default();
        for document in 0..=MAX_DOCUMENTS {
            table.insert(about(document), 1);
        }
        assert_eq!(
            (table.published.len(), table.by_document.len()),
            (MAX_DOCUMENTS, MAX_DOCUMENTS)
        );
        assert!(table.of(&key("0")).is_none() && table.of(&key("1")).is_some());
        table.insert(about(1), MAX_BYTES);
        assert_eq!((table.published.len(), table.bytes), (1, MAX_BYTES));
        table.insert(about(1), 5);
        table.insert(about(2), MAX_BYTES + 1);
        assert_eq!((table.by_document.len(), table.bytes), (1, MAX_BYTES + 1));
        assert!(table.of(&key("2")).is_some());
    }
}
