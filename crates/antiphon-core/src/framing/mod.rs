//! Framing: the boundaries of messages on a byte stream.
//!
//! This module never reads, writes, waits, or parses JSON: a malformed text is still a frame, so that the
//! decoder can create its error response. It never allocates for a length that a peer has only announced.
//!
//! Invariant: only the deframer consumes the buffer. It remembers how far it has scanned, so a message
//! that arrives in a thousand pieces is still scanned once. After [`Deframer::next`] has returned `None`,
//! the buffer holds no more than the frame limit (or, for header framing, one header block of limited
//! size).

mod header;
mod header_block;
mod json_text;
mod line;
mod values;
pub mod websocket;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use bytes::{BufMut, Bytes, BytesMut};

use self::header::HeaderDeframer;
pub use self::header_block::HeaderError;
use self::line::LineDeframer;
use self::values::ValuesDeframer;

/// The maximum hint for a frame of which few bytes are buffered.
const MAX_SMALL_HINT: usize = 64 * 1024;
/// The number of buffered bytes from which a message counts as large.
const LARGE_MESSAGE: usize = 1 << 20;
/// The most bytes that a framing adds to a message.
const MAX_OVERHEAD: usize = 40;

/// The separation of messages on a byte stream.
///
/// ```
/// use antiphon_core::framing::Framing;
/// use bytes::BytesMut;
///
/// let mut out = BytesMut::new();
/// Framing::Header.encode(b"{}", &mut out);
/// assert_eq!(out, "Content-Length: 2\r\n\r\n{}");
/// assert_eq!("line".parse(), Ok(Framing::Line));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framing {
    /// One JSON text per line (MCP, IPC). Several texts on one line are accepted too.
    Line,
    /// A `Content-Length` header block before each text (LSP).
    Header,
    /// JSON values that follow each other; a newline is only white space.
    Values,
}

impl Framing {
    /// Appends the frame of `message`, which is one JSON text, to `out`.
    ///
    /// With line framing, newlines become spaces: in JSON text they are only white space, and a
    /// forwarded message may contain them.
    pub fn encode(self, message: &[u8], out: &mut BytesMut) {
        out.reserve(message.len() + MAX_OVERHEAD);
        self.encode_head(message.len(), out);
        let start = out.len();
        out.put_slice(message);
        if self == Self::Line {
            spaces_for_newlines(&mut out[start..]);
        }
        self.encode_tail(out);
    }

    /// Whether a message can be sent unchanged between `encode_head` and `encode_tail`.
    pub fn takes(self, message: &[u8]) -> bool {
        self != Self::Line || memchr::memchr2(b'\n', b'\r', message).is_none()
    }

    /// Appends the bytes before a message of this length.
    pub fn encode_head(self, length: usize, out: &mut BytesMut) {
        if self == Self::Header {
            // A `BytesMut` grows as needed, so writing to it cannot fail.
            let _ = write!(out, "Content-Length: {length}\r\n\r\n");
        }
    }

    /// Appends the bytes after a message.
    pub fn encode_tail(self, out: &mut BytesMut) {
        if self != Self::Header {
            out.put_u8(b'\n');
        }
    }
}

fn spaces_for_newlines(mut text: &mut [u8]) {
    while let Some(at) = memchr::memchr2(b'\n', b'\r', text) {
        text[at] = b' ';
        text = &mut text[at + 1..];
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "line",
            Self::Header => "header",
            Self::Values => "values",
        })
    }
}

impl FromStr for Framing {
    type Err = UnknownFraming;

    fn from_str(name: &str) -> Result<Self, UnknownFraming> {
        match name {
            "line" => Ok(Self::Line),
            "header" => Ok(Self::Header),
            "values" => Ok(Self::Values),
            _ => Err(UnknownFraming { name: name.to_owned() }),
        }
    }
}

/// An error for an unknown name of a framing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown framing {name:?}; choose line, header or values")]
#[non_exhaustive]
pub struct UnknownFraming {
    /// The unknown name.
    pub name: String,
}

/// The reason why a frame could not be taken from the stream. The stream stays usable after every error
/// except [`Truncated`](Self::Truncated), which is the end of the stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is over the limit. The error is reported once, and the frame is skipped.
    #[error(
        "frame is larger than the limit of {limit} bytes; raise `Limits::frame_bytes` or send less"
    )]
    TooLarge {
        /// The limit that the frame exceeds.
        limit: usize,
    },
    /// The header block is malformed. The bytes up to the next `Content-Length:` are skipped.
    #[error("malformed header block: {reason}")]
    Header {
        /// The reason.
        reason: HeaderError,
    },
    /// The stream ended inside a header block or a body. Only [`Deframer::finish`] returns it.
    #[error("stream ended inside a frame; send all of the announced bytes before closing")]
    Truncated,
}

/// Splits one line into its texts, like a [`Deframer`] without `whole_lines`.
///
/// ```
/// use antiphon_core::framing::texts;
///
/// assert!(texts(b"[1] [2]").eq(["[1]", "[2]"]));
/// ```
pub fn texts(line: &[u8]) -> Texts {
    Texts { deframer: Deframer::new(Framing::Line, usize::MAX), rest: BytesMut::from(line) }
}

/// Iterator over the texts of a line.
#[derive(Debug)]
pub struct Texts {
    deframer: Deframer,
    rest: BytesMut,
}

impl Iterator for Texts {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        self.deframer.finish(&mut self.rest)?.ok()
    }
}

/// Takes frames from the front of a buffer. It resumes where the last call ran out of bytes.
///
/// ```
/// use antiphon_core::framing::{Deframer, Framing};
/// use bytes::BytesMut;
///
/// let mut deframer = Deframer::new(Framing::Line, 1024);
/// let mut received = BytesMut::from("[1]\n[2");
/// assert_eq!(deframer.next(&mut received), Some(Ok("[1]".into())));
/// assert_eq!(deframer.next(&mut received), None);
/// received.extend_from_slice(b"]\n");
/// assert_eq!(deframer.next(&mut received), Some(Ok("[2]".into())));
/// ```
#[derive(Debug)]
pub struct Deframer {
    max_frame: usize,
    whole_lines: bool,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Detecting,
    Line(LineDeframer),
    Header(HeaderDeframer),
    Values(ValuesDeframer),
}

/// The outcome of one step of a deframer. Each step except `NeedMoreBytes` consumes bytes or changes
/// state, so the loop over steps ends.
enum DeframeStep {
    Emit(Result<Bytes, FrameError>),
    Continue,
    NeedMoreBytes,
}

impl Deframer {
    /// Creates a deframer for `framing` that rejects frames of more than `max_frame` bytes.
    pub fn new(framing: Framing, max_frame: usize) -> Self {
        let mut deframer = Self::detecting(max_frame);
        deframer.begin(framing);
        deframer
    }

    fn begin(&mut self, framing: Framing) {
        let max_frame = self.max_frame;
        self.mode = match framing {
            Framing::Line => Mode::Line(LineDeframer::new(max_frame, self.whole_lines)),
            Framing::Header => Mode::Header(HeaderDeframer::new(max_frame)),
            Framing::Values => Mode::Values(ValuesDeframer::new(max_frame)),
        };
    }

    /// Returns each complete line as one frame, without a scan for its texts. Most lines are one text,
    /// and the decoder notices the others; [`texts`] then splits the line.
    #[must_use]
    pub fn whole_lines(mut self) -> Self {
        self.whole_lines = true;
        if let Mode::Line(_) = self.mode {
            self.begin(Framing::Line);
        }
        self
    }

    /// Creates a deframer that detects the framing from the first byte: `C` or `c` starts a
    /// `Content-Length` header, because no JSON text starts with it. Every other byte means line framing.
    pub fn detecting(max_frame: usize) -> Self {
        Self { max_frame, whole_lines: false, mode: Mode::Detecting }
    }

    /// The framing in use; `None` until it is detected.
    pub fn framing(&self) -> Option<Framing> {
        match self.mode {
            Mode::Detecting => None,
            Mode::Line(_) => Some(Framing::Line),
            Mode::Header(_) => Some(Framing::Header),
            Mode::Values(_) => Some(Framing::Values),
        }
    }

    /// Returns the next frame in `buf` without copying it; `None` if more bytes are needed. After an error,
    /// the next call continues behind the invalid bytes.
    ///
    /// Between calls `buf` may only grow at its end.
    pub fn next(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        loop {
            match self.step(buf) {
                DeframeStep::Emit(frame) => return Some(frame),
                DeframeStep::Continue => {}
                DeframeStep::NeedMoreBytes => return None,
            }
        }
    }

    /// Returns the remaining frames at the end of the stream. Call it until it returns `None`.
    pub fn finish(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        self.next(buf).or_else(|| match &mut self.mode {
            Mode::Detecting => None,
            Mode::Line(line) => line.finish(buf),
            Mode::Header(header) => header.finish(buf),
            Mode::Values(values) => values.finish(buf),
        })
    }

    /// Whether a frame has begun and not ended, with this many bytes in the buffer.
    pub fn is_under_way(&self, buffered: usize) -> bool {
        match &self.mode {
            Mode::Detecting => false,
            Mode::Line(line) => line.is_under_way(),
            Mode::Header(header) => header.is_under_way(buffered),
            Mode::Values(values) => values.is_under_way(),
        }
    }

    /// Returns how many more bytes the current frame needs, or zero if that is unknown. It is a hint for
    /// the size of the next read, limited by [`reserve_hint`].
    pub fn wanted(&self, buffered: usize) -> usize {
        match &self.mode {
            Mode::Header(header) => reserve_hint(header.wanted(buffered), buffered),
            Mode::Detecting | Mode::Line(_) | Mode::Values(_) => 0,
        }
    }

    fn step(&mut self, buf: &mut BytesMut) -> DeframeStep {
        match &mut self.mode {
            Mode::Detecting => self.detect(buf),
            Mode::Line(line) => line.step(buf),
            Mode::Header(header) => header.step(buf),
            Mode::Values(values) => values.step(buf),
        }
    }

    fn detect(&mut self, buf: &BytesMut) -> DeframeStep {
        let framing = match buf.first() {
            None => return DeframeStep::NeedMoreBytes,
            Some(b'C' | b'c') => Framing::Header,
            Some(_) => Framing::Line,
        };
        self.begin(framing);
        DeframeStep::Continue
    }
}

/// Returns the number of bytes to reserve for a message of which `missing` bytes have not arrived and
/// `buffered` bytes have. The announced length alone must not determine the size of a buffer.
///
/// The hint is at most 64 KiB or four times the received bytes, whichever is more, and sixteen times from
/// 1 MiB on. The announced length of a message that is already large is seldom wrong, and moving the
/// message to a larger buffer costs more than unused memory.
///
/// ```
/// use antiphon_core::framing::reserve_hint;
///
/// assert_eq!(reserve_hint(100, 0), 100);
/// assert_eq!(reserve_hint(1 << 30, 100), 64 << 10);
/// assert_eq!(reserve_hint(1 << 30, 100 << 10), 400 << 10);
/// assert_eq!(reserve_hint(1 << 30, 1 << 20), 16 << 20);
/// ```
pub fn reserve_hint(missing: usize, buffered: usize) -> usize {
    let factor = if buffered < LARGE_MESSAGE { 4 } else { 16 };
    missing.min(buffered.saturating_mul(factor).max(MAX_SMALL_HINT))
}

#[cfg(test)]
mod tests;
