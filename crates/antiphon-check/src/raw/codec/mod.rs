//! How messages lie on the wire: each codec frames what goes, and finds the replies in what came.
//!
//! A codec reads and writes nothing itself, and copies a reply only where it came in pieces.
//! Invariant: what [`Codec::next`] does not use up is shown to it again, with more behind it.

mod http;
mod stream;
mod websocket;

pub(crate) use self::http::{HttpCodec, MAX_HEAD, headers_of};
pub(crate) use self::stream::StreamCodec;
pub(crate) use self::websocket::{KEY, PROOF, WsCodec};

/// The largest reply that is taken.
pub(crate) const MAX_REPLY: usize = 256 << 20;

/// What a connection speaks.
pub enum Codec {
    Http(HttpCodec),
    Ws(WsCodec),
    Stream(StreamCodec),
}

/// What is next in the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// Not all of it is there.
    Starved,
    /// So many bytes hold no reply.
    Pass(usize),
    /// A reply, and the bytes it takes.
    Reply(&'a [u8], usize),
    /// An HTTP answer without success: its status, its body and the bytes it takes.
    Refusal(u16, &'a [u8], usize),
    /// The peer says goodbye, and why.
    Goodbye(String),
}

/// How the peer broke the protocol of the wire.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtocolViolation(pub String);

impl Codec {
    /// Begins a message of this length; gives where it begins.
    pub fn begin(&mut self, length: usize, out: &mut Vec<u8>) -> usize {
        match self {
            Self::Http(http) => http.begin(length, out),
            Self::Ws(ws) => ws.begin(length, out),
            Self::Stream(stream) => stream.begin(length, out),
        }
        out.len()
    }

    /// Ends the message that began there.
    pub fn end(&mut self, start: usize, out: &mut Vec<u8>) {
        match self {
            Self::Http(_) => {}
            Self::Ws(ws) => ws.mask(&mut out[start..]),
            Self::Stream(stream) => stream.end(out),
        }
    }

    /// Whether a message is not the same on the wire.
    pub fn changes_texts(&self) -> bool {
        matches!(self, Self::Ws(_))
    }

    /// Looks for the next reply; what has to be answered on the way goes to `out`.
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Decoded<'a>, ProtocolViolation> {
        match self {
            Self::Http(http) => http.next(input),
            Self::Ws(ws) => ws.next(input, out),
            Self::Stream(stream) => stream.next(input),
        }
    }

    /// A reply that only the end of the connection ends.
    pub fn last<'a>(&'a mut self, input: &'a [u8]) -> Option<Decoded<'a>> {
        match self {
            Self::Http(http) => http.last(input),
            Self::Ws(_) | Self::Stream(_) => None,
        }
    }

    /// Whether the peer has announced that it closes after this reply.
    pub fn is_closing(&self) -> bool {
        matches!(self, Self::Http(http) if http.is_closing)
    }

    /// Whether replies come in the order of the calls.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// What to say before leaving.
    pub fn close_message(&mut self, out: &mut Vec<u8>) {
        if let Self::Ws(ws) = self {
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

/// Shows a whole input to a codec in pieces that grow, as reads would, and gathers its replies.
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
                Decoded::Goodbye(why) => {
                    found.push(why);
                    return Ok(found);
                }
            };
            at += used;
        }
    }
    Ok(found)
}
