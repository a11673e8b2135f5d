//! Comparison of the HTTP fast path with hyper.
//!
//! The same bytes go to a connection of the server, which has the fast path, and to hyper with the same
//! service. Both must answer the same requests in the same way: if two readers of a head disagree on the
//! end of a request, an attacker can smuggle a request past one of them.

use std::time::Duration;

use antiphon::Dialect;
use antiphon::transport::http::HttpService;
use bytes::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

use crate::server::router;
use crate::stream::Input;

/// Longer than any wait of the service, and shorter than any limit of a connection.
const NOTHING_COMES: Duration = Duration::from_secs(1);
/// More bytes than are ever written before they are read.
const ROOM: usize = 1 << 20;

/// The first bytes of HTTP/2.
const HTTP2: &[u8] = b"PRI ";

/// The start of the `Date` header.
const DATE: &[u8] = b"\r\ndate: ";

/// For every stream of bytes, whole and in pieces, both give the same responses.
pub fn check(data: &[u8]) {
    let Some(input) = Input::read(data) else { return };
    // Both sides use hyper for HTTP/2.
    if input.bytes.windows(HTTP2.len()).any(|window| window == HTTP2) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without a driver for sockets");
    runtime.block_on(async {
        let service = HttpService::new(router()).dialect(&dialect(data));
        // hyper's behaviour depends on the bytes received before it responds, so both get the same pieces.
        let [whole, _, pieces] = input.ways();
        for way in [whole, pieces] {
            let by_hyper = talk_of(&talk(&way, |stream| hyper(stream, service.clone())).await);
            let ours = talk_of(&talk(&way, |stream| service.clone().serve_stream(stream)).await);
            assert_eq!(ours, by_hyper, "in {} pieces", way.len());
        }
    });
}

/// The length of the input selects a dialect, so a corpus stays readable. Only that of Bitcoin has a policy.
fn dialect(data: &[u8]) -> Dialect {
    [Dialect::plain, Dialect::v1, Dialect::ethereum, Dialect::bitcoin][data.len() % 4]()
}

/// A POST with the message.
pub fn seed(message: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        message.len()
    );
    Input::of(&[head.as_bytes(), message].concat())
}

async fn hyper(stream: DuplexStream, service: HttpService) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(64 * 1024);
    let service = TowerToHyperService::new(service);
    // The end of a connection is only visible to a reader.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// The bytes that a server sends for these pieces, and whether it then closes the connection.
async fn talk<F>(pieces: &[&[u8]], serve: impl FnOnce(DuplexStream) -> F) -> (Vec<u8>, bool)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (mut ours, theirs) = duplex(ROOM);
    let serving = tokio::spawn(serve(theirs));
    for piece in pieces {
        // A closed connection accepts no more bytes.
        if ours.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut said = Vec::new();
    let ended = loop {
        match timeout(NOTHING_COMES, ours.read_buf(&mut said)).await {
            Ok(Ok(0) | Err(_)) => break true,
            Ok(Ok(_)) => {}
            Err(_) => break false,
        }
    };
    serving.abort();
    (said, ended)
}

/// One response: its status, the headers about its body, and the body.
#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
}

/// The outcome of a connection.
#[derive(Debug, PartialEq)]
struct Talk {
    answers: Vec<Answer>,
    /// Whether the server closed it after a response.
    ended: bool,
    /// Bytes that are not a response.
    rest: Bytes,
}

/// The responses in these bytes, except the one to invalid HTTP: hyper rejects it at once or at the end of
/// the head, depending on how it is read.
fn talk_of((said, ended): &(Vec<u8>, bool)) -> Talk {
    let said = without_dates(said);
    let (mut answers, mut rest) = (Vec::new(), &said[..]);
    while let Some((answer, size)) = answer(rest) {
        answers.push(answer);
        rest = &rest[size..];
    }
    let refused = answers.pop_if(|last| last.is_bare_refusal()).is_some();
    Talk { answers, ended: *ended && !refused, rest: Bytes::copy_from_slice(rest) }
}

impl Answer {
    /// Whether it is hyper's own response to a head that it cannot parse.
    fn is_bare_refusal(&self) -> bool {
        [400, 414, 431].contains(&self.status) && self.body.is_empty()
    }
}

/// The bytes without the `Date` headers. The response to a HEAD has no body, so responses cannot always be
/// separated; bodies contain no newlines.
fn without_dates(mut said: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(at) = said.windows(DATE.len()).position(|window| window == DATE) {
        out.extend_from_slice(&said[..at]);
        let end = said[at + 2..].iter().position(|byte| *byte == b'\r');
        said = end.map_or(&[], |end| &said[at + 2 + end..]);
    }
    out.extend_from_slice(said);
    out
}

fn answer(said: &[u8]) -> Option<(Answer, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = response.parse(said) else { return None };
    let mut headers: Vec<_> = response
        .headers
        .iter()
        .map(|header| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
        })
        .collect();
    headers.sort();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Some(0), |(_, value)| value.parse().ok());
    let body = Bytes::copy_from_slice(said.get(head..head + length?)?);
    let size = head + body.len();
    Some((Answer { status: response.code?, headers, body }, size))
}
