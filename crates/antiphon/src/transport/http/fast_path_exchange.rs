//! A request that a policy decides, on the fast path.
//!
//! The rules are those of every other request with a policy (`policy_exchange.rs`). Only the parser of the head and the
//! encoder of the response differ from hyper's.
//!
//! Invariant: the whole request has arrived. A policy may refuse a request by its head alone, so hyper serves requests
//! whose bodies are still coming in.

use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::Full;

use super::fast_path_response::{HEAD, write_end_of_head, write_number};
use super::http_body::HttpBody;
use super::request_future::RequestFuture;
use super::response::HttpResponse;
use super::service::HttpService;
use crate::connection::HttpRequestHead;
use crate::io::write_buffer::{LARGE, WriteBuffer};

/// A request until its response is written.
pub(super) struct FastPathExchange(Stage);

enum Stage {
    Responding(Box<RequestFuture<Full<Bytes>>>),
    Sending(HttpBody, BodyLength),
}

/// How the client finds the end of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyLength {
    /// `content-length`, or a status without a body.
    Known,
    Chunked,
}

/// The progress of an exchange.
pub(super) enum Progress {
    /// The response is written.
    Done,
    /// The output must be written before there is more.
    Full,
    /// The handlers or the body have nothing yet.
    Waiting,
    /// The body has failed: only the end of the connection tells the client.
    Aborted,
}

impl FastPathExchange {
    /// Starts a request.
    pub(super) fn new(service: &HttpService, head: HttpRequestHead, body: Bytes) -> Self {
        let HttpRequestHead { method, target, headers } = head;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = target.map_or_else(Uri::default, Uri::from);
        *request.headers_mut() = headers;
        Self(Stage::Responding(Box::new(RequestFuture::new(service, request))))
    }

    /// Runs the handlers and writes the response. With `last`, the response closes the connection; a response of the
    /// policy that closes it sets `last`.
    pub(super) fn poll(
        &mut self,
        poller: &mut Poller<'_>,
        last: &mut bool,
        out: &mut WriteBuffer,
    ) -> Progress {
        loop {
            match &mut self.0 {
                Stage::Responding(responding) => match Pin::new(responding).poll(poller) {
                    Poll::Pending => return Progress::Waiting,
                    Poll::Ready(Ok(response)) => {
                        let (body, length) = write_head(response, last, out);
                        self.0 = Stage::Sending(body, length);
                    }
                },
                Stage::Sending(body, length) => {
                    if body.is_end_stream() {
                        return end(*length, out);
                    }
                    if out.is_full() {
                        return Progress::Full;
                    }
                    match Pin::new(body).poll_frame(poller) {
                        Poll::Pending => return Progress::Waiting,
                        Poll::Ready(None) => return end(*length, out),
                        Poll::Ready(Some(Err(_))) => return Progress::Aborted,
                        Poll::Ready(Some(Ok(frame))) => {
                            if let Ok(data) = frame.into_data() {
                                write_data(data, *length, out);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Writes the head of a response.
fn write_head(
    response: HttpResponse,
    last: &mut bool,
    out: &mut WriteBuffer,
) -> (HttpBody, BodyLength) {
    let (head, body) = response.into_parts();
    *last |= closes(&head.headers);
    let known = body.size_hint().exact();
    let text = out.tail();
    text.reserve(
        HEAD + known.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0).min(LARGE),
    );
    text.extend_from_slice(b"HTTP/1.1 ");
    text.extend_from_slice(head.status.as_str().as_bytes());
    text.extend_from_slice(b" ");
    text.extend_from_slice(head.status.canonical_reason().unwrap_or("Unknown").as_bytes());
    text.extend_from_slice(b"\r\n");
    // The length, the connection and the date are those of the connection.
    let own = [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, DATE];
    for (name, value) in head.headers.iter().filter(|(name, _)| !own.contains(name)) {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    let length = match known {
        // RFC 9110, section 8.6: this status has no content, and no length of it.
        Some(0) if head.status == StatusCode::NO_CONTENT => BodyLength::Known,
        Some(bytes) => {
            text.extend_from_slice(b"content-length: ");
            write_number(bytes, text);
            text.extend_from_slice(b"\r\n");
            BodyLength::Known
        }
        None => {
            text.extend_from_slice(b"transfer-encoding: chunked\r\n");
            BodyLength::Chunked
        }
    };
    write_end_of_head(*last, text);
    (body, length)
}

/// Whether the response closes the connection.
fn closes(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close")))
}

fn write_data(data: Bytes, length: BodyLength, out: &mut WriteBuffer) {
    if data.is_empty() {
        // An empty chunk would end the body.
        return;
    }
    if length == BodyLength::Chunked {
        let size = format!("{:x}\r\n", data.len());
        out.tail().extend_from_slice(size.as_bytes());
    }
    match data.len() < LARGE {
        true => out.tail().extend_from_slice(&data),
        false => out.push(data),
    }
    if length == BodyLength::Chunked {
        out.tail().extend_from_slice(b"\r\n");
    }
}

fn end(length: BodyLength, out: &mut WriteBuffer) -> Progress {
    if length == BodyLength::Chunked {
        out.tail().extend_from_slice(b"0\r\n\r\n");
    }
    Progress::Done
}
