//! The size of a text in bytes, characters, UTF-16 code units and line ends.

use std::ops::{AddAssign, SubAssign};

use super::super::PositionEncoding;

/// The number of bytes, characters, UTF-16 code units and line ends of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) bytes: usize,
    chars: usize,
    utf16: usize,
    pub(super) breaks: usize,
}

impl Extent {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let chars = count(bytes, |byte| (byte as i8) >= -0x40);
        let pairs = count(bytes, |byte| byte >= 0xF0);
        Self { bytes: bytes.len(), chars, utf16: chars + pairs, breaks: breaks(bytes) }
    }

    pub(super) fn units(&self, encoding: PositionEncoding) -> usize {
        match encoding {
            PositionEncoding::Utf8 => self.bytes,
            PositionEncoding::Utf16 => self.utf16,
            PositionEncoding::Utf32 => self.chars,
        }
    }

    /// Does not count a final `\r`, which may be half of a line end.
    pub(super) fn without_last_break(mut self) -> Self {
        self.breaks -= 1;
        self
    }
}

fn breaks(bytes: &[u8]) -> usize {
    let returns = count(bytes, |byte| byte == b'\r');
    let feeds = count(bytes, |byte| byte == b'\n');
    if returns == 0 {
        return feeds;
    }
    let both = memchr::memmem::find_iter(bytes, b"\r\n").count();
    returns + feeds - both
}

/// Counts bytes in blocks. The count of a block fits into a byte, so the compiler can add many bytes in one
/// instruction.
fn count(bytes: &[u8], is_counted: impl Fn(u8) -> bool) -> usize {
    let block = |block: &[u8]| block.iter().map(|byte| u8::from(is_counted(*byte))).sum::<u8>();
    bytes.chunks(u8::MAX as usize).map(|bytes| usize::from(block(bytes))).sum()
}

impl AddAssign for Extent {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.chars += other.chars;
        self.utf16 += other.utf16;
        self.breaks += other.breaks;
    }
}

impl SubAssign for Extent {
    fn sub_assign(&mut self, other: Self) {
        self.bytes -= other.bytes;
        self.chars -= other.chars;
        self.utf16 -= other.utf16;
        self.breaks -= other.breaks;
    }
}
