//! A raw stream with a framing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use super::{Connection, Socket, fault};

/// The framing of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each is followed by a newline.
    Line,
    /// Each is preceded by its `Content-Length`.
    Header,
}

/// A duplex stream of messages.
pub(crate) struct Stream {
    reader: BufReader<Socket>,
    framing: Framing,
}

impl Stream {
    pub(crate) fn tcp(address: &str, framing: Framing) -> Self {
        Self { reader: BufReader::new(Socket::tcp(address)), framing }
    }

    pub(crate) fn unix(path: &str, framing: Framing) -> Self {
        Self::over_unix(UnixStream::connect(path).unwrap(), framing)
    }

    pub(crate) fn over_unix(socket: UnixStream, framing: Framing) -> Self {
        Self { reader: BufReader::new(Socket::unix(socket)), framing }
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.reader.get_mut().write_all(bytes).map_err(|error| fault(&error))
    }

    /// Closes the sending direction.
    pub(crate) fn finish(&mut self) {
        self.reader.get_mut().finish();
    }

    /// Returns a second handle for sending from another thread.
    pub(crate) fn sender(&self) -> TcpStream {
        self.reader.get_ref().bare().try_clone().unwrap()
    }

    /// Returns the bytes of a message with its framing.
    pub(crate) fn framed(&self, message: &[u8]) -> Vec<u8> {
        match self.framing {
            Framing::Line => [message, b"\n"].concat(),
            Framing::Header => {
                [format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes(), message].concat()
            }
        }
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }

    fn body(&mut self) -> io::Result<Vec<u8>> {
        let mut length = None;
        loop {
            let line = String::from_utf8_lossy(&self.line()?).into_owned();
            match line.strip_suffix('\r').and_then(|line| line.split_once(": ")) {
                Some(("Content-Length", digits)) => length = digits.parse().ok(),
                Some(_) => {}
                None if line == "\r" => break,
                None => return Err(io::Error::other(format!("{line:?} is not a header line"))),
            }
        }
        let length = length.ok_or_else(|| io::Error::other("no Content-Length"))?;
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        Ok(body)
    }
}

impl Connection for Stream {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        let framed = self.framed(message);
        self.raw(&framed)
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        let message = match self.framing {
            Framing::Line => self.line(),
            Framing::Header => self.body(),
        };
        message.map_err(|error| fault(&error))
    }
}
