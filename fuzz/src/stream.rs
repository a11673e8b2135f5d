//! The check that all framings share: the cuts of a stream do not matter.
//!
//! An input is a byte of options, a byte that selects the cuts, and the stream.

use antiphon_core::RawJson;
use antiphon_core::framing::{Deframer, FrameError, Framing};
use bytes::{Bytes, BytesMut};

pub(crate) type Frame = Result<Bytes, FrameError>;

/// The limits to try: zero, a few bytes, ordinary ones, and unlimited.
const LIMITS: [usize; 8] = [usize::MAX, 0, 1, 7, 24, 100, 1_000, 1 << 16];
/// The cap of a header block, which may be buffered under any limit.
const BLOCK: usize = 8 * 1024;
/// The slack of buffers: they grow by doubling, and small ones are larger than their content.
const SLACK: u64 = 4 * 1024;

/// A parsed input.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The upper bits, free for each target.
    pub(crate) options: u8,
    pub(crate) max_frame: usize,
    cuts: u8,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        let [options, cuts, bytes @ ..] = data else { return None };
        let max_frame = LIMITS[usize::from(options & 7)];
        Some(Self { options: options >> 3, max_frame, cuts: *cuts, bytes })
    }

    /// Builds the input of this stream without a limit.
    pub(crate) fn of(stream: &[u8]) -> Vec<u8> {
        [&[0, 5], stream].concat()
    }

    /// The stream whole, byte by byte, and in pieces that the input selects.
    pub(crate) fn ways(&self) -> [Vec<&'a [u8]>; 3] {
        let bytes = self.bytes.chunks(1).collect();
        [vec![self.bytes], bytes, self.pieces()]
    }

    fn pieces(&self) -> Vec<&'a [u8]> {
        let (mut rest, mut state) = (self.bytes, u32::from(self.cuts));
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Mostly a few bytes, sometimes many.
            let size = if state >> 30 == 0 { state >> 22 & 0xFF } else { state >> 22 & 0xF };
            let (piece, others) = rest.split_at(rest.len().min(size as usize + 1));
            pieces.push(piece);
            rest = others;
        }
        pieces
    }

    /// Returns the frames of the stream, and asserts that the cuts do not matter and that the memory is
    /// bounded.
    pub(crate) fn frames(&self, framing: Framing, deframer: impl Fn() -> Deframer) -> Vec<Frame> {
        let [whole, ways @ ..] = self.ways();
        let frames = self.feed(framing, deframer(), &whole);
        for way in ways {
            let others = self.feed(framing, deframer(), &way);
            assert_eq!(others, frames, "{framing} cut into {} pieces", way.len());
            self.assert_frugal(framing, deframer(), &way);
        }
        frames
    }

    /// Asserts that a deframer that detects the framing takes the same frames.
    pub(crate) fn assert_detected(&self, framing: Framing, frames: &[Frame]) {
        let detecting = Deframer::detecting(self.max_frame);
        assert_eq!(self.feed(framing, detecting, &self.pieces()), frames, "{framing} detected");
    }

    /// Returns the frames of these pieces.
    pub(crate) fn feed(
        &self,
        framing: Framing,
        deframer: Deframer,
        pieces: &[&[u8]],
    ) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.drain(framing, deframer, pieces, |frame| frames.push(frame));
        frames
    }

    fn drain(
        &self,
        framing: Framing,
        mut deframer: Deframer,
        pieces: &[&[u8]],
        mut see: impl FnMut(Frame),
    ) {
        let mut buf = BytesMut::new();
        for piece in pieces {
            buf.extend_from_slice(piece);
            while let Some(frame) = deframer.next(&mut buf) {
                self.assert_within_limit(&frame);
                see(frame);
            }
            assert!(buf.len() <= self.bound(framing), "{} bytes are kept", buf.len());
            assert!(deframer.wanted(buf.len()) <= (64 * 1024).max(16 * buf.len()));
        }
        while let Some(frame) = deframer.finish(&mut buf) {
            self.assert_within_limit(&frame);
            see(frame);
        }
        assert!(buf.is_empty(), "bytes are left at the end");
        assert!(!deframer.is_under_way(0), "a frame is under way after the end");
    }

    fn assert_within_limit(&self, frame: &Frame) {
        if let Ok(frame) = frame {
            assert!(frame.len() <= self.max_frame, "a frame of {} bytes", frame.len());
        }
    }

    /// The maximum number of buffered bytes after all frames are taken.
    fn bound(&self, framing: Framing) -> usize {
        if framing == Framing::Header { self.max_frame.max(BLOCK) } else { self.max_frame }
    }

    /// Asserts that dropped frames need no more memory than one frame, for any announced length.
    fn assert_frugal(&self, framing: Framing, deframer: Deframer, pieces: &[&[u8]]) {
        let largest = pieces.iter().map(|piece| piece.len()).max().unwrap_or(0);
        let used = allocation_counter::measure(|| self.drain(framing, deframer, pieces, drop));
        let held = self.bound(framing).min(self.bytes.len()) + largest;
        let allowed = 4 * held as u64 + SLACK;
        assert!(used.bytes_max <= allowed, "{} bytes for {held}", used.bytes_max);
    }
}

/// Asserts that frames of JSON are unchanged after framing and deframing.
pub(crate) fn assert_come_back(framing: Framing, frames: &[Frame]) {
    let is_one = |frame: &&Bytes| RawJson::parse((*frame).clone()).is_ok();
    let frames: Vec<Bytes> = frames.iter().flatten().filter(is_one).cloned().collect();
    let mut wire = BytesMut::new();
    frames.iter().for_each(|frame| framing.encode(frame, &mut wire));
    let mut deframer = Deframer::new(framing, usize::MAX);
    for frame in frames {
        let back = deframer.next(&mut wire);
        let back = back.expect("a frame that was encoded is whole").expect("and within the limit");
        assert_eq!(trimmed(&back), trimmed(&spaced(framing, &frame)));
    }
    assert_eq!(deframer.finish(&mut wire), None, "more came back than was sent");
}

/// With line framing, newlines become spaces.
fn spaced(framing: Framing, text: &[u8]) -> Vec<u8> {
    let space = |byte: &u8| match byte {
        b'\n' | b'\r' if framing == Framing::Line => b' ',
        byte => *byte,
    };
    text.iter().map(space).collect()
}

/// A text without the white space around it (RFC 8259, section 2).
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| b" \t\r\n".contains(byte);
    let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}
