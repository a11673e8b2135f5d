//! Why a message about a document is not applied.

use crate::types::Uri;

/// A notification about a document that cannot be applied. The sender gets no response to a notification, so
/// whoever receives the error reports it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// A change, a save or a close of a document that is not open.
    #[error("{} is not open: send textDocument/didOpen first", .uri.0)]
    NotOpen {
        /// The document.
        uri: Uri,
    },
    /// A version that is not newer than the current one. The document stays as it is.
    #[error(
        "version {version} of {} is not newer than {current}: each change needs a higher version",
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
    /// The texts exceed the limit. The document is closed, since a text that misses a change is wrong.
    #[error("{} is closed: the open documents exceed {limit} bytes (see Documents::max_bytes)", .uri.0)]
    TooLarge {
        /// The document.
        uri: Uri,
        /// The limit of all texts together.
        limit: usize,
    },
    /// Too many documents are open. This one stays closed.
    #[error("{} is not opened: {limit} documents are open (see Documents::max_documents)", .uri.0)]
    TooManyDocuments {
        /// The document.
        uri: Uri,
        /// The limit.
        limit: usize,
    },
    /// The saved text is another one than the text after all changes. The document stays as it is.
    #[error("the saved text of {} differs from the text after all changes: open it again", .uri.0)]
    DifferentText {
        /// The document.
        uri: Uri,
    },
}
