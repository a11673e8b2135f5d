//! Policies over HTTP, event streams, and the fallback.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use antiphon::http::{HeaderValue, Method, Response, StatusCode};
use antiphon::transport::http::{
    EventError, EventSender, EventStream, EventStreamOptions, HeadDecision, HttpBody, HttpMessage,
    HttpOutcome, HttpPolicy, HttpRefusal, MessageDecision, MessageVersion, ServerSentEvent,
};
use antiphon::{CallError, Client, Connection, Context, Dialect, Limits, ProgressStyle, Router};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use crate::http::{JSON, exchange, post};
use crate::support::{FOREVER, as_ws, both, bound, dial, holding, request, rest, within};

/// Serves with a policy. Returns the address.
async fn with_policy(policy: impl HttpPolicy, limits: Limits, router: Router) -> String {
    let server = bound("http://127.0.0.1:0").await.limits(limits).http_policy(policy);
    let server = server.dialect(Dialect::plain().progress(ProgressStyle::by_id("progress")));
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(router));
    address
}

fn small() -> Router {
    Router::new()
        .method("add", |(a, b): (i64, i64), _: Context| async move { Ok(a + b) })
        .notification("note", |(): (), _: Context| async {})
        .method("path", |(): (), cx: Context| async move {
            let connection = cx.connection();
            let method = connection.http_method().map(ToString::to_string);
            Ok(json!([method, connection.path(), connection.query()]))
        })
        .method("count", |(n,): (u64,), cx: Context| async move {
            for i in 0..n {
                cx.notify("counted", [i]).await?;
                cx.progress(i).await?;
            }
            Ok(n)
        })
}

/// Legacy errors have statuses of their own, and credentials are checked before the body is read.
struct Statuses;

impl HttpPolicy for Statuses {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        if request.headers().get(AUTHORIZATION).is_some_and(|value| value == "Basic eDp5") {
            return HeadDecision::ReadBody;
        }
        let mut response = Response::new(HttpBody::default());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        let challenge = HeaderValue::from_static("Basic realm=\"jsonrpc\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        HeadDecision::Respond(response)
    }

    fn respond(
        &self,
        _: &Connection,
        message: &HttpMessage,
        outcome: HttpOutcome,
    ) -> Response<HttpBody> {
        let is_legacy = !message.is_batch()
            && message.entries().iter().all(|entry| entry.version != MessageVersion::V2_0);
        let status = match outcome.error_codes()[..] {
            [Some(-32600)] if is_legacy => Some(StatusCode::BAD_REQUEST),
            [Some(-32601)] => Some(StatusCode::NOT_FOUND),
            [Some(_)] => Some(StatusCode::INTERNAL_SERVER_ERROR),
            _ => None,
        };
        let mut response = outcome.into_response();
        if let Some(status) = status {
            *response.status_mut() = status;
        }
        response
    }

    fn refuse(&self, request: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        let mut response = refusal.into_response();
        let path = HeaderValue::from_str(request.path().unwrap_or("-")).unwrap();
        response.headers_mut().insert("x-refused", path);
        response
    }
}

#[tokio::test]
async fn a_policy_sets_the_status_by_the_outcome() {
    let address = with_policy(Statuses, Limits::default(), small()).await;
    let basic = "authorization: Basic eDp5\r\ncontent-type: text/plain\r\n";
    for (body, status) in [
        (request(1, "add", "[1,2]"), "200"),
        (request(1, "unknown", "[]"), "404"),
        (request(1, "add", "[]"), "500"),
        (r#"{"method":"add","id":1}"#.to_owned(), "400"),
        ("{".to_owned(), "500"),
        (r#"{"jsonrpc":"2.0","method":"note"}"#.to_owned(), "204"),
        (format!("[{}]", request(1, "unknown", "[]")), "404"),
        (format!("[{},{}]", request(1, "unknown", "[]"), request(2, "add", "[1,2]")), "200"),
    ] {
        let response = exchange(&address, &post("/wallet/a", basic, &body)).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{body}\n{response}");
    }
    let refused = exchange(&address, &post("/", JSON, &request(1, "add", "[1,2]"))).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.contains("www-authenticate: Basic realm"), "{refused}");
    assert!(refused.ends_with("\r\n\r\n"), "the body is empty: {refused}");
    if cfg!(feature = "ws") {
        let at = as_ws(&address);
        let refused = Client::connect(&at).await.unwrap_err();
        assert!(format!("{refused:?}").contains("401"), "a WebSocket needs them too: {refused:?}");
        let client =
            Client::builder().header(AUTHORIZATION, HeaderValue::from_static("Basic eDp5"));
        let client = client.connect(&at).await.unwrap();
        assert_eq!(within(client.call::<i64>("add", (1, 2)).into_future()).await.unwrap(), 3);
    }
}

#[tokio::test]
async fn every_refusal_goes_through_the_policy() {
    let limits = Limits { frame_bytes: 100, connections: 1, ..Limits::default() };
    let address = with_policy(Statuses, limits, small()).await;
    let basic = "authorization: Basic eDp5\r\n";
    let long = " ".repeat(200);
    let foreign = "GET /a HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n".to_owned();
    for (request, status) in [(post("/a", basic, &long), "413"), (foreign, "403")] {
        let response = exchange(&address, &request).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
        assert!(response.contains("x-refused: /a"), "{response}");
    }
    // The connections before this one may still be counted: the one that stays is served.
    let mut first = within(async {
        loop {
            let mut stream = dial(&address).await;
            let call = post("/a", basic, &request(1, "add", "[1,2]"))
                .replace("{host}", "localhost")
                .replace("connection: close\r\n", "");
            stream.write_all(call.as_bytes()).await.unwrap();
            let mut status = String::new();
            stream.read_line(&mut status).await.unwrap();
            if status.contains("200") {
                return stream;
            }
        }
    })
    .await;
    let second = exchange(&address, &post("/b", basic, "")).await;
    assert!(second.starts_with("HTTP/1.1 503"), "{second}");
    assert!(second.contains("x-refused: /b") && second.contains("retry-after"), "{second}");
    first.shutdown().await.unwrap();
}

/// A service that always fails.
fn failing(
    _: antiphon::http::Request<HttpBody>,
) -> std::future::Ready<Result<Response<HttpBody>, &'static str>> {
    std::future::ready(Err("a secret"))
}

#[tokio::test]
async fn a_layer_or_fallback_that_fails_goes_through_the_policy() {
    let server = bound("http://127.0.0.1:0").await.http_policy(Statuses);
    let layer = tower::layer::layer_fn(|_| tower::service_fn(failing));
    let layered = bound("http://127.0.0.1:0").await.http_policy(Statuses).http_layer(layer);
    for server in [server.fallback(tower::service_fn(failing)), layered] {
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(small()));
        let response = exchange(&address, &post("/other", JSON, "{}")).await;
        assert!(response.starts_with("HTTP/1.1 500"), "{response}");
        assert!(response.contains("x-refused: /other"), "{response}");
        assert!(!response.contains("secret"), "{response}");
    }
}

/// Allows a stream for every message.
struct Streams(EventStreamOptions);

impl HttpPolicy for Streams {
    fn on_message(&self, _: &mut Connection, _: &HttpMessage) -> MessageDecision {
        MessageDecision::Stream(self.0.clone())
    }
}

/// The data of the events in a response, and its head.
fn events(response: &str) -> (&str, Vec<serde_json::Value>) {
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    (head, data.map(|data| serde_json::from_str(data).unwrap()).collect())
}

#[tokio::test]
async fn notifications_and_progress_are_events_before_the_reply() {
    for capacity in [1, 100] {
        let options = EventStreamOptions::new().capacity(capacity);
        let address = with_policy(Streams(options), Limits::default(), small()).await;
        let response = exchange(&address, &post("/", JSON, &request(7, "count", "[3]"))).await;
        let (head, events) = events(&response);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        for header in
            ["content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"]
        {
            assert!(head.contains(header), "{head}");
        }
        let mut expected = Vec::new();
        for i in 0..3 {
            expected.push(json!({"jsonrpc": "2.0", "method": "counted", "params": [i]}));
            let params = json!({"token": 7, "value": i});
            expected.push(json!({"jsonrpc": "2.0", "method": "progress", "params": params}));
        }
        expected.push(json!({"jsonrpc": "2.0", "result": 3, "id": 7}));
        assert_eq!(events, expected);
        let first = response.split("\r\n\r\n").nth(1).unwrap().lines().nth(1).unwrap();
        assert!(first.starts_with(": "), "the stream begins with a comment: {first}");
    }
}

#[tokio::test]
async fn events_pass_by_http2_beside_a_stream_that_is_not_read() {
    use http_body_util::{BodyExt as _, Full};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let address = with_policy(Streams(EventStreamOptions::new()), Limits::default(), small()).await;
    let stream = dial(&address).await.into_inner();
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = within(handshake).await.unwrap();
    tokio::spawn(connection);
    let mut call = |n: &str| {
        let request = antiphon::http::Request::post(&address)
            .header("content-type", "application/json")
            .body(Full::<bytes::Bytes>::from(request(1, "count", n)))
            .unwrap();
        sender.send_request(request)
    };
    let unread = within(call("[1000000]")).await.unwrap();
    let response = within(call("[2]")).await.unwrap();
    let body = within(response.into_body().collect()).await.unwrap().to_bytes();
    let body = String::from_utf8(body.into()).unwrap();
    let body = format!("\r\n\r\n{body}");
    let (_, events) = events(&body);
    assert_eq!((events.len(), &events[4]["result"]), (5, &json!(2)));
    drop(unread);
}

#[tokio::test]
async fn a_call_that_does_not_notify_has_a_plain_response() {
    let address = with_policy(Streams(EventStreamOptions::new()), Limits::default(), small()).await;
    let response = exchange(&address, &post("/", JSON, &request(7, "add", "[1,2]"))).await;
    assert!(response.contains("content-type: application/json"), "{response}");
    let options = EventStreamOptions::new().immediately();
    let options = options.event(|message| ServerSentEvent::data(message).id("1").event("message"));
    let address = with_policy(Streams(options), Limits::default(), small()).await;
    let response = exchange(&address, &post("/", JSON, &request(7, "add", "[1,2]"))).await;
    assert!(response.contains("event: message\nid: 1\ndata: {"), "{response}");
}

#[tokio::test]
async fn a_notification_goes_to_the_peer_or_fails_without_a_way_back() {
    let (heard, mut hear) = mpsc::channel(8);
    let listener = Router::new().notification("counted", move |(i,): (u64,), _: Context| {
        let heard = heard.clone();
        async move { heard.send(i).await.unwrap() }
    });
    let (client, _server) = both((Limits::default(), listener), (Limits::default(), small()));
    assert_eq!(within(client.call::<u64>("count", (2,)).into_future()).await.unwrap(), 2);
    assert_eq!((hear.recv().await, hear.recv().await), (Some(0), Some(1)));

    let server = bound("http://127.0.0.1:0").await;
    let address = server.endpoint().to_string();
    let router = Router::new().method("notify", |(): (), cx: Context| async move {
        Ok(matches!(cx.notify("n", ()).await, Err(CallError::CannotCallBack("http"))))
    });
    tokio::spawn(server.serve(router));
    let client = Client::connect(&address).await.unwrap();
    assert!(within(client.call::<bool>("notify", ()).into_future()).await.unwrap());
}

/// Opens a stream of events and reads up to its first event.
async fn open_stream(address: &str, call: &str) -> BufReader<TcpStream> {
    let mut stream = dial(address).await;
    stream.write_all(call.replace("{host}", "localhost").as_bytes()).await.unwrap();
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert!(within(stream.read_line(&mut line)).await.unwrap() > 0, "the stream has ended");
    }
    stream
}

/// A method that notifies once and then holds as `hold` does.
struct NotifyingHold {
    router: Router,
    /// The stream of the call that has notified.
    sender: mpsc::UnboundedReceiver<EventSender>,
    entered: mpsc::Receiver<()>,
    release: Arc<Notify>,
    gone: mpsc::Receiver<()>,
}

fn notifying_hold() -> NotifyingHold {
    let held = holding();
    let inner = Arc::new(held.router);
    let (tell, sender) = mpsc::unbounded_channel();
    let router = Router::new().method("hold", move |(): (), cx: Context| {
        let (inner, tell) = (inner.clone(), tell.clone());
        async move {
            cx.notify("held", ()).await?;
            let _ = tell.send(cx.extensions().get::<EventSender>().unwrap().clone());
            let call = antiphon::Invocation::new("hold", None);
            antiphon::Handler::call(&inner, call, cx).await
        }
    });
    let (entered, release, gone) = (held.entered, held.release, held.gone);
    NotifyingHold { router, sender, entered, release, gone }
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_the_call_where_the_policy_says_so() {
    let mut hold = notifying_hold();
    let options = EventStreamOptions::new();
    let address = with_policy(Streams(options), Limits::default(), hold.router).await;
    let stream = open_stream(&address, &post("/", JSON, &request(1, "hold", "[]"))).await;
    within(hold.entered.recv()).await.unwrap();
    drop(stream);
    within(hold.gone.recv()).await.expect("the call is cancelled");
}

#[tokio::test]
async fn a_call_runs_on_after_a_disconnect_where_the_policy_says_so() {
    let mut hold = notifying_hold();
    let (sent, mut messages) = mpsc::unbounded_channel();
    let options = EventStreamOptions::new().cancel_on_disconnect(false).event(move |message| {
        sent.send(message.clone()).unwrap();
        ServerSentEvent::data(message)
    });
    let address = with_policy(Streams(options), Limits::default(), hold.router).await;
    let stream = open_stream(&address, &post("/", JSON, &request(1, "hold", "[]"))).await;
    within(hold.entered.recv()).await.unwrap();
    let sender = within(hold.sender.recv()).await.unwrap();
    drop(stream);
    within(messages.recv()).await.unwrap();
    // The server has seen the disconnect.
    within(sender.closed()).await;
    hold.release.notify_one();
    let reply = within(messages.recv()).await.unwrap();
    assert!(reply.windows(6).any(|window| window == b"\"held\""), "{reply:?}");
}

/// Reports how many entries it sees.
struct Counts(mpsc::UnboundedSender<usize>);

impl HttpPolicy for Counts {
    fn on_message(&self, _: &mut Connection, message: &HttpMessage) -> MessageDecision {
        self.0.send(message.entries().len()).unwrap();
        MessageDecision::Dispatch
    }
}

#[tokio::test]
async fn a_policy_sees_no_entries_of_a_batch_over_the_limit() {
    let (tell, mut counts) = mpsc::unbounded_channel();
    let limits = Limits { batch_entries: 2, ..Limits::default() };
    let address = with_policy(Counts(tell), limits, small()).await;
    for (batch, seen, replied) in [("[0,0]", 2, "-32600"), ("[0,0,0]", 0, "-32010")] {
        let response = exchange(&address, &post("/", JSON, batch)).await;
        assert!(response.contains(replied), "{response}");
        assert_eq!(counts.recv().await, Some(seen));
    }
}

/// Two events fit into the queue by their number, but not by their bytes.
#[tokio::test]
async fn a_handler_waits_where_the_queued_bytes_reach_their_limit() {
    let router = Router::new().method("two", |(): (), cx: Context| async move {
        let (first, second) = tokio::join!(
            biased;
            cx.notify("first", ["x".repeat(100)]),
            async {
                let sender = cx.extensions().get::<EventSender>().unwrap();
                sender.try_send(&ServerSentEvent::data("\"second\""))
            }
        );
        first?;
        Ok(second == Err(EventError::Full))
    });
    let limits = Limits { write_queue_bytes: 100, ..Limits::default() };
    let address = with_policy(Streams(EventStreamOptions::new()), limits, router).await;
    let response = exchange(&address, &post("/", JSON, &request(1, "two", "[]"))).await;
    assert!(response.contains("\"result\":true"), "{response}");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_stopped() {
    let (over, mut ended) = mpsc::channel(1);
    let router = Router::new().method("flood", move |(): (), cx: Context| {
        let over = over.clone();
        async move {
            let text = "x".repeat(100_000);
            let sender = cx.extensions().get::<EventSender>().unwrap();
            while !sender.is_closed() {
                cx.notify("flood", [&text]).await?;
            }
            over.send(()).await.unwrap();
            Ok(())
        }
    });
    let limits = Limits { stall_timeout: Duration::from_millis(50), ..Limits::default() };
    let options = EventStreamOptions::new().cancel_on_disconnect(false);
    let address = with_policy(Streams(options), limits, router).await;
    let mut stream = dial(&address).await;
    let call = post("/", JSON, &request(1, "flood", "[]")).replace("{host}", "localhost");
    stream.write_all(call.as_bytes()).await.unwrap();
    within(ended.recv()).await.expect("the handler is not held for ever");
    rest(&mut stream).await;
}

/// Serves GET with a stream that outlives its request, and DELETE.
struct Sessions(Arc<Mutex<Vec<EventSender>>>);

impl HttpPolicy for Sessions {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        if request.http_method() == Some(&Method::GET) {
            let (sender, stream) = EventStream::channel(4);
            sender.try_send(&ServerSentEvent::data("\"open\"")).unwrap();
            self.0.lock().unwrap().push(sender);
            return HeadDecision::Respond(stream.into_response());
        }
        if request.http_method() == Some(&Method::DELETE) {
            self.0.lock().unwrap().clear();
            return HeadDecision::Respond(Response::default());
        }
        request.extensions.insert(7_u32);
        HeadDecision::Continue
    }
}

#[tokio::test]
async fn a_policy_opens_streams_by_get_and_ends_them_by_delete() {
    let senders = Arc::new(Mutex::new(Vec::new()));
    let limits = Limits { idle_timeout: Some(Duration::from_millis(50)), ..Limits::default() };
    let router = small().method("number", |(): (), cx: Context| async move {
        Ok(cx.extensions().get::<u32>().copied())
    });
    let address = with_policy(Sessions(senders.clone()), limits, router).await;
    let get = "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n";
    let mut stream = open_stream(&address, get).await;
    // Another connection that goes idle is the clock: the stream outlives the idle timeout.
    let mut idle = dial(&address).await;
    let call = post("/", JSON, &request(1, "number", "[]")).replace("connection: close\r\n", "");
    idle.write_all(call.replace("{host}", "localhost").as_bytes()).await.unwrap();
    let mut response = String::new();
    within(idle.read_to_string(&mut response)).await.unwrap();
    assert!(response.contains("\"result\":7"), "the policy adds extensions: {response}");
    let sender = senders.lock().unwrap()[0].clone();
    within(sender.send(&ServerSentEvent::data("\"later\""))).await.unwrap();
    drop(sender);
    let delete = "DELETE / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n";
    assert!(exchange(&address, delete).await.starts_with("HTTP/1.1 200"));
    let rest = String::from_utf8(rest(&mut stream).await).unwrap();
    assert!(rest.contains("data: \"later\""), "{rest}");
}

#[tokio::test]
async fn a_shutdown_ends_open_streams() {
    let senders = Arc::new(Mutex::new(Vec::new()));
    let limits = Limits { shutdown_timeout: FOREVER, ..Limits::default() };
    let server = bound("http://127.0.0.1:0").await.limits(limits);
    let server = server.http_policy(Sessions(senders));
    let address = server.endpoint().to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(small(), async { drop(stopped.await) }));
    let get = "GET / HTTP/1.1\r\nhost: {host}\r\n\r\n";
    let mut stream = open_stream(&address, get).await;
    drop(stop);
    rest(&mut stream).await;
    within(serving).await.unwrap().unwrap();
}

/// Panics at each step in turn.
struct Panics(AtomicUsize);

impl Panics {
    fn step(&self, step: usize) {
        assert!(self.0.load(Ordering::SeqCst) != step, "on purpose");
    }
}

impl HttpPolicy for Panics {
    fn on_head(&self, _: &mut Connection) -> HeadDecision {
        self.step(0);
        HeadDecision::Continue
    }

    fn on_message(&self, _: &mut Connection, _: &HttpMessage) -> MessageDecision {
        self.step(1);
        MessageDecision::Dispatch
    }

    fn respond(&self, _: &Connection, _: &HttpMessage, outcome: HttpOutcome) -> Response<HttpBody> {
        if self.0.fetch_add(1, Ordering::SeqCst) == 2 {
            panic!("on purpose");
        }
        outcome.into_response()
    }

    fn refuse(&self, _: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        self.step(3);
        refusal.into_response()
    }
}

#[tokio::test]
async fn a_policy_that_panics_fails_its_request_only() {
    for (step, method) in [(0, "POST"), (1, "POST"), (2, "POST"), (3, "PUT")] {
        let address = with_policy(Panics(step.into()), Limits::default(), small()).await;
        let call = post("/", JSON, &request(1, "add", "[1,2]")).replace("POST", method);
        let response = exchange(&address, &call).await;
        assert!(response.starts_with("HTTP/1.1 500"), "{step}: {response}");
        assert!(!response.contains("on purpose"), "{response}");
    }
    let policy = Panics(2.into());
    let address = with_policy(policy, Limits::default(), small()).await;
    let call = post("/", JSON, &request(1, "add", "[1,2]"));
    assert!(exchange(&address, &call).await.starts_with("HTTP/1.1 500"));
    assert!(exchange(&address, &call).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_fallback_serves_other_paths_of_the_port() {
    let app = axum::Router::new()
        .route("/", axum::routing::get(|| async { "the console" }))
        .route("/echo", axum::routing::post(|body: String| async move { body }));
    for endpoint in ["http://127.0.0.1:0", "http://127.0.0.1:0/rpc"] {
        let server = bound(endpoint).await.fallback(app.clone());
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(small()));
        let client = Client::connect(&address).await.unwrap();
        assert_eq!(within(client.call::<i64>("add", (1, 2)).into_future()).await.unwrap(), 3);
        let get = |path: &str| {
            format!("GET {path} HTTP/1.1\r\nhost: {{host}}\r\nconnection: close\r\n\r\n")
        };
        let console = exchange(&address, &get("/")).await;
        assert!(console.ends_with("the console"), "{console}");
        let echo = exchange(&address, &post("/echo", "content-type: text/plain\r\n", "abc")).await;
        assert!(echo.ends_with("abc"), "{echo}");
        let missing = exchange(&address, &get("/missing")).await;
        assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
        let foreign = get("/").replace("{host}", "evil.example");
        assert!(exchange(&address, &foreign).await.starts_with("HTTP/1.1 403"));
    }
}

#[tokio::test]
async fn a_handler_sees_the_path_on_the_fast_path_and_by_hyper() {
    let server = bound("http://127.0.0.1:0").await;
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(small()));
    let call = request(1, "path", "[]");
    // A connection that stays open is on the fast path.
    let open = post("/a/b", JSON, &call).replace("connection: close\r\n", "");
    let mut stream = dial(&address).await;
    stream.write_all(open.replace("{host}", "localhost").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let by_fast_path = String::from_utf8(rest(&mut stream).await).unwrap();
    assert!(by_fast_path.contains(r#"["POST","/a/b",null]"#), "{by_fast_path}");
    let by_hyper = exchange(&address, &post("/a/b?c=1", JSON, &call)).await;
    assert!(by_hyper.contains(r#"["POST","/a/b","c=1"]"#), "{by_hyper}");
    if cfg!(feature = "ws") {
        let at = as_ws(&address).with_path("/a?c=1").unwrap();
        let client = Client::connect(&at).await.unwrap();
        let path = within(client.call::<serde_json::Value>("path", ()).into_future()).await;
        assert_eq!(path.unwrap(), json!(["GET", "/a", "c=1"]));
    }
}
