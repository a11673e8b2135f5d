//! Repeats one operation, for callgrind and the counting allocator.
//!
//! `subject CASE COUNT` repeats it and prints the number of allocations. The guard uses the
//! difference between two counts, so one-time work does not matter.

use std::hint::black_box;
use std::io;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use antiphon::core::framing::{Deframer, Framing};
use antiphon::core::{Payload, Rules, decode};
use antiphon::transport::http::HttpService;
use antiphon::transport::stream::FramedStream;
use antiphon::{Client, Context, Router, Server};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// Calls per read in the cases over a stream.
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
        "service" => service(call(10_000), count).await,
        "service-batch" => service(batch(), count).await,
        "tcp" => socket("tcp://127.0.0.1:0", lines_of(call).as_bytes(), count).await,
        "ws" => socket("ws://127.0.0.1:0", &frames(IN_FLIGHT, call), count).await,
        "ws-batch" => socket("ws://127.0.0.1:0", &frames(1, |_| batch()), count).await,
        "http" => socket("http://127.0.0.1:0", &posts(1), count).await,
        "http-pipelined" => socket("http://127.0.0.1:0", &posts(IN_FLIGHT), count).await,
        "call" => calls(count).await,
        "http-call" => http_calls(count).await,
        other => panic!("no case is named {other:?}"),
    }
    println!("{}", ALLOCATOR.stats().allocations);
}

/// Text frames as a client sends them, with a mask of zeros.
fn frames(count: usize, text: impl Fn(usize) -> String) -> Vec<u8> {
    let frame = |n| {
        let text = text(10_000 + n);
        let mut frame = vec![0x81];
        match text.len() {
            len @ ..126 => frame.push(0x80 | len as u8),
            len => frame.extend([&[0x80 | 126][..], &(len as u16).to_be_bytes()].concat()),
        }
        frame.extend([0; 4]);
        frame.extend(text.into_bytes());
        frame
    };
    (0..count).flat_map(frame).collect()
}

fn posts(count: usize) -> Vec<u8> {
    let post = |n| {
        let body = call(10_000 + n);
        format!(
            "POST / HTTP/1.1\r\nhost: 127.0.0.1:8650\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    (0..count).flat_map(|n| post(n).into_bytes()).collect()
}

/// Serves and calls over a socket in one thread, with the same message each time.
async fn socket(endpoint: &str, chunk: &[u8], count: usize) {
    let server = Server::bind(endpoint).await.expect("a free port");
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(router()));
    let (_, authority) = address.split_once("://").expect("an address");
    let mut stream = TcpStream::connect(authority.trim_end_matches('/')).await.expect("listens");
    if endpoint.starts_with("ws") {
        shake_hands(&mut stream).await;
    }
    // The first response gives the length of all: ids and results have equal lengths.
    let answers = chunk.windows(5).filter(|text| text == b"\"id\":").count();
    stream.write_all(chunk).await.expect("is open");
    let mut buffer = vec![0; 64 * 1024];
    let mut len = 0;
    while buffer[..len].windows(5).filter(|text| text == b"\"id\":").count() < answers
        || !matches!(buffer[..len].last(), Some(b'}' | b']' | b'\n'))
    {
        len += stream.read(&mut buffer[len..]).await.expect("is open");
    }
    for _ in 0..count {
        stream.write_all(chunk).await.expect("is open");
        stream.read_exact(&mut buffer[..len]).await.expect("is open");
    }
}

async fn shake_hands(stream: &mut TcpStream) {
    let request = "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\n\
        upgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("is open");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("is open"));
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
}

/// Calls over an in-process connection, many at once, from both sides.
async fn calls(count: usize) {
    let (near, far) = antiphon::transport::memory::pair();
    let _server = Client::builder().handler(router()).over(far);
    let client = Client::builder().over(near);
    for _ in 0..count {
        let calls = (0..IN_FLIGHT).map(|_| client.call::<i64>("subtract", (42, 23)).into_future());
        for result in futures_util::future::join_all(calls).await {
            assert_eq!(result.expect("is served"), 19);
        }
    }
}

/// Calls over HTTP from one task per concurrent call; both sides in one thread.
async fn http_calls(count: usize) {
    let server = Server::bind("http://127.0.0.1:0").await.expect("a free port");
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(router()));
    let client = Client::connect(&address).await.expect("a client");
    let callers = (0..IN_FLIGHT).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            for _ in 0..count {
                let result = client.call::<i64>("subtract", (42, 23)).await;
                assert_eq!(result.expect("is served"), 19);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("does not panic");
    }
}

fn lines_of(line: impl Fn(usize) -> String) -> String {
    (0..IN_FLIGHT).map(|n| line(10_000 + n) + "\n").collect()
}

fn decoding(text: &str, count: usize) {
    let frame = Bytes::from(text.to_owned());
    let rules = Rules::default();
    for _ in 0..count {
        match decode(black_box(&frame), &rules) {
            Payload::One(entry) => drop(black_box(entry)),
            Payload::Batch(entries) => entries.for_each(|entry| drop(black_box(entry))),
        }
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

async fn service(body: String, count: usize) {
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

/// A stream that repeats the same bytes, and discards what is written to it.
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
    fn poll_write(self: Pin<&mut Self>, _: &mut Poller<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
