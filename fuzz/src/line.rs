//! Line framing: each line has one JSON text, or several.

use antiphon_core::framing::{Deframer, Framing, texts};
use serde::de::IgnoredAny;

use crate::stream::{Frame, Input, assert_come_back, trimmed};

/// For every stream: the cuts do not matter, no frame is over the limit, a whole line has the same texts,
/// and serde_json agrees on the lines if all are JSON.
pub fn check(data: &[u8]) {
    let Some(input) = Input::read(data) else { return };
    let line = || Deframer::new(Framing::Line, input.max_frame);
    let frames = input.frames(Framing::Line, line);
    assert_whole_lines_hold_the_same(&input, &frames);
    if !matches!(input.bytes, [b'C' | b'c', ..]) {
        input.assert_detected(Framing::Line, &frames);
    }
    assert_come_back(Framing::Line, &frames);
    assert_serde_agrees(&input, &frames);
}

/// A stream of one line.
pub fn seed(message: &[u8]) -> Vec<u8> {
    Input::of(&[message, b"\n"].concat())
}

/// Whether a line is taken whole depends on the cuts; its texts do not.
fn assert_whole_lines_hold_the_same(input: &Input<'_>, frames: &[Frame]) {
    for way in input.ways() {
        let deframer = Deframer::new(Framing::Line, input.max_frame).whole_lines();
        let whole = input.feed(Framing::Line, deframer, &way);
        let held: Vec<Frame> = whole.iter().flat_map(split).collect();
        assert_eq!(held, frames, "taken whole in {} pieces", way.len());
    }
}

fn split(frame: &Frame) -> Vec<Frame> {
    match frame {
        Ok(line) if matches!(line.first(), Some(b'{' | b'[')) => texts(line).map(Ok).collect(),
        other => vec![other.clone()],
    }
}

/// If each line is one JSON text, the lines are the frames.
fn assert_serde_agrees(input: &Input<'_>, frames: &[Frame]) {
    let Some(lines) = input.bytes.strip_suffix(b"\n") else { return };
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
    let is_json = |line: &&[u8]| serde_json::from_slice::<IgnoredAny>(line).is_ok();
    if input.max_frame < input.bytes.len() || !lines.iter().all(is_json) {
        return;
    }
    let frames: Vec<_> = frames.iter().flatten().map(|frame| trimmed(frame)).collect();
    assert_eq!(frames, lines.into_iter().map(trimmed).collect::<Vec<_>>());
}
