//! A store of the editor's open documents.
//!
//! The store is optional. A language server passes it each notification about documents, in the order of arrival. It
//! reads no files and sends nothing.
//!
//! Invariant: the text equals the editor's text of the same version. A position outside the text is moved into it,
//! as the protocol defines, and a reversed range is swapped. Any other change that cannot be applied is an error.
//! A document that misses a change is closed until the editor opens it again, so an old text is never served. A message
//! that is not valid JSON-RPC never arrives here, so its change is lost.

mod difference;
mod document;
mod encoding;
mod error;
mod text;

pub(crate) use self::difference::difference;
pub use self::document::Document;
pub use self::encoding::PositionEncoding;
pub use self::error::DocumentError;
pub use self::text::Text;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon::ErrorObject;

use self::document::byte_range;
use crate::error::content_modified;
use crate::types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, InitializeParams, ServerCapabilities,
    TextDocumentContentChangeEvent as Change, TextDocumentSyncKind, TextDocumentSyncOptions, Uri,
};

/// A store of the open documents of one connection. The editor's notifications keep it up to date. Clones share the
/// same store.
///
/// URIs are compared byte by byte, without normalization.
///
/// ```
/// use antiphon_lsp::documents::Documents;
/// # use antiphon_lsp::types::{DidChangeTextDocumentParams, DidOpenTextDocumentParams};
/// # fn parsed<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T { serde_json::from_value(json).unwrap() }
/// # let opened: DidOpenTextDocumentParams = parsed(serde_json::json!({"textDocument":
/// #     {"uri": "file:///a.txt", "languageId": "plaintext", "version": 1, "text": "one\ntwo"}}));
/// # let changed: DidChangeTextDocumentParams = parsed(serde_json::json!({
/// #     "textDocument": {"uri": "file:///a.txt", "version": 2}, "contentChanges": [{"text": "2", "range":
/// #         {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}}]}));
///
/// let documents = Documents::new();
/// documents.open(&opened)?; // in `did_open`
/// let document = documents.change(&changed)?; // in `did_change`
/// assert_eq!(document.as_str(), "one\n2");
/// assert_eq!(documents.get(document.uri()).map(|now| now.version()), Some(2));
/// # Ok::<(), antiphon_lsp::documents::DocumentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Documents {
    open: Arc<Mutex<Open>>,
    max_documents: usize,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Open {
    documents: HashMap<Uri, Document>,
    /// The total size of all texts in bytes.
    bytes: usize,
    encoding: PositionEncoding,
}

impl Default for Documents {
    fn default() -> Self {
        Self { open: Arc::default(), max_documents: 10_000, max_bytes: 512 << 20 }
    }
}

impl Documents {
    /// Creates an empty store, with positions in UTF-16.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of open documents: 10,000 by default.
    #[must_use]
    pub fn max_documents(mut self, limit: usize) -> Self {
        self.max_documents = limit;
        self
    }

    /// Sets the maximum total size of all texts in bytes: 512 MiB by default.
    #[must_use]
    pub fn max_bytes(mut self, limit: usize) -> Self {
        self.max_bytes = limit;
        self
    }

    /// Negotiates the position encoding, and returns the server capabilities for this encoding and for document
    /// notifications. Extend them with your own capabilities:
    /// `ServerCapabilities { hover_provider, ..documents.capabilities(&params) }`.
    pub fn capabilities(&self, params: &InitializeParams) -> ServerCapabilities {
        let encoding = PositionEncoding::negotiate(params);
        self.lock().encoding = encoding;
        let sync = TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::Incremental),
            save: Some(true.into()),
            ..TextDocumentSyncOptions::default()
        };
        ServerCapabilities {
            position_encoding: Some(encoding.into()),
            text_document_sync: Some(sync.into()),
            ..ServerCapabilities::default()
        }
    }

    /// Returns the newest version of an open document.
    pub fn get(&self, uri: &Uri) -> Option<Document> {
        self.lock().documents.get(uri).cloned()
    }

    /// Returns the newest versions of all open documents, in no particular order.
    pub fn all(&self) -> Vec<Document> {
        self.lock().documents.values().cloned().collect()
    }

    /// Checks that a snapshot is still the newest version. Call this after an await, and return the error with `?`: the
    /// editor may then repeat the request.
    ///
    /// # Errors
    /// Fails with [`content_modified`] if the document was changed or closed since the snapshot.
    ///
    /// ```
    /// use antiphon::ErrorObject;
    /// use antiphon_lsp::documents::{Document, Documents};
    ///
    /// # async fn count(_: &str) -> usize { 0 }
    /// async fn words(documents: &Documents, document: Document) -> Result<usize, ErrorObject> {
    ///     let words = count(document.as_str()).await;
    ///     documents.ensure_current(&document)?;
    ///     Ok(words)
    /// }
    /// ```
    pub fn ensure_current(&self, document: &Document) -> Result<(), ErrorObject> {
        let now = self.get(document.uri());
        now.filter(|now| now.is(document)).map(drop).ok_or_else(content_modified)
    }

    /// Opens a document. If it is already open, the new text and version replace the old ones.
    pub fn open(&self, params: &DidOpenTextDocumentParams) -> Result<Document, DocumentError> {
        let item = &params.text_document;
        let mut open = self.lock();
        open.remove(&item.uri);
        if open.documents.len() >= self.max_documents {
            let limit = self.max_documents;
            return Err(DocumentError::TooManyDocuments { uri: item.uri.clone(), limit });
        }
        if item.text.len() > self.max_bytes {
            return Err(self.too_large(&item.uri));
        }
        let (uri, language, encoding) = (item.uri.clone(), item.language_id.clone(), open.encoding);
        let document =
            Document::new(uri, language, item.version, encoding, Text::from(&*item.text));
        self.insert(&mut open, document)
    }

    /// Applies all changes of a notification, in order.
    ///
    /// # Errors
    /// Fails if the document is not open, if its version is not newer than the current one, or if the texts exceed the
    /// limit. The document then misses this change, so it is closed until the editor sends `textDocument/didOpen`.
    pub fn change(&self, params: &DidChangeTextDocumentParams) -> Result<Document, DocumentError> {
        let uri = &params.text_document.text_document_identifier.uri;
        let version = params.text_document.version;
        let mut open = self.lock();
        let document = open.documents.get(uri).ok_or_else(|| not_open(uri))?;
        let current = document.version();
        if version <= current {
            // The change may be a new one, so the text may be old.
            open.remove(uri);
            return Err(DocumentError::StaleVersion { uri: uri.clone(), version, current });
        }
        let mut text = document.text().clone();
        for change in &params.content_changes {
            apply(&mut text, change, open.encoding);
            if text.len() > self.max_bytes {
                open.remove(uri);
                return Err(self.too_large(uri));
            }
        }
        let changed = document.with_text(version, text);
        open.remove(uri);
        self.insert(&mut open, changed)
    }

    /// Checks that the saved text equals the document, if the editor sends the text.
    pub fn save(&self, params: &DidSaveTextDocumentParams) -> Result<Document, DocumentError> {
        let uri = &params.text_document.uri;
        let document = self.get(uri).ok_or_else(|| not_open(uri))?;
        match &params.text {
            Some(saved) if saved != document.as_str() => {
                Err(DocumentError::DifferentText { uri: uri.clone() })
            }
            _ => Ok(document),
        }
    }

    /// Closes a document, and returns its last version.
    pub fn close(&self, params: &DidCloseTextDocumentParams) -> Result<Document, DocumentError> {
        let uri = &params.text_document.uri;
        self.lock().remove(uri).ok_or_else(|| not_open(uri))
    }

    fn insert(&self, open: &mut Open, document: Document) -> Result<Document, DocumentError> {
        if open.bytes + document.text().len() > self.max_bytes {
            return Err(self.too_large(document.uri()));
        }
        open.bytes += document.text().len();
        open.documents.insert(document.uri().clone(), document.clone());
        Ok(document)
    }

    fn too_large(&self, uri: &Uri) -> DocumentError {
        DocumentError::TooLarge { uri: uri.clone(), limit: self.max_bytes }
    }

    /// Ignores lock poisoning, because no code panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn remove(&mut self, uri: &Uri) -> Option<Document> {
        let document = self.documents.remove(uri)?;
        self.bytes -= document.text().len();
        Some(document)
    }
}

fn not_open(uri: &Uri) -> DocumentError {
    DocumentError::NotOpen { uri: uri.clone() }
}

fn apply(text: &mut Text, change: &Change, encoding: PositionEncoding) {
    match change {
        Change::TextDocumentContentChangePartial(change) => {
            let range = byte_range(text, change.range, encoding);
            text.replace(range, &change.text);
        }
        Change::TextDocumentContentChangeWholeDocument(change) => *text = Text::from(&*change.text),
    }
}
