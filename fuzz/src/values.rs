//! Value framing: JSON values that follow each other.

use antiphon_core::framing::{Deframer, Framing};
use serde_json::value::RawValue;

use crate::stream::{Frame, Input, assert_come_back};

/// For every stream: the cuts do not matter, no frame is over the limit or empty, and serde_json takes the
/// same values from a stream of valid JSON.
pub fn check(data: &[u8]) {
    let Some(input) = Input::read(data) else { return };
    let values = || Deframer::new(Framing::Values, input.max_frame);
    let frames = input.frames(Framing::Values, values);
    assert!(frames.iter().flatten().all(|frame| !frame.is_empty()), "an empty frame");
    assert_come_back(Framing::Values, &frames);
    assert_serde_agrees(&input, &frames);
}

/// A stream of one value.
pub fn seed(message: &[u8]) -> Vec<u8> {
    Input::of(message)
}

/// If serde_json reads the whole stream, it reads the same values. It requires white space between Numbers
/// and literals. The framing does not: the decoder rejects values that touch.
fn assert_serde_agrees(input: &Input<'_>, frames: &[Frame]) {
    let Ok(text) = std::str::from_utf8(input.bytes) else { return };
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let Ok(values) = values.collect::<Result<Vec<_>, _>>() else { return };
    if input.max_frame < input.bytes.len() {
        return;
    }
    let frames: Vec<_> = frames.iter().flatten().map(|frame| &frame[..]).collect();
    assert_eq!(frames, values.iter().map(|value| value.get().as_bytes()).collect::<Vec<_>>());
}
