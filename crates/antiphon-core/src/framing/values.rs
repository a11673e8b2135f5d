//! Value framing: JSON values that follow each other, with newlines as white space.
//!
//! This module never returns an empty frame: the space between values needs no response.
//!
//! Invariant: a valid value after invalid bytes is still found. A run of invalid bytes ends at white
//! space, and before the start of an Object, an Array or a String.

use bytes::{Bytes, BytesMut};

use super::json_text::{BracketCounter, Delimiter, PartialText, is_space, skip};
use super::{DeframeStep, FrameError};

/// Takes values that follow each other.
#[derive(Debug)]
pub(super) struct ValuesDeframer {
    text: PartialText,
}

impl ValuesDeframer {
    pub(super) fn new(max_frame: usize) -> Self {
        Self { text: PartialText::new(max_frame) }
    }

    pub(super) fn step(&mut self, buf: &mut BytesMut) -> DeframeStep {
        if self.text.is_under_way() {
            return self.text.step(buf);
        }
        let Some(first) = skip(buf, is_space) else {
            return DeframeStep::NeedMoreBytes;
        };
        self.text.begin(match first {
            b'{' | b'[' | b'"' => Delimiter::Enclosed(BracketCounter::new(false)),
            _ => Delimiter::Run,
        });
        DeframeStep::Continue
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.text.is_under_way()
    }

    pub(super) fn finish(&mut self, buf: &mut BytesMut) -> Option<Result<Bytes, FrameError>> {
        self.text.finish(buf)
    }
}

#[cfg(test)]
mod tests {
    use crate::framing::Framing::Values;
    use crate::framing::tests::{FrameFeed, expect, ok, too_large};

    #[test]
    fn values_follow_each_other() {
        expect(Values, 64, b"{}[]\n\n [1]\r\n", &[ok(b"{}"), ok(b"[]"), ok(b"[1]")]);
        expect(Values, 64, b" \r\n\t\n", &[]);
    }

    #[test]
    fn a_value_may_span_lines() {
        let value = b"{\n  \"a\": [\r\n1]\n}";
        expect(Values, 64, value, &[ok(value)]);
    }

    #[test]
    fn a_closed_value_needs_nothing_behind_it() {
        let mut feed = FrameFeed::new(Values, 64);
        feed.push(b"{}\"a\"");
        assert_eq!(feed.frames, [ok(b"{}"), ok(b"\"a\"")]);
    }

    #[test]
    fn scalars_end_before_what_cannot_belong_to_them() {
        let input = br#"1 true{}2"a \" b"-3.5e7[]null"#;
        let frames = [
            ok(b"1"),
            ok(b"true"),
            ok(b"{}"),
            ok(b"2"),
            ok(br#""a \" b""#),
            ok(b"-3.5e7"),
            ok(b"[]"),
            ok(b"null"),
        ];
        expect(Values, 64, input, &frames);
    }

    #[test]
    fn a_newline_in_a_string_ends_a_malformed_value() {
        expect(Values, 64, b"{\"a\n{}", &[ok(b"{\"a"), ok(b"{}")]);
        expect(Values, 64, b"\"a\n{}", &[ok(b"\"a"), ok(b"{}")]);
    }

    #[test]
    fn a_stray_closing_bracket_is_garbage_up_to_the_next_value() {
        expect(Values, 64, b"}], {}", &[ok(b"}],"), ok(b"{}")]);
        expect(Values, 64, b"{}}{}", &[ok(b"{}"), ok(b"}"), ok(b"{}")]);
    }

    #[test]
    fn a_value_over_the_limit_is_reported_once_and_skipped() {
        let two = [too_large(4), ok(b"[12]")];
        expect(Values, 4, b"[123][12]", &two);
        expect(Values, 4, b"{\n\n\n\n\n}[12]", &two);
        expect(Values, 4, b"12345[12]", &two);
        expect(Values, 4, b"\"a b c d\"[12]", &two);
        expect(Values, 4, b"[[[[[[[[[", &two[..1]);
    }

    #[test]
    fn the_end_of_the_stream_ends_a_value() {
        expect(Values, 64, b"12", &[ok(b"12")]);
        expect(Values, 64, b"{\"a\":\n", &[ok(b"{\"a\":\n")]);
    }
}
