//! How does a message lie on the wire, seen from the server?
//!
//! A reader takes what has come and finds messages in it; it reads and writes nothing itself. It goes
//! on behind every fault that leaves a message readable, and writes the fault down.

pub(super) mod http;
pub(super) mod stream;
pub(super) mod websocket;

/// The largest message that is taken of a client.
const MAX_MESSAGE: usize = 16 << 20;
/// The longest head of a request or of a message.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 128;

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientWire {
    Http,
    Ws,
    Line,
    Header,
}

/// What a client did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientEvent {
    Message(Vec<u8>),
    /// It asks for a WebSocket, with this key.
    Upgrade(String),
    /// It waits for `100 Continue` before it sends its message.
    Hesitation,
    /// A request that holds no message.
    Stray,
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Vec<u8>),
}

/// Which check a fault breaks, and how.
pub(super) type BrokenCheck = (&'static str, String);

/// One connection's reader.
pub(super) enum ClientReader {
    Http(http::HttpRequestReader),
    Ws(websocket::WsRequestReader),
    Line,
    Header,
}

impl ClientWire {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Ws => "ws",
            Self::Line => "line",
            Self::Header => "header",
        }
    }

    /// A message as a server without faults writes it.
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

    /// Bytes as a person reads them: of frames, what is text in them.
    pub(super) fn shown(self, bytes: &[u8]) -> Vec<u8> {
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
    /// Takes the next thing off the input. None where more has to come, an error where what came
    /// cannot be read on.
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
    /// Whether the client speaks HTTP/1.0.
    pub(super) fn is_old(&self) -> bool {
        matches!(self, Self::Http(http) if http.is_old)
    }

    /// Whether the client waits for the end of the connection behind the answer.
    pub(super) fn is_last(&self) -> bool {
        matches!(self, Self::Http(http) if http.is_last)
    }
}

/// Takes these first bytes off, without the `skipped` ones at their front.
fn take(input: &mut Vec<u8>, skipped: usize, length: usize) -> Vec<u8> {
    let taken = input[skipped..skipped + length].to_vec();
    input.drain(..skipped + length);
    taken
}

/// A length that somebody wrote down.
fn length(check: &'static str, digits: &[u8]) -> Result<usize, BrokenCheck> {
    let text = String::from_utf8_lossy(digits);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let Some(length) = text.parse::<usize>().ok().filter(|_| is_number) else {
        return Err((check, format!("the Content-Length `{text}` is no number")));
    };
    if length > MAX_MESSAGE {
        return Err((
            check,
            format!("a message of {length} bytes is larger than any scenario asks"),
        ));
    }
    Ok(length)
}
