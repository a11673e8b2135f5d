//! One version of one document, as handlers see it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{PositionEncoding, Text};
use crate::types;
use crate::types::{LanguageKind, Position, Uri};

/// A snapshot of an open document: its text in one version. A clone is cheap, and later changes of the
/// document do not affect it, so a handler can keep it across an await.
#[derive(Clone)]
pub struct Document(Arc<Snapshot>);

struct Snapshot {
    uri: Uri,
    language: LanguageKind,
    version: i32,
    encoding: PositionEncoding,
    text: Text,
    /// The text in one piece, made when it is first asked for.
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

    /// Whether both are the same version of the same document, also if it was opened again meanwhile.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The URI, as the editor writes it.
    pub fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// The language that the editor named when it opened the document.
    pub fn language(&self) -> &LanguageKind {
        &self.0.language
    }

    /// The version, as of `didOpen` or the last `didChange`.
    pub fn version(&self) -> i32 {
        self.0.version
    }

    /// The unit of the positions of this connection.
    pub fn encoding(&self) -> PositionEncoding {
        self.0.encoding
    }

    /// The whole text. The first call of each version copies it into one piece.
    pub fn as_str(&self) -> &str {
        self.0.whole.get_or_init(|| self.0.text.to_string())
    }

    /// The text with its index of lines and characters, without a copy.
    pub fn text(&self) -> &Text {
        &self.0.text
    }

    /// A line without its end; `None` past the last line.
    pub fn line(&self, line: u32) -> Option<String> {
        let range = self.0.text.line_range(line as usize)?;
        Some(self.0.text.slice(range))
    }

    /// The text in a range of positions.
    pub fn slice(&self, range: types::Range) -> String {
        self.0.text.slice(self.byte_range(range))
    }

    /// Converts a position to a byte offset. Positions outside of the text are moved into it; see
    /// [`Text::offset`].
    pub fn offset(&self, position: Position) -> usize {
        self.0.text.offset(position.line, position.character, self.0.encoding)
    }

    /// Converts a byte offset to a position.
    pub fn position(&self, offset: usize) -> Position {
        let (line, character) = self.0.text.position(offset, self.0.encoding);
        Position { line, character }
    }

    /// Converts a range of positions to a range of bytes. A range that ends before it starts is turned
    /// around.
    pub fn byte_range(&self, range: types::Range) -> Range<usize> {
        byte_range(&self.0.text, range, self.0.encoding)
    }

    /// Converts a range of bytes to a range of positions.
    pub fn range(&self, range: Range<usize>) -> types::Range {
        types::Range { start: self.position(range.start), end: self.position(range.end) }
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

/// Shows the size, not the text: a log is no place for a user's document.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("uri", &self.0.uri.0)
            .field("version", &self.0.version)
            .field("text", &self.0.text)
            .finish_non_exhaustive()
    }
}
