//! Errors of notifications about documents.

use crate::types::Uri;

/// The reason why a notification about a document cannot be applied. A notification gets no response, so log this error
/// or show it to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// A change, a save or a close of a document that is not open.
    #[error("{} is not open: the editor must send textDocument/didOpen first", .uri.0)]
    NotOpen {
        /// The document.
        uri: Uri,
    },
    /// The version is not newer than the current one. The document is closed, because its text may miss this change.
    #[error(
        "{} is closed: version {version} is not newer than {current}; the editor must send \
         textDocument/didOpen, and a higher version with each change",
        .uri.0
    )]
    StaleVersion {
        /// The document.
        uri: Uri,
        /// The version of the change.
        version: i32,
        /// The version of the document.
        current: i32,
    },
    /// The texts exceed the limit. The document is closed, because its text would miss a change.
    #[error("{} is closed: the open documents exceed {limit} bytes (see Documents::max_bytes)", .uri.0)]
    TooLarge {
        /// The document.
        uri: Uri,
        /// The limit for the total size of all texts.
        limit: usize,
    },
    /// Too many documents are open. This one is not opened.
    #[error("{} is not opened: {limit} documents are open (see Documents::max_documents)", .uri.0)]
    TooManyDocuments {
        /// The document.
        uri: Uri,
        /// The limit.
        limit: usize,
    },
    /// The saved text differs from the text after all changes. The document is unchanged.
    #[error(
        "the saved text of {} differs from the text after all changes: the editor must close it and \
         send textDocument/didOpen again",
        .uri.0
    )]
    DifferentText {
        /// The document.
        uri: Uri,
    },
}
