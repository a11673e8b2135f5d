//! The codecs: each frames outgoing messages, and finds the replies in the received bytes.
//!
//! A codec performs no I/O. It copies a reply only if the reply arrives in fragments or chunks.
//! Invariant: bytes that [`Codec::next`] does not consume are part of its next input, with more behind
//! them.

mod http;
mod stream;
mod websocket_frames;

pub(crate) use self::http::{HttpCodec, MAX_HEAD, headers_of};
pub(crate) use self::stream::StreamCodec;
pub(crate) use self::websocket_frames::{KEY, PROOF, WsCodec};

/// The size limit of a reply.
pub(crate) const MAX_REPLY: usize = 256 << 20;

/// The codec of one connection.
#[derive(Debug)]
pub struct Codec(pub(crate) CodecKind);

#[derive(Debug)]
pub(crate) enum CodecKind {
    Http(HttpCodec),
    Ws(WsCodec),
    Stream(StreamCodec),
}

/// The next item of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// The input is incomplete.
    Starved,
    /// This many bytes hold no reply.
    Pass(usize),
    /// A reply, and the number of bytes to consume.
    Reply(&'a [u8], usize),
    /// An HTTP response without success: its status, its body, and the number of bytes to consume.
    Refusal(u16, &'a [u8], usize),
    /// The peer closes the connection, for this reason.
    Closing(String),
}

/// A violation of the wire's protocol by the peer.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtocolViolation(pub String);

impl Codec {
    /// Begins a message of this length. Returns its position in `out`.
    pub fn begin(&mut self, length: usize, out: &mut Vec<u8>) -> usize {
        match &mut self.0 {
            CodecKind::Http(http) => http.begin(length, out),
            CodecKind::Ws(ws) => ws.begin(length, out),
            CodecKind::Stream(stream) => stream.begin(length, out),
        }
        out.len()
    }

    /// Ends the message that began at `start`.
    pub fn end(&mut self, start: usize, out: &mut Vec<u8>) {
        match &mut self.0 {
            CodecKind::Http(_) => {}
            CodecKind::Ws(ws) => ws.mask(&mut out[start..]),
            CodecKind::Stream(stream) => stream.end(out),
        }
    }

    /// Reports whether the bytes of a message differ on the wire: WebSocket masks them.
    pub fn transforms_payload(&self) -> bool {
        matches!(&self.0, CodecKind::Ws(_))
    }

    /// Finds the next reply. Control replies, such as pongs, go to `out`.
    ///
    /// # Errors
    ///
    /// The peer violates the protocol of the wire.
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Decoded<'a>, ProtocolViolation> {
        match &mut self.0 {
            CodecKind::Http(http) => http.next(input),
            CodecKind::Ws(ws) => ws.next(input, out),
            CodecKind::Stream(stream) => stream.next(input),
        }
    }

    /// Returns the reply that the end of the connection ends, if there is one.
    pub fn last<'a>(&'a mut self, input: &'a [u8]) -> Option<Decoded<'a>> {
        match &mut self.0 {
            CodecKind::Http(http) => http.last(input),
            CodecKind::Ws(_) | CodecKind::Stream(_) => None,
        }
    }

    /// Reports whether the peer announced that it closes the connection after this reply.
    pub fn is_closing(&self) -> bool {
        matches!(&self.0, CodecKind::Http(http) if http.is_closing)
    }

    /// Reports whether replies arrive in the order of the requests.
    pub fn is_ordered(&self) -> bool {
        matches!(&self.0, CodecKind::Http(_))
    }

    /// Appends the message that announces the close, if the wire has one.
    pub fn close_message(&mut self, out: &mut Vec<u8>) {
        if let CodecKind::Ws(ws) = &mut self.0 {
            ws.close_message(out);
        }
    }
}

/// Appends a number in decimal.
fn decimal(number: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn too_large() -> ProtocolViolation {
    ProtocolViolation(format!("a reply is over {} MiB", MAX_REPLY >> 20))
}

/// Feeds an input to a codec in pieces, as reads would, and collects the replies.
#[cfg(test)]
fn replies(
    codec: &mut Codec,
    input: &[u8],
    piece: usize,
) -> Result<Vec<String>, ProtocolViolation> {
    let (mut at, mut end, mut found) = (0, 0, Vec::new());
    while end < input.len() {
        end = (end + piece).min(input.len());
        loop {
            let used = match codec.next(&input[at..end], &mut Vec::new())? {
                Decoded::Starved => break,
                Decoded::Pass(used) => used,
                Decoded::Reply(text, used) => {
                    found.push(String::from_utf8(text.to_vec()).unwrap());
                    used
                }
                Decoded::Refusal(status, text, used) => {
                    found.push(format!("{status} {}", String::from_utf8_lossy(text)));
                    used
                }
                Decoded::Closing(why) => {
                    found.push(why);
                    return Ok(found);
                }
            };
            at += used;
        }
    }
    Ok(found)
}
