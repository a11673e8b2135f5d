//! Header framing: bodies of the length that a `Content-Length` header announces (LSP).
//!
//! The announced length is not trusted: nothing is allocated for it, and a body over the limit is skipped
//! as it arrives. The length of a body after a malformed block is never guessed.
//!
//! Invariant: each malformed block is reported once. After it, everything up to the next
//! `Content-Length:` is discarded, and at most a partial match of that name stays in the buffer.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

use super::header_block::HeaderBlock;
use super::{DeframeStep, FrameError};

/// The bytes that end a resynchronisation. The first byte occurs only once in them, so a failed match can
/// be discarded as a whole.
const RESYNC_MARKER: &[u8] = b"content-length:";

/// Takes the bodies that `Content-Length` announces.
#[derive(Debug)]
pub(super) struct HeaderDeframer {
    max_frame: usize,
    state: HeaderState,
}

#[derive(Debug)]
enum HeaderState {
    Block(HeaderBlock),
    Body {
        length: usize,
    },
    /// Inside a body over the limit that has been reported.
    Skipping {
        left: u64,
    },
    /// After a malformed block that has been reported. Searches for the next `Content-Length:`.
    Resynchronising,
}

impl HeaderDeframer {
    pub(super) fn new(max_frame: usize) -> Self {
        Self { max_frame, state: HeaderState::Block(HeaderBlock::default()) }
    }

    pub(super) fn step(&mut self, buf: &mut BytesMut) -> DeframeStep {
        match &mut self.state {
            HeaderState::Block(block) => match block.read(buf) {
                Ok(None) => DeframeStep::NeedMoreBytes,
                Ok(Some(length)) => self.open_body(length),
                Err(reason) => {
                    self.state = HeaderState::Resynchronising;
                    DeframeStep::Emit(Err(FrameError::Header { reason }))
                }
            },
            HeaderState::Body { length } if *length > buf.len() => DeframeStep::NeedMoreBytes,
            HeaderState::Body { length } => {
                let body = buf.split_to(*length).freeze();
                self.open_block();
                DeframeStep::Emit(Ok(body))
            }
            HeaderState::Skipping { left } => {
                skip(left, buf);
                if *left == 0 { self.open_block() } else { DeframeStep::NeedMoreBytes }
            }
            HeaderState::Resynchronising if resynchronise(buf) => self.open_block(),
            HeaderState::Resynchronising => DeframeStep::NeedMoreBytes,
        }
    }

    pub(super) fn is_under_way(&self, buffered: usize) -> bool {
        match &self.state {
            HeaderState::Block(block) => block.has_begun() || buffered > 0,
            HeaderState::Body { .. } | HeaderState::Skipping { .. } => true,
            HeaderState::Resynchronising => false,
        }
    }

    pub(super) fn finish(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        let inside_frame = self.is_under_way(buf.len());
        buf.clear();
        self.open_block();
        inside_frame.then_some(Err(FrameError::Truncated))
    }

    pub(super) fn wanted(&self, buffered: usize) -> usize {
        match self.state {
            HeaderState::Body { length } => length.saturating_sub(buffered),
            HeaderState::Skipping { left } => usize::try_from(left).unwrap_or(usize::MAX),
            HeaderState::Block(_) | HeaderState::Resynchronising => 0,
        }
    }

    fn open_block(&mut self) -> DeframeStep {
        self.state = HeaderState::Block(HeaderBlock::default());
        DeframeStep::Continue
    }

    fn open_body(&mut self, length: u64) -> DeframeStep {
        match usize::try_from(length) {
            Ok(length) if length <= self.max_frame => {
                self.state = HeaderState::Body { length };
                DeframeStep::Continue
            }
            _ => {
                self.state = HeaderState::Skipping { left: length };
                DeframeStep::Emit(Err(FrameError::TooLarge { limit: self.max_frame }))
            }
        }
    }
}

fn skip(left: &mut u64, buf: &mut BytesMut) {
    let count = usize::try_from(*left).map_or(buf.len(), |left| left.min(buf.len()));
    buf.advance(count);
    *left -= count as u64;
}

/// Discards bytes up to the marker, and returns whether it was found. If not, only a partial match at the
/// end of the buffer stays.
fn resynchronise(buf: &mut BytesMut) -> bool {
    while let Some(at) = memchr2(b'c', b'C', buf) {
        buf.advance(at);
        let common = buf
            .iter()
            .zip(RESYNC_MARKER)
            .take_while(|(byte, mark)| byte.eq_ignore_ascii_case(mark));
        let matched = common.count();
        if matched == RESYNC_MARKER.len() || matched == buf.len() {
            return matched == RESYNC_MARKER.len();
        }
        buf.advance(matched);
    }
    buf.clear();
    false
}

#[cfg(test)]
mod tests {
    use crate::framing::Framing::Header;
    use crate::framing::tests::{Frame, FrameFeed, MAX_FRAME, expect, ok, too_large};
    use crate::framing::{FrameError, HeaderError};

    fn fault(reason: HeaderError) -> Frame {
        Err(FrameError::Header { reason })
    }

    const TRUNCATED: Frame = Err(FrameError::Truncated);

    #[test]
    fn a_body_has_the_announced_length() {
        let input = b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]";
        expect(Header, 64, input, &[ok(b"{}"), ok(b"[1]")]);
        expect(Header, 64, b"Content-Length: 0\r\n\r\n", &[ok(b"")]);
        expect(Header, 64, b"Content-Length: 4\r\n\r\n\r\n\r\n", &[ok(b"\r\n\r\n")]);
    }

    #[test]
    fn the_marker_is_found_behind_a_partial_match() {
        let input = b"?\r\ncontent-lenContent-LContent-Length: 2\r\n\r\n[]";
        let reason = HeaderError::NotAHeader { line: "?".into() };
        expect(Header, 64, input, &[fault(reason), ok(b"[]")]);
    }

    #[test]
    fn a_body_over_the_limit_is_reported_once_and_skipped() {
        let input = b"Content-Length: 5\r\n\r\n12345Content-Length: 4\r\n\r\n1234";
        expect(Header, 4, input, &[too_large(4), ok(b"1234")]);
    }

    #[test]
    fn an_announced_length_allocates_nothing() {
        let mut feed = FrameFeed::new(Header, usize::MAX);
        feed.push(b"Content-Length: 1073741824\r\n\r\n{");
        assert!(feed.frames.is_empty() && feed.buf.capacity() < 4096);
        assert_eq!(feed.deframer.wanted(1), 64 * 1024);
        assert_eq!(feed.deframer.wanted(100_000), 400_000);
        assert_eq!(feed.deframer.wanted((1 << 30) - 7), 7);
    }

    #[test]
    fn a_huge_body_is_skipped_without_being_held() {
        let mut feed = FrameFeed::new(Header, MAX_FRAME);
        feed.push(b"Content-Length: 1073741824\r\n\r\n");
        assert_eq!(feed.frames, [too_large(MAX_FRAME)]);
        let piece = vec![b'{'; 1 << 20];
        for _ in 0..1 << 10 {
            feed.push(&piece);
            assert!(feed.buf.is_empty() && feed.buf.capacity() <= 2 * piece.len());
        }
        feed.push(b"Content-Length: 2\r\n\r\n{}");
        assert_eq!(feed.frames, [too_large(MAX_FRAME), ok(b"{}")]);
    }

    #[test]
    fn the_largest_length_is_skipped_too() {
        expect(Header, 4, b"Content-Length: 18446744073709551615\n\nx", &[too_large(4), TRUNCATED]);
    }

    #[test]
    fn the_end_of_the_stream_inside_a_frame_is_an_error() {
        expect(Header, 64, b"Content-Le", &[TRUNCATED]);
        expect(Header, 64, b"Content-Length: 2\r\n", &[TRUNCATED]);
        expect(Header, 64, b"Content-Length: 2\r\n\r\n{", &[TRUNCATED]);
        expect(Header, 64, b"Content-Length: 2\r\n\r\n{}\r\n", &[ok(b"{}")]);
        expect(Header, 64, b"", &[]);
    }
}
