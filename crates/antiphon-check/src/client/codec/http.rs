//! HTTP/1.1, server side: reads requests, and writes responses by hand.

use super::{BrokenCheck, ClientEvent, MAX_HEAD, MAX_HEADERS, MAX_MESSAGE, length, take};

/// The content types of JSON-RPC.
const TYPES: [&str; 3] = ["application/json", "application/json-rpc", "application/jsonrequest"];

/// Reads the requests of one connection.
#[derive(Debug, Default)]
pub(in crate::client) struct HttpRequestReader {
    state: RequestPhase,
    /// The client expects the connection to close after the response.
    pub(super) is_last: bool,
    /// The client speaks HTTP/1.0.
    pub(super) is_http10: bool,
}

#[derive(Debug, Default)]
enum RequestPhase {
    #[default]
    Head,
    /// In the body; and whether the request is a POST.
    Length(usize, bool),
    Chunks(Vec<u8>, bool),
}

/// The parsed head of a request.
#[derive(Debug)]
struct RequestFields {
    size: usize,
    is_last: bool,
    is_http10: bool,
    is_post: bool,
    hesitates: bool,
    body: RequestBody,
}

#[derive(Clone, Copy, Debug)]
enum RequestBody {
    Length(usize),
    Chunks,
}

/// Returns a response with these headers and this body.
pub(in crate::client) fn response(status: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{headers}\r\n{body}").into_bytes()
}

/// Returns a response with a `content-length`.
pub(in crate::client) fn whole(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = format!("content-length: {}", body.len());
    response(status, &[&format!("content-type: {content_type}"), &length], body)
}

pub(in crate::client) fn ok(body: &str) -> Vec<u8> {
    whole("200 OK", "application/json", body)
}

impl HttpRequestReader {
    pub(super) fn next(
        &mut self,
        input: &mut Vec<u8>,
        faults: &mut Vec<BrokenCheck>,
    ) -> Result<Option<ClientEvent>, BrokenCheck> {
        match &mut self.state {
            RequestPhase::Head => self.head(input, faults),
            RequestPhase::Length(length, _) if input.len() < *length => Ok(None),
            RequestPhase::Length(length, is_post) => {
                let (body, is_post) = (take(input, 0, *length), *is_post);
                self.state = RequestPhase::Head;
                Ok(Some(message(body, is_post)))
            }
            RequestPhase::Chunks(body, is_post) => {
                if !chunks(input, body)? {
                    return Ok(None);
                }
                let event = message(std::mem::take(body), *is_post);
                self.state = RequestPhase::Head;
                Ok(Some(event))
            }
        }
    }

    fn head(
        &mut self,
        input: &mut Vec<u8>,
        faults: &mut Vec<BrokenCheck>,
    ) -> Result<Option<ClientEvent>, BrokenCheck> {
        let Some(head) = read(input, faults)? else { return Ok(None) };
        input.drain(..head.size);
        self.is_last = head.is_last;
        self.is_http10 = head.is_http10;
        self.state = match head.body {
            RequestBody::Length(length) => RequestPhase::Length(length, head.is_post),
            RequestBody::Chunks => RequestPhase::Chunks(Vec::new(), head.is_post),
        };
        if head.hesitates {
            Ok(Some(ClientEvent::ExpectContinue))
        } else {
            self.next(input, faults)
        }
    }
}

fn message(body: Vec<u8>, is_post: bool) -> ClientEvent {
    if is_post { ClientEvent::Message(body) } else { ClientEvent::Stray }
}

/// Parses a head; `None` while it is incomplete.
fn read(input: &[u8], faults: &mut Vec<BrokenCheck>) -> Result<Option<RequestFields>, BrokenCheck> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let size = match request.parse(input) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) => {
            return Err(("http-head", "the head of a request is too long".to_owned()));
        }
        Err(_) if input.starts_with(b"PRI * HTTP/2") => {
            return Err(("http-head", "the client speaks HTTP/2 without an agreement".to_owned()));
        }
        Err(error) => return Err(("http-head", format!("the head of a request: {error}"))),
    };
    let method = request.method.unwrap_or_default();
    let is_post = method == "POST";
    // A browser sends a preflight (OPTIONS) first, which is not a call.
    if !is_post && method != "OPTIONS" {
        faults.push(("http-post", format!("expected POST, found {method}")));
    }
    let named = NamedFields(request.headers);
    named.host(request.version, faults);
    if is_post {
        named.content_type(faults);
        named.accept(faults);
    }
    let hesitates = named.value("expect").is_some_and(|value| value.contains("100-continue"));
    let is_last = named.is_last(request.version);
    let is_http10 = request.version == Some(0);
    Ok(Some(RequestFields {
        size,
        is_last,
        is_http10,
        is_post,
        hesitates,
        body: named.body(is_post, faults)?,
    }))
}

/// The headers of a request.
struct NamedFields<'h, 'b>(&'h [httparse::Header<'b>]);

impl NamedFields<'_, '_> {
    fn all(&self, name: &str) -> Vec<String> {
        let named = self.0.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_ascii_lowercase();
        named.map(|header| text(header.value)).collect()
    }

    /// Reports whether the connection closes after the response. HTTP/1.0 closes by default.
    fn is_last(&self, version: Option<u8>) -> bool {
        let says = |word| self.value("connection").is_some_and(|value| value.contains(word));
        says("close") || (version == Some(0) && !says("keep-alive"))
    }

    fn value(&self, name: &str) -> Option<String> {
        self.all(name).into_iter().next()
    }

    /// Checks the Host (RFC 9112, section 3.2).
    fn host(&self, version: Option<u8>, faults: &mut Vec<BrokenCheck>) {
        let count = self.all("host").len();
        if version == Some(1) && count != 1 {
            faults.push(("http-host", format!("expected one Host, found {count}")));
        }
    }

    fn content_type(&self, faults: &mut Vec<BrokenCheck>) {
        let Some(value) = self.value("content-type") else {
            return faults.push(("http-content-type", "the Content-Type is missing".to_owned()));
        };
        if !TYPES.contains(&essence(&value)) {
            faults
                .push(("http-content-type", format!("expected application/json, found `{value}`")));
        }
    }

    /// Checks Accept. Without it, the client accepts everything.
    fn accept(&self, faults: &mut Vec<BrokenCheck>) {
        let values = self.all("accept");
        let takes =
            |range: &str| TYPES.contains(&range) || ["*/*", "application/*", "*"].contains(&range);
        let mut ranges = values.iter().flat_map(|value| value.split(',')).map(essence);
        if !values.is_empty() && !ranges.any(takes) {
            let found = values.join(", ");
            faults.push(("http-accept", format!("expected application/json, found `{found}`")));
        }
    }

    /// Returns the length of the body (RFC 9112, section 6.3).
    fn body(
        &self,
        is_post: bool,
        faults: &mut Vec<BrokenCheck>,
    ) -> Result<RequestBody, BrokenCheck> {
        let lengths = self.all("content-length");
        let coding = self.value("transfer-encoding");
        if coding.is_some() && !lengths.is_empty() {
            let reason = "the request has both Content-Length and Transfer-Encoding";
            faults.push(("http-length", reason.to_owned()));
        }
        match (coding.as_deref(), lengths.first()) {
            (Some("chunked"), _) => Ok(RequestBody::Chunks),
            (Some(coding), _) => Err((
                "http-length",
                format!("the Transfer-Encoding is `{coding}`, expected chunked"),
            )),
            (None, Some(digits)) => {
                length("http-length", digits.as_bytes()).map(RequestBody::Length)
            }
            (None, None) => {
                if is_post {
                    let reason = "the request has neither Content-Length nor Transfer-Encoding";
                    faults.push(("http-length", reason.to_owned()));
                }
                Ok(RequestBody::Length(0))
            }
        }
    }
}

/// Returns a media type without its parameters.
fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// Consumes chunks (RFC 9112, section 7.1). Returns true at the last one.
fn chunks(input: &mut Vec<u8>, body: &mut Vec<u8>) -> Result<bool, BrokenCheck> {
    let broken = || ("http-length", "a chunk of the body is malformed".to_owned());
    loop {
        let (at, size) = match httparse::parse_chunk_size(input) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok(false),
            _ => return Err(broken()),
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_MESSAGE - body.len().min(MAX_MESSAGE) {
            return Err(("http-length", "the body is larger than any scenario needs".to_owned()));
        }
        if size == 0 {
            return match trailers(&input[at..]) {
                Some(end) => {
                    input.drain(..at + end);
                    Ok(true)
                }
                None if input.len() > MAX_HEAD => Err(broken()),
                None => Ok(false),
            };
        }
        match input.get(at + size..at + size + 2) {
            None => return Ok(false),
            Some(b"\r\n") => body.extend_from_slice(&input[at..at + size]),
            Some(_) => return Err(broken()),
        }
        input.drain(..at + size + 2);
    }
}

/// Returns the length of the trailers; `None` while they are incomplete.
fn trailers(input: &[u8]) -> Option<usize> {
    if input.starts_with(b"\r\n") {
        return Some(2);
    }
    memchr::memmem::find(input, b"\r\n\r\n").map(|at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events of an input that is read byte by byte.
    fn found(input: &str) -> (Vec<ClientEvent>, Vec<&'static str>) {
        let (mut http, mut buffer) = (HttpRequestReader::default(), Vec::new());
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for byte in input.bytes() {
            buffer.push(byte);
            match http.next(&mut buffer, &mut faults) {
                Ok(event) => all.extend(event),
                Err(fault) => faults.push(fault),
            }
        }
        (all, faults.into_iter().map(|(check, _)| check).collect())
    }

    const HEAD: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n";

    #[test]
    fn bodies_end_by_length_and_by_chunks() {
        let input = format!(
            "{HEAD}Accept: text/html, */*;q=0.1\r\nContent-Length: 2\r\n\r\nab\
             {HEAD}Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n\
             1\r\nc\r\n2;x=y\r\nde\r\n0\r\nt: 1\r\n\r\n"
        );
        let (event, faults) = found(&input);
        let message = |text: &str| ClientEvent::Message(text.into());
        assert_eq!(event, [message("ab"), ClientEvent::ExpectContinue, message("cde")]);
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn a_fault_breaks_the_check_that_names_it() {
        let head = |lines: &str| format!("POST / HTTP/1.1\r\n{lines}\r\n");
        let json = "content-type: application/json\r\n";
        for (input, check) in [
            ("GET / HTTP/1.1\r\nhost: h\r\n\r\n".to_owned(), "http-post"),
            (head(&format!("{json}content-length: 0\r\n")), "http-host"),
            (head("host: h\r\ncontent-length: 0\r\n"), "http-content-type"),
            (
                head("host: h\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n"),
                "http-content-type",
            ),
            (format!("{HEAD}accept: text/html\r\ncontent-length: 0\r\n\r\n"), "http-accept"),
            (format!("{HEAD}\r\n"), "http-length"),
            (format!("{HEAD}content-length: 99999999999\r\n\r\n"), "http-length"),
        ] {
            assert_eq!(found(&input).1, [check], "{input}");
        }
        assert_eq!(found("PRI * HTTP/2.0\r\n\r\n").1.first(), Some(&"http-head"));
    }
}
