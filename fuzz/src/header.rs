//! Header framing: bodies that `Content-Length` announces.

use antiphon_core::framing::{Deframer, Framing};
use bytes::BytesMut;

use crate::stream::{Frame, Input};

/// For every stream: the cuts do not matter, no frame is over the limit, an announced length allocates
/// nothing, and a body of any bytes is unchanged after framing and deframing.
pub fn check(data: &[u8]) {
    let Some(input) = Input::read(data) else { return };
    let header = || Deframer::new(Framing::Header, input.max_frame);
    let frames = input.frames(Framing::Header, header);
    if matches!(input.bytes, [b'C' | b'c', ..]) {
        input.assert_detected(Framing::Header, &frames);
    }
    assert_bodies_come_back(&frames);
}

/// A stream of one header block and its body.
pub fn seed(message: &[u8]) -> Vec<u8> {
    let mut wire = BytesMut::new();
    Framing::Header.encode(message, &mut wire);
    Input::of(&wire)
}

fn assert_bodies_come_back(frames: &[Frame]) {
    let mut wire = BytesMut::new();
    frames.iter().flatten().for_each(|body| Framing::Header.encode(body, &mut wire));
    let mut deframer = Deframer::new(Framing::Header, usize::MAX);
    for body in frames.iter().flatten() {
        assert_eq!(deframer.next(&mut wire), Some(Ok(body.clone())));
    }
    assert_eq!(deframer.finish(&mut wire), None, "more came back than was sent");
}
