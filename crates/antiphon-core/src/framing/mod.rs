//! Where does a message end? Bytes become frames of one JSON text each, and messages become bytes.
//!
//! It never reads, writes, waits, or parses JSON: a malformed text is still a frame, so that the
//! decoder can answer it. It never allocates for a length that a peer has only announced.
//!
//! Invariant: the buffer is consumed here and nowhere else. What was scanned is remembered as an
//! offset into it, so a message that arrives in a thousand pieces is still scanned once; and after
//! [`Deframer::next`] has asked for more bytes, the buffer holds no more than the frame limit (or,
//! for header framing, one capped header block).

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

/// The most that is asked for of a frame of which little has come.
const MAX_WANTED: usize = 64 * 1024;
/// What has come of a message that is large without doubt.
const MUCH: usize = 1 << 20;
/// The most that a framing writes around a message.
const MAX_AROUND: usize = 40;

/// How messages are told apart on a byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One JSON text a line (MCP, IPC); texts that follow each other on one line are taken too.
    Line,
    /// A `Content-Length` header block before each text (LSP).
    Header,
    /// JSON values that follow each other; a newline is whitespace.
    Values,
}

impl Framing {
    /// Appends `message`, which is one JSON text, to `out`, framed.
    ///
    /// On a line, newlines become spaces: in JSON they are white space and nothing else, and a
    /// message that is only passed on may hold them.
    pub fn encode(self, message: &[u8], out: &mut BytesMut) {
        out.reserve(message.len() + MAX_AROUND);
        self.encode_head(message.len(), out);
        let start = out.len();
        out.put_slice(message);
        if self == Self::Line {
            spaces_for_newlines(&mut out[start..]);
        }
        self.encode_tail(out);
    }

    /// Whether a message can go as it is, between the two below.
    pub fn takes(self, message: &[u8]) -> bool {
        self != Self::Line || memchr::memchr2(b'\n', b'\r', message).is_none()
    }

    /// Appends what stands before a message of this length.
    pub fn encode_head(self, length: usize, out: &mut BytesMut) {
        if self == Self::Header {
            // A `BytesMut` grows as needed, so writing to it cannot fail.
            let _ = write!(out, "Content-Length: {length}\r\n\r\n");
        }
    }

    /// Appends what stands behind a message.
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

/// The name of a framing that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown framing {name:?}; choose line, header or values")]
pub struct UnknownFraming {
    /// The name as it was given.
    pub name: String,
}

/// Why a frame could not be taken from the stream. The stream stays usable after each of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is over the limit. It is reported once and skipped to its end.
    #[error("frame is larger than the limit of {limit} bytes; raise the frame limit or send less")]
    TooLarge {
        /// The limit that the frame exceeds.
        limit: usize,
    },
    /// The header block is malformed. What follows is skipped to the next `Content-Length:`.
    #[error("malformed header block: {reason}")]
    Header {
        /// What is wrong with it.
        reason: HeaderError,
    },
    /// The stream ended inside a header block or a body.
    #[error("stream ended inside a frame; send all of the announced bytes before closing")]
    Truncated,
}

/// The texts that stand on one line, as a [`Deframer`] gives them that takes no whole lines.
pub fn texts(line: &[u8]) -> Texts {
    Texts { deframer: Deframer::new(Framing::Line, usize::MAX), rest: BytesMut::from(line) }
}

/// The texts of a line, found one after the other.
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

/// Takes frames from the front of a buffer, resuming where the last call ran out of bytes.
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

/// What one step of a deframer came to. Each step but the starved one consumes bytes or changes
/// state, so that stepping ends.
enum DeframeStep {
    Emit(Result<Bytes, FrameError>),
    Continue,
    Starved,
}

impl Deframer {
    /// A deframer for `framing` that refuses frames of more than `max_frame` bytes.
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

    /// Takes a line that is all there as one frame, without a look at what is in it: most lines are
    /// one text, and whoever decodes it sees that. What is none may be several; [`texts`] tells.
    #[must_use]
    pub fn whole_lines(mut self) -> Self {
        self.whole_lines = true;
        if let Mode::Line(_) = self.mode {
            self.begin(Framing::Line);
        }
        self
    }

    /// A deframer that decides at the first byte: `C` or `c` opens a `Content-Length` header, and
    /// no JSON text; anything else is line framing.
    pub fn detecting(max_frame: usize) -> Self {
        Self { max_frame, whole_lines: false, mode: Mode::Detecting }
    }

    /// The framing in use; `None` until it has been detected.
    pub fn framing(&self) -> Option<Framing> {
        match self.mode {
            Mode::Detecting => None,
            Mode::Line(_) => Some(Framing::Line),
            Mode::Header(_) => Some(Framing::Header),
            Mode::Values(_) => Some(Framing::Values),
        }
    }

    /// The next frame in `buf`, without copying it; `None` when more bytes are needed.
    ///
    /// Between calls `buf` may only grow at its end.
    pub fn next(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        loop {
            match self.step(buf) {
                DeframeStep::Emit(frame) => return Some(frame),
                DeframeStep::Continue => {}
                DeframeStep::Starved => return None,
            }
        }
    }

    /// What is left when the stream has ended; to be called until it gives `None`.
    pub fn finish(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        self.next(buf).or_else(|| match &mut self.mode {
            Mode::Detecting => None,
            Mode::Line(line) => line.rest(buf),
            Mode::Header(header) => header.rest(buf),
            Mode::Values(values) => values.rest(buf),
        })
    }

    /// Whether a frame has begun and not ended, of which this many bytes are buffered.
    pub fn is_under_way(&self, buffered: usize) -> bool {
        match &self.mode {
            Mode::Detecting => false,
            Mode::Line(line) => line.is_under_way(),
            Mode::Header(header) => header.is_under_way(buffered),
            Mode::Values(values) => values.is_under_way(),
        }
    }

    /// How many more bytes than the `buffered` ones the frame under way surely needs, as far as
    /// that is known, and at most 64 KiB or four times what has come: a hint for the size of the
    /// next read.
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
            None => return DeframeStep::Starved,
            Some(b'C' | b'c') => Framing::Header,
            Some(_) => Framing::Line,
        };
        self.begin(framing);
        DeframeStep::Continue
    }
}

/// How much to make room for of what is `missing` of a message, when so much is `buffered`: a peer's
/// announcement alone must not size a buffer.
///
/// That is four times what has come, and sixteen once a MiB has: a message that is large already seldom
/// lies, and to move it to more room costs more than room that is not touched.
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
    let times = if buffered < MUCH { 4 } else { 16 };
    missing.min(buffered.saturating_mul(times).max(MAX_WANTED))
}

#[cfg(test)]
mod tests;
