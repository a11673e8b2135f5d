//! The stall timeout and the idle timeout: which connections they end, and which not.
//!
//! The clock of these tests is another connection that stalls: when the server ends it, the timeout has
//! passed.

use std::future::IntoFuture;
use std::time::Duration;

use antiphon::{Context, Limits, Router};
use tokio::io::AsyncWriteExt;

use crate::support::{
    Holding, connect, dial, holding, line, request, rest, serve, stall_goes_by, wires, within,
};

const SOON: Duration = Duration::from_millis(40);

fn stalling_soon() -> Limits {
    Limits { stall_timeout: SOON, ..Limits::default() }
}

fn quick() -> Router {
    Router::new().method("quick", |(): (), _cx: Context| async { Ok("quick") })
}

#[tokio::test]
async fn a_separate_newline_does_not_begin_a_message() {
    let Holding { router, mut entered, release, .. } = holding();
    let address = serve("tcp://127.0.0.1:0", stalling_soon(), router).await;
    let mut stream = dial(&address).await;
    stream.write_all(request(1, "hold", "[]").as_bytes()).await.unwrap();
    // The request runs before its newline has arrived.
    within(entered.recv()).await.unwrap();
    stream.write_all(b"\r\n").await.unwrap();
    stall_goes_by(&address).await;
    release.notify_one();
    assert_eq!(line(&mut stream).await["result"], "held");
}

#[tokio::test]
async fn a_long_running_request_is_not_a_stall() {
    let Holding { router, mut entered, release, .. } = holding();
    let address = serve("tcp://127.0.0.1:0", stalling_soon(), router).await;
    for message in [
        request(1, "hold", "[]"),
        format!("{}\n", request(1, "hold", "[]")),
        format!("Content-Length: 58\r\n\r\n{:58}", request(1, "hold", "[]")),
    ] {
        let mut stream = dial(&address).await;
        stream.write_all(message.as_bytes()).await.unwrap();
        within(entered.recv()).await.unwrap();
        stall_goes_by(&address).await;
        release.notify_one();
        stream.shutdown().await.unwrap();
        let answer = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(answer.contains("held"), "{message}: {answer}");
    }
}

#[tokio::test]
async fn half_a_message_behind_a_complete_one_is_a_stall() {
    let address = serve("tcp://127.0.0.1:0", stalling_soon(), quick()).await;
    for half in ["{\"jsonrpc\":", "[", " {", "x"] {
        let mut stream = dial(&address).await;
        let both = format!("{}\n{half}", request(1, "quick", "[]"));
        stream.write_all(both.as_bytes()).await.unwrap();
        assert_eq!(line(&mut stream).await["result"], "quick");
        rest(&mut stream).await;
    }
    let mut stream = dial(&address).await;
    let body = request(1, "quick", "[]");
    let both = format!("Content-Length: {}\r\n\r\n{body}Content-Le", body.len());
    stream.write_all(both.as_bytes()).await.unwrap();
    let answer = String::from_utf8(rest(&mut stream).await).unwrap();
    assert!(answer.contains("quick"), "{answer}");
}

#[tokio::test]
async fn a_connection_in_use_is_not_idle() {
    for endpoint in wires() {
        let limits = Limits { idle_timeout: Some(SOON), ..Limits::default() };
        let address = serve(endpoint, limits, quick()).await;
        let used = connect(&address).await;
        for _ in 0..2 {
            // Connecting takes time on some wires; this connection is used meanwhile.
            let address = address.clone();
            let ended = tokio::spawn(async move {
                let idle = connect(&address).await;
                idle.peer().unwrap().closed().await
            });
            within(async {
                while !ended.is_finished() {
                    let result = used.call::<String>("quick", ()).await;
                    assert_eq!(result.unwrap(), "quick", "{endpoint}");
                }
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_connection_with_a_pending_call_is_not_idle() {
    let Holding { router, mut entered, release, .. } = holding();
    for endpoint in wires() {
        let limits = Limits { idle_timeout: Some(SOON), ..Limits::default() };
        let address = serve(endpoint, limits, router.clone()).await;
        let client = connect(&address).await;
        let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(entered.recv()).await.unwrap();
        for _ in 0..2 {
            let idle = connect(&address).await;
            within(idle.peer().unwrap().closed()).await;
        }
        release.notify_one();
        assert_eq!(within(call).await.unwrap().unwrap(), "held");
    }
}

/// An HTTP server where only this timeout is short.
#[cfg(feature = "http")]
mod http {
    use ::http::{Request, Response};
    use std::sync::Arc;

    use antiphon::Connection;
    use antiphon::transport::http::{
        EventStreamOptions, HttpBody, HttpMessage, HttpPolicy, HttpServerService, MessageDecision,
    };
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpSocket;
    use tokio::sync::{Notify, mpsc};
    use tower_service::Service as _;

    use super::*;
    use crate::support::{FOREVER, bound};

    fn patient() -> Limits {
        Limits {
            handshake_timeout: FOREVER,
            stall_timeout: FOREVER,
            idle_timeout: Some(FOREVER),
            ..Limits::default()
        }
    }

    fn post(body: &str, length: usize) -> String {
        format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
    }

    #[tokio::test]
    async fn a_connection_without_a_complete_request_is_ended() {
        let limits = Limits { handshake_timeout: SOON, ..patient() };
        let address = serve("http://127.0.0.1:0", limits, quick()).await;
        for beginning in ["", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST / HTTP/1.1\r\n"]
        {
            let mut stream = dial(&address).await;
            stream.write_all(beginning.as_bytes()).await.unwrap();
            rest(&mut stream).await;
        }
    }

    #[tokio::test]
    async fn an_idle_connection_between_requests_is_ended() {
        let limits = Limits { idle_timeout: Some(SOON), ..patient() };
        let address = serve("http://127.0.0.1:0", limits, quick()).await;
        let body = request(1, "quick", "[]");
        let mut stream = dial(&address).await;
        stream.write_all(post(&body, body.len()).as_bytes()).await.unwrap();
        let response = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(response.contains("\"quick\""), "{response}");
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_is_a_stall() {
        let limits = Limits { stall_timeout: SOON, ..patient() };
        let address = serve("http://127.0.0.1:0", limits, quick()).await;
        let mut stream = dial(&address).await;
        stream.write_all(post("{", 100).as_bytes()).await.unwrap();
        let mut status = [0; 12];
        within(stream.read_exact(&mut status)).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 408");
    }

    /// The begin of an HTTP/2 connection that posts to this path. `window` is the initial window of the
    /// client, which limits the response.
    fn post_by_http2(path: &str, window: u8, body: &str, is_whole: bool) -> Vec<u8> {
        fn literal(text: &str) -> Vec<u8> {
            [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
        }
        fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
            let length = u8::try_from(payload.len()).unwrap();
            [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
        }
        // POST and the scheme are indexed, the others are literals.
        let mut head = vec![0x83, 0x86];
        let authority = (":authority", "localhost");
        for (name, value) in [(":path", path), authority, ("content-type", "application/json")] {
            head.push(0);
            head.extend(literal(name));
            head.extend(literal(value));
        }
        [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[0, 4, 0, 0, 0, window]),
            frame(1, 4, 1, &head),
            frame(0, u8::from(is_whole), 1, body.as_bytes()),
            // Acknowledges the settings of the server.
            frame(4, 1, 0, &[]),
        ]
        .concat()
    }

    async fn echo(request: Request<HttpBody>) -> Result<Response<Full<Bytes>>, std::io::Error> {
        let body = request.into_body().collect().await.map_err(std::io::Error::other)?;
        Ok(Response::new(Full::new(body.to_bytes())))
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_at_the_fallback_is_a_stall() {
        let limits = Limits { stall_timeout: SOON, ..patient() };
        let server = bound("http://127.0.0.1:0").await.limits(limits);
        let address = server.endpoint().to_string();
        tokio::spawn(server.fallback(tower::service_fn(echo)).serve(quick()));
        let mut stream = dial(&address).await;
        stream.write_all(post("{", 100).replacen('/', "/other", 1).as_bytes()).await.unwrap();
        let response = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(response.starts_with("HTTP/1.1 500"), "{response}");
        let mut stream = dial(&address).await;
        stream.write_all(&post_by_http2("/other", 100, "{", false)).await.unwrap();
        let mut read = Vec::new();
        within(async {
            // A frame of headers on the first stream: the response.
            while !read.windows(6).any(|part| part == [1, 4, 0, 0, 0, 1]) {
                assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "{read:?}");
            }
        })
        .await;
    }

    /// A layer that reads the whole body first.
    async fn read_first(
        mut inner: HttpServerService,
        request: Request<HttpBody>,
    ) -> Result<Response<HttpBody>, tower::BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        inner.call(Request::from_parts(head, HttpBody::from(body))).await
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_at_a_layer_is_a_stall() {
        let limits = Limits { stall_timeout: SOON, ..patient() };
        let server = bound("http://127.0.0.1:0").await.limits(limits);
        let server = server.http_layer(tower::layer::layer_fn(|inner: HttpServerService| {
            tower::service_fn(move |request| read_first(inner.clone(), request))
        }));
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(quick()));
        let mut stream = dial(&address).await;
        stream.write_all(post("{", 100).as_bytes()).await.unwrap();
        let response = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(response.starts_with("HTTP/1.1 500"), "{response}");
    }

    /// A layer that passes the body on does not hide the stall from the service.
    #[tokio::test]
    async fn a_body_that_does_not_arrive_behind_a_layer_is_a_stall() {
        let limits = Limits { stall_timeout: SOON, ..patient() };
        let server = bound("http://127.0.0.1:0").await.limits(limits);
        let server = server.http_layer(tower::layer::layer_fn(|inner: HttpServerService| inner));
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(quick()));
        let mut stream = dial(&address).await;
        stream.write_all(post("{", 100).as_bytes()).await.unwrap();
        let response = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    }

    #[tokio::test]
    async fn a_long_running_request_is_not_a_stall() {
        let Holding { router, mut entered, release, .. } = holding();
        let limits = Limits {
            handshake_timeout: SOON,
            stall_timeout: SOON,
            idle_timeout: Some(SOON),
            ..patient()
        };
        let address = serve("http://127.0.0.1:0", limits, router).await;
        let body = request(1, "hold", "[]");
        let mut stream = dial(&address).await;
        stream.write_all(post(&body, body.len()).as_bytes()).await.unwrap();
        within(entered.recv()).await.unwrap();
        for _ in 0..2 {
            rest(&mut dial(&address).await).await;
        }
        release.notify_one();
        let response = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(response.contains("\"held\""), "{response}");
    }

    /// A late body is not a stall once it has arrived, however long the handler runs.
    #[tokio::test]
    async fn a_late_body_is_not_a_stall() {
        let Holding { router, mut entered, release, .. } = holding();
        // The body arrives after the timeout of other connections, also on a busy machine.
        let limits = Limits { stall_timeout: 5 * SOON, idle_timeout: Some(SOON), ..patient() };
        let address = serve("http://127.0.0.1:0", limits, router).await;
        // On the fast path, and through hyper.
        for more in ["", "te: trailers\r\n"] {
            let mut stream = dial(&address).await;
            for id in 1..3 {
                let body = request(id, "hold", "[]");
                let head = post("", body.len()).replace("\r\n\r\n", &format!("\r\n{more}\r\n"));
                stream.write_all(head.as_bytes()).await.unwrap();
                // Another connection is opened and ended, so the head was read by then.
                within(dial(&address).await.read(&mut [0; 1])).await.ok();
                stream.write_all(body.as_bytes()).await.unwrap();
                within(entered.recv()).await.unwrap();
                for _ in 0..10 {
                    rest(&mut dial(&address).await).await;
                }
                release.notify_one();
                let mut status = [0; 12];
                within(stream.read_exact(&mut status)).await.unwrap();
                assert_eq!(&status, b"HTTP/1.1 200");
                let mut answer = Vec::new();
                while !answer.ends_with(format!("\"id\":{id}}}").as_bytes()) {
                    answer.push(within(stream.read_u8()).await.unwrap());
                }
            }
        }
    }

    /// Every response is a stream of events.
    struct Streams;

    impl HttpPolicy for Streams {
        fn on_message(&self, _: &mut Connection, _: &HttpMessage) -> MessageDecision {
            MessageDecision::Stream(EventStreamOptions::new().immediately())
        }
    }

    /// A client that grants no window does not read, though it blocks no write.
    #[tokio::test]
    async fn a_stream_without_a_window_is_a_stall() {
        let limits = Limits { stall_timeout: SOON, ..patient() };
        let server = bound("http://127.0.0.1:0").await.limits(limits).http_policy(Streams);
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(quick()));
        // The second window is as long as the first comment.
        for window in [0, 8] {
            let mut stream = dial(&address).await;
            let body = request(1, "quick", "[]");
            stream.write_all(&post_by_http2("/", window, &body, true)).await.unwrap();
            rest(&mut stream).await;
        }
    }

    /// A stream without events is not a stall, and neither is a layer that keeps a response.
    #[tokio::test]
    async fn a_stream_without_events_is_not_a_stall() {
        let Holding { router, mut entered, release, .. } = holding();
        let limits = Limits { handshake_timeout: SOON, stall_timeout: SOON, ..patient() };
        let keeping = Arc::new(Notify::new());
        let keep = keeping.clone();
        let server = bound("http://127.0.0.1:0").await.limits(limits).http_policy(Streams);
        let server = server.http_layer(tower::layer::layer_fn(move |inner: HttpServerService| {
            let keep = keep.clone();
            tower::service_fn(move |request| {
                let (mut inner, keep) = (inner.clone(), keep.clone());
                async move {
                    let response = inner.call(request).await;
                    keep.notified().await;
                    response
                }
            })
        }));
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(router));
        let body = request(1, "hold", "[]");
        let mut stream = dial(&address).await;
        stream.write_all(&post_by_http2("/", 255, &body, true)).await.unwrap();
        within(entered.recv()).await.unwrap();
        for go_on in [&keeping, &release] {
            for _ in 0..3 {
                rest(&mut dial(&address).await).await;
            }
            go_on.notify_one();
        }
        let mut read = Vec::new();
        within(async {
            while !read.windows(6).any(|part| part == b"\"held\"") {
                assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "{read:?}");
            }
        })
        .await;
    }

    /// On the fast path, and through hyper.
    #[tokio::test]
    async fn a_response_that_is_not_read_is_a_stall() {
        for more in ["", "te: trailers\r\n"] {
            who_does_not_read_is_let_go(more).await;
        }
    }

    async fn who_does_not_read_is_let_go(more: &str) {
        let (enter, mut entered) = mpsc::channel(8);
        let router = quick().method("big", move |(): (), _cx: Context| {
            let enter = enter.clone();
            async move {
                enter.send(()).await.unwrap();
                Ok("x".repeat(8 << 20))
            }
        });
        let limits = Limits { stall_timeout: SOON, connections: 1, ..patient() };
        let address = serve("http://127.0.0.1:0", limits, router).await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let authority = address.trim_start_matches("http://").trim_end_matches('/');
        let mut deaf = socket.connect(authority.parse().unwrap()).await.unwrap();
        let body = request(1, "big", "[]");
        let asked = post(&body, body.len()).replacen("host", &format!("{more}host"), 1);
        deaf.write_all(asked.as_bytes()).await.unwrap();
        within(entered.recv()).await.unwrap();
        // The limit is one connection, so another one is accepted once the first has ended.
        within(async {
            let body = request(2, "quick", "[]");
            loop {
                let mut next = dial(&address).await;
                next.write_all(post(&body, body.len()).as_bytes()).await.unwrap();
                let mut status = [0; 12];
                next.read_exact(&mut status).await.unwrap();
                if &status == b"HTTP/1.1 200" {
                    return;
                }
                assert_eq!(&status, b"HTTP/1.1 503");
            }
        })
        .await;
    }
}
