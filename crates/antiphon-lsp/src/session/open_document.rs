//! The editor's side of text synchronization: documents that a session has opened.
//!
//! The session numbers the versions, and sends changes in the form that the server wants. It reads and writes no files.
//!
//! Invariant: the text of an [`OpenDocument`] equals the server's text after all sent notifications, unless the server
//! wants no changes.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::{CallError, Peer};
use serde::Serialize;

use super::diagnostics::DiagnosticsStore;
use super::sync_options::{Change, SyncOptions};
use crate::documents::{Document, PositionEncoding, Text, difference};
use crate::file_uri::DocumentKey;
use crate::types::{
    self, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, LanguageKind, Position, PublishDiagnosticsParams,
    TextDocumentContentChangeEvent, TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument, TextDocumentIdentifier, TextDocumentItem,
    TextDocumentPositionParams, TextEdit, Uri, VersionedTextDocumentIdentifier,
};

/// The reason why a document cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The document is already open. The protocol forbids a second `didOpen` before `didClose`.
    #[error("{} is already open: change the open document, or close it first", .uri.0)]
    AlreadyOpen {
        /// The document.
        uri: Uri,
    },
    /// `didOpen` could not be sent.
    #[error("cannot open {}", .uri.0)]
    NotSent {
        /// The document.
        uri: Uri,
        /// The cause.
        source: CallError,
    },
}

/// The reason why edits are not applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Two edits change the same text.
    #[error(
        "the edit of line {} overlaps another one: the edits of one document must be disjoint",
        .range.start.line + 1
    )]
    Overlap {
        /// The range of one of the two edits.
        range: types::Range,
    },
    /// The change could not be sent.
    #[error("the edits were not sent")]
    NotSent(#[source] CallError),
}

/// The shared state of the documents of a session.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    pub(super) peer: Peer,
    pub(super) sync: SyncOptions,
    pub(super) encoding: PositionEncoding,
    pub(super) diagnostics: Arc<DiagnosticsStore>,
    /// The open documents.
    pub(super) open: Arc<Mutex<HashSet<DocumentKey>>>,
}

/// A document that is open in a session. Created by [`ServerSession::open`](super::ServerSession::open).
///
/// Each change has the next version. The server decides the form of a change: it gets the changed ranges, the whole
/// text, or no changes. [`close`](Self::close) closes the document, and so does dropping it.
///
/// ```
/// use antiphon::CallError;
/// use antiphon_lsp::types::{HoverParams, Position};
/// use antiphon_lsp::{OpenDocument, ServerSession};
///
/// async fn rename(session: &ServerSession, document: &mut OpenDocument) -> Result<(), CallError> {
///     let text = document.snapshot().as_str().replace("old", "new");
///     document.replace(&text).await?;
///     let found = document.diagnostics().await?;
///     println!("version {}: {} problems", document.version(), found.diagnostics.len());
///     let at = document.at(Position::new(3, 7));
///     println!("{:?}", session.server().hover(HoverParams::new(Default::default(), at)).await?);
///     document.save().await
/// }
/// ```
#[must_use = "a document is closed when it is dropped"]
pub struct OpenDocument {
    workspace: Workspace,
    document: Document,
    key: DocumentKey,
    /// The number of the newest diagnostics when the last change was sent.
    seen: u64,
    /// Whether the document is still open on the server.
    is_open: bool,
}

impl OpenDocument {
    pub(super) async fn open(
        workspace: Workspace,
        uri: Uri,
        language: LanguageKind,
        text: String,
    ) -> Result<Self, OpenError> {
        let key = DocumentKey::new(&uri);
        if !workspace.open().insert(key.clone()) {
            return Err(OpenError::AlreadyOpen { uri });
        }
        let document = Document::new(
            uri.clone(),
            language.clone(),
            FIRST_VERSION,
            workspace.encoding,
            Text::from(&*text),
        );
        let seen = workspace.diagnostics.last();
        let mut opened = Self { workspace, document, key, seen, is_open: false };
        let item = TextDocumentItem::new(uri.clone(), language, FIRST_VERSION, text);
        if opened.workspace.sync.open_close {
            let sent = opened.send("textDocument/didOpen", DidOpenTextDocumentParams::new(item));
            sent.await.map_err(|source| OpenError::NotSent { uri, source })?;
            opened.is_open = true;
        }
        Ok(opened)
    }

    /// Returns a snapshot of the document. It equals the server's text, unless the server wants no changes.
    pub fn snapshot(&self) -> &Document {
        &self.document
    }

    /// Returns the URI.
    pub fn uri(&self) -> &Uri {
        self.document.uri()
    }

    /// Whether a URI from the server names this document. Servers may encode the URI of a document in another way than
    /// their client, so do not compare the texts.
    pub fn has_uri(&self, uri: &Uri) -> bool {
        DocumentKey::new(uri) == self.key
    }

    /// Returns the version. It starts with 1 and increases by 1 with each change.
    pub fn version(&self) -> i32 {
        self.document.version()
    }

    /// Returns the identifier of the document, for the params of requests.
    pub fn identifier(&self) -> TextDocumentIdentifier {
        TextDocumentIdentifier::new(self.uri().clone())
    }

    /// Returns the document and a position in it, for the params of requests. [`Document::position`] converts a byte
    /// offset to a position.
    pub fn at(&self, position: Position) -> TextDocumentPositionParams {
        TextDocumentPositionParams::new(self.identifier(), position)
    }

    /// Replaces a range of positions, in the position encoding of the session.
    pub async fn edit(&mut self, range: types::Range, text: &str) -> Result<(), CallError> {
        let bytes = self.document.byte_range(range);
        self.change(bytes, text).await
    }

    /// Applies edits, such as those of `textDocument/formatting`, as one change. As the protocol defines, all ranges
    /// refer to the original text, and several texts inserted at one position keep their order.
    ///
    /// # Errors
    /// Fails if two ranges overlap. Then nothing is changed.
    pub async fn apply(&mut self, edits: &[TextEdit]) -> Result<(), ApplyError> {
        let text = edited(&self.document, edits)?;
        self.replace(&text).await.map_err(ApplyError::NotSent)
    }

    /// Replaces the whole text. If the server wants ranges, only the part that differs is sent. An equal text changes
    /// nothing.
    pub async fn replace(&mut self, text: &str) -> Result<(), CallError> {
        let document = self.document.clone();
        let (bytes, new) = difference(document.as_str(), text);
        if bytes.is_empty() && new.is_empty() {
            return Ok(());
        }
        self.change(bytes, new).await
    }

    /// Sends `didSave` if the server wants it. Write the file before you call this.
    pub async fn save(&mut self) -> Result<(), CallError> {
        let Some(with_text) = self.workspace.sync.save else { return Ok(()) };
        let text = with_text.then(|| self.document.as_str().to_owned());
        let params = DidSaveTextDocumentParams::new(self.identifier(), text);
        self.send("textDocument/didSave", params).await
    }

    /// Waits for the diagnostics of the current text: diagnostics that arrive after the last change was sent, and that
    /// do not name an older version. If the server sends no versions, the result may be for an older text.
    ///
    /// Use a timeout: a server may publish nothing if its diagnostics have not changed.
    ///
    /// # Errors
    /// Fails if the connection ends.
    pub async fn diagnostics(&self) -> Result<PublishDiagnosticsParams, CallError> {
        let Workspace { diagnostics, peer, .. } = &self.workspace;
        diagnostics.newer(&self.key, self.seen, self.version(), peer).await
    }

    /// Closes the document. It can then be opened again.
    pub async fn close(mut self) -> Result<(), CallError> {
        if self.is_open {
            let params = DidCloseTextDocumentParams::new(self.identifier());
            self.send("textDocument/didClose", params).await?;
            self.is_open = false;
        }
        Ok(())
    }

    /// Sends a replacement of a byte range, then applies it to the text.
    ///
    /// If the future is dropped early, nothing is sent or changed.
    async fn change(&mut self, bytes: Range<usize>, new: &str) -> Result<(), CallError> {
        let mut text = self.document.text().clone();
        text.replace(bytes.clone(), new);
        let version = self.document.version().saturating_add(1);
        let changed = self.document.with_text(version, text);
        let seen = self.workspace.diagnostics.last();
        if let Some(event) = self.event(bytes, new, &changed) {
            let identifier = VersionedTextDocumentIdentifier::new(version, self.identifier());
            let params = DidChangeTextDocumentParams::new(identifier, vec![event]);
            self.send("textDocument/didChange", params).await?;
        }
        self.document = changed;
        self.seen = seen;
        Ok(())
    }

    /// Returns the change in the form that the server wants.
    fn event(
        &self,
        bytes: Range<usize>,
        new: &str,
        changed: &Document,
    ) -> Option<TextDocumentContentChangeEvent> {
        match self.workspace.sync.change {
            Change::None => None,
            Change::Full => {
                let text = changed.as_str().to_owned();
                Some(TextDocumentContentChangeWholeDocument::new(text).into())
            }
            Change::Incremental => {
                let range = self.document.range(bytes);
                Some(TextDocumentContentChangePartial::new(range, None, new.to_owned()).into())
            }
        }
    }

    async fn send(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        self.workspace.peer.notify(method, params).await
    }
}

/// Returns the text of a document after these edits.
fn edited(document: &Document, edits: &[TextEdit]) -> Result<String, ApplyError> {
    let mut sorted: Vec<_> =
        edits.iter().map(|edit| (document.byte_range(edit.range), edit)).collect();
    // A stable sort, so edits at one position keep their order.
    sorted.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut text, mut end) = (String::new(), 0);
    for (range, edit) in sorted {
        if range.start < end {
            return Err(ApplyError::Overlap { range: edit.range });
        }
        text.push_str(&document.text().slice(end..range.start));
        text.push_str(&edit.new_text);
        end = range.end;
    }
    text.push_str(&document.text().slice(end..document.text().len()));
    Ok(text)
}

/// The first version of a document.
const FIRST_VERSION: i32 = 1;

impl Workspace {
    /// Ignores lock poisoning, because no code panics while it holds the lock.
    fn open(&self) -> MutexGuard<'_, HashSet<DocumentKey>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenDocument {
    fn drop(&mut self) {
        if self.is_open {
            let params = DidCloseTextDocumentParams::new(self.identifier());
            // Fails only if the connection has ended.
            let _ = self.workspace.peer.notify_now("textDocument/didClose", params);
        }
        self.workspace.open().remove(&self.key);
    }
}

impl fmt::Debug for OpenDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenDocument").field("document", &self.document).finish_non_exhaustive()
    }
}
