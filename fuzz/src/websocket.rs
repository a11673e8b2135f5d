//! WebSocket framing (RFC 6455, section 5).

use antiphon_core::framing::websocket::{
    Event, Opcode, Role, WebSocketDeframer, WebSocketError, encode_close,
};
use bytes::BytesMut;

use crate::stream::Input;

type Heard = Result<Event, WebSocketError>;

/// The longest payload of a control frame (5.5).
const MAX_CONTROL: usize = 125;
/// The longest head of a frame.
const MAX_HEAD: usize = 14;
const MASK: [u8; 4] = [0xA1, 0x02, 0xF3, 0x54];

/// For every stream: the cuts do not matter, no message is over the limit, an announced length allocates
/// nothing, and the events are unchanged after encoding them for the other role.
pub fn check(data: &[u8]) {
    let Some(input) = Input::read(data) else { return };
    let role = if input.options & 1 == 0 { Role::Server } else { Role::Client };
    let [whole, ways @ ..] = input.ways();
    let heard = hear(&input, role, &whole);
    for way in ways {
        assert_eq!(hear(&input, role, &way), heard, "cut into {} pieces", way.len());
        assert_frugal(&input, role, &way);
    }
    assert_comes_back(role, &heard);
}

/// A stream of one masked text frame.
pub fn seed(message: &[u8]) -> Vec<u8> {
    let mut wire = BytesMut::new();
    Opcode::Text.encode(message, Some(MASK), &mut wire);
    Input::of(&wire)
}

fn hear(input: &Input<'_>, role: Role, pieces: &[&[u8]]) -> Vec<Heard> {
    let mut heard = Vec::new();
    drain(input, role, pieces, |event| heard.push(event));
    heard
}

/// All events up to the first error. Nothing is read after it.
fn drain(input: &Input<'_>, role: Role, pieces: &[&[u8]], mut see: impl FnMut(Heard)) {
    let (mut deframer, mut buf) = (WebSocketDeframer::new(role, input.max_frame), BytesMut::new());
    for piece in pieces {
        buf.extend_from_slice(piece);
        while let Some(event) = deframer.next(&mut buf) {
            let over = event.is_err();
            assert_within_limit(input, &event);
            see(event);
            if over {
                return;
            }
        }
        let bound = input.max_frame.max(MAX_CONTROL).max(MAX_HEAD);
        assert!(buf.len() <= bound, "{} bytes are kept", buf.len());
        assert!(deframer.wanted(buf.len()) <= (64 * 1024).max(16 * buf.len()));
    }
}

fn assert_within_limit(input: &Input<'_>, event: &Heard) {
    match event {
        Ok(Event::Message(message)) => assert!(message.len() <= input.max_frame),
        Ok(Event::Ping(payload)) => assert!(payload.len() <= MAX_CONTROL),
        Ok(Event::Close { code, reason }) => {
            assert!(reason.len() + 2 <= MAX_CONTROL && (code.is_some() || reason.is_empty()));
        }
        Ok(Event::Pong) => {}
        Err(fault) => assert!([1002, 1007, 1009].contains(&fault.close_code())),
    }
}

/// The memory limit: fragments are copied into one buffer, and everything else stays in the read buffer.
fn assert_frugal(input: &Input<'_>, role: Role, pieces: &[&[u8]]) {
    let used = allocation_counter::measure(|| drain(input, role, pieces, drop));
    let allowed = 6 * input.bytes.len() as u64 + 4096;
    assert!(used.bytes_max <= allowed, "{} bytes for {}", used.bytes_max, input.bytes.len());
}

/// Asserts that the other role gets the same events when they are encoded for it.
fn assert_comes_back(role: Role, heard: &[Heard]) {
    let (other, mask) = match role {
        Role::Server => (Role::Client, None),
        Role::Client => (Role::Server, Some(MASK)),
    };
    let (mut wire, mut deframer) = (BytesMut::new(), WebSocketDeframer::new(other, usize::MAX));
    for event in heard.iter().flatten() {
        say(event, mask, &mut wire);
        assert_eq!(deframer.next(&mut wire).as_ref(), Some(&Ok(event.clone())));
        assert!(wire.is_empty(), "more came back than was said");
    }
}

fn say(event: &Event, mask: Option<[u8; 4]>, wire: &mut BytesMut) {
    match event {
        Event::Message(message) => Opcode::Binary.encode(message, mask, wire),
        Event::Ping(payload) => Opcode::Ping.encode(payload, mask, wire),
        Event::Pong => Opcode::Pong.encode(b"", mask, wire),
        Event::Close { code: Some(code), reason } => encode_close(*code, reason, mask, wire),
        Event::Close { code: None, .. } => Opcode::Close.encode(b"", mask, wire),
    }
}
