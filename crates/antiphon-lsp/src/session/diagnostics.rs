//! The newest diagnostics of each document.
//!
//! They are kept in the order of arrival. A slow reader skips older diagnostics of the same document, but misses no
//! document.
//!
//! Invariant: at most [`MAX_DOCUMENTS`] documents and about [`MAX_BYTES`] of JSON are kept. Beyond that, the document
//! with the oldest diagnostics is removed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll, ready};

use antiphon::{BoxFuture, CallError, Params, Peer};
use futures_core::Stream;
use tokio::sync::watch;

use crate::file_uri::DocumentKey;
use crate::types::PublishDiagnosticsParams;

const MAX_DOCUMENTS: usize = 10_000;
const MAX_BYTES: usize = 256 << 20;

/// The newest diagnostics of each document of one session.
#[derive(Debug, Default)]
pub(super) struct DiagnosticsStore(watch::Sender<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The diagnostics by the number of their arrival.
    published: BTreeMap<u64, Entry>,
    by_document: HashMap<DocumentKey, u64>,
    last: u64,
    bytes: usize,
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

impl DiagnosticsStore {
    /// Stores the params of `textDocument/publishDiagnostics`. Invalid params are logged and ignored.
    pub(super) fn publish(&self, params: Option<&Params>) {
        let Some(json) = params.map(Params::as_json) else { return };
        match json.decode() {
            Ok(diagnostics) => {
                self.0.send_modify(|table| table.insert(diagnostics, json.as_str().len()));
            }
            Err(error) => tracing::warn!(%error, "the server published invalid diagnostics"),
        }
    }

    /// Returns the number of the newest diagnostics.
    pub(super) fn last(&self) -> u64 {
        self.0.borrow().last
    }

    pub(super) fn of(&self, document: &DocumentKey) -> Option<PublishDiagnosticsParams> {
        self.0.borrow().of(document).map(|(_, diagnostics)| diagnostics.clone())
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
        self.wait_for(find, peer).await
    }

    /// Waits for the next diagnostics of any document that arrive after this number.
    async fn after(
        self: Arc<Self>,
        seen: u64,
        peer: Peer,
    ) -> Result<(u64, PublishDiagnosticsParams), CallError> {
        self.wait_for(|table| table.after(seen), &peer).await
    }

    async fn wait_for<T>(
        &self,
        find: impl Fn(&Table) -> Option<T>,
        peer: &Peer,
    ) -> Result<T, CallError> {
        let (mut table, mut found) = (self.0.subscribe(), None);
        let has_found = table.wait_for(|table| {
            found = find(table);
            found.is_some()
        });
        tokio::select! {
            biased;
            _ = has_found => {}
            reason = peer.closed() => return Err(CallError::Closed(reason)),
        }
        Ok(found.expect("`wait_for` returns when it is found, and `self` holds the sender"))
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
    store: Arc<DiagnosticsStore>,
    peer: Peer,
    /// Waits for the next diagnostics. `None` after the end.
    next: Option<BoxFuture<'static, Result<(u64, PublishDiagnosticsParams), CallError>>>,
}

impl Diagnostics {
    pub(super) fn new(store: Arc<DiagnosticsStore>, peer: Peer) -> Self {
        let next: BoxFuture<'static, _> = Box::pin(store.clone().after(0, peer.clone()));
        Self { store, peer, next: Some(next) }
    }
}

impl Stream for Diagnostics {
    type Item = PublishDiagnosticsParams;

    fn poll_next(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(next) = &mut this.next else { return Poll::Ready(None) };
        let arrived = ready!(next.as_mut().poll(poller));
        let (next, diagnostics) = match arrived {
            Ok((number, diagnostics)) => {
                let next = this.store.clone().after(number, this.peer.clone());
                (Some(Box::pin(next) as BoxFuture<'static, _>), Some(diagnostics))
            }
            Err(_) => (None, None),
        };
        this.next = next;
        Poll::Ready(diagnostics)
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnostics").finish_non_exhaustive()
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
