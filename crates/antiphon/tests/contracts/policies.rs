//! HTTP policies, event streams and the fallback, under clients that misbehave.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use antiphon::transport::http::{
    EventSender, EventStream, EventStreamOptions, Guard, HeadDecision, HttpBody, HttpMessage,
    HttpOutcome, HttpPolicy, HttpRefusal, MessageDecision, ServerSentEvent,
};
use antiphon::{CallError, Client, Connection, Context, ErrorObject, Limits, Router, Server};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::support::{FOREVER, as_ws, bound, dial, request, within};

type WebClient = hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>;

fn web(http2: bool) -> WebClient {
    let mut builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    builder.http2_only(http2).build(connector)
}

const VERSIONS: [bool; 2] = [false, true];

async fn send(client: &WebClient, method: Method, uri: &str, body: &str) -> Response<Incoming> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", "application/json")
        .body(Full::from(body.to_owned()))
        .unwrap();
    within(client.request(request)).await.unwrap()
}

async fn post(client: &WebClient, uri: &str, body: &str) -> Response<Incoming> {
    send(client, Method::POST, uri, body).await
}

async fn text(response: Response<Incoming>) -> String {
    let body = within(response.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// The messages in a stream of events.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Reads a stream until it holds this many events.
async fn read_events(body: &mut Incoming, count: usize) -> Vec<Value> {
    let mut read = String::new();
    while events(&read).len() < count {
        let frame = within(body.frame()).await.expect("the stream goes on").unwrap();
        read += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
    }
    events(&read)
}

/// Every message may be answered by a stream.
struct Streams(EventStreamOptions);

impl HttpPolicy for Streams {
    fn on_message(&self, _: &mut Connection, _: &HttpMessage) -> MessageDecision {
        MessageDecision::Stream(self.0.clone())
    }
}

/// Plain JSON-RPC.
struct Plain;

impl HttpPolicy for Plain {}

/// Tells when it is dropped.
struct Told(mpsc::UnboundedSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Methods that notify, and what the test sees of them.
struct Notifying {
    router: Router,
    /// `hold` has notified and waits. With the stream of its call.
    entered: mpsc::UnboundedReceiver<Option<EventSender>>,
    release: Arc<Notify>,
    /// The result of the notification of `hold` after it was released.
    notified: mpsc::UnboundedReceiver<Result<(), CallError>>,
    /// A handler has ended, or was dropped.
    ended: mpsc::UnboundedReceiver<()>,
}

/// The sender of the stream of a call over HTTP.
fn stream_of(cx: &Context) -> Option<EventSender> {
    cx.extensions().get::<EventSender>().cloned()
}

fn notifying() -> Notifying {
    let (enter, entered) = mpsc::unbounded_channel();
    let (tell, ended) = mpsc::unbounded_channel();
    let (note, notified) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let (go, told) = (release.clone(), tell.clone());
    let router = Router::new()
        .method("ping", |(): (), _cx: Context| async { Ok("pong") })
        .method("hold", move |(): (), cx: Context| {
            let (enter, go, note, told) =
                (enter.clone(), go.clone(), note.clone(), Told(tell.clone()));
            async move {
                let _told = told;
                cx.notify("note", [0]).await?;
                let _ = enter.send(stream_of(&cx));
                go.notified().await;
                let _ = note.send(cx.notify("note", [1]).await);
                Ok::<_, ErrorObject>("held")
            }
        })
        .method("flood", move |(n,): (u64,), cx: Context| {
            let told = Told(told.clone());
            async move {
                let _told = told;
                for item in 0..n {
                    // Where the handler outlives its client, a notification does not fail.
                    if stream_of(&cx).is_some_and(|stream| stream.is_closed()) {
                        break;
                    }
                    cx.notify("item", [item]).await?;
                }
                Ok::<_, ErrorObject>("done")
            }
        })
        .method("silent", |(): (), cx: Context| async move {
            let error = cx.notify("note", [1]).await.unwrap_err();
            Ok(matches!(error, CallError::CannotCallBack("http")))
        });
    Notifying { router, entered, release, notified, ended }
}

async fn serving(policy: impl HttpPolicy, limits: Limits, router: Router) -> String {
    let server = bound("http://127.0.0.1:0").await.limits(limits).http_policy(policy);
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(router));
    address
}

#[tokio::test]
async fn ten_thousand_notifications_arrive_in_order_before_the_reply() {
    const COUNT: u64 = 10_000;
    for http2 in VERSIONS {
        for capacity in [1, 16, 100_000] {
            let options = EventStreamOptions::new().capacity(capacity);
            let router = notifying().router;
            let address = serving(Streams(options), Limits::default(), router).await;
            let call = request(7, "flood", &format!("[{COUNT}]"));
            let response = post(&web(http2), &address, &call).await;
            assert_eq!(response.headers()["content-type"], "text/event-stream");
            let mut events = events(&text(response).await);
            assert_eq!(events.pop(), Some(json!({"jsonrpc":"2.0","result":"done","id":7})));
            assert!(events.iter().map(|event| &event["params"][0]).eq(0..COUNT));
        }
    }
}

/// Two entries of a batch share the stream; the reply is one Array.
#[tokio::test]
async fn a_batch_has_one_stream_and_one_reply() {
    for http2 in VERSIONS {
        let router = notifying().router;
        let address = serving(Streams(EventStreamOptions::new()), Limits::default(), router).await;
        let batch = format!("[{},{}]", request(1, "flood", "[100]"), request(2, "flood", "[50]"));
        let mut events = events(&text(post(&web(http2), &address, &batch).await).await);
        let reply = events.pop().unwrap();
        assert_eq!(reply.as_array().unwrap().len(), 2, "{reply}");
        assert_eq!(events.len(), 150);
    }
}

#[tokio::test]
async fn without_a_notification_the_response_is_plain_unless_it_is_a_stream_at_once() {
    for http2 in VERSIONS {
        for immediate in [false, true] {
            let options = EventStreamOptions::new();
            let options = if immediate { options.immediately() } else { options };
            let router = notifying().router;
            let address = serving(Streams(options), Limits::default(), router).await;
            let response = post(&web(http2), &address, &request(1, "ping", "[]")).await;
            let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
            let text = text(response).await;
            let reply = json!({"jsonrpc":"2.0","result":"pong","id":1});
            match immediate {
                true => assert_eq!((&*kind, events(&text)), ("text/event-stream", vec![reply])),
                false => assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), reply),
            }
        }
    }
}

/// Without a policy (the fast path and hyper), and with one that dispatches only.
#[tokio::test]
async fn to_notify_without_a_stream_fails() {
    let router = notifying().router;
    let plain = serving(Plain, Limits::default(), router.clone()).await;
    let server = bound("http://127.0.0.1:0").await;
    let without = server.endpoint().to_string();
    tokio::spawn(server.serve(router));
    for address in [plain, without] {
        for client in [Client::builder(), Client::builder().http2()] {
            let client = client.connect(&address).await.unwrap();
            assert!(within(client.call::<bool>("silent", ()).into_future()).await.unwrap());
        }
    }
}

/// Panics in this method, once.
struct Panics(&'static str, AtomicBool);

impl Panics {
    fn at(&self, method: &str) {
        if self.0 == method {
            assert!(self.1.swap(true, Ordering::Relaxed), "on purpose");
        }
    }
}

impl HttpPolicy for Panics {
    fn on_head(&self, _: &mut Connection) -> HeadDecision {
        self.at("on_head");
        HeadDecision::Continue
    }

    fn on_message(&self, _: &mut Connection, _: &HttpMessage) -> MessageDecision {
        self.at("on_message");
        MessageDecision::Dispatch
    }

    fn respond(&self, _: &Connection, _: &HttpMessage, outcome: HttpOutcome) -> Response<HttpBody> {
        self.at("respond");
        outcome.into_response()
    }

    fn refuse(&self, _: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        self.at("refuse");
        refusal.into_response()
    }
}

#[tokio::test]
async fn a_policy_that_panics_fails_one_request() {
    for http2 in VERSIONS {
        for method in ["on_head", "on_message", "respond", "refuse"] {
            let policy = Panics(method, AtomicBool::new(false));
            let address = serving(policy, Limits::default(), notifying().router).await;
            let client = web(http2);
            let (verb, status) = match method {
                "refuse" => (Method::PUT, StatusCode::METHOD_NOT_ALLOWED),
                _ => (Method::POST, StatusCode::OK),
            };
            let call = request(1, "ping", "[]");
            for expected in [StatusCode::INTERNAL_SERVER_ERROR, status] {
                let response = send(&client, verb.clone(), &address, &call).await;
                assert_eq!(response.status(), expected, "{method}, HTTP/2: {http2}");
                text(response).await;
            }
        }
    }
}

/// A panic while a message becomes an event is one of the handler, or ends the stream.
#[tokio::test]
async fn an_event_that_panics_ends_only_its_stream() {
    for (panics_at, events_seen) in [(1, 1), (2, 1)] {
        let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = made.clone();
        let options = EventStreamOptions::new().event(move |message| {
            assert_ne!(count.fetch_add(1, Ordering::Relaxed) + 1, panics_at, "on purpose");
            ServerSentEvent::data(message)
        });
        let address = serving(Streams(options), Limits::default(), notifying().router).await;
        let client = web(false);
        let response = post(&client, &address, &request(1, "flood", "[1]")).await;
        let body = text(response).await;
        match panics_at {
            // The handler panicked before the stream had begun: a plain response.
            1 => assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["error"]["code"], -32603),
            _ => assert_eq!(events(&body).len(), events_seen, "{body}"),
        }
        let again = text(post(&client, &address, &request(2, "flood", "[1]")).await).await;
        assert_eq!(events(&again).len(), 2, "{again}");
    }
}

/// Answers before the body is read.
struct Forbids;

impl HttpPolicy for Forbids {
    fn on_head(&self, _: &mut Connection) -> HeadDecision {
        let body = HttpBody::new(Full::from("not today"));
        HeadDecision::Respond(Response::builder().status(403).body(body).unwrap())
    }
}

#[tokio::test]
async fn a_policy_answers_before_the_body_and_the_connection_stays_usable() {
    for http2 in VERSIONS {
        let address = serving(Forbids, Limits::default(), notifying().router).await;
        let client = web(http2);
        for body in [request(1, "ping", "[]"), " ".repeat(60_000)] {
            let response = post(&client, &address, &body).await;
            assert_eq!(response.status(), StatusCode::FORBIDDEN);
            assert_eq!(text(response).await, "not today");
        }
    }
}

/// The client waits for the response before it sends the body.
#[tokio::test]
async fn a_policy_answers_a_client_that_does_not_send_its_body() {
    let address = serving(Forbids, Limits::default(), notifying().router).await;
    for more in ["", "expect: 100-continue\r\n"] {
        let mut stream = dial(&address).await;
        let head = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\
             content-length: 1000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = String::new();
        within(stream.read_line(&mut status)).await.unwrap();
        assert!(status.starts_with("HTTP/1.1 403"), "{status}");
    }
}

/// Bounded: the handler waits, and the stall timeout ends it.
#[tokio::test]
async fn a_client_that_never_reads_its_stream_ends_it() {
    let limits = Limits { stall_timeout: Duration::from_millis(50), ..Limits::default() };
    for cancel in [true, false] {
        let options = EventStreamOptions::new().capacity(4).cancel_on_disconnect(cancel);
        let mut notifying = notifying();
        let address = serving(Streams(options), limits.clone(), notifying.router).await;
        // HTTP/1.1: a socket that is not read.
        let mut stream = dial(&address).await;
        let call = request(1, "flood", "[100000000]");
        let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{call}", call.len());
        stream.write_all(text.as_bytes()).await.unwrap();
        within(notifying.ended.recv()).await.unwrap();
        // HTTP/2: a stream that is not read, on a connection that serves others.
        let client = web(true);
        let unread = post(&client, &address, &call).await;
        within(notifying.ended.recv()).await.unwrap();
        let other = post(&client, &address, &request(2, "ping", "[]")).await;
        assert_eq!(other.status(), StatusCode::OK);
        drop(unread);
    }
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_handler() {
    for http2 in VERSIONS {
        let mut notifying = notifying();
        let options = EventStreamOptions::new();
        let address = serving(Streams(options), Limits::default(), notifying.router).await;
        let client = web(http2);
        let mut response = post(&client, &address, &request(1, "hold", "[]")).await;
        within(notifying.entered.recv()).await.unwrap();
        read_events(response.body_mut(), 1).await;
        drop((response, client));
        // Never released: the handler was dropped.
        within(notifying.ended.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn a_handler_outlives_its_client_where_the_policy_lets_it() {
    for http2 in VERSIONS {
        let (tell, mut passed) = mpsc::unbounded_channel();
        let options = EventStreamOptions::new().cancel_on_disconnect(false).event(move |message| {
            tell.send(message.clone()).unwrap();
            ServerSentEvent::data(message)
        });
        let mut notifying = notifying();
        let address = serving(Streams(options), Limits::default(), notifying.router).await;
        let client = web(http2);
        let mut response = post(&client, &address, &request(1, "hold", "[]")).await;
        let sender = within(notifying.entered.recv()).await.unwrap().unwrap();
        read_events(response.body_mut(), 1).await;
        drop((response, client));
        // The server has seen the disconnect.
        within(sender.closed()).await;
        notifying.release.notify_one();
        within(notifying.notified.recv()).await.unwrap().expect("the policy has the event");
        within(notifying.ended.recv()).await.unwrap();
        // Two notifications and the reply have passed `event`.
        let mut last = Bytes::new();
        for _ in 0..3 {
            last = within(passed.recv()).await.unwrap();
        }
        let last: Value = serde_json::from_slice(&last).unwrap();
        assert_eq!(last, json!({"jsonrpc":"2.0","result":"held","id":1}));
    }
}

async fn stopping(
    options: EventStreamOptions,
    limits: Limits,
    router: Router,
) -> (String, oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>) {
    let server: Server = bound("http://127.0.0.1:0").await.limits(limits);
    let server = server.http_policy(Streams(options));
    let address = server.endpoint().to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(router, async { drop(stopped.await) }));
    (address, stop, serving)
}

#[tokio::test]
async fn a_shutdown_waits_for_an_open_stream() {
    for http2 in VERSIONS {
        let mut notifying = notifying();
        let options = EventStreamOptions::new();
        let (address, stop, serving) = stopping(options, Limits::default(), notifying.router).await;
        let mut response = post(&web(http2), &address, &request(1, "hold", "[]")).await;
        within(notifying.entered.recv()).await.unwrap();
        read_events(response.body_mut(), 1).await;
        drop(stop);
        notifying.release.notify_one();
        let rest = events(&text(response).await);
        assert_eq!(rest.last().unwrap()["result"], "held", "{rest:?}");
        within(serving).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_shutdown_without_time_ends_an_open_stream_with_an_error() {
    for http2 in VERSIONS {
        let mut notifying = notifying();
        let limits = Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() };
        let options = EventStreamOptions::new();
        let (address, stop, serving) = stopping(options, limits, notifying.router).await;
        let mut response = post(&web(http2), &address, &request(1, "hold", "[]")).await;
        within(notifying.entered.recv()).await.unwrap();
        read_events(response.body_mut(), 1).await;
        drop(stop);
        let rest = events(&text(response).await);
        assert_eq!(rest.last().unwrap()["error"]["code"], -32009, "{rest:?}");
        within(notifying.ended.recv()).await.unwrap();
        within(serving).await.unwrap().unwrap();
    }
}

/// A deadline that is ready at the first poll does not lose its reply, on a stream or without one.
#[tokio::test]
async fn a_deadline_that_has_passed_is_answered_by_every_decision() {
    let limits = Limits { request_timeout: Some(Duration::ZERO), ..Limits::default() };
    let router = || {
        let wait = |(): (), _cx: Context| std::future::pending::<Result<(), ErrorObject>>();
        notifying().router.method("wait", wait)
    };
    let options = EventStreamOptions::new();
    // Where `hold` cannot notify, it fails before it waits.
    let addresses = [
        (serving(Plain, limits.clone(), router()).await, "-32603"),
        (serving(Streams(options.clone()), limits.clone(), router()).await, "-32012"),
        (serving(Streams(options.immediately()), limits, router()).await, "-32012"),
    ];
    for (address, expected) in addresses {
        for http2 in VERSIONS {
            let client = web(http2);
            let late = text(post(&client, &address, &request(1, "wait", "[]")).await).await;
            assert_eq!(late.matches("-32012").count(), 1, "{late}");
            // The first notification makes the stream, and then the handler waits.
            let batch = format!("[{},{}]", request(1, "wait", "[]"), request(2, "ping", "[]"));
            let batch = text(post(&client, &address, &batch).await).await;
            assert_eq!(batch.matches("-32012").count(), 1, "{batch}");
            assert_eq!(batch.matches("pong").count(), 1, "{batch}");
            let held = text(post(&client, &address, &request(1, "hold", "[]")).await).await;
            assert!(held.contains(expected), "{held}");
        }
    }
}

/// A fallback that replies with the request that it received.
async fn fallback(request: Request<HttpBody>) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    if head.uri.path() == "/fails" {
        return Err(std::io::Error::other("on purpose"));
    }
    let text = format!("{} {} {}", head.method, head.uri.path(), body.len());
    Ok(Response::new(Full::from(text)))
}

#[tokio::test]
async fn the_fallback_takes_what_is_not_for_the_service() {
    for (http2, has_policy) in [(false, false), (false, true), (true, false), (true, true)] {
        let server = bound("http://127.0.0.1:0/rpc").await.fallback(tower::service_fn(fallback));
        let server = if has_policy { server.http_policy(Plain) } else { server };
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(notifying().router));
        let root = address.strip_suffix("/rpc").unwrap();
        let client = web(http2);
        let call = request(1, "ping", "[]");
        for (method, path, expected) in [
            (Method::POST, "/rpc", "pong"),
            (Method::GET, "/rpc", "GET /rpc 0"),
            (Method::POST, "/other", &*format!("POST /other {}", call.len())),
            (Method::GET, "/", "GET / 0"),
            (Method::POST, "/rpc", "pong"),
        ] {
            let body = if method == Method::POST { &*call } else { "" };
            let response = send(&client, method.clone(), &format!("{root}{path}"), body).await;
            assert_eq!(response.status(), StatusCode::OK);
            let body = text(response).await;
            assert!(body.contains(expected), "{method} {path}: {body}");
        }
        let response = send(&client, Method::GET, &format!("{root}/fails"), "").await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!text(response).await.contains("on purpose"));
        let put = send(&client, Method::PUT, &address, &call).await;
        assert_eq!(put.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}

/// The policy decides on the head of a WebSocket only; its peer is notified without a stream.
#[tokio::test]
async fn a_policy_refuses_a_websocket_or_lets_it_pass() {
    let address = serving(Forbids, Limits::default(), notifying().router).await;
    let error = Client::connect(as_ws(&address)).await.unwrap_err();
    assert_eq!(error.http_status(), Some(StatusCode::FORBIDDEN), "{error:?}");

    let mut notifying = notifying();
    let options = EventStreamOptions::new();
    let address = serving(Streams(options), Limits::default(), notifying.router).await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let ears = Router::new().notification("note", move |(n,): (u64,), _cx: Context| {
        tell.send(n).unwrap();
        async {}
    });
    let client = Client::builder().handler(ears);
    let client = client.connect(as_ws(&address)).await.unwrap();
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(notifying.entered.recv()).await.unwrap();
    assert_eq!(within(told.recv()).await, Some(0));
    notifying.release.notify_one();
    assert_eq!(within(call).await.unwrap().unwrap(), "held");
    assert_eq!(within(told.recv()).await, Some(1));
}

/// A panic payload that panics when it is dropped.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[tokio::test]
async fn an_event_whose_panic_cannot_be_dropped_ends_only_its_stream() {
    for http2 in VERSIONS {
        let options = EventStreamOptions::new().immediately();
        let options = options.event(|_| std::panic::panic_any(PanicsOnDrop));
        let address = serving(Streams(options), Limits::default(), notifying().router).await;
        let response = post(&web(http2), &address, &request(1, "ping", "[]")).await;
        assert_eq!(text(response).await, ": open\n\n");
    }
}

#[tokio::test]
async fn a_handler_that_panics_on_a_stream_is_answered_there() {
    let router = Router::new().method("panic", |(): (), cx: Context| async move {
        cx.notify("note", [1]).await?;
        tokio::task::yield_now().await;
        assert!(cx.id().is_none(), "on purpose");
        Ok::<_, ErrorObject>(())
    });
    for http2 in VERSIONS {
        let options = EventStreamOptions::new();
        let address = serving(Streams(options), Limits::default(), router.clone()).await;
        let events =
            events(&text(post(&web(http2), &address, &request(1, "panic", "[]")).await).await);
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(events[1]["error"]["code"], -32603);
    }
}

#[tokio::test]
async fn on_connect_that_panics_is_refused_by_the_policy() {
    for http2 in VERSIONS {
        let panicked = AtomicBool::new(false);
        let server = bound("http://127.0.0.1:0").await.http_policy(Plain).on_connect(move |_| {
            assert!(panicked.swap(true, Ordering::Relaxed), "on purpose");
        });
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(notifying().router));
        let client = web(http2);
        for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK] {
            let response = post(&client, &address, &request(1, "ping", "[]")).await;
            assert_eq!(response.status(), status);
            text(response).await;
        }
    }
}

/// The longest period is no period: it must not overflow the clock.
#[tokio::test]
async fn a_stream_without_keep_alive_is_whole() {
    for http2 in VERSIONS {
        let options = EventStreamOptions::new().capacity(1).keep_alive(Duration::MAX);
        let mut notifying = notifying();
        let address = serving(Streams(options), Limits::default(), notifying.router).await;
        let mut response = post(&web(http2), &address, &request(1, "hold", "[]")).await;
        within(notifying.entered.recv()).await.unwrap();
        read_events(response.body_mut(), 1).await;
        notifying.release.notify_one();
        let events = events(&text(response).await);
        assert_eq!(events.last().unwrap()["result"], "held", "{events:?}");
    }
}

/// The reply may come before the stream begins, at the same time, or after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_notification_is_lost_however_the_stream_begins() {
    let router = Router::new().method("race", |(n,): (u64,), cx: Context| async move {
        let notifying = cx.clone();
        let task = tokio::spawn(async move {
            for item in 0..n {
                notifying.notify("item", [item]).await?;
            }
            Ok::<_, CallError>(())
        });
        task.await.map_err(|_| ErrorObject::internal_error())??;
        Ok::<_, ErrorObject>("done")
    });
    for http2 in VERSIONS {
        let options = EventStreamOptions::new().capacity(2);
        let address = serving(Streams(options), Limits::default(), router.clone()).await;
        let client = web(http2);
        for round in 0..300 {
            let count = round % 4;
            let call = request(round, "race", &format!("[{count}]"));
            let text = text(post(&client, &address, &call).await).await;
            if count == 0 {
                assert!(text.starts_with('{') && text.contains("done"), "{text}");
                continue;
            }
            let events = events(&text);
            assert_eq!(events.len() as u64, count + 1, "{text}");
            assert_eq!(events.last().unwrap()["result"], "done");
        }
    }
}

/// A policy that numbers the events can resume a stream only if the numbers are in its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn events_are_made_in_the_order_of_the_stream() {
    const COUNT: u64 = 20_000;
    let router = Router::new().method("many", |(): (), cx: Context| async move {
        let tasks = [0; 4].map(|_| {
            let notifying = cx.clone();
            tokio::spawn(async move {
                for item in 0..COUNT / 4 {
                    notifying.notify("item", [item]).await?;
                }
                Ok::<_, CallError>(())
            })
        });
        for task in tasks {
            task.await.map_err(|_| ErrorObject::internal_error())??;
        }
        Ok::<_, ErrorObject>("done")
    });
    let made = AtomicU64::new(0);
    let options = EventStreamOptions::new().event(move |message| {
        let id = made.fetch_add(1, Ordering::Relaxed);
        // Another thread may now overtake, unless it has to wait.
        std::thread::yield_now();
        ServerSentEvent::data(message).id(id.to_string())
    });
    let address = serving(Streams(options), Limits::default(), router).await;
    let text = text(post(&web(false), &address, &request(1, "many", "[]")).await).await;
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    assert!(ids.map(|id| id.parse::<u64>().unwrap()).eq(0..=COUNT));
}

/// No event has been sent, so there is no stream yet.
#[tokio::test]
async fn a_client_that_disconnects_before_the_stream_cancels_where_the_policy_says_so() {
    for cancel in [true, false] {
        for http2 in VERSIONS {
            let (enter, mut entered) = mpsc::unbounded_channel();
            let (tell, mut ended) = mpsc::unbounded_channel();
            let (pass, mut passed) = mpsc::unbounded_channel();
            let release = Arc::new(Notify::new());
            let go = release.clone();
            let router = Router::new().method("slow", move |(): (), cx: Context| {
                let (enter, go, pass) = (enter.clone(), go.clone(), pass.clone());
                let told = Told(tell.clone());
                async move {
                    let _told = told;
                    enter.send(stream_of(&cx)).unwrap();
                    go.notified().await;
                    pass.send(()).unwrap();
                    Ok("slow")
                }
            });
            let options = EventStreamOptions::new().cancel_on_disconnect(cancel);
            let address = serving(Streams(options), Limits::default(), router).await;
            let client = web(http2);
            let uri = address.clone();
            let call = tokio::spawn(async move {
                let call = request(1, "slow", "[]");
                post(&client, &uri, &call).await
            });
            let sender = within(entered.recv()).await.unwrap().unwrap();
            call.abort();
            let _ = call.await;
            // The server has seen the disconnect.
            within(sender.closed()).await;
            if !cancel {
                release.notify_one();
                within(passed.recv()).await.expect("the handler runs on");
            }
            within(ended.recv()).await.unwrap();
        }
    }
}

/// Turns the refusal of a connection into a status of its own.
struct Overloaded;

impl HttpPolicy for Overloaded {
    fn refuse(&self, _: &Connection, refusal: HttpRefusal) -> Response<HttpBody> {
        let is_overload = refusal == HttpRefusal::TooManyConnections;
        let mut response = refusal.into_response();
        if is_overload {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        }
        response
    }
}

#[tokio::test]
async fn the_policy_refuses_a_connection_over_the_limit() {
    for http2 in VERSIONS {
        let limits = Limits { connections: 1, ..Limits::default() };
        let address = serving(Overloaded, limits, notifying().router).await;
        let (first, second) = (web(http2), web(http2));
        let call = request(1, "ping", "[]");
        let response = post(&first, &address, &call).await;
        assert_eq!(response.status(), StatusCode::OK);
        text(response).await;
        let refused = post(&second, &address, &call).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "HTTP/2: {http2}");
    }
}

/// Opens a stream for each GET, and passes its sender to the test.
struct Opens(mpsc::UnboundedSender<EventSender>);

impl HttpPolicy for Opens {
    fn on_head(&self, request: &mut Connection) -> HeadDecision {
        if request.http_method() != Some(&Method::GET) {
            return HeadDecision::Continue;
        }
        let (sender, stream) = EventStream::channel(4);
        self.0.send(sender).unwrap();
        HeadDecision::Respond(stream.into_response())
    }
}

#[tokio::test]
async fn a_stream_that_a_policy_opens_ends_with_the_server_or_its_client() {
    for http2 in VERSIONS {
        let (open, mut opened) = mpsc::unbounded_channel();
        let server = bound("http://127.0.0.1:0").await.http_policy(Opens(open));
        let address = server.endpoint().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = server.serve_until(notifying().router, async { drop(stopped.await) });
        let serving = tokio::spawn(serving);
        let (leaves, stays) = (web(http2), web(http2));
        let mut gone = send(&leaves, Method::GET, &address, "").await;
        let left = within(opened.recv()).await.unwrap();
        let mut kept = send(&stays, Method::GET, &address, "").await;
        let sender = within(opened.recv()).await.unwrap();
        for (sender, response) in [(&left, &mut gone), (&sender, &mut kept)] {
            within(sender.send(&ServerSentEvent::data("1"))).await.unwrap();
            assert_eq!(read_events(response.body_mut(), 1).await, [1]);
        }
        drop((gone, leaves));
        within(left.closed()).await;
        assert!(left.is_closed() && !sender.is_closed());
        drop(stop);
        text(kept).await;
        within(sender.closed()).await;
        within(serving).await.unwrap().unwrap();
    }
}

/// Responds with an open stream in one of its functions.
struct OpensIn(&'static str, mpsc::UnboundedSender<EventSender>);

impl OpensIn {
    fn open(&self) -> Response<HttpBody> {
        let (sender, stream) = EventStream::channel(4);
        self.1.send(sender).unwrap();
        let mut response = stream.into_response();
        let content_type = "Text/Event-Stream; charset=utf-8".parse().unwrap();
        response.headers_mut().insert("content-type", content_type);
        response
    }
}

impl HttpPolicy for OpensIn {
    fn on_message(&self, _: &mut Connection, _: &HttpMessage) -> MessageDecision {
        match self.0 {
            "on_message" => MessageDecision::Respond(self.open()),
            "respond to a stream" => MessageDecision::Stream(EventStreamOptions::new()),
            _ => MessageDecision::Dispatch,
        }
    }

    fn respond(&self, _: &Connection, _: &HttpMessage, _: HttpOutcome) -> Response<HttpBody> {
        self.open()
    }

    fn refuse(&self, _: &Connection, _: HttpRefusal) -> Response<HttpBody> {
        self.open()
    }
}

#[tokio::test]
async fn a_stream_that_a_policy_responds_with_ends_with_the_server() {
    for function in ["on_message", "respond", "respond to a stream", "refuse"] {
        let (open, mut opened) = mpsc::unbounded_channel();
        let limits = Limits { shutdown_timeout: FOREVER, ..Limits::default() };
        let server = bound("http://127.0.0.1:0").await.limits(limits);
        let server = server.http_policy(OpensIn(function, open));
        let address = server.endpoint().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = server.serve_until(notifying().router, async { drop(stopped.await) });
        let serving = tokio::spawn(serving);
        let method = if function == "refuse" { Method::PUT } else { Method::POST };
        let body = request(1, "ping", "[]");
        let mut response = send(&web(false), method, &address, &body).await;
        let sender = within(opened.recv()).await.unwrap();
        within(sender.send(&ServerSentEvent::data("1"))).await.unwrap();
        assert_eq!(read_events(response.body_mut(), 1).await, [1], "{function}");
        drop(stop);
        text(response).await;
        within(serving).await.unwrap().unwrap();
    }
}

/// The route of a request decides which pages may read its response, with a policy and without.
#[tokio::test]
async fn a_policy_does_not_change_which_responses_have_cors() {
    for has_policy in [false, true] {
        let guard = Guard::new().allow_origin("https://app.example");
        let server = bound("http://127.0.0.1:0/rpc").await.guard(guard);
        let server = server.page("/metrics", "text/plain", || "x".to_owned());
        let server = server.fallback(tower::service_fn(fallback));
        let server = if has_policy { server.http_policy(Plain) } else { server };
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(notifying().router));
        let root = address.strip_suffix("/rpc").unwrap();
        let client = web(false);
        for (method, path, status, has_cors) in [
            (Method::POST, "/rpc", 200, true),
            (Method::PUT, "/rpc", 405, true),
            (Method::OPTIONS, "/rpc", 204, true),
            (Method::GET, "/metrics", 200, false),
            (Method::GET, "/other", 200, false),
        ] {
            let request = Request::builder()
                .method(&method)
                .uri(format!("{root}{path}"))
                .header("content-type", "application/json")
                .header("origin", "https://app.example")
                .body(Full::from(request(1, "ping", "[]")))
                .unwrap();
            let response = within(client.request(request)).await.unwrap();
            assert_eq!(response.status(), status, "{method} {path}, policy: {has_policy}");
            let origins = response.headers().get_all("access-control-allow-origin");
            assert_eq!(
                origins.iter().count(),
                usize::from(has_cors),
                "{method} {path}, policy: {has_policy}"
            );
        }
    }
}

#[tokio::test]
async fn a_policy_that_panics_refuses_a_websocket() {
    let policy = Panics("on_head", AtomicBool::new(false));
    let address = serving(policy, Limits::default(), notifying().router).await;
    let address = as_ws(&address);
    let error = Client::connect(&address).await.unwrap_err();
    assert_eq!(error.http_status(), Some(StatusCode::INTERNAL_SERVER_ERROR), "{error:?}");
    let client = Client::connect(&address).await.unwrap();
    assert_eq!(within(client.call::<String>("ping", ()).into_future()).await.unwrap(), "pong");
}
