//! Properties that hold for all framings, and the feed that the tests of each framing use.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::{Deframer, FrameError, Framing};

pub(super) type Frame = Result<Bytes, FrameError>;

/// A limit that the tests of ordinary messages do not reach.
pub(super) const MAX_FRAME: usize = 1 << 20;

const ALL: [Framing; 3] = [Framing::Line, Framing::Header, Framing::Values];

pub(super) fn ok(frame: &'static [u8]) -> Frame {
    Ok(Bytes::from_static(frame))
}

pub(super) fn too_large(limit: usize) -> Frame {
    Err(FrameError::TooLarge { limit })
}

/// A stream as its reader sees it: pieces go in, frames come out.
pub(super) struct FrameFeed {
    pub(super) deframer: Deframer,
    pub(super) buf: BytesMut,
    pub(super) frames: Vec<Frame>,
}

impl FrameFeed {
    pub(super) fn new(framing: Framing, max_frame: usize) -> Self {
        Self::with(Deframer::new(framing, max_frame))
    }

    fn with(deframer: Deframer) -> Self {
        Self { deframer, buf: BytesMut::new(), frames: Vec::new() }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.buf.extend_from_slice(piece);
        while let Some(frame) = self.deframer.next(&mut self.buf) {
            self.frames.push(frame);
        }
    }

    fn finish(mut self) -> Vec<Frame> {
        while let Some(frame) = self.deframer.finish(&mut self.buf) {
            self.frames.push(frame);
        }
        assert!(self.buf.is_empty(), "bytes are left at the end");
        self.frames
    }

    pub(super) fn in_pieces(framing: Framing, max: usize, input: &[u8], size: usize) -> Vec<Frame> {
        let mut feed = Self::new(framing, max);
        input.chunks(size).for_each(|piece| feed.push(piece));
        feed.finish()
    }
}

/// Asserts that the frames do not depend on how the input is cut: in two at every byte, and into
/// single bytes.
pub(super) fn expect(framing: Framing, max_frame: usize, input: &[u8], frames: &[Frame]) {
    for cut in 0..=input.len() {
        let mut feed = FrameFeed::new(framing, max_frame);
        feed.push(&input[..cut]);
        feed.push(&input[cut..]);
        assert_eq!(feed.finish(), frames, "{framing}, {:?} cut at {cut}", input.escape_ascii());
    }
    let frames_by_byte = FrameFeed::in_pieces(framing, max_frame, input, 1);
    assert_eq!(frames_by_byte, frames, "{framing}, {:?} by byte", input.escape_ascii());
}

#[test]
fn encode_writes_each_framing() {
    let mut out = BytesMut::from("x");
    Framing::Line.encode(b"[1]", &mut out);
    Framing::Header.encode("\"é\"".as_bytes(), &mut out);
    Framing::Values.encode(b"{}", &mut out);
    assert_eq!(out, "x[1]\nContent-Length: 4\r\n\r\n\"é\"{}\n");
}

#[test]
fn a_framing_parses_from_its_name() {
    for framing in ALL {
        assert_eq!(framing.to_string().parse(), Ok(framing));
    }
    let error = "netstring".parse::<Framing>().map_err(|error| error.to_string());
    assert_eq!(error, Err("unknown framing \"netstring\"; choose line, header or values".into()));
}

#[test]
fn errors_name_the_value_and_the_remedy() {
    let text = FrameError::TooLarge { limit: 7 }.to_string();
    assert_eq!(
        text,
        "frame is larger than the limit of 7 bytes; raise `Limits::frame_bytes` or send less"
    );
    let [Err(error)] = &FrameFeed::in_pieces(Framing::Header, 9, b"Content-Length: -1\n\n", 99)[..]
    else {
        unreachable!("a negative length is an error")
    };
    let text = "malformed header block: Content-Length is \"-1\"; send decimal digits, below 2^64";
    assert_eq!(error.to_string(), text);
}

#[test]
fn the_first_byte_selects_the_framing() {
    let cases: [(&[u8], Framing, &'static [u8]); 5] = [
        (b"Content-Length: 2\r\n\r\n{}", Framing::Header, b"{}"),
        (b"content-type: a\nContent-Length: 2\n\n{}", Framing::Header, b"{}"),
        (b"{}", Framing::Line, b"{}"),
        (b" {}", Framing::Line, b"{}"),
        (b"\n", Framing::Line, b""),
    ];
    for (input, framing, frame) in cases {
        let mut feed = FrameFeed::with(Deframer::detecting(MAX_FRAME));
        feed.push(b"");
        assert_eq!(feed.deframer.framing(), None);
        feed.push(&input[..1]);
        assert_eq!(feed.deframer.framing(), Some(framing));
        feed.push(&input[1..]);
        assert_eq!(feed.finish(), [ok(frame)]);
    }
    assert_eq!(FrameFeed::with(Deframer::detecting(MAX_FRAME)).finish(), []);
}

/// Work is linear because no byte is read again in a later call. To prove it, the buffer is
/// overwritten with newlines after each call: a second scan would end the frame.
#[test]
fn scanned_bytes_are_never_scanned_again() {
    let body = "\\\"{[ ".repeat(200_000);
    for (framing, open, close) in [
        (Framing::Line, "{\"a\":\"", "\"}"),
        (Framing::Line, "1", "\n"),
        (Framing::Values, "[\"", "\"]"),
        (Framing::Values, "\"", "\""),
    ] {
        let input = [open, &body, close].concat();
        let mut feed = FrameFeed::new(framing, input.len());
        for piece in input.as_bytes().chunks(1021) {
            feed.push(piece);
            feed.buf.fill(b'\n');
        }
        let lengths: Vec<_> = feed.frames.iter().flatten().map(Bytes::len).collect();
        assert_eq!(lengths, [input.trim_end_matches('\n').len()], "{framing}");
    }
}

#[test]
fn a_header_line_is_searched_once() {
    let mut feed = FrameFeed::new(Framing::Header, MAX_FRAME);
    feed.push(b"Content-Length: 2\r\nX: ");
    for _ in 0..1000 {
        feed.push(b"y");
        let value = feed.buf.len() - 1;
        feed.buf[value..].fill(b'\n');
    }
    feed.push(b"\r\n\r\n{}");
    assert_eq!(feed.finish(), [ok(b"{}")]);
}

#[test]
fn frames_are_slices_of_the_buffer() {
    for framing in ALL {
        let mut feed = FrameFeed::new(framing, MAX_FRAME);
        framing.encode(b"[1]", &mut feed.buf);
        let memory = feed.buf.as_ptr_range();
        feed.push(b"");
        let Some(Ok(frame)) = feed.frames.pop() else { unreachable!("a whole frame is buffered") };
        assert!(memory.contains(&frame.as_ptr()), "{framing}");
    }
}

fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\\\\\"{}\\[\\]\n ]{0,8}".prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    });
    value.prop_map(|value| value.to_string())
}

/// Bytes that reach the states of every framing more often than random bytes.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        prop::sample::select(&b"{}[]\"\\\n\r c1"[..]).prop_map(|byte| vec![byte]),
        Just(b"Content-Length: ".to_vec()),
        Just(b"7\r\n\r\n".to_vec()),
        Just(b"99\n\n".to_vec()),
        Just(b"X: y\r\n".to_vec()),
        vec(any::<u8>(), 0..4),
    ];
    vec(token, 0..60).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn encoded_messages_are_deframed_unchanged(
        texts in vec(json(), 0..8),
        sizes in vec(1..40usize, 1..8),
    ) {
        for framing in ALL {
            let mut wire = BytesMut::new();
            texts.iter().for_each(|text| framing.encode(text.as_bytes(), &mut wire));
            let mut feed = FrameFeed::new(framing, MAX_FRAME);
            for size in sizes.iter().cycle() {
                if wire.is_empty() {
                    break;
                }
                let piece = wire.split_to(wire.len().min(*size));
                feed.push(&piece);
            }
            let sent: Vec<Frame> = texts.iter().map(|text| Ok(text.clone().into())).collect();
            prop_assert_eq!(feed.finish(), sent, "{}", framing);
        }
    }

    #[test]
    fn the_frames_of_any_bytes_do_not_depend_on_the_cuts(
        input in noise(),
        size in 1..20usize,
        max_frame in 0..24usize,
    ) {
        for framing in ALL {
            let whole = FrameFeed::in_pieces(framing, max_frame, &input, input.len().max(1));
            let pieces = FrameFeed::in_pieces(framing, max_frame, &input, size);
            prop_assert_eq!(whole, pieces, "{}", framing);
        }
    }

    #[test]
    fn any_bytes_are_consumed_with_bounded_buffering(
        input in noise(),
        size in 1..20usize,
        max_frame in 0..24usize,
    ) {
        for framing in ALL {
            let mut feed = FrameFeed::new(framing, max_frame);
            let bound = if framing == Framing::Header { 8 * 1024 } else { max_frame };
            for piece in input.chunks(size) {
                feed.push(piece);
                prop_assert!(feed.buf.len() <= bound, "{}", framing);
            }
            for frame in feed.finish().iter().flatten() {
                prop_assert!(frame.len() <= max_frame, "{}", framing);
            }
        }
    }
}
