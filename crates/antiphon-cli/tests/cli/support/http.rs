//! A minimal HTTP/1.1 client.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Connection, PATIENCE, Socket, fault};

/// A keep-alive connection.
pub(crate) struct Http {
    reader: BufReader<Socket>,
    /// Received bodies that were not read by `receive` yet.
    arrived: VecDeque<Vec<u8>>,
    address: String,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the value of a header. The name is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

impl Http {
    pub(crate) fn connect(address: &str) -> Self {
        Self::over(Socket::tcp(address), address)
    }

    fn over(socket: Socket, address: &str) -> Self {
        let reader = BufReader::new(socket);
        Self { reader, arrived: VecDeque::new(), address: address.to_owned() }
    }

    /// Sends a request with these header lines and returns the response.
    pub(crate) fn request(&mut self, verb: &str, headers: &str, body: &[u8]) -> Answer {
        let sent = self.send_whole(verb, headers, body);
        // A server that rejects the request may stop reading, but its response still arrives.
        let answer = self.answer();
        answer.unwrap_or_else(|fault| panic!("{fault}; {verb} {headers:?} was sent: {sent:?}"))
    }

    /// Sends head and body in one write, as clients do.
    fn send_whole(&mut self, verb: &str, headers: &str, body: &[u8]) -> Result<(), String> {
        let head = self.head_of(verb, headers, body.len());
        self.raw(&[head.as_bytes(), body].concat())
    }

    /// Sends a POST and returns the response.
    pub(crate) fn post(&mut self, body: &[u8]) -> Answer {
        self.request("POST", "content-type: application/json\r\n", body)
    }

    /// Sends only the head of a request.
    pub(crate) fn head(&mut self, verb: &str, headers: &str, length: usize) -> Result<(), String> {
        let head = self.head_of(verb, headers, length);
        self.raw(head.as_bytes())
    }

    /// Formats the head. `headers` may contain another Host.
    fn head_of(&self, verb: &str, headers: &str, length: usize) -> String {
        let host = match headers.to_ascii_lowercase().contains("host:") {
            true => String::new(),
            false => format!("host: {}\r\n", self.address),
        };
        format!("{verb} / HTTP/1.1\r\n{host}{headers}content-length: {length}\r\n\r\n")
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.reader.get_mut().write_all(bytes).map_err(|error| fault(&error))
    }

    /// Returns a second handle for sending.
    pub(crate) fn sender(&self) -> TcpStream {
        self.reader.get_ref().bare().try_clone().unwrap()
    }

    /// Reads the next response.
    pub(crate) fn answer(&mut self) -> Result<Answer, String> {
        self.read_answer().map_err(|error| fault(&error))
    }

    /// Reads bytes after an upgrade.
    pub(crate) fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        self.reader.read_exact(bytes).map_err(|error| fault(&error))
    }

    /// Sends more bytes, and returns whether the server has then closed the connection.
    pub(crate) fn ends_after_one_more(&mut self, bytes: &[u8]) -> bool {
        let mut socket = self.reader.get_ref().bare();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let end = socket.write_all(bytes).and_then(|()| socket.read(&mut [0; 4096]));
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        match end {
            Ok(read) => read == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    fn read_answer(&mut self) -> io::Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status =
            status.ok_or_else(|| io::Error::other(format!("{first:?} is not a status line")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let mut answer = Answer { status, headers, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        answer.body = String::from_utf8(body).map_err(io::Error::other)?;
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Each message is one POST. The body of its response is the received message.
impl Connection for Http {
    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        if let Some(left) = self.arrived.pop_front() {
            return Err(format!("unexpected message: {}", String::from_utf8_lossy(&left)));
        }
        self.send_whole("POST", "content-type: application/json\r\n", message)?;
        let answer = self.answer()?;
        let kind = answer.header("content-type");
        match (answer.status, kind, &*answer.body) {
            (204, None, "") => {}
            (200, Some("application/json"), body) if !body.is_empty() => {
                self.arrived.push_back(body.as_bytes().to_vec());
            }
            _ => return Err(format!("neither 200 with JSON nor 204 without a body: {answer:?}")),
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        self.arrived.pop_front().ok_or_else(|| "status 204 without a response".to_owned())
    }
}
