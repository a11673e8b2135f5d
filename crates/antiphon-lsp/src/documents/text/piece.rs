//! A piece of a text, small enough to scan for one position.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::super::PositionEncoding;
use super::extent::Extent;

/// The maximum size of a piece in bytes.
pub(super) const PIECE: usize = 2048;

/// A part of a text, and its extent.
#[derive(Clone)]
pub(super) struct Piece {
    text: Arc<str>,
    pub(super) extent: Extent,
}

impl Piece {
    fn new(text: &str) -> Self {
        Self { text: text.into(), extent: Extent::of(text) }
    }

    /// Returns the extent before a byte offset, or before the character that contains the byte.
    pub(super) fn before(&self, offset: usize) -> Extent {
        let offset = floor(&self.text, offset);
        let extent = Extent::of(&self.text[..offset]);
        if is_inside_of_a_line_end(&self.text, offset) {
            extent.without_last_break()
        } else {
            extent
        }
    }

    /// Returns the byte range of a line end. Line ends are numbered from 0.
    pub(super) fn line_end(&self, index: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let last = memchr::memchr2_iter(b'\n', b'\r', bytes)
            .filter(|at| !is_inside_of_a_line_end(&self.text, at + 1))
            .nth(index)?;
        let start = if is_inside_of_a_line_end(&self.text, last) { last - 1 } else { last };
        Some(start..last + 1)
    }

    /// Returns the byte offset of the character that contains this unit.
    pub(super) fn byte_of_unit(&self, unit: usize, encoding: PositionEncoding) -> usize {
        if encoding == PositionEncoding::Utf8 {
            return floor(&self.text, unit);
        }
        let mut end = 0;
        for (at, char) in self.text.char_indices() {
            end += encoding.units_of(char);
            if unit < end {
                return at;
            }
        }
        self.text.len()
    }
}

impl Deref for Piece {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// Cuts a text into pieces of about the same size.
pub(super) fn cut(text: &str) -> Vec<Piece> {
    let count = text.len().div_ceil(PIECE);
    let mut pieces = Vec::with_capacity(count);
    let mut start = 0;
    for left in (1..=count).rev() {
        let end = end_of_character(text, start + (text.len() - start).div_ceil(left));
        if start < end {
            pieces.push(Piece::new(&text[start..end]));
        }
        start = end;
    }
    pieces
}

/// Returns the first offset from this one on that is neither inside a character nor inside `\r\n`.
fn end_of_character(text: &str, mut offset: usize) -> usize {
    while !text.is_char_boundary(offset) || is_inside_of_a_line_end(text, offset) {
        offset += 1;
    }
    offset
}

fn is_inside_of_a_line_end(text: &str, offset: usize) -> bool {
    let bytes = text.as_bytes();
    offset > 0 && bytes.get(offset - 1) == Some(&b'\r') && bytes.get(offset) == Some(&b'\n')
}

/// Returns the start of the character that contains this byte. `str::floor_char_boundary` needs Rust 1.91.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
