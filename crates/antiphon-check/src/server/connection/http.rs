//! HTTP/1.1, client side: one POST per message, and whole responses with their headers.

use super::ServerEvent;
use super::event_stream::{BodyFraming, EventStream};
use crate::raw::codec::{MAX_HEAD, headers_of};
use crate::raw::{AddressProtocol, ResolvedTarget};

const MAX_HEADERS: usize = 128;

/// A complete HTTP response.
#[derive(Clone, Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// HTTP/1.0 closes the connection after a response by default.
    is_http10: bool,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The body is an event stream: its events follow as messages.
    pub(crate) is_stream: bool,
}

impl HttpResponse {
    /// Returns the values of a header, joined. The name is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| &**value).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Reports whether the server closes the connection after this response.
    pub(crate) fn closes(&self) -> bool {
        let says = |word| {
            let value = self.header("connection").unwrap_or_default();
            value.to_ascii_lowercase().contains(word)
        };
        says("close") || (self.is_http10 && !says("keep-alive"))
    }
}

/// Reads responses, in the order of the requests.
pub(super) struct HttpResponseReader {
    /// A POST up to the digits of its `content-length`.
    post: Vec<u8>,
    /// The header lines of the user, which every request has.
    named: Vec<u8>,
    /// The next response is to a HEAD, and has no body.
    is_head: bool,
    /// Event streams are read event by event. Otherwise they are bodies like any other.
    reads_events: bool,
    /// The event stream that the input continues.
    stream: Option<EventStream>,
}

impl HttpResponseReader {
    pub(super) fn new(target: &ResolvedTarget) -> Self {
        let (path, host) = match &target.address.protocol {
            AddressProtocol::Http { path, host } | AddressProtocol::Ws { path, host } => {
                (&**path, &**host)
            }
            AddressProtocol::Stream(_) => ("/", ""),
        };
        let mut post = format!("POST {path} HTTP/1.1\r\n").into_bytes();
        let own =
            [("host", host), ("content-type", "application/json"), ("accept", "application/json")];
        headers_of(&own, &target.headers, &mut post);
        post.extend_from_slice(b"content-length: ");
        let mut named = Vec::new();
        headers_of(&[], &target.headers, &mut named);
        Self { post, named, is_head: false, reads_events: false, stream: None }
    }

    /// Reads event streams event by event from now on.
    pub(super) fn read_events(&mut self) {
        self.reads_events = true;
    }

    /// Reports whether an event stream has not ended.
    pub(super) fn is_streaming(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns a POST of the message. Each of `headers` replaces the header of its name; `None` leaves it out.
    pub(super) fn post(&self, message: &[u8], headers: &[(String, Option<String>)]) -> Vec<u8> {
        let length = format!("{}\r\n\r\n", message.len());
        let mut head = self.post.clone();
        for (name, value) in headers {
            replace_header(&mut head, name, value.as_deref());
        }
        [&head, length.as_bytes(), message].concat()
    }

    /// Returns the first line of a request, followed by the user's header lines.
    pub(super) fn begin(&mut self, line: &[u8]) -> Vec<u8> {
        self.is_head = line.starts_with(b"HEAD ");
        [line, &self.named].concat()
    }

    /// Returns the next response, if it is complete, and the number of bytes to consume.
    pub(super) fn next(
        &mut self,
        input: &[u8],
        is_end: bool,
    ) -> Result<(Option<ServerEvent>, usize), String> {
        if let Some(stream) = &mut self.stream {
            let (event, used) = stream.next(input, is_end)?;
            if matches!(event, Some(ServerEvent::StreamEnd)) {
                self.stream = None;
            }
            return Ok((event, used));
        }
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let at = match response.parse(input) {
            Ok(httparse::Status::Complete(at)) => at,
            Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok((None, 0)),
            Ok(httparse::Status::Partial) => {
                return Err("the HTTP head is longer than 64 KiB".to_owned());
            }
            Err(error) => return Err(format!("not an HTTP response: {error}")),
        };
        let mut response = HttpResponse {
            status: response.code.unwrap_or_default(),
            is_http10: response.version == Some(0),
            headers: response.headers.iter().map(text_of).collect(),
            body: Vec::new(),
            is_stream: false,
        };
        let has_body = !self.is_head && !matches!(response.status, 100..200 | 204 | 304);
        if has_body && self.reads_events && is_event_stream(&response) {
            self.stream = Some(EventStream::new(framing(&response)?));
            response.is_stream = true;
            return Ok((Some(ServerEvent::Response(response)), at));
        }
        let end = if has_body { body(&mut response, &input[at..], is_end)? } else { Some(0) };
        let Some(length) = end else { return Ok((None, 0)) };
        if response.status >= 200 {
            self.is_head = false;
        }
        Ok((Some(ServerEvent::Response(response)), at + length))
    }
}

/// Reports whether it is the first line of a request, as `>>` sends it.
pub(super) fn is_request_line(sent: &[u8]) -> bool {
    [&b" HTTP/1.0\r\n"[..], b" HTTP/1.1\r\n"].iter().any(|end| sent.ends_with(end))
}

/// Replaces a header in a head that ends with the name of its last header.
fn replace_header(head: &mut Vec<u8>, name: &str, value: Option<&str>) {
    let text = String::from_utf8_lossy(head).into_owned();
    let is_named = |line: &str| {
        line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
    };
    let (last, lines) = match text.rsplit_once("\r\n") {
        Some((lines, last)) => (last, lines),
        None => return,
    };
    let mut kept: Vec<&str> = lines.split("\r\n").filter(|line| !is_named(line)).collect();
    let added = value.map(|value| format!("{name}: {value}"));
    kept.extend(added.as_deref());
    *head = format!("{}\r\n{last}", kept.join("\r\n")).into_bytes();
}

fn is_event_stream(response: &HttpResponse) -> bool {
    let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    kind.starts_with("text/event-stream")
}

fn is_chunked(response: &HttpResponse) -> bool {
    response
        .header("transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
}

fn framing(response: &HttpResponse) -> Result<BodyFraming, String> {
    if is_chunked(response) {
        return Ok(BodyFraming::Chunked);
    }
    match response.header("content-length") {
        Some(length) => length_of(&length).map(BodyFraming::Length),
        None => Ok(BodyFraming::UntilClose),
    }
}

fn length_of(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("the content-length is {text:?}, not a number"))
}

fn text_of(header: &httparse::Header<'_>) -> (String, String) {
    let value = String::from_utf8_lossy(header.value).trim().to_owned();
    (header.name.to_ascii_lowercase(), value)
}

/// Reads the body. Returns its length on the wire; `None` while it is incomplete.
fn body(response: &mut HttpResponse, input: &[u8], is_end: bool) -> Result<Option<usize>, String> {
    if is_chunked(response) {
        return chunks(response, input);
    }
    let Some(length) = response.header("content-length") else {
        response.body = input.to_vec();
        return Ok(is_end.then_some(input.len()));
    };
    let length = length_of(&length)?;
    match input.get(..length) {
        Some(body) => response.body = body.to_vec(),
        None => return Ok(None),
    }
    Ok(Some(length))
}

fn chunks(response: &mut HttpResponse, input: &[u8]) -> Result<Option<usize>, String> {
    let mut at = 0;
    loop {
        match next_chunk(&input[at..])? {
            Chunk::Data(data, length) => {
                response.body.extend_from_slice(data);
                at += length;
            }
            Chunk::Last(length) => return Ok(Some(at + length)),
            Chunk::Partial => return Ok(None),
        }
    }
}

/// A piece of a body, with its length on the wire.
pub(super) enum Chunk<'i> {
    Data(&'i [u8], usize),
    /// The end of the body.
    Last(usize),
    Partial,
}

/// Reads one chunk, or the last one with the trailers (RFC 9112, section 7.1).
pub(super) fn next_chunk(input: &[u8]) -> Result<Chunk<'_>, String> {
    let (start, size) = match httparse::parse_chunk_size(input) {
        Ok(httparse::Status::Complete(found)) => found,
        Ok(httparse::Status::Partial) => return Ok(Chunk::Partial),
        Err(_) => return Err("a chunk of the body has no valid size".to_owned()),
    };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size == 0 {
        return Ok(match trailers(&input[start..]) {
            Some(end) => Chunk::Last(start + end),
            None => Chunk::Partial,
        });
    }
    let end = start.saturating_add(size);
    Ok(match input.get(start..end) {
        Some(data) if input.len() >= end + 2 => Chunk::Data(data, end + 2),
        _ => Chunk::Partial,
    })
}

/// Returns the length of the trailers; `None` while they are incomplete.
fn trailers(input: &[u8]) -> Option<usize> {
    if input.starts_with(b"\r\n") {
        return Some(2);
    }
    memchr::memmem::find(input, b"\r\n\r\n").map(|at| at + 4)
}
