//! A minimal WebSocket client (RFC 6455).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::{Connection, Socket, fault};

/// The example of RFC 6455, section 1.3: a key and the value of `Sec-WebSocket-Accept` for it.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// A connection after its handshake.
pub(crate) struct Ws {
    reader: BufReader<Socket>,
}

/// A frame from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(Vec<u8>),
    Close(u16),
    Other(u8),
}

impl Ws {
    pub(crate) fn connect(address: &str) -> Self {
        Self::over(Socket::tcp(address), address)
    }

    fn over(socket: Socket, address: &str) -> Self {
        let mut ws = Self { reader: BufReader::new(socket) };
        let head = format!(
            "GET / HTTP/1.1\r\nhost: {address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
        );
        ws.raw(head.as_bytes()).unwrap();
        let head = ws.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 101 ") && head.contains(PROOF), "{head}");
        ws
    }

    fn head(&mut self) -> io::Result<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(head)
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.reader.get_mut().write_all(bytes).map_err(|error| fault(&error))
    }

    /// Returns a second handle for sending from another thread.
    pub(crate) fn sender(&self) -> TcpStream {
        self.reader.get_ref().bare().try_clone().unwrap()
    }

    /// Returns a masked frame. A first byte of `0x81` is a text message, `0x82` a binary one.
    pub(crate) fn framed(first: u8, payload: &[u8]) -> Vec<u8> {
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

    /// Reads the next frame. The server neither fragments nor masks.
    pub(crate) fn frame(&mut self) -> Result<Frame, String> {
        self.read_frame().map_err(|error| fault(&error))
    }

    fn read_frame(&mut self) -> io::Result<Frame> {
        let [first, length] = self.bytes()?;
        let length = match length {
            126 => u16::from_be_bytes(self.bytes()?).into(),
            127 => u64::from_be_bytes(self.bytes()?),
            masked @ 0x80.. => return Err(io::Error::other(format!("masked: {masked:#x}"))),
            short => short.into(),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.reader.read_exact(&mut payload)?;
        Ok(match (first, &payload[..]) {
            (0x81, _) => Frame::Text(payload),
            (0x88, [high, low, ..]) => Frame::Close(u16::from_be_bytes([*high, *low])),
            (0x88, _) => Frame::Close(1005),
            (other, _) => Frame::Other(other),
        })
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// A message is a text frame, or a binary frame if it is not UTF-8.
impl Connection for Ws {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        let first = if std::str::from_utf8(message).is_ok() { 0x81 } else { 0x82 };
        self.raw(&Self::framed(first, message))
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        match self.frame()? {
            Frame::Text(message) => Ok(message),
            other => Err(format!("the server sent {other:?} instead of a message")),
        }
    }
}
