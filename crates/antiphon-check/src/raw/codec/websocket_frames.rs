//! WebSocket, client side (RFC 6455): one text frame per message.

use std::hash::{BuildHasher as _, RandomState};

use super::{Decoded, MAX_REPLY, ProtocolViolation, too_large};

/// The key of every handshake, and its proof: the example of RFC 6455, section 1.3. A random key would
/// protect against a cache that replies instead of the server, but its proof would need a digest.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The limit of unwritten bytes. Beyond it, pings get no pong: the peer floods.
const MAX_UNSENT: usize = 1 << 20;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The WebSocket codec of one connection, after the handshake.
#[derive(Debug)]
pub(crate) struct WsCodec {
    random: u64,
    /// The mask of the last frame.
    key: [u8; 4],
    /// The received part of a fragmented message.
    joined: Option<Vec<u8>>,
    /// The last fragmented message, complete.
    whole: Vec<u8>,
}

/// The head of a frame.
struct WsFrameHead {
    first: u8,
    length: usize,
    /// The start of the payload.
    at: usize,
}

impl WsCodec {
    pub(crate) fn new() -> Self {
        let random = RandomState::new().hash_one(0) | 1;
        Self { random, key: [0; 4], joined: None, whole: Vec::new() }
    }

    pub(crate) fn begin(&mut self, length: usize, out: &mut Vec<u8>) {
        self.frame(TEXT, length, out);
    }

    fn frame(&mut self, opcode: u8, length: usize, out: &mut Vec<u8>) {
        out.push(0x80 | opcode);
        match length {
            0..126 => out.push(0x80 | length as u8),
            126..0x1_0000 => {
                out.push(0x80 | 126);
                out.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                out.push(0x80 | 127);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        self.key = self.next_key();
        out.extend_from_slice(&self.key);
    }

    /// Xorshift. The author of the payload must not predict the mask (section 5.3); here the author is
    /// this process, so a weak generator is enough.
    fn next_key(&mut self) -> [u8; 4] {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 32) as u32).to_ne_bytes()
    }

    /// Masks the payload of the last frame.
    pub(crate) fn mask(&self, payload: &mut [u8]) {
        let [a, b, c, d] = self.key;
        let word = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        let mut words = payload.chunks_exact_mut(8);
        for bytes in &mut words {
            let masked = u64::from_ne_bytes(bytes.try_into().expect("8 bytes")) ^ word;
            bytes.copy_from_slice(&masked.to_ne_bytes());
        }
        for (byte, key) in words.into_remainder().iter_mut().zip(self.key.iter().cycle()) {
            *byte ^= key;
        }
    }

    pub(crate) fn next<'a>(
        &'a mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Decoded<'a>, ProtocolViolation> {
        let Some(head) = head(input)? else { return Ok(Decoded::Starved) };
        let used = head.at + head.length;
        let Some(payload) = input.get(head.at..used) else { return Ok(Decoded::Starved) };
        match (head.first & 0x0F, head.first & 0x80 != 0) {
            (TEXT | BINARY, true) if self.joined.is_none() => Ok(Decoded::Reply(payload, used)),
            (TEXT | BINARY, false) if self.joined.is_none() => {
                self.joined = Some(payload.to_vec());
                Ok(Decoded::Pass(used))
            }
            (CONTINUATION, last) => self.join(payload, last, used),
            (CLOSE, true) => Ok(Decoded::Closing(close_reason(payload))),
            (PING, true) => {
                if out.len() < MAX_UNSENT {
                    self.control(PONG, payload, out);
                }
                Ok(Decoded::Pass(used))
            }
            (PONG, true) => Ok(Decoded::Pass(used)),
            _ => Err(ProtocolViolation("an unexpected WebSocket frame".into())),
        }
    }

    fn join(
        &mut self,
        payload: &[u8],
        last: bool,
        used: usize,
    ) -> Result<Decoded<'_>, ProtocolViolation> {
        let Some(mut joined) = self.joined.take() else {
            return Err(ProtocolViolation(
                "a WebSocket continuation frame without a first fragment".into(),
            ));
        };
        if joined.len() + payload.len() > MAX_REPLY {
            return Err(too_large());
        }
        joined.extend_from_slice(payload);
        if last {
            self.whole = joined;
            return Ok(Decoded::Reply(&self.whole, used));
        }
        self.joined = Some(joined);
        Ok(Decoded::Pass(used))
    }

    fn control(&mut self, opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
        self.frame(opcode, payload.len(), out);
        let start = out.len();
        out.extend_from_slice(payload);
        self.mask(&mut out[start..]);
    }

    /// Appends a close frame with code 1000, a normal closure.
    pub(crate) fn close_message(&mut self, out: &mut Vec<u8>) {
        self.control(CLOSE, &1000_u16.to_be_bytes(), out);
    }
}

/// Parses the head of a frame (section 5.2); `None` while it is incomplete.
fn head(input: &[u8]) -> Result<Option<WsFrameHead>, ProtocolViolation> {
    let [first, second, ..] = *input else { return Ok(None) };
    if first & 0x70 != 0 {
        return Err(ProtocolViolation("a WebSocket frame has reserved bits set".into()));
    }
    if second & 0x80 != 0 {
        return Err(ProtocolViolation("a WebSocket frame of the server is masked".into()));
    }
    if first & 0x08 != 0 && second > 125 {
        return Err(ProtocolViolation("a WebSocket control frame is too long".into()));
    }
    let (length, at) = match (second, &input[2..]) {
        (126, [a, b, ..]) => (u16::from_be_bytes([*a, *b]).into(), 4),
        (127, [a, b, c, d, e, f, g, h, ..]) => {
            (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), 10)
        }
        (126 | 127, _) => return Ok(None),
        (short, _) => (short.into(), 2),
    };
    match usize::try_from(length) {
        Ok(length) if length <= MAX_REPLY => Ok(Some(WsFrameHead { first, length, at })),
        _ => Err(too_large()),
    }
}

/// Describes a close frame (section 5.5.1).
fn close_reason(payload: &[u8]) -> String {
    match payload {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            let reason = String::from_utf8_lossy(reason);
            format!("the WebSocket was closed with {code} {reason}").trim_end().to_owned()
        }
        _ => "the WebSocket was closed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Codec, CodecKind, replies};
    use super::*;

    fn framed(first: u8, payload: &str) -> Vec<u8> {
        let head = match payload.len() {
            short @ 0..126 => vec![first, short as u8],
            long => [&[first, 126][..], &(long as u16).to_be_bytes()].concat(),
        };
        [&head, payload.as_bytes()].concat()
    }

    fn found(input: &[u8]) -> Result<Vec<String>, ProtocolViolation> {
        let all = |piece| replies(&mut Codec(CodecKind::Ws(WsCodec::new())), input, piece);
        assert_eq!(all(1), all(input.len()));
        all(3)
    }

    #[test]
    fn messages_arrive_whole_and_in_fragments() {
        let long = "x".repeat(300);
        let frames = [
            framed(0x81, "one"),
            framed(0x01, "t"),
            framed(0x89, "ping"),
            framed(0x00, "w"),
            framed(0x80, "o"),
            framed(0x82, &long),
            framed(0x81, ""),
        ];
        assert_eq!(found(&frames.concat()).unwrap(), ["one", "two", &long, ""]);
    }

    #[test]
    fn a_ping_is_answered_and_a_close_ends_it() {
        let (mut ws, mut out) = (WsCodec::new(), Vec::new());
        assert_eq!(ws.next(&framed(0x89, "abc"), &mut out), Ok(Decoded::Pass(5)));
        assert_eq!((out.len(), &out[..2]), (9, &[0x8A, 0x83][..]));
        ws.mask(&mut out[6..]);
        assert_eq!(&out[6..], b"abc");
        let close = found(&framed(0x88, "\u{3}\u{78}bye")).unwrap();
        assert_eq!(close, ["the WebSocket was closed with 888 bye"]);
    }

    #[test]
    fn a_message_is_masked_with_another_key_each_time() {
        for length in [0, 1, 7, 8, 9, 125, 126, 70_000] {
            let (mut ws, mut out) = (WsCodec::new(), Vec::new());
            ws.begin(length, &mut out);
            let start = out.len();
            out.resize(start + length, b'x');
            ws.mask(&mut out[start..]);
            let key: [u8; 4] = out[start - 4..start].try_into().unwrap();
            let masked = out[start..].iter().zip(key.iter().cycle());
            assert!(masked.map(|(byte, key)| byte ^ key).all(|byte| byte == b'x'));
            assert_ne!(ws.next_key(), key);
        }
    }

    #[test]
    fn invalid_frames_are_violations() {
        for input in [
            vec![0x81, 0x81, 0, 0, 0, 0, 0],
            vec![0xC1, 0],
            vec![0x83, 0],
            vec![0x80, 0],
            vec![0x09, 0],
            vec![0x89, 126, 0, 126],
            vec![0x82, 127, 0xFF, 0, 0, 0, 0, 0, 0, 0],
            [framed(0x01, "a"), framed(0x81, "b")].concat(),
        ] {
            assert!(found(&input).is_err(), "{input:?}");
        }
    }
}
