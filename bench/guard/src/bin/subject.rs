//! Does one thing a number of times: what callgrind and the counting allocator look at.
//!
//! `subject CASE COUNT`. Instructions are told by the difference of two counts, so that what is done
//! once does not matter.

use std::hint::black_box;
use std::io;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use antiphon::core::framing::{Deframer, Framing};
use antiphon::core::{Rules, decode};
use antiphon::transport::http::HttpService;
use antiphon::transport::stream::FramedStream;
use antiphon::{Client, Context, Router};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

/// Calls in one read of the cases over a stream.
const IN_FLIGHT: usize = 16;

fn call(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subtract","params":[42,23]}}"#)
}

fn batch() -> String {
    let calls: Vec<_> = (10_000..10_100).map(call).collect();
    format!("[{}]", calls.join(","))
}

fn router() -> Router {
    Router::new().method("subtract", |(a, b): (i64, i64), _cx: Context| async move { Ok(a - b) })
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let count: usize = args.next().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    match case.as_str() {
        "decode" => decoding(&call(10_000), count),
        "decode-batch" => decoding(&batch(), count),
        "lines" => lines(count),
        "stream" => stream(lines_of(call), count).await,
        "stream-batch" => stream(format!("{}\n", batch()), count).await,
        "http" => http(call(10_000), count).await,
        "http-batch" => http(batch(), count).await,
        other => panic!("no case is named {other:?}"),
    }
}

fn lines_of(line: impl Fn(usize) -> String) -> String {
    (0..IN_FLIGHT).map(|n| line(10_000 + n) + "\n").collect()
}

fn decoding(text: &str, count: usize) {
    let frame = Bytes::from(text.to_owned());
    let rules = Rules::default();
    for _ in 0..count {
        black_box(decode(black_box(&frame), &rules));
    }
}

fn lines(count: usize) {
    let text = lines_of(call);
    let mut buffer = BytesMut::with_capacity(text.len());
    let mut deframer = Deframer::new(Framing::Line, 1 << 20);
    for _ in 0..count {
        buffer.extend_from_slice(text.as_bytes());
        let mut frames = 0;
        while let Some(frame) = deframer.next(&mut buffer) {
            frames += usize::from(black_box(frame).is_ok());
        }
        assert_eq!(frames, IN_FLIGHT);
    }
}

async fn stream(chunk: String, count: usize) {
    let io = Scripted { chunk: chunk.into_bytes(), left: count, turn: false };
    let client = Client::builder().handler(router()).over(FramedStream::new(io, None, 1 << 20));
    client.peer().expect("a stream has one").closed().await;
}

async fn http(body: String, count: usize) {
    let body = Bytes::from(body);
    let mut service = HttpService::new(router());
    for _ in 0..count {
        let request = http::Request::post("/")
            .header("host", "127.0.0.1:8650")
            .header("content-type", "application/json")
            .body(Full::new(body.clone()))
            .expect("a request");
        let response = service.call(request).await.expect("never fails");
        let body = response.into_body().collect().await.expect("is at hand").to_bytes();
        assert!(body.ends_with(b"}") || body.ends_with(b"]"));
    }
}

/// A stream that says the same thing again and again, and takes in what it is told.
struct Scripted {
    chunk: Vec<u8>,
    left: usize,
    turn: bool,
}

impl AsyncRead for Scripted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Poller<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.turn = !self.turn;
        if !self.turn {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            let chunk = std::mem::take(&mut self.chunk);
            assert!(buf.remaining() >= chunk.len(), "a read takes all");
            buf.put_slice(&chunk);
            self.chunk = chunk;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Poller<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
