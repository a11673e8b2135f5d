//! What only HTTP does.

use std::future::IntoFuture;
use std::time::Duration;

use antiphon::transport::http::HttpService;
use antiphon::{CallError, Client, Context, Limits, RawJson, Router};
use futures_util::future::join_all;
use hyper::body::Body as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::message_sizes::{SIZES, text};
use crate::support::{answer, as_ws, bound, dial, elsewhere, request, serve, within};

fn service() -> Router {
    Router::new().method("agent", |(): (), cx: Context| async move {
        let agent = cx.connection().headers().get("x-agent");
        Ok(agent.and_then(|value| value.to_str().ok()).map(str::to_owned))
    })
}

pub(crate) const JSON: &str = "content-type: application/json\r\n";

/// Sends one HTTP/1.1 request as it is and reads the whole response.
pub(crate) async fn exchange(address: &str, request: &str) -> String {
    let authority = address.split("://").nth(1).unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(authority).await.unwrap();
    stream.write_all(request.replace("{host}", authority).as_bytes()).await.unwrap();
    let mut response = String::new();
    within(stream.read_to_string(&mut response)).await.unwrap();
    response
}

pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {{host}}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// RFC 9110, 9.3.2. Over HTTP/2, a body would break the stream.
#[tokio::test]
async fn a_response_to_head_has_no_body() {
    let server =
        bound("http://127.0.0.1:0").await.page("/healthz", "text/plain", || "ok\n".to_owned());
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(service()));
    let authority = address.split("://").nth(1).unwrap().trim_end_matches('/').to_owned();
    for (path, status, length) in [("/healthz", 200, Some("3")), ("/", 405, None)] {
        let stream = TokioIo::new(TcpStream::connect(&authority).await.unwrap());
        let executor = TokioExecutor::new();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
        tokio::spawn(connection);
        let head = http::Request::head(format!("http://{authority}{path}"));
        let request = head.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        let response = within(sender.send_request(request)).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let sent = response.headers().get("content-length").map(|length| length.to_str().unwrap());
        assert!(length.is_none() || sent == length, "{path}: {sent:?}");
        assert!(response.body().is_end_stream(), "{path}");
    }
}

/// The client sends its body so slowly that a server which reads it first responds too late for `within`.
#[tokio::test]
async fn a_refusal_does_not_wait_for_the_body() {
    let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
    let address = serve("http://127.0.0.1:0", limits, service()).await;
    let chunked =
        "host: {host}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n";
    for (head, first, piece, status) in [
        ("host: evil.example\r\ncontent-length: 9999\r\n", "", " ", "403"),
        (
            "host: {host}\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n",
            "",
            " ",
            "413",
        ),
        ("host: {host}\r\ncontent-type: text/html\r\ncontent-length: 9999\r\n", "", " ", "415"),
        (chunked, &format!("3e9\r\n{}\r\n", " ".repeat(1001)), "1\r\n \r\n", "413"),
    ] {
        let mut stream = dial(&address).await;
        let authority = address.split("://").nth(1).unwrap();
        let head = head.replace("{host}", authority.trim_end_matches('/'));
        let head = format!("POST / HTTP/1.1\r\n{head}\r\n{first}");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut line = String::new();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let slow_body = async move {
            loop {
                // A client that is slow, but never silent.
                tokio::time::sleep(Duration::from_millis(200)).await;
                let _ = writer.write_all(piece.as_bytes()).await;
            }
        };
        let mut reader = BufReader::new(&mut reader);
        let responded = within(async {
            tokio::select! {
                read = reader.read_line(&mut line) => read.unwrap(),
                () = slow_body => unreachable!("it never ends"),
            }
        });
        responded.await;
        assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {line}");
    }
}

#[tokio::test]
async fn headers_reach_the_handler() {
    let address = serve("http://127.0.0.1:0", Limits::default(), service()).await;
    let client = Client::builder()
        .header("x-agent".parse().unwrap(), "ada".parse().unwrap())
        .connect(&address)
        .await
        .unwrap();
    assert_eq!(client.call::<Option<String>>("agent", ()).await.unwrap().as_deref(), Some("ada"));
    if cfg!(feature = "ws") {
        let client = Client::builder()
            .header("x-agent".parse().unwrap(), "bob".parse().unwrap())
            .connect(as_ws(&address))
            .await
            .unwrap();
        let agent = client.call::<Option<String>>("agent", ()).await.unwrap();
        assert_eq!(agent.as_deref(), Some("bob"));
    }
}

#[tokio::test]
async fn http_2_is_spoken_on_both_sides() {
    let router = Router::new().method("version", |(): (), cx: Context| async move {
        // HTTP/2 has no Host header; HTTP/1.1 must have one.
        Ok(cx.connection().headers().contains_key("host"))
    });
    let address = serve("http://127.0.0.1:0", Limits::default(), router).await;
    let one = Client::connect(&address).await.unwrap();
    assert!(one.call::<bool>("version", ()).await.unwrap());
    let two = Client::builder().http2().connect(&address).await.unwrap();
    let calls = (0..50).map(|_| two.call::<bool>("version", ()).into_future());
    for has_host in within(futures_util::future::join_all(calls)).await {
        assert!(!has_host.unwrap());
    }
}

#[tokio::test]
async fn statuses_say_what_was_not_json_rpc() {
    let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
    let address = serve("http://127.0.0.1:0/rpc", limits, service()).await;
    let json = JSON;
    let call = request(1, "agent", "[]");
    let big = "x".repeat(2_000);
    let cases = [
        (post("/rpc", json, &call), "200 OK"),
        (post("/rpc", "content-type: Application/JSON; charset=utf-8\r\n", &call), "200 OK"),
        (post("/rpc", "content-type: application/json-rpc\r\n", &call), "200 OK"),
        (post("/rpc", json, ""), "200 OK"),
        (post("/rpc", json, r#"{"jsonrpc":"2.0","method":"agent"}"#), "204 No Content"),
        (post("/rpc", "content-type: text/plain\r\n", &call), "415 Unsupported Media Type"),
        (post("/rpc", "", &call), "415 Unsupported Media Type"),
        (post("/rpc?token=1", json, &call), "200 OK"),
        (post("/other", json, &call), "404 Not Found"),
        (post("/rpc", json, &big), "413 Payload Too Large"),
        (post("/rpc", &format!("{json}origin: http://evil.example\r\n"), &call), "403 Forbidden"),
        (post("/rpc", json, &call).replace("{host}", "evil.example"), "403 Forbidden"),
        (
            "GET /rpc HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".to_owned(),
            "405 Method Not Allowed",
        ),
    ];
    for (request, status) in cases {
        let response = exchange(&address, &request).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{request}\n{response}");
        if status.starts_with("405") {
            assert!(response.contains("allow: POST"), "{response}");
        }
        if status.starts_with("413") {
            assert!(response.contains("-32007"), "{response}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_json_rpc_is_named_as_such() {
    let app = axum::Router::new().route("/page", axum::routing::post(|| async { "<html>" }));
    let app = app.route_service("/rpc", HttpService::new(service()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let at = async |path: &str| {
        let client = Client::connect(&format!("http://{authority}{path}")).await.unwrap();
        client.call::<Option<String>>("agent", ()).await
    };
    assert_eq!(at("/rpc").await.unwrap(), None);
    assert!(matches!(at("/page").await, Err(CallError::Protocol(_))));
    let missing = at("/missing").await.unwrap_err();
    assert!(missing.to_string().contains("404"), "{missing}");
    if cfg!(feature = "ws") {
        let client = Client::connect(&format!("ws://{authority}/rpc")).await.unwrap();
        assert_eq!(client.call::<Option<String>>("agent", ()).await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_origin_that_is_allowed_is_served_with_cors() {
    use antiphon::Server;
    use antiphon::transport::http::Guard;
    let guard = Guard::new().allow_origin("https://app.example");
    let server = Server::bind("http://127.0.0.1:0").await.unwrap().guard(guard);
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(service()));
    let headers = "content-type: application/json\r\norigin: https://app.example\r\n";
    let response = exchange(&address, &post("/", headers, &request(1, "agent", "[]"))).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(response.contains("access-control-allow-origin: https://app.example"), "{response}");
    let preflight = "OPTIONS / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\norigin: https://app.example\r\n\r\n";
    let response = exchange(&address, preflight).await;
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    assert!(response.contains("access-control-allow-headers: content-type"), "{response}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_and_batches_at_once_get_their_own_results() {
    let echo = Router::new().method("echo", |(n,): (u64,), _cx: Context| async move { Ok(n) });
    let address = serve("http://127.0.0.1:0", Limits::default(), echo).await;
    let client = Client::connect(&address).await.unwrap();
    let batches = (0..4).map(|task| {
        let client = client.clone();
        tokio::spawn(async move {
            for round in 0..5 {
                let mut batch = client.batch();
                let numbers = (0..1_000).map(|n| n + 1_000 * round + 100_000 * task);
                let slots: Vec<_> = numbers.map(|n| (n, batch.call::<u64>("echo", (n,)))).collect();
                let mut replies = batch.send().await.unwrap();
                for (n, slot) in slots {
                    assert_eq!(replies.take(slot).unwrap(), n);
                }
            }
        })
    });
    let batches = join_all(batches);
    let calls = join_all((0..200u64).map(|n| client.call::<u64>("echo", (n,)).into_future()));
    let (batches, calls) = within(async { tokio::join!(batches, calls) }).await;
    for (n, result) in calls.into_iter().enumerate() {
        assert_eq!(result.unwrap(), n as u64);
    }
    batches.into_iter().for_each(|ended| ended.unwrap());
}

#[tokio::test]
async fn a_query_is_not_listened_on() {
    let error = antiphon::Server::bind("http://127.0.0.1:0/rpc?x=1").await.unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("query"));
}

#[tokio::test]
async fn a_handler_does_not_tell_where_its_own_calls_go() {
    let upstream = Client::connect("http://127.0.0.1:1/secret?key=abc").await.unwrap();
    let proxy = Router::new().fallback(move |call, cx: Context| {
        let upstream = upstream.clone();
        async move { Ok(upstream.forward(call, &cx).await?) }
    });
    let address = serve("http://127.0.0.1:0", Limits::default(), proxy).await;
    let answer = exchange(&address, &post("/", JSON, &request(1, "m", "[]"))).await;
    assert!(answer.contains("-32603") && !answer.contains("secret"), "{answer}");
}

#[tokio::test]
async fn a_client_is_told_that_there_is_no_room() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let address = serve("http://127.0.0.1:0", limits, service()).await;
    let authority = address.split("://").nth(1).unwrap();
    let mut first = TcpStream::connect(authority).await.unwrap();
    first.write_all(b"POST").await.unwrap();
    // Accepted in order: once one is refused, the first has the place.
    let client = Client::connect(&address).await.unwrap();
    let error = within(client.call::<()>("agent", ()).into_future()).await.unwrap_err();
    assert!(matches!(&error, CallError::Rpc(error) if error.code.0 == -32009), "{error}");
}

#[tokio::test]
async fn large_and_small_requests_may_come_without_a_pause() {
    let router = Router::new()
        .method("echo", |params: RawJson, _cx: Context| async { Ok(params) })
        .method("later", |params: RawJson, _cx: Context| async {
            elsewhere().await;
            Ok(params)
        });
    let address = serve("http://127.0.0.1:0", Limits::default(), router).await;
    let (read, mut write) = dial(&address).await.into_inner().into_split();
    let params = |n: usize| format!("[{:?}]", text(n, SIZES[n % SIZES.len()]));
    let count = 3 * SIZES.len();
    let requests = (0..count).map(|n| {
        let body = request(n as u64, if n % 5 == 0 { "later" } else { "echo" }, &params(n));
        let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        format!("{head}content-length: {}\r\n\r\n{body}", body.len())
    });
    let requests = requests.collect::<String>();
    let answers = async {
        let mut read = BufReader::new(read);
        for n in 0..count {
            assert!(body(&mut read).await == answer(&n.into(), &params(n)), "answer {n}");
        }
    };
    let (sent, ()) =
        within(async { tokio::join!(write.write_all(requests.as_bytes()), answers) }).await;
    sent.unwrap();
}

/// The body of the next response.
async fn body(stream: &mut (impl AsyncBufRead + Unpin)) -> String {
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        assert_ne!(stream.read_line(&mut line).await.unwrap(), 0);
        if let Some(digits) = line.strip_prefix("content-length: ") {
            length = digits.trim_end().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    String::from_utf8(body).unwrap()
}
