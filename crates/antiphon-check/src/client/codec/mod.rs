//! The codecs of the scenarios' server: framing of responses, and readers for the client's messages.
//!
//! A reader performs no I/O. It records every fault, and goes on if the message is still readable.

pub(super) mod http;
pub(super) mod stream;
pub(super) mod websocket;

/// The size limit of a client's message.
const MAX_MESSAGE: usize = 16 << 20;
/// The size limit of a head, of a request or of a message.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 128;

/// The wire of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientWire {
    Http,
    Ws,
    Line,
    Header,
}

/// An event of a client's connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientEvent {
    Message(Vec<u8>),
    /// A WebSocket handshake with this key.
    Upgrade(String),
    /// The client waits for `100 Continue` before it sends the body.
    ExpectContinue,
    /// A request without a message.
    Stray,
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Vec<u8>),
}

/// The name of a check, and the fault that breaks it.
pub(super) type BrokenCheck = (&'static str, String);

/// The reader of one connection.
pub(super) enum ClientReader {
    Http(http::HttpRequestReader),
    Ws(websocket::WsRequestReader),
    Line,
    Header,
}

impl ClientWire {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Ws => "WebSocket",
            Self::Line => "the framing `line`",
            Self::Header => "the framing `header`",
        }
    }

    /// Frames a message correctly.
    pub(super) fn framed(self, message: &str) -> Vec<u8> {
        match self {
            Self::Http => http::ok(message),
            Self::Ws => websocket::text(message),
            Self::Line => format!("{message}\n").into_bytes(),
            Self::Header => {
                format!("Content-Length: {}\r\n\r\n{message}", message.len()).into_bytes()
            }
        }
    }

    /// Returns bytes for the report; of WebSocket frames, the text in them.
    pub(super) fn readable(self, bytes: &[u8]) -> Vec<u8> {
        if self != Self::Ws {
            return bytes.to_vec();
        }
        let text = String::from_utf8_lossy(bytes);
        let is_text = |c: &char| !c.is_control() && *c != char::REPLACEMENT_CHARACTER;
        format!("(frames) {}", text.chars().filter(is_text).collect::<String>()).into_bytes()
    }

    pub(super) fn reader(self) -> ClientReader {
        match self {
            Self::Http => ClientReader::Http(http::HttpRequestReader::default()),
            Self::Ws => ClientReader::Ws(websocket::WsRequestReader::default()),
            Self::Line => ClientReader::Line,
            Self::Header => ClientReader::Header,
        }
    }
}

impl ClientReader {
    /// Consumes the next event of the input; `None` while it is incomplete. Fails if the input cannot be
    /// read on.
    pub(super) fn next(
        &mut self,
        input: &mut Vec<u8>,
        faults: &mut Vec<BrokenCheck>,
    ) -> Result<Option<ClientEvent>, BrokenCheck> {
        match self {
            Self::Http(http) => http.next(input, faults),
            Self::Ws(ws) => ws.next(input, faults),
            Self::Line => stream::line(input),
            Self::Header => stream::header(input),
        }
    }
}

impl ClientReader {
    /// Reports whether the client speaks HTTP/1.0.
    pub(super) fn is_http10(&self) -> bool {
        matches!(self, Self::Http(http) if http.is_http10)
    }

    /// Reports whether the client expects the connection to close after the response.
    pub(super) fn is_last(&self) -> bool {
        matches!(self, Self::Http(http) if http.is_last)
    }
}

/// Consumes `skipped` bytes, and then `length` bytes, which it returns.
fn take(input: &mut Vec<u8>, skipped: usize, length: usize) -> Vec<u8> {
    let taken = input[skipped..skipped + length].to_vec();
    input.drain(..skipped + length);
    taken
}

/// Parses a `Content-Length`.
fn length(check: &'static str, digits: &[u8]) -> Result<usize, BrokenCheck> {
    let text = String::from_utf8_lossy(digits);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let Some(length) = text.parse::<usize>().ok().filter(|_| is_number) else {
        return Err((check, format!("the Content-Length `{text}` is not a number")));
    };
    if length > MAX_MESSAGE {
        return Err((
            check,
            format!("a message of {length} bytes is larger than any scenario needs"),
        ));
    }
    Ok(length)
}
