//! WebSocket, server side (RFC 6455): the handshake, and frames in both directions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{BrokenCheck, ClientEvent, MAX_HEAD, MAX_HEADERS, MAX_MESSAGE, http, take};

/// The suffix of the key in the proof of a handshake (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const CONTINUATION: u8 = 0;
pub(in crate::client) const TEXT: u8 = 1;
pub(in crate::client) const BINARY: u8 = 2;
pub(in crate::client) const CLOSE: u8 = 8;
pub(in crate::client) const PING: u8 = 9;
pub(in crate::client) const PONG: u8 = 10;
/// The FIN bit, set on the last frame of a message.
pub(in crate::client) const LAST: u8 = 0x80;

/// Reads the handshake and the frames of one connection.
#[derive(Debug, Default)]
pub(in crate::client) struct WsRequestReader {
    is_open: bool,
    /// The received part of a fragmented message.
    joined: Option<Vec<u8>>,
}

/// The head of a frame.
struct MaskedFrameHead {
    first: u8,
    mask: Option<[u8; 4]>,
    /// The start of the payload.
    at: usize,
    length: usize,
}

/// Returns an unmasked frame with this first byte.
pub(in crate::client) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        short @ 0..126 => out.push(short as u8),
        middle @ 126..0x1_0000 => {
            out.push(126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out
}

/// Returns a message in one text frame.
pub(in crate::client) fn text(message: &str) -> Vec<u8> {
    frame(LAST | TEXT, message.as_bytes())
}

/// Returns a masked frame, which only a client may send.
pub(in crate::client) fn masked(message: &str) -> Vec<u8> {
    const KEY: [u8; 4] = [1, 2, 3, 4];
    let plain = text(message);
    let at = plain.len() - message.len();
    let mut out = plain[..at].to_vec();
    out[1] |= 0x80;
    out.extend_from_slice(&KEY);
    out.extend(message.bytes().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
    out
}

/// Returns the response that accepts a handshake (section 4.2.2).
pub(in crate::client) fn switched(key: &str) -> Vec<u8> {
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(key.as_bytes());
    sha1.update(GUID.as_bytes());
    let proof = format!("sec-websocket-accept: {}", BASE64.encode(sha1.digest().bytes()));
    let headers = ["connection: Upgrade", "upgrade: websocket", &proof];
    http::response("101 Switching Protocols", &headers, "")
}

impl WsRequestReader {
    pub(super) fn next(
        &mut self,
        input: &mut Vec<u8>,
        faults: &mut Vec<BrokenCheck>,
    ) -> Result<Option<ClientEvent>, BrokenCheck> {
        if !self.is_open {
            let Some((size, key)) = handshake(input, faults)? else { return Ok(None) };
            input.drain(..size);
            self.is_open = true;
            return Ok(Some(ClientEvent::Upgrade(key)));
        }
        loop {
            let Some(head) = head(input)? else { return Ok(None) };
            if input.len() < head.at + head.length {
                return Ok(None);
            }
            let mut payload = take(input, head.at, head.length);
            match head.mask {
                Some(mask) => unmask(&mut payload, mask),
                None => faults.push(("ws-masked", "a frame of the client has no mask".to_owned())),
            }
            if let Some(event) = self.frame(head.first, payload, faults)? {
                return Ok(Some(event));
            }
        }
    }

    fn frame(
        &mut self,
        first: u8,
        payload: Vec<u8>,
        faults: &mut Vec<BrokenCheck>,
    ) -> Result<Option<ClientEvent>, BrokenCheck> {
        let (opcode, is_last) = (first & 0x0F, first & LAST != 0);
        match opcode {
            TEXT | BINARY if self.joined.is_none() => {
                if opcode == BINARY {
                    faults.push(("ws-text", "a message is in a binary frame".to_owned()));
                }
                self.join(Vec::new(), payload, is_last)
            }
            CONTINUATION if self.joined.is_some() => {
                let joined = self.joined.take().unwrap_or_default();
                self.join(joined, payload, is_last)
            }
            CLOSE => Ok(Some(ClientEvent::Close(payload))),
            PING => Ok(Some(ClientEvent::Ping(payload))),
            PONG => Ok(Some(ClientEvent::Pong(payload))),
            _ => Err(("ws-frames", format!("an unexpected frame with opcode {opcode}"))),
        }
    }

    fn join(
        &mut self,
        mut joined: Vec<u8>,
        mut payload: Vec<u8>,
        is_last: bool,
    ) -> Result<Option<ClientEvent>, BrokenCheck> {
        joined.append(&mut payload);
        if joined.len() > MAX_MESSAGE {
            return Err(("ws-frames", "a message is larger than any scenario needs".to_owned()));
        }
        if is_last {
            return Ok(Some(ClientEvent::Message(joined)));
        }
        self.joined = Some(joined);
        Ok(None)
    }
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

/// Parses the head of a frame (section 5.2); `None` while it is incomplete.
fn head(input: &[u8]) -> Result<Option<MaskedFrameHead>, BrokenCheck> {
    let [first, second, rest @ ..] = input else { return Ok(None) };
    if first & 0x70 != 0 {
        return Err(("ws-frames", "a frame has reserved bits set".to_owned()));
    }
    let short = second & 0x7F;
    if first & 0x08 != 0 && (short > 125 || first & LAST == 0) {
        return Err(("ws-frames", "a control frame is too long or fragmented".to_owned()));
    }
    let (length, at) = match (short, rest) {
        (126, [a, b, ..]) => (u16::from_be_bytes([*a, *b]).into(), 4),
        (127, [a, b, c, d, e, f, g, h, ..]) => {
            (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), 10)
        }
        (126 | 127, _) => return Ok(None),
        (short, _) => (u64::from(short), 2),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_MESSAGE);
    let Some(length) = length else {
        return Err(("ws-frames", "a frame is larger than any scenario needs".to_owned()));
    };
    if second & 0x80 == 0 {
        return Ok(Some(MaskedFrameHead { first: *first, mask: None, at, length }));
    }
    let mask = input.get(at..at + 4).and_then(|mask| mask.try_into().ok());
    Ok(mask.map(|mask| MaskedFrameHead { first: *first, mask: Some(mask), at: at + 4, length }))
}

/// Checks a handshake (section 4.1). Returns the size of the request, and its key.
fn handshake(
    input: &[u8],
    faults: &mut Vec<BrokenCheck>,
) -> Result<Option<(usize, String)>, BrokenCheck> {
    let broken = |reason: String| ("ws-handshake", reason);
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let size = match request.parse(input) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) => {
            return Err(broken("the head of the request is too long".to_owned()));
        }
        Err(error) => return Err(broken(format!("the head of the request: {error}"))),
    };
    let value = |name: &str| {
        let named = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| String::from_utf8_lossy(header.value).trim().to_owned())
    };
    let mut expect = |holds: bool, wanted: &str| {
        if !holds {
            faults.push(("ws-handshake", format!("expected {wanted}")));
        }
    };
    let says = |name: &str, word: &str| {
        value(name).is_some_and(|value| value.to_ascii_lowercase().contains(word))
    };
    expect(request.method == Some("GET") && request.version == Some(1), "a GET of HTTP/1.1");
    expect(value("host").is_some(), "a Host");
    expect(says("upgrade", "websocket"), "`Upgrade: websocket`");
    expect(says("connection", "upgrade"), "`Connection: Upgrade`");
    expect(value("sec-websocket-version").as_deref() == Some("13"), "`Sec-WebSocket-Version: 13`");
    let Some(key) = value("sec-websocket-key") else {
        return Err(broken("expected a Sec-WebSocket-Key".to_owned()));
    };
    let is_nonce = BASE64.decode(&key).is_ok_and(|nonce| nonce.len() == 16);
    expect(is_nonce, "a Sec-WebSocket-Key of 16 bytes in base64");
    Ok(Some((size, key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: &str = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\n\
                           Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    fn found(frames: &[Vec<u8>]) -> (Vec<ClientEvent>, Vec<&'static str>) {
        let (mut ws, mut buffer) = (WsRequestReader::default(), Vec::new());
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for byte in OPENING.bytes().chain(frames.concat()) {
            buffer.push(byte);
            match ws.next(&mut buffer, &mut faults) {
                Ok(event) => all.extend(event),
                Err(fault) => {
                    faults.push(fault);
                    break;
                }
            }
        }
        (all, faults.into_iter().map(|(check, _)| check).collect())
    }

    fn of_client(first: u8, payload: &str) -> Vec<u8> {
        let mut frame = masked(payload);
        frame[0] = first;
        frame
    }

    #[test]
    fn messages_arrive_whole_and_in_fragments() {
        let long = "x".repeat(300);
        let (event, faults) = found(&[
            of_client(0x81, "one"),
            of_client(0x01, "t"),
            of_client(0x89, "p"),
            of_client(0x80, "wo"),
            of_client(0x81, &long),
            of_client(0x88, ""),
        ]);
        let message = |text: &str| ClientEvent::Message(text.into());
        let key = ClientEvent::Upgrade("dGhlIHNhbXBsZSBub25jZQ==".to_owned());
        let ping = ClientEvent::Ping(b"p".to_vec());
        let close = ClientEvent::Close(Vec::new());
        assert_eq!(event, [key, message("one"), ping, message("two"), message(&long), close]);
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn a_fault_breaks_the_check_that_names_it() {
        for (frame, check) in [
            (text("plain"), "ws-masked"),
            (of_client(0x82, "binary"), "ws-text"),
            (of_client(0xC1, "reserved"), "ws-frames"),
            (of_client(0x80, "continues nothing"), "ws-frames"),
            (of_client(0x83, "unknown"), "ws-frames"),
            (of_client(0x09, "half a ping"), "ws-frames"),
        ] {
            assert_eq!(found(&[frame]).1, [check]);
        }
        let (mut ws, mut faults) = (WsRequestReader::default(), Vec::new());
        let mut request = OPENING.replace("Version: 13", "Version: 8").into_bytes();
        assert!(ws.next(&mut request, &mut faults).unwrap().is_some());
        assert_eq!(faults[0].0, "ws-handshake");
    }

    #[test]
    fn the_proof_is_the_example_of_the_specification() {
        let opened = String::from_utf8(switched("dGhlIHNhbXBsZSBub25jZQ==")).unwrap();
        assert!(opened.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    }
}
