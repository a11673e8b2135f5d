//! One connection of HTTP/1.1: a prebuilt request, and the whole response.

use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Fault;

/// A run must end, whatever a server does.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that were read and not yet used.
    buffer: Vec<u8>,
}

/// The parts of a response that a load looks at.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) is_event_stream: bool,
    pub(crate) body: Vec<u8>,
}

struct Head {
    length: usize,
    status: u16,
    session: Option<String>,
    is_event_stream: bool,
    framing: Framing,
}

#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4096) })
    }

    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Response, Fault> {
        self.stream.write_all(request).await?;
        let head = loop {
            match parse_head(&self.buffer)? {
                Some(head) => break head,
                None => self.read().await?,
            }
        };
        self.buffer.drain(..head.length);
        let body = match head.framing {
            Framing::Length(length) => self.take(length).await?,
            Framing::Chunked => self.chunks().await?,
        };
        let Head { status, session, is_event_stream, .. } = head;
        Ok(Response { status, session, is_event_stream, body })
    }

    async fn chunks(&mut self) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        loop {
            let line = loop {
                match memmem::find(&self.buffer, b"\r\n") {
                    Some(end) => break end,
                    None => self.read().await?,
                }
            };
            let size = std::str::from_utf8(&self.buffer[..line])?.split(';').next().unwrap_or("");
            let size = usize::from_str_radix(size.trim(), 16)?;
            self.buffer.drain(..line + 2);
            body.extend_from_slice(&self.take(size + 2).await?[..size]);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    async fn take(&mut self, length: usize) -> Result<Vec<u8>, Fault> {
        while self.buffer.len() < length {
            self.read().await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    async fn read(&mut self) -> Result<(), Fault> {
        self.buffer.reserve(4096);
        let reading = timeout(PATIENCE, self.stream.read_buf(&mut self.buffer));
        match reading.await.map_err(|_| "the server has sent nothing for 30 s")?? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = response.parse(bytes)? else { return Ok(None) };
    let value = |name: &str| {
        let field = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(field.value).ok()
    };
    let framing = match value("content-length") {
        Some(length) => Framing::Length(length.parse()?),
        None if value("transfer-encoding").is_some() => Framing::Chunked,
        None => Framing::Length(0),
    };
    let is_event_stream =
        value("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let session = value("mcp-session-id").map(str::to_owned);
    Ok(Some(Head { length, status: response.code.unwrap_or(0), session, is_event_stream, framing }))
}
