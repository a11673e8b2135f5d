//! A snapshot of a document for handlers.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{PositionEncoding, Text};
use crate::types;
use crate::types::{LanguageKind, Position, Uri};

/// A snapshot of one version of an open document. It is cheap to clone. Later changes of the document do not affect
/// it, so a handler can keep it across an await.
///
/// Positions and offsets outside the text are moved into it, as [`Text::offset`] describes. If a range ends before it
/// starts, the ends are swapped.
#[derive(Clone)]
pub struct Document(Arc<Snapshot>);

struct Snapshot {
    uri: Uri,
    language: LanguageKind,
    version: i32,
    encoding: PositionEncoding,
    text: Text,
    /// The text in one piece, created on first use.
    whole: OnceLock<String>,
}

impl Document {
    pub(crate) fn new(
        uri: Uri,
        language: LanguageKind,
        version: i32,
        encoding: PositionEncoding,
        text: Text,
    ) -> Self {
        let whole = OnceLock::new();
        Self(Arc::new(Snapshot { uri, language, version, encoding, text, whole }))
    }

    pub(crate) fn with_text(&self, version: i32, text: Text) -> Self {
        let Snapshot { uri, language, encoding, .. } = &*self.0;
        Self::new(uri.clone(), language.clone(), version, *encoding, text)
    }

    /// Returns whether both are the same version of the same document. A document that was closed and opened again is
    /// another one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the URI exactly as the editor sent it.
    pub fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// Returns the language that the editor sent in `didOpen`.
    pub fn language(&self) -> &LanguageKind {
        &self.0.language
    }

    /// Returns the version, from `didOpen` or the last `didChange`.
    pub fn version(&self) -> i32 {
        self.0.version
    }

    /// Returns the position encoding of this connection.
    pub fn encoding(&self) -> PositionEncoding {
        self.0.encoding
    }

    /// Returns the whole text. The first call for each version copies the text into one piece.
    pub fn as_str(&self) -> &str {
        self.0.whole.get_or_init(|| self.0.text.to_string())
    }

    /// Returns the text with its index of lines and characters, without a copy.
    pub fn text(&self) -> &Text {
        &self.0.text
    }

    /// Returns a line without its line end; `None` past the last line.
    pub fn line(&self, line: u32) -> Option<String> {
        let range = self.0.text.line_range(line as usize)?;
        Some(self.0.text.slice(range))
    }

    /// Returns the text in a range of positions.
    pub fn slice(&self, range: types::Range) -> String {
        self.0.text.slice(self.byte_range(range))
    }

    /// Converts a position to a byte offset.
    pub fn offset(&self, position: Position) -> usize {
        self.0.text.offset(position.line, position.character, self.0.encoding)
    }

    /// Converts a byte offset to a position.
    pub fn position(&self, offset: usize) -> Position {
        let (line, character) = self.0.text.position(offset, self.0.encoding);
        Position { line, character }
    }

    /// Converts a range of positions to a range of bytes.
    pub fn byte_range(&self, range: types::Range) -> Range<usize> {
        byte_range(&self.0.text, range, self.0.encoding)
    }

    /// Converts a range of bytes to a range of positions.
    pub fn range(&self, range: Range<usize>) -> types::Range {
        let (start, end) = (range.start.min(range.end), range.start.max(range.end));
        types::Range { start: self.position(start), end: self.position(end) }
    }
}

pub(super) fn byte_range(
    text: &Text,
    range: types::Range,
    encoding: PositionEncoding,
) -> Range<usize> {
    let offset = |at: Position| text.offset(at.line, at.character, encoding);
    let (start, end) = (offset(range.start), offset(range.end));
    start.min(end)..start.max(end)
}

/// Prints the size instead of the text, to keep documents out of logs.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("uri", &self.0.uri.0)
            .field("version", &self.0.version)
            .field("text", &self.0.text)
            .finish_non_exhaustive()
    }
}
