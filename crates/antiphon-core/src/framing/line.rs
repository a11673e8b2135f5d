//! Line framing: one JSON text per line. Some peers (geth's IPC) send several texts without newlines.
//!
//! A text whose brackets are closed does not wait for its newline: a peer that sends no newline would
//! wait for its response forever.
//!
//! Invariant: a newline ends the text before it, so a malformed line does not affect the next line.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use super::json_text::{BracketCounter, Delimiter, PartialText, is_space, skip};
use super::{DeframeStep, FrameError};

/// Takes texts from lines.
#[derive(Debug)]
pub(super) struct LineDeframer {
    max_frame: usize,
    text: PartialText,
    line_has_text: bool,
    /// Complete lines are returned without a scan for their texts.
    whole: bool,
    /// The number of bytes at the front of the buffer that are known to have no newline.
    searched: usize,
}

impl LineDeframer {
    pub(super) fn new(max_frame: usize, whole: bool) -> Self {
        Self {
            max_frame,
            text: PartialText::new(max_frame),
            line_has_text: false,
            whole,
            searched: 0,
        }
    }

    pub(super) fn step(&mut self, buf: &mut BytesMut) -> DeframeStep {
        let before = buf.len();
        if self.text.is_under_way() {
            let step = self.text.step(buf);
            self.forget(before - buf.len());
            return step;
        }
        let first = skip(buf, |byte| is_space(byte) && byte != b'\n');
        self.forget(before - buf.len());
        match first {
            None => DeframeStep::NeedMoreBytes,
            Some(b'\n') => self.end_line(buf),
            Some(first) => self.whole_line(first, buf).unwrap_or_else(|| self.begin(first)),
        }
    }

    /// Adjusts `searched` after this many bytes have left the front of the buffer.
    fn forget(&mut self, bytes: usize) {
        self.searched = self.searched.saturating_sub(bytes);
    }

    /// Returns the rest of the line if it is complete and may be one text.
    fn whole_line(&mut self, first: u8, buf: &mut BytesMut) -> Option<DeframeStep> {
        if !self.whole || !matches!(first, b'{' | b'[') {
            return None;
        }
        // Bytes are searched once: many texts may arrive without any newline.
        let searched = self.searched.min(buf.len());
        let found = memchr(b'\n', &buf[searched..]).map(|at| searched + at);
        self.searched = found.unwrap_or(buf.len());
        let newline = found.filter(|&len| len <= self.max_frame)?;
        let mut line = buf.split_to(newline + 1);
        line.truncate(newline);
        self.line_has_text = false;
        self.searched = 0;
        Some(DeframeStep::Emit(Ok(line.freeze())))
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.text.is_under_way()
    }

    pub(super) fn finish(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        self.line_has_text = false;
        self.searched = 0;
        self.text.finish(buf)
    }

    /// Ends a line. A line without a text is an empty message, and gets the response of an empty message.
    fn end_line(&mut self, buf: &mut BytesMut) -> DeframeStep {
        buf.advance(1);
        self.forget(1);
        if std::mem::take(&mut self.line_has_text) {
            DeframeStep::Continue
        } else {
            DeframeStep::Emit(Ok(Bytes::new()))
        }
    }

    fn begin(&mut self, first: u8) -> DeframeStep {
        self.line_has_text = true;
        self.text.begin(match first {
            b'{' | b'[' => Delimiter::Enclosed(BracketCounter::new(true)),
            _ => Delimiter::Line,
        });
        DeframeStep::Continue
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use crate::framing::Framing::Line;
    use crate::framing::tests::{FrameFeed, expect, ok, too_large};
    use crate::framing::{Deframer, texts};

    #[test]
    fn one_text_per_line() {
        expect(Line, 64, b"{\"a\":1}\n[2]\r\n{}\n", &[ok(b"{\"a\":1}"), ok(b"[2]"), ok(b"{}")]);
    }

    #[test]
    fn splitting_a_whole_line_gives_the_texts_of_the_line() {
        let lines: [&[u8]; 6] = [
            b"{\"a\":1}{\"b\":2} [3]",
            b"{}",
            b"[1],{}",
            b"{\"a\":tru}{} x",
            b"{\"a\":\"}{\"}\t\r",
            b"[[]",
        ];
        for line in lines {
            let mut buf = BytesMut::from(&[line, b"\n{}\n"].concat()[..]);
            let mut deframer = Deframer::new(Line, 64).whole_lines();
            let whole = deframer.next(&mut buf).unwrap().unwrap();
            assert_eq!(whole, line);
            assert_eq!(deframer.next(&mut buf), Some(ok(b"{}")));
            let texts: Vec<_> = texts(&whole).map(Ok).collect();
            expect(Line, 64, &[line, b"\n"].concat(), &texts);
        }
    }

    #[test]
    fn a_line_over_the_limit_is_scanned_for_texts() {
        let mut buf = BytesMut::from(&b"[1][2]\n[3]\n"[..]);
        let mut deframer = Deframer::new(Line, 5).whole_lines();
        for text in [b"[1]", b"[2]", b"[3]"] {
            assert_eq!(deframer.next(&mut buf), Some(ok(text)));
        }
        assert_eq!(deframer.next(&mut buf), None);
    }

    /// More bytes may arrive before all buffered texts are taken.
    #[test]
    fn a_newline_is_found_behind_searched_spaces() {
        let mut buf = BytesMut::from(&b"{}  [1,"[..]);
        let mut deframer = Deframer::new(Line, 64).whole_lines();
        assert_eq!(deframer.next(&mut buf), Some(ok(b"{}")));
        buf.extend_from_slice(b"\n2]\n");
        assert_eq!(deframer.next(&mut buf), Some(ok(b"[1,")));
        assert_eq!(deframer.next(&mut buf), Some(ok(b"2]")));
    }

    #[test]
    fn several_texts_on_a_line() {
        expect(Line, 64, b"{}[] {}\t\n[1]", &[ok(b"{}"), ok(b"[]"), ok(b"{}"), ok(b"[1]")]);
    }

    #[test]
    fn a_closed_text_needs_no_newline() {
        let mut feed = FrameFeed::new(Line, 64);
        feed.push(b" {\"a\":[]}");
        assert_eq!(feed.frames, [ok(b"{\"a\":[]}")]);
    }

    #[test]
    fn a_line_without_a_text_is_an_empty_message() {
        expect(Line, 64, b"\n \t\r\n{}\n\n", &[ok(b""), ok(b""), ok(b"{}"), ok(b"")]);
    }

    #[test]
    fn anything_but_a_bracket_takes_the_rest_of_the_line() {
        let input = b"1 {\n\"a\" []\n\xef\xbb\xbf{}\n}{\nnull";
        let frames = [ok(b"1 {"), ok(b"\"a\" []"), ok(b"\xef\xbb\xbf{}"), ok(b"}{"), ok(b"null")];
        expect(Line, 64, input, &frames);
    }

    #[test]
    fn escapes_do_not_end_a_string() {
        let input = br#"{"a":"\\"}{"a":"\""}{"a":"\\\"}"}"#;
        let frames = [ok(br#"{"a":"\\"}"#), ok(br#"{"a":"\""}"#), ok(br#"{"a":"\\\"}"}"#)];
        expect(Line, 64, input, &frames);
    }

    #[test]
    fn a_newline_ends_a_malformed_text() {
        // The specification's example of invalid JSON.
        let broken = br#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#;
        let input = [broken, &b"\n{\"id\":1}\n"[..]].concat();
        expect(Line, 64, &input, &[ok(broken), ok(b"{\"id\":1}")]);
        expect(Line, 64, b"{\"a\":[\n{}\n", &[ok(b"{\"a\":["), ok(b"{}")]);
        expect(Line, 64, b"{\"a\\\n{}\n", &[ok(b"{\"a\\"), ok(b"{}")]);
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        expect(Line, 4, b"[12]\n1234\n[1 2\n", &[ok(b"[12]"), ok(b"1234"), ok(b"[1 2")]);
    }

    #[test]
    fn a_text_over_the_limit_is_reported_once_and_skipped() {
        let two = [too_large(4), ok(b"[]")];
        expect(Line, 4, b"[123][]\n", &two);
        expect(Line, 4, b"[\"]]]]]\", []]\n[]\n", &two);
        expect(Line, 4, b"12345 {} []\n[]\n", &two);
        expect(Line, 4, b"[[[[[[[[[\n[]\n", &two);
        expect(Line, 4, b"[[[[[[[[[", &two[..1]);
    }

    #[test]
    fn the_end_of_the_stream_ends_a_text() {
        expect(Line, 64, b"{}\n{\"a\":", &[ok(b"{}"), ok(b"{\"a\":")]);
        expect(Line, 64, b"{}\n \r", &[ok(b"{}")]);
        expect(Line, 64, b"", &[]);
    }

    #[test]
    fn an_endless_line_is_not_buffered() {
        for piece in [&[b'['; 1024][..], &[b'1'; 1024], &[b'"'; 1023], &[b' '; 1024]] {
            let mut feed = FrameFeed::new(Line, 4096);
            for _ in 0..1024 {
                feed.push(piece);
                assert!(feed.buf.len() <= 4096);
            }
            assert!(feed.frames.len() <= 1);
            feed.push(b"\n{}\n");
            assert_eq!(feed.frames.pop(), Some(ok(b"{}")));
        }
    }
}
