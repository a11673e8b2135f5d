//! A POST with a `Content-Length`; nothing else of HTTP/1.1.

use std::io;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
/// The length is written here when the body is known; white space before it is allowed.
const LENGTH: &[u8] = b"          \r\n\r\n";

pub(crate) fn answer(input: &mut [u8], out: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let Some((head, body)) = lengths(input)? else { return Ok(None) };
    let Some(message) = input.get(head..head + body) else { return Ok(None) };
    out.extend_from_slice(HEAD);
    out.extend_from_slice(LENGTH);
    let start = out.len();
    hand::answer(message, out);
    let length = (out.len() - start).to_string();
    let end = start - b"\r\n\r\n".len();
    out[end - length.len()..end].copy_from_slice(length.as_bytes());
    Ok(Some(head + body))
}

/// Returns the lengths of head and body.
fn lengths(input: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(input).map_err(io::Error::other)? else {
        return Ok(None);
    };
    let length = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|h| str::from_utf8(h.value).ok()?.parse().ok());
    Ok(Some((head, length.ok_or_else(|| io::Error::other("a POST has a Content-Length"))?)))
}
