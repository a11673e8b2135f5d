//! Requests with a policy on the fast path: hyper would give the same responses.

use antiphon::http::header::CONNECTION;
use antiphon::http::{HeaderValue, Response};
use antiphon::transport::http::{
    EventStreamOptions, HttpBody, HttpMessage, HttpOutcome, HttpPolicy, MessageDecision,
};
use antiphon::{Connection, Context, Limits, Router};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::http::{JSON, post};
use crate::support::{bound, dial, request, rest, within};

/// A response depends on the query of the request.
struct ByQuery;

impl HttpPolicy for ByQuery {
    fn on_message(&self, request: &mut Connection, _: &HttpMessage) -> MessageDecision {
        match request.query() {
            Some("events") => MessageDecision::Stream(EventStreamOptions::new()),
            Some("early") => {
                let mut response = Response::new(HttpBody::from("early"));
                *response.status_mut() = antiphon::http::StatusCode::IM_A_TEAPOT;
                response.headers_mut().append("x-twice", HeaderValue::from_static("a"));
                response.headers_mut().append("x-twice", HeaderValue::from_static("b"));
                MessageDecision::Respond(response)
            }
            _ => MessageDecision::Dispatch,
        }
    }

    fn respond(
        &self,
        request: &Connection,
        _: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        let mut response = outcome.into_response();
        let part = |text: &'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
        let pieces = |pieces: Vec<Result<Frame<Bytes>, std::io::Error>>| {
            HttpBody::new(StreamBody::new(futures_util::stream::iter(pieces)))
        };
        match request.query() {
            Some("close") => {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            Some("pieces") => {
                *response.body_mut() = pieces(vec![part("one"), part(""), part("two")]);
            }
            Some("fails") => {
                let failed = Err(std::io::Error::other("the body fails"));
                *response.body_mut() = pieces(vec![part("one"), failed]);
            }
            _ => {}
        }
        response
    }
}

fn router() -> Router {
    Router::new()
        .method("text", |(size,): (usize,), _: Context| async move { Ok("x".repeat(size)) })
        .notification("note", |(): (), _: Context| async {})
        .method("count", |(n,): (u64,), cx: Context| async move {
            for i in 0..n {
                cx.notify("counted", [i]).await?;
                tokio::task::yield_now().await;
            }
            Ok(n)
        })
}

/// A request on a connection that stays open, which is on the fast path, or which `te` leaves to hyper.
fn open(query: &str, by_hyper: bool, body: &str) -> String {
    let headers = if by_hyper { format!("{JSON}te: trailers\r\n") } else { JSON.to_owned() };
    let request = post(&format!("/{query}"), &headers, body);
    request.replace("connection: close\r\n", "").replace("{host}", "localhost")
}

async fn serve(limits: Limits) -> String {
    let server = bound("http://127.0.0.1:0").await.limits(limits).http_policy(ByQuery);
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(router()));
    address
}

async fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    within(stream.read_line(&mut line)).await.unwrap();
    assert!(line.ends_with("\r\n"), "the response is cut off: {line:?}");
    line.trim_end().to_owned()
}

/// Reads one response: its head without the date, in order, and its body.
async fn response(stream: &mut BufReader<TcpStream>) -> (Vec<String>, String) {
    let mut head = Vec::new();
    loop {
        match line(stream).await {
            end if end.is_empty() => break,
            header if header.starts_with("date: ") => {}
            header => head.push(header),
        }
    }
    head[1..].sort();
    let length = head.iter().find_map(|header| header.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    within(stream.read_exact(&mut body)).await.unwrap();
    if head.iter().any(|header| header == "transfer-encoding: chunked") {
        loop {
            let size = usize::from_str_radix(&line(stream).await, 16).unwrap();
            let start = body.len();
            body.resize(start + size, 0);
            within(stream.read_exact(&mut body[start..])).await.unwrap();
            assert_eq!(line(stream).await, "");
            if size == 0 {
                break;
            }
        }
    }
    (head, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn both_give_equal_responses() {
    let address = serve(Limits::default()).await;
    let (mut fast, mut hyper) = (dial(&address).await, dial(&address).await);
    for (query, message) in [
        ("", request(1, "text", "[3]")),
        ("", request(2, "text", "[100000]")),
        ("", request(3, "unknown", "[]")),
        ("", r#"{"jsonrpc":"2.0","method":"note"}"#.to_owned()),
        ("", "{".to_owned()),
        ("", format!("[{},{}]", request(4, "text", "[1]"), request(5, "text", "[2]"))),
        ("?early", request(6, "text", "[3]")),
        ("?pieces", request(7, "text", "[3]")),
        ("?events", request(8, "text", "[3]")),
        ("?events", request(9, "count", "[5]")),
    ] {
        fast.write_all(open(query, false, &message).as_bytes()).await.unwrap();
        hyper.write_all(open(query, true, &message).as_bytes()).await.unwrap();
        let by_fast_path = response(&mut fast).await;
        assert_eq!(by_fast_path, response(&mut hyper).await, "{query} {message:.60}");
    }
}

#[tokio::test]
async fn responses_come_in_the_order_of_pipelined_requests() {
    let address = serve(Limits::default()).await;
    let mut stream = dial(&address).await;
    let requests = [
        open("", false, &request(1, "text", "[3]")),
        open("?events", false, &request(2, "count", "[2]")),
        open("", false, &request(3, "text", "[4]")),
    ];
    stream.write_all(requests.concat().as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.1.contains(r#""result":"xxx","id":1"#));
    let (_, events) = response(&mut stream).await;
    assert_eq!(events.matches("data: ").count(), 3, "{events}");
    assert!(response(&mut stream).await.1.contains(r#""result":"xxxx","id":3"#));
}

#[tokio::test]
async fn a_policy_can_close_the_connection() {
    let address = serve(Limits::default()).await;
    for by_hyper in [false, true] {
        let mut stream = dial(&address).await;
        let two = open("?close", by_hyper, &request(1, "text", "[3]")).repeat(2);
        stream.write_all(two.as_bytes()).await.unwrap();
        let (head, _) = response(&mut stream).await;
        assert!(head.contains(&"connection: close".to_owned()), "{head:?}");
        assert_eq!(rest(&mut stream).await, b"", "the second request is not served");
    }
}

#[tokio::test]
async fn a_body_that_fails_is_cut_off() {
    let address = serve(Limits::default()).await;
    for by_hyper in [false, true] {
        let mut stream = dial(&address).await;
        let fails = open("?fails", by_hyper, &request(1, "text", "[3]"));
        stream.write_all(fails.as_bytes()).await.unwrap();
        let all = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(!all.contains("0\r\n\r\n"), "the client would take it for complete: {all}");
    }
}

/// A policy may refuse by the head alone, so the fast path does not wait for the body.
#[tokio::test]
async fn a_request_whose_body_comes_later_is_served() {
    let address = serve(Limits::default()).await;
    let mut stream = dial(&address).await;
    for id in 1..4 {
        let whole = open("", false, &request(id, "text", "[3]"));
        let (first, second) = whole.split_at(whole.len() - 10 * usize::from(id == 2));
        stream.write_all(first.as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(second.as_bytes()).await.unwrap();
        let (_, body) = response(&mut stream).await;
        assert!(body.contains(&format!(r#""id":{id}"#)), "{body}");
    }
}
