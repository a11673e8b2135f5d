//! Responses as bytes, for connections that are served without hyper.

use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};

use super::date;
use super::refusal::HttpRefusal;
use super::response::Dispatched;
use crate::engine::ReplyTail;
use crate::io::write_buffer::{LARGE, WriteBuffer};

/// The space to reserve for a head.
pub(super) const HEAD: usize = 192;

/// Writes the default response to a message; `last` closes the connection. A large result (`tail`) is
/// not copied.
pub(super) fn write_reply(
    reply: Option<Bytes>,
    tail: Option<Box<ReplyTail>>,
    dispatched: &Dispatched,
    last: bool,
    out: &mut WriteBuffer,
) {
    let challenge = dispatched.challenge();
    let head: &[u8] = match reply {
        _ if challenge.is_some() => b"HTTP/1.1 401 Unauthorized\r\n",
        None => b"HTTP/1.1 204 No Content\r\n",
        Some(_) => b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ",
    };
    let is_empty = reply.is_none();
    let body = reply.unwrap_or_default();
    let text = out.tail();
    text.reserve(HEAD + if body.len() < LARGE { body.len() } else { 0 });
    text.extend_from_slice(head);
    if let Some(challenge) = challenge {
        write_challenge(challenge, is_empty, text);
    }
    if !body.is_empty() {
        write_number(body.len() + tail.as_ref().map_or(0, |tail| tail.len()), text);
        text.extend_from_slice(b"\r\n");
    }
    write_end_of_head(last, text);
    if body.len() < LARGE {
        text.extend_from_slice(&body);
    } else {
        out.push(body);
    }
    if let Some(tail) = tail {
        out.push(tail.result);
        out.tail().extend_from_slice(&tail.end);
    }
}

/// Writes the headers of the connection, and the end of the head.
pub(super) fn write_end_of_head(last: bool, out: &mut BytesMut) {
    if last {
        out.extend_from_slice(b"connection: close\r\n");
    }
    out.extend_from_slice(b"date: ");
    date::write(out);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Writes the rest of a head that asks for credentials, up to the length of the body, if any.
#[cold]
fn write_challenge(challenge: &str, is_empty: bool, out: &mut BytesMut) {
    out.extend_from_slice(b"www-authenticate: ");
    out.extend_from_slice(challenge.as_bytes());
    out.extend_from_slice(match is_empty {
        true => b"\r\ncontent-length: 0\r\n",
        false => b"\r\ncontent-type: application/json\r\ncontent-length: ",
    });
}

/// Writes the default response to a refused request. It closes the connection.
#[cold]
pub(super) fn write_refusal(refusal: &HttpRefusal, out: &mut BytesMut) {
    let status = refusal.status();
    let (content_type, body) = refusal.content();
    // A `BytesMut` grows as needed, so writing to it cannot fail.
    let _ = write!(out, "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: ");
    write_number(body.len(), out);
    for (name, value) in refusal.headers() {
        for part in [&b"\r\n"[..], name.as_str().as_bytes(), b": ", value.as_bytes()] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\nconnection: close\r\ndate: ");
    date::write(out);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(&body);
}

pub(super) fn write_number(number: impl itoa::Integer, out: &mut BytesMut) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
