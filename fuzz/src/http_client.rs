//! The HTTP/1.1 client of our own beside hyper's: do both read the same response?
//!
//! Both clients send a request, and get the same bytes in the same pieces, and then the end of the
//! connection. Either both return the same status, headers and body, or both fail. Ours may also refuse
//! a response that hyper accepts, for the reasons in `STRICTER`; it never accepts one that hyper
//! refuses. Two readers that disagree on where a response ends could be made to take one response for
//! another.

use antiphon::core::Limits;
use antiphon::transport::http::exchange_over;
use bytes::Bytes;
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::stream::Input;

/// More than is ever written before it is read.
const ROOM: usize = 1 << 20;

/// The body of every request: a server has read the request when it has read this.
const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}";

/// A part of the error with which ours refuses a response that hyper accepts.
const STRICTER: [&str; 5] = [
    // hyper has no limit on bodies: its user counts. The check compares the size.
    "larger than `Limits::frame_bytes`",
    // hyper takes `gzip, chunked` for chunks and any other coding for a body up to the end of the
    // connection, and hands the coded bytes to its user. Ours asks for no coding and knows none.
    "Transfer-Encoding",
    // hyper does not read the length beside chunks, nor in a response that has no body. A server that
    // sends a wrong one there is broken or smuggles (RFC 9112, section 6.3): ours refuses it.
    "Content-Length is not a number",
    "two lengths",
    // hyper takes a line feed alone for the end of a trailer. RFC 9112 has no such line end in chunks.
    "CR or LF alone",
];

/// Holds for every response, whole and in pieces: both clients read the same.
pub fn check(data: &[u8]) {
    let Some(input) = Input::read(data) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without a driver for sockets");
    let limits = Limits { frame_bytes: input.max_frame, ..Limits::default() };
    runtime.block_on(async {
        for way in input.ways() {
            let by_hyper = talk(&way, hyper).await;
            let ours = talk(&way, |stream| ours(stream, limits.clone())).await;
            compare(ours, by_hyper, limits.longest_frame());
        }
    });
}

/// A response that holds the message.
pub fn seed(message: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        message.len()
    );
    Input::of(&[head.as_bytes(), message].concat())
}

type Outcome = Result<Response<Bytes>, String>;

fn compare(ours: Outcome, by_hyper: Outcome, limit: usize) {
    match (ours, by_hyper) {
        (_, Ok(by_hyper)) if ends_in_empty_coding(by_hyper.headers()) => {}
        (Ok(ours), Ok(by_hyper)) => {
            assert_eq!(ours.status(), by_hyper.status());
            assert_eq!(fields(ours.headers()), fields(by_hyper.headers()));
            assert_eq!(ours.body(), by_hyper.body());
        }
        (Err(_), Err(_)) => {}
        (Ok(ours), Err(refusal)) => panic!("hyper refuses ({refusal}) what is {ours:?}"),
        (Err(refusal), Ok(response)) => {
            let is_stricter = STRICTER.iter().any(|reason| refusal.contains(reason));
            assert!(is_stricter, "refused ({refusal}): {response:?}");
            let is_large = response.body().len() > limit;
            assert!(is_large || !refusal.contains(STRICTER[0]), "{refusal}: {response:?}");
        }
    }
}

/// Whether the list of codings ends in an empty element, as in `chunked,`. hyper takes that for a coding
/// that is not `chunked`, and reads the chunks as they are. Ours ignores the element and decodes the
/// chunks: RFC 9110, section 5.6.1.2, requires a recipient to.
fn ends_in_empty_coding(headers: &HeaderMap) -> bool {
    let last = headers.get_all(TRANSFER_ENCODING).iter().next_back();
    let last = last.and_then(|value| value.as_bytes().rsplit(|byte| *byte == b',').next());
    last.is_some_and(|coding| coding.trim_ascii().is_empty())
}

fn fields(headers: &HeaderMap) -> Vec<(&str, &[u8])> {
    let mut fields: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    // Those of one name stay in their order.
    fields.sort_by_key(|(name, _)| *name);
    fields
}

fn request() -> Request<Bytes> {
    let request = Request::post("http://localhost/").header("host", "localhost");
    request.body(Bytes::from_static(CALL)).expect("a request")
}

async fn ours(stream: DuplexStream, limits: Limits) -> Outcome {
    exchange_over(stream, &request(), &limits)
        .await
        .map_err(|error| antiphon::ErrorChain(&error).to_string())
}

async fn hyper(stream: DuplexStream) -> Outcome {
    let text = |error: hyper::Error| format!("{error:?}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let driving = tokio::spawn(connection);
    let exchange = async {
        let response = sender.send_request(request().map(Full::new)).await.map_err(text)?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(text)?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    let outcome = exchange.await;
    driving.abort();
    outcome
}

/// The result of a client that reads these pieces.
async fn talk<F>(pieces: &[&[u8]], client: impl FnOnce(DuplexStream) -> F) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let (near, mut far) = duplex(ROOM);
    let client = tokio::spawn(client(near));
    let mut request = Vec::new();
    while !request.ends_with(CALL) {
        far.read_buf(&mut request).await.expect("a client that sends its request");
    }
    for piece in pieces {
        // A client that has its response takes no more.
        if far.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    drop(far);
    client.await.expect("a client that does not panic")
}
