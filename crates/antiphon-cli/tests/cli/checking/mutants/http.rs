//! HTTP/1.1, server side, as strict as RFC 9112 requires: if the end of a request is ambiguous, the
//! connection closes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::fault::Fault;
use super::reference::{End, Reference};
use super::served::MAX_MESSAGE;

const MAX_HEAD: u64 = 64 << 10;

/// The head of a request.
pub(crate) struct Head {
    pub(crate) verb: String,
    is_old: bool,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
}

/// A status that rejects a request and closes the connection.
struct Refused(&'static str);

impl Head {
    /// Returns the values of a header, in their order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// Reports whether a header lists this word, case-insensitively.
    pub(crate) fn lists(&self, name: &str, word: &str) -> bool {
        let mut words = self.all(name).flat_map(|value| value.split(','));
        words.any(|found| found.trim().eq_ignore_ascii_case(word))
    }

    fn closes(&self) -> bool {
        self.lists("connection", "close")
            || (self.is_old && !self.lists("connection", "keep-alive"))
    }

    fn has_json(&self) -> bool {
        let kind = self.all("content-type").next().unwrap_or_default().to_ascii_lowercase();
        matches!(kind.split(';').next(), Some("application/json" | "application/json-rpc"))
    }
}

/// Serves one request after the other, until one is ambiguous or the last.
pub(crate) fn connection(socket: &TcpStream, reference: &Reference) -> io::Result<End> {
    let mut reader = BufReader::new(socket);
    loop {
        let Some(head) = head(&mut reader)? else {
            return refuse(socket, "400 Bad Request");
        };
        if !head.is_old
            && head.all("host").count() != 1
            && !reference.has(Fault::HttpHostIsNotChecked)
        {
            return refuse(socket, "400 Bad Request");
        }
        if head.lists("expect", "100-continue") {
            send(socket, b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let message = match body(&mut reader, &head, reference)? {
            Ok(message) => message,
            Err(Refused(status)) => return refuse(socket, status),
        };
        if let Some(end) = respond(socket, reference, &head, &message)? {
            return Ok(end);
        }
        if head.closes() && !reference.has(Fault::HttpNeverCloses) {
            return Ok(End::Connection);
        }
    }
}

/// Returns the next head; `None` if it is malformed.
pub(crate) fn head(reader: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut lines = Vec::new();
    let mut limited = reader.take(MAX_HEAD);
    loop {
        let mut line = Vec::new();
        limited.read_until(b'\n', &mut line)?;
        if line.is_empty() && lines.is_empty() && limited.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(line) = line.strip_suffix(b"\r\n") else { return Ok(None) };
        if line.is_empty() {
            return Ok(parsed(&lines));
        }
        lines.push(String::from_utf8_lossy(line).into_owned());
    }
}

fn parsed(lines: &[String]) -> Option<Head> {
    let (first, rest) = lines.split_first()?;
    let mut words = first.split(' ');
    let (verb, _, version) = (words.next()?, words.next()?, words.next()?);
    let is_old = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ => return None,
    };
    let headers: Option<Vec<_>> = rest.iter().map(|line| header(line)).collect();
    Some(Head { verb: verb.to_owned(), is_old, headers: headers? })
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    is_name.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
}

fn body(
    reader: &mut impl BufRead,
    head: &Head,
    reference: &Reference,
) -> io::Result<Result<Vec<u8>, Refused>> {
    let mut lengths: Vec<&str> = head.all("content-length").collect();
    let coding = head.all("transfer-encoding").next().map(str::to_ascii_lowercase);
    if coding.is_some() && !lengths.is_empty() && !reference.has(Fault::HttpLengthBesideChunks) {
        return Ok(Err(Refused("400 Bad Request")));
    }
    match coding.as_deref() {
        Some("chunked") if !reference.has(Fault::HttpChunksAreNotRead) => return chunks(reader),
        Some("chunked") | None => {}
        Some(_) => return Ok(Err(Refused("501 Not Implemented"))),
    }
    if reference.has(Fault::HttpFirstLengthCounts) {
        lengths.truncate(1);
    }
    let Some(first) = lengths.first() else { return Ok(Ok(Vec::new())) };
    let is_clear = lengths.iter().all(|length| length == first);
    if !is_clear || !first.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Err(Refused("400 Bad Request")));
    }
    exactly(reader, first.parse().unwrap_or(u64::MAX), MAX_MESSAGE)
}

/// Reads this many bytes, up to the size limit.
fn exactly(reader: &mut impl Read, length: u64, room: u64) -> io::Result<Result<Vec<u8>, Refused>> {
    if length > room {
        return Ok(Err(Refused("413 Content Too Large")));
    }
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Ok(bytes))
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Result<Vec<u8>, Refused>> {
    let mut message = Vec::new();
    loop {
        let line = line(reader)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(size) = u64::from_str_radix(digits, 16).ok().filter(|_| is_hex) else {
            return Ok(Err(Refused("400 Bad Request")));
        };
        if size == 0 {
            while !self::line(reader)?.is_empty() {}
            return Ok(Ok(message));
        }
        let room = MAX_MESSAGE - message.len() as u64;
        match exactly(reader, size, room)? {
            Ok(chunk) => message.extend(chunk),
            Err(refused) => return Ok(Err(refused)),
        }
        self::line(reader)?;
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(MAX_HEAD).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn respond(
    socket: &TcpStream,
    reference: &Reference,
    head: &Head,
    message: &[u8],
) -> io::Result<Option<End>> {
    let is_post = match &*head.verb {
        "POST" => true,
        "PUT" => reference.has(Fault::HttpPutIsPost),
        "GET" if reference.has(Fault::HttpGetIsAnswered) => {
            write(socket, "200 OK", "", b"hello")?;
            return Ok(None);
        }
        "HEAD" if reference.has(Fault::HttpHeadHasBody) => {
            write(socket, "405 Method Not Allowed", "allow: POST\r\n", b"POST, please")?;
            return Ok(None);
        }
        _ => false,
    };
    if !is_post {
        let allows = !reference.has(Fault::HttpAllowsNothing);
        let allow = if allows { "allow: POST\r\n" } else { "" };
        write(socket, "405 Method Not Allowed", allow, b"")?;
        return Ok(None);
    }
    if !head.has_json() {
        write(socket, "415 Unsupported Media Type", "", b"")?;
        return Ok(None);
    }
    let answers = match reference.answers(message) {
        Ok(answers) => answers,
        Err(end) => return Ok(Some(end)),
    };
    let kind = if reference.has(Fault::HttpTypeIsText) { "text/plain" } else { "application/json" };
    let kind = format!("content-type: {kind}\r\n");
    match answers.first() {
        Some(answer) => write(socket, "200 OK", &kind, answer.as_bytes())?,
        None if reference.has(Fault::HttpSilenceIsNull) => write(socket, "200 OK", &kind, b"null")?,
        None if reference.has(Fault::HttpSilenceHasBody) => {
            send(socket, b"HTTP/1.1 204 No Content\r\n\r\nnull")?;
        }
        None => send(socket, b"HTTP/1.1 204 No Content\r\n\r\n")?,
    }
    Ok(None)
}

fn refuse(socket: &TcpStream, status: &str) -> io::Result<End> {
    write(socket, status, "connection: close\r\n", b"")?;
    Ok(End::Connection)
}

fn write(socket: &TcpStream, status: &str, headers: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n");
    send(socket, &[head.as_bytes(), body].concat())
}

pub(crate) fn send(mut socket: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    socket.write_all(bytes)
}
