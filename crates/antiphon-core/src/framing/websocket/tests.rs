//! The rules of the protocol, with the bytes cut at every position.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Event, Opcode, Role, WebSocketDeframer, WebSocketError, encode_close};

const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];
const LIMIT: usize = 1 << 20;

const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CONTINUATION: u8 = 0x0;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
const LAST: u8 = 0x80;

/// A frame as a client sends it, built by hand: it shares no code with the encoder.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ ..126 => frame.push(0x80 | short as u8),
        medium @ 126..0x1_0000 => {
            frame.push(0x80 | 126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

fn message(payload: impl Into<Bytes>) -> Result<Event, WebSocketError> {
    Ok(Event::Message(payload.into()))
}

fn closed(code: Option<u16>, reason: &str) -> Result<Event, WebSocketError> {
    Ok(Event::Close { code, reason: reason.to_owned() })
}

/// A stream as its reader sees it: pieces go in, events come out.
struct EventFeed {
    deframer: WebSocketDeframer,
    buf: BytesMut,
    events: Vec<Result<Event, WebSocketError>>,
}

impl EventFeed {
    fn new(role: Role, limit: usize) -> Self {
        let deframer = WebSocketDeframer::new(role, limit);
        Self { deframer, buf: BytesMut::new(), events: Vec::new() }
    }

    fn push(&mut self, piece: &[u8]) {
        self.buf.extend_from_slice(piece);
        while let Some(event) = self.deframer.next(&mut self.buf) {
            self.events.push(event);
        }
    }

    fn is_under_way(&self) -> bool {
        self.deframer.is_under_way(self.buf.len())
    }
}

/// Asserts that the events do not depend on how the input is cut: in two at every byte, and into single
/// bytes.
#[track_caller]
fn expect_as(role: Role, limit: usize, input: &[u8], events: &[Result<Event, WebSocketError>]) {
    for cut in 0..=input.len() {
        let mut feed = EventFeed::new(role, limit);
        feed.push(&input[..cut]);
        feed.push(&input[cut..]);
        assert_eq!(feed.events, events, "cut at {cut}");
    }
    let mut feed = EventFeed::new(role, limit);
    input.iter().for_each(|byte| feed.push(&[*byte]));
    assert_eq!(feed.events, events, "by byte");
}

#[track_caller]
fn expect(input: &[u8], events: &[Result<Event, WebSocketError>]) {
    expect_as(Role::Server, LIMIT, input, events);
}

#[track_caller]
fn refuse(input: &[u8], error: WebSocketError) {
    expect(input, &[Err(error)]);
}

#[test]
fn messages_are_text_or_binary() {
    let input =
        [frame(LAST | TEXT, b"{}"), frame(LAST | BINARY, b"\xff\0"), frame(LAST | TEXT, b"")];
    expect(&input.concat(), &[message("{}"), message(&b"\xff\0"[..]), message("")]);
}

#[test]
fn the_examples_of_the_rfc_decode_to_hello() {
    // Section 5.7.
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    expect(&masked, &[message("Hello")]);
    let unmasked = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    expect_as(Role::Client, LIMIT, &unmasked, &[message("Hello")]);
    let fragments = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
    expect_as(Role::Client, LIMIT, &fragments, &[message("Hello")]);
}

#[test]
fn fragments_are_joined_around_control_frames() {
    let input = [
        frame(TEXT, b"[1"),
        frame(LAST | PING, b"hi"),
        frame(CONTINUATION, b""),
        frame(CONTINUATION, b",2,"),
        frame(LAST | PONG, b""),
        frame(LAST | CONTINUATION, b"3]"),
        frame(LAST | TEXT, b"4"),
    ];
    let ping = Ok(Event::Ping("hi".into()));
    expect(&input.concat(), &[ping, Ok(Event::Pong), message("[1,2,3]"), message("4")]);
}

#[test]
fn lengths_are_written_in_as_few_bytes_as_they_need() {
    for length in [0, 1, 125, 126, 127, 65_535, 65_536, 70_000] {
        let payload = vec![b'x'; length];
        for role in [Role::Server, Role::Client] {
            let mask = (role == Role::Server).then_some(MASK);
            let mut wire = BytesMut::new();
            Opcode::Text.encode(&payload, mask, &mut wire);
            if role == Role::Server {
                assert_eq!(wire, frame(LAST | TEXT, &payload), "{length} bytes");
            }
            let mut feed = EventFeed::new(role, LIMIT);
            wire.chunks(1_000).for_each(|piece| feed.push(piece));
            assert_eq!(feed.events, [message(payload.clone())], "{length} bytes");
            assert!(!feed.is_under_way());
        }
    }
    refuse(&[0x81, 0xfe, 0, 125], WebSocketError::Length { length: 125 });
    refuse(&[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff], WebSocketError::Length { length: 65_535 });
}

#[test]
fn the_limit_itself_is_allowed() {
    let limit = |input: Vec<Vec<u8>>, events: &[_]| {
        expect_as(Role::Server, 4, &input.concat(), events);
    };
    let over = |input: Vec<Vec<u8>>| {
        expect_as(Role::Server, 4, &input.concat(), &[Err(WebSocketError::TooLarge { limit: 4 })]);
    };
    limit(vec![frame(LAST | TEXT, b"1234")], &[message("1234")]);
    over(vec![frame(LAST | TEXT, b"12345")]);
    limit(vec![frame(TEXT, b"12"), frame(LAST | CONTINUATION, b"34")], &[message("1234")]);
    over(vec![frame(TEXT, b"12"), frame(LAST | CONTINUATION, b"345")]);
    over(vec![frame(TEXT, b"1234"), frame(CONTINUATION, b"5")]);
    over(vec![frame(TEXT, b"12345")]);
    // Control frames do not count towards the limit.
    limit(vec![frame(LAST | PING, b"12345")], &[Ok(Event::Ping("12345".into()))]);
}

#[test]
fn an_announced_length_allocates_nothing() {
    let mut feed = EventFeed::new(Role::Server, usize::MAX);
    feed.push(&[0x81, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4, b'{']);
    assert!(feed.events.is_empty() && feed.buf.capacity() < 4096);
    assert_eq!(feed.deframer.wanted(1), 64 * 1024);
    assert_eq!(feed.deframer.wanted(100_000), 400_000);
    assert_eq!(feed.deframer.wanted((1 << 30) - 7), 7);
    let huge = [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4];
    refuse(&huge, WebSocketError::TooLarge { limit: LIMIT });
    let impossible = [0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    refuse(&impossible, WebSocketError::LengthTooLarge { length: 1 << 63 });
}

#[test]
fn malformed_frames_are_rejected() {
    refuse(&[0xc1, 0x80], WebSocketError::ReservedBits);
    refuse(&[0x91, 0x80], WebSocketError::ReservedBits);
    for opcode in [3, 7, 0xb, 0xf] {
        refuse(&[LAST | opcode, 0x80], WebSocketError::Opcode { opcode });
    }
    refuse(&[0x81, 0x02], WebSocketError::NotMasked);
    expect_as(Role::Client, LIMIT, &[0x81, 0x82], &[Err(WebSocketError::Masked)]);
    refuse(&[PING, 0x80], WebSocketError::Control);
    refuse(&[LAST | PING, 0x80 | 126], WebSocketError::Control);
    refuse(&[LAST | CLOSE, 0x80 | 127], WebSocketError::Control);
    refuse(&frame(CONTINUATION, b"1"), WebSocketError::NothingToContinue);
    refuse(&frame(LAST | CONTINUATION, b""), WebSocketError::NothingToContinue);
    let interrupted = [frame(TEXT, b"1"), frame(LAST | BINARY, b"2")].concat();
    refuse(&interrupted, WebSocketError::Interrupted);
}

#[test]
fn a_text_is_utf8_as_a_whole() {
    let text = "{\"é\":\"日本\"}";
    expect(&frame(LAST | TEXT, text.as_bytes()), &[message(text)]);
    for cut in 0..text.len() {
        let (start, end) = text.as_bytes().split_at(cut);
        let input = [frame(TEXT, start), frame(LAST | CONTINUATION, end)].concat();
        expect(&input, &[message(text)]);
    }
    refuse(&frame(LAST | TEXT, b"\"\xc3\x28\""), WebSocketError::NotUtf8);
    refuse(&frame(LAST | TEXT, b"\xe6\x97"), WebSocketError::NotUtf8);
    let halves = [frame(TEXT, b"\xe6"), frame(LAST | CONTINUATION, b"\x97")].concat();
    refuse(&halves, WebSocketError::NotUtf8);
}

#[test]
fn a_close_has_a_code_and_a_reason() {
    let close = |payload: &[u8]| frame(LAST | CLOSE, payload);
    expect(&close(b""), &[closed(None, "")]);
    expect(&close(b"\x03\xe8"), &[closed(Some(1000), "")]);
    expect(&close(b"\x03\xf1too big"), &[closed(Some(1009), "too big")]);
    refuse(&close(b"\x03"), WebSocketError::HalfACloseCode);
    refuse(&close(b"\x03\xe8\xff"), WebSocketError::NotUtf8);
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, u16::MAX] {
        refuse(&close(&code.to_be_bytes()), WebSocketError::CloseCode { code });
    }
    for code in [1000u16, 1003, 1007, 1014, 3000, 4999] {
        expect(&close(&code.to_be_bytes()), &[closed(Some(code), "")]);
    }
}

#[test]
fn our_close_fits_into_its_frame() {
    let mut wire = BytesMut::new();
    encode_close(1002, &"é".repeat(100), None, &mut wire);
    let mut feed = EventFeed::new(Role::Client, LIMIT);
    feed.push(&wire);
    assert_eq!(feed.events, [closed(Some(1002), &"é".repeat(61))]);
}

#[test]
fn errors_have_the_close_codes_of_the_rfc() {
    assert_eq!(WebSocketError::TooLarge { limit: 1 }.close_code(), 1009);
    assert_eq!(WebSocketError::NotUtf8.close_code(), 1007);
    assert_eq!(WebSocketError::Masked.close_code(), 1002);
    let longest = WebSocketError::TooLarge { limit: usize::MAX }.to_string();
    assert!(longest.len() <= 123, "{longest} does not fit into a close");
}

#[test]
fn a_message_is_under_way_until_its_last_byte() {
    let mut feed = EventFeed::new(Role::Server, LIMIT);
    let input = [frame(TEXT, b"[1"), frame(LAST | CONTINUATION, b"]")].concat();
    assert!(!feed.is_under_way());
    for byte in &input[..input.len() - 1] {
        feed.push(&[*byte]);
        assert!(feed.is_under_way());
    }
    feed.push(&input[input.len() - 1..]);
    assert!(!feed.is_under_way() && feed.events == [message("[1]")]);
}

/// Work is linear because no byte is unmasked again in a later call: bytes that are overwritten in the
/// buffer after they were unmasked come out as overwritten.
#[test]
fn unmasked_bytes_are_not_touched_again() {
    let mut feed = EventFeed::new(Role::Server, LIMIT);
    let input = frame(LAST | TEXT, &[b'x'; 10_000]);
    let (head, payload) = input.split_at(8);
    feed.push(head);
    for piece in payload.chunks(777) {
        feed.push(piece);
        feed.buf.fill(b'y');
    }
    let Some(Ok(Event::Message(text))) = feed.events.pop() else { unreachable!("it is whole") };
    let last = 10_000 % 777;
    assert!(text[..10_000 - last].iter().all(|byte| *byte == b'y'));
    assert!(text[10_000 - last..].iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_message_in_one_frame_is_a_slice_of_the_buffer() {
    let mut feed = EventFeed::new(Role::Server, LIMIT);
    feed.buf.extend_from_slice(&frame(LAST | TEXT, b"[1]"));
    let memory = feed.buf.as_ptr_range();
    feed.push(b"");
    let Some(Ok(Event::Message(text))) = feed.events.pop() else { unreachable!("it is whole") };
    assert!(memory.contains(&text.as_ptr()));
}

#[test]
fn a_long_fragment_is_held_once() {
    let mut feed = EventFeed::new(Role::Server, LIMIT);
    let input = frame(TEXT, &[b'x'; 500_000]);
    for piece in input.chunks(4096) {
        feed.push(piece);
        assert!(feed.buf.len() < 16);
    }
    feed.push(&frame(LAST | CONTINUATION, b""));
    assert_eq!(feed.events, [message(vec![b'x'; 500_000])]);
}

proptest! {
    #[test]
    fn encoded_messages_are_deframed_unchanged(
        payloads in vec(vec(any::<u8>(), 0..300), 0..8),
        mask in any::<Option<[u8; 4]>>(),
        sizes in vec(1..90usize, 1..8),
    ) {
        let mut wire = BytesMut::new();
        payloads.iter().for_each(|payload| Opcode::Binary.encode(payload, mask, &mut wire));
        let role = if mask.is_some() { Role::Server } else { Role::Client };
        let mut feed = EventFeed::new(role, LIMIT);
        for size in sizes.iter().cycle() {
            if wire.is_empty() {
                break;
            }
            let piece = wire.split_to(wire.len().min(*size));
            feed.push(&piece);
        }
        let sent: Vec<_> = payloads.into_iter().map(message).collect();
        prop_assert_eq!(feed.events, sent);
    }

    #[test]
    fn fragments_of_any_size_are_one_message(
        payload in vec(any::<u8>(), 0..2_000),
        fragment in 1..300usize,
        size in 1..90usize,
    ) {
        let mut frames: Vec<_> = payload.chunks(fragment).map(|part| (CONTINUATION, part)).collect();
        frames.insert(0, (BINARY, b""));
        frames.push((LAST | CONTINUATION, b""));
        let wire: Vec<u8> = frames.iter().flat_map(|(first, part)| frame(*first, part)).collect();
        let mut feed = EventFeed::new(Role::Server, payload.len());
        wire.chunks(size).for_each(|piece| feed.push(piece));
        prop_assert_eq!(feed.events, [message(payload)]);
    }

    #[test]
    fn the_events_of_any_bytes_do_not_depend_on_the_cuts(
        frames in vec((any::<u8>(), vec(any::<u8>(), 0..20)), 0..12),
        size in 1..20usize,
        limit in 0..40usize,
    ) {
        let wire: Vec<u8> = frames.iter().flat_map(|(first, part)| frame(*first, part)).collect();
        let mut whole = EventFeed::new(Role::Server, limit);
        whole.push(&wire);
        let mut pieces = EventFeed::new(Role::Server, limit);
        wire.chunks(size).for_each(|piece| pieces.push(piece));
        prop_assert_eq!(whole.events, pieces.events);
    }
}
