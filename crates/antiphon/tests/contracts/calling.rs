//! Layers around the calls of a client, and around the HTTP requests of both sides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon::layer::{BoxError, Concurrency, Filter, Metrics, OutgoingCall, Timeout};
use antiphon::{
    CallError, Client, Context, Direction, ErrorChain, Handler as _, Limits, RawJson, Router,
    TappedMessage,
};
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimitLayer;
use tower::{Layer, Service, ServiceBuilder};

use crate::support::{Holding, client, connect, holding, serve, wires, wires_and_http, within};

/// Records the calls that pass.
#[derive(Clone)]
struct Seen(Arc<Mutex<Vec<String>>>);

#[derive(Clone)]
struct Seeing<S>(Seen, S);

impl<S> Layer<S> for Seen {
    type Service = Seeing<S>;

    fn layer(&self, inner: S) -> Seeing<S> {
        Seeing(self.clone(), inner)
    }
}

impl<S: Service<OutgoingCall>> Service<OutgoingCall> for Seeing<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), S::Error>> {
        self.1.poll_ready(poller)
    }

    fn call(&mut self, request: OutgoingCall) -> S::Future {
        let kind = if request.is_notification() { "note" } else { "call" };
        self.0.0.lock().unwrap().push(format!("{kind} {}", request.call.method));
        self.1.call(request)
    }
}

fn small() -> Router {
    Router::new()
        .method("add", |(a, b): (i64, i64), _: Context| async move { Ok(a + b) })
        .notification("note", |(): (), _: Context| async {})
}

/// The messages that were sent.
type Sent = Arc<Mutex<Vec<String>>>;

async fn watched(address: &str) -> (Client, Sent) {
    let sent = Sent::default();
    let saw = sent.clone();
    let client = client().tap(move |message: &TappedMessage<'_>| {
        if message.direction == Direction::Sent {
            saw.lock().unwrap().push(String::from_utf8(message.bytes.to_vec()).unwrap());
        }
    });
    (client.connect(address).await.unwrap(), sent)
}

#[tokio::test]
async fn each_entry_of_a_batch_passes_once_and_all_travel_as_one() {
    for wire in wires_and_http() {
        let address = serve(wire, Limits::default(), small()).await;
        let (client, sent) = watched(&address).await;
        let log = Arc::<Mutex<Vec<String>>>::default();
        let client = client.layer(Filter::new().deny(["denied*"])).layer(Seen(log.clone()));
        let mut batch = client.batch();
        let first = batch.call::<i64>("add", (1, 1));
        let denied = batch.call::<i64>("denied", ());
        batch.notify("note", ());
        batch.notify("denied_note", ());
        let second = batch.call::<i64>("add", (2, 2));
        let absent = batch.call::<i64>("absent", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(second).unwrap(), 4, "{wire}");
        assert_eq!(replies.take(first).unwrap(), 2, "{wire}");
        assert!(matches!(replies.take(denied), Err(CallError::Rejected(_))), "{wire}");
        assert!(matches!(replies.take(absent), Err(CallError::Rpc(_))), "{wire}");
        let sent: Vec<_> = sent.lock().unwrap().drain(..).collect();
        assert_eq!(sent.len(), 1, "{wire}: {sent:?}");
        let methods: Vec<serde_json::Value> = serde_json::from_str(&sent[0]).unwrap();
        let methods: Vec<_> =
            methods.iter().map(|entry| entry["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["add", "note", "add", "absent"], "{wire}");

        let sum = within(client.call::<i64>("add", (1, 2)).into_future()).await.unwrap();
        within(client.notify("note", ())).await.unwrap();
        assert_eq!(sum, 3, "{wire}");
        let expected = [
            "call add",
            "call denied",
            "note note",
            "note denied_note",
            "call add",
            "call absent",
            "call add",
            "note note",
        ];
        assert_eq!(*log.lock().unwrap(), expected, "{wire}");
    }
}

#[tokio::test]
async fn a_batch_of_which_nothing_passes_is_not_sent() {
    let address = serve("memory:*", Limits::default(), small()).await;
    let (client, sent) = watched(&address).await;
    let client = client.layer(Filter::new().deny(["*"]));
    let mut batch = client.batch();
    let slot = batch.call::<i64>("add", (1, 1));
    assert!(within(batch.send()).await.unwrap().take(slot).is_err());
    assert!(sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_batch_that_fails_as_a_whole_fails_as_a_whole() {
    let (client, other) = antiphon::transport::memory::pair();
    let client = Client::builder().layer(Filter::new()).over(client);
    drop(other);
    within(client.peer().unwrap().closed()).await;
    let mut batch = client.batch();
    let _ = batch.call::<i64>("add", (1, 1));
    let _ = batch.call::<i64>("add", (1, 1));
    assert!(matches!(within(batch.send()).await, Err(CallError::Closed(_))));
}

/// An entry holds its permit until its reply arrives, and other entries wait for that permit. So the
/// batch must not wait for them.
#[tokio::test]
async fn a_batch_larger_than_the_room_goes_in_parts() {
    for wire in wires_and_http() {
        for ours in [false, true] {
            let address = serve(wire, Limits::default(), small()).await;
            let (client, sent) = watched(&address).await;
            let client = match ours {
                true => client.layer(Concurrency::new(2)).layer(Filter::new()),
                false => client.layer(ConcurrencyLimitLayer::new(2)).layer(Filter::new()),
            };
            let mut batch = client.batch();
            let slots: Vec<_> = (0..5).map(|n| batch.call::<i64>("add", (n, n))).collect();
            let mut replies = within(batch.send()).await.unwrap();
            for (n, slot) in (0..).zip(slots) {
                assert_eq!(replies.take(slot).unwrap(), n + n, "{wire} {ours}");
            }
            assert!(sent.lock().unwrap().len() >= 3, "{wire} {ours}");
        }
    }
}

/// A layer may wait in a task of its own: entry two waits in the queue of tower's buffer for the permit
/// of entry one.
#[tokio::test]
async fn a_batch_does_not_wait_for_what_waits_unseen() {
    let address = serve("memory:*", Limits::default(), small()).await;
    let (client, sent) = watched(&address).await;
    let client = client.layer(ServiceBuilder::new().buffer(16).concurrency_limit(1));
    let mut batch = client.batch();
    let slots: Vec<_> = (0..4).map(|n| batch.call::<i64>("add", (n, n))).collect();
    let mut replies = within(batch.send()).await.unwrap();
    for (n, slot) in (0..).zip(slots) {
        assert_eq!(replies.take(slot).unwrap(), n + n);
    }
    assert_eq!(sent.lock().unwrap().len(), 4);
}

/// Calls from a task of its own, after a yield.
#[derive(Clone)]
struct Elsewhere<S>(S);

impl<S> Service<OutgoingCall> for Elsewhere<S>
where
    S: Service<OutgoingCall, Response = RawJson, Error = CallError, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    type Response = RawJson;
    type Error = BoxError;
    type Future = antiphon::BoxFuture<'static, Result<RawJson, BoxError>>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(poller).map_err(Into::into)
    }

    fn call(&mut self, request: OutgoingCall) -> Self::Future {
        let mut inner = self.0.clone();
        Box::pin(async move {
            let task = tokio::spawn(async move {
                tokio::task::yield_now().await;
                inner.call(request).await
            });
            Ok(task.await??)
        })
    }
}

#[tokio::test]
async fn a_batch_goes_when_the_last_has_come_from_a_task_of_a_layer() {
    for wire in wires_and_http() {
        let address = serve(wire, Limits::default(), small()).await;
        let (client, sent) = watched(&address).await;
        let client = client.layer(tower::layer::layer_fn(Elsewhere));
        let mut batch = client.batch();
        let slots: Vec<_> = (0..3).map(|n| batch.call::<i64>("add", (n, n))).collect();
        let mut replies = within(batch.send()).await.unwrap();
        for (n, slot) in (0..).zip(slots) {
            assert_eq!(replies.take(slot).unwrap(), n + n, "{wire}");
        }
        assert_eq!(sent.lock().unwrap().len(), 1, "{wire}");
    }
}

/// Makes every call twice, and returns the second reply.
#[derive(Clone)]
struct Twice<S>(S);

impl<S> Service<OutgoingCall> for Twice<S>
where
    S: Service<OutgoingCall, Response = RawJson, Error = CallError, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    type Response = RawJson;
    type Error = CallError;
    type Future = antiphon::BoxFuture<'static, Result<RawJson, CallError>>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), CallError>> {
        self.0.poll_ready(poller)
    }

    fn call(&mut self, request: OutgoingCall) -> Self::Future {
        let mut inner = self.0.clone();
        Box::pin(async move {
            inner.call(request.clone()).await?;
            inner.call(request).await
        })
    }
}

#[tokio::test]
async fn a_layer_may_call_again_and_the_batch_is_not_sent_again() {
    let address = serve("memory:*", Limits::default(), small()).await;
    let (client, sent) = watched(&address).await;
    let client = client.layer(tower::layer::layer_fn(Twice));
    let mut batch = client.batch();
    let slots = [batch.call::<i64>("add", (1, 1)), batch.call::<i64>("add", (2, 2))];
    let mut replies = within(batch.send()).await.unwrap();
    let sums = slots.map(|slot| replies.take(slot).unwrap());
    assert_eq!(sums, [2, 4]);
    let sent = sent.lock().unwrap();
    assert_eq!(sent.iter().filter(|message| message.starts_with('[')).count(), 1);
    assert_eq!(sent.len(), 3, "each call once more, by itself");
}

/// Delays the calls of one method until it is released.
#[derive(Clone)]
struct Delaying<S> {
    method: &'static str,
    /// Receives a permit for each call that is delayed.
    held: Arc<Semaphore>,
    /// Releases one delayed call per permit.
    release: Arc<Semaphore>,
    inner: S,
}

impl<S> Service<OutgoingCall> for Delaying<S>
where
    S: Service<OutgoingCall, Response = RawJson, Error = CallError, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    type Response = RawJson;
    type Error = CallError;
    type Future = antiphon::BoxFuture<'static, Result<RawJson, CallError>>;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), CallError>> {
        self.inner.poll_ready(poller)
    }

    fn call(&mut self, request: OutgoingCall) -> Self::Future {
        let Self { method, held, release, mut inner } = self.clone();
        if request.call.method.as_str() != method {
            return Box::pin(inner.call(request));
        }
        // A task of its own, which outlives a batch that is dropped.
        let task = tokio::spawn(async move {
            held.add_permits(1);
            release.acquire().await.unwrap().forget();
            inner.call(request).await
        });
        Box::pin(async move { task.await.unwrap() })
    }
}

/// The server releases the delayed entry when it has received the others, so a batch that waited for the
/// entry would never be sent.
#[tokio::test]
async fn a_batch_does_not_wait_for_an_entry_that_a_layer_delays() {
    for wire in wires_and_http() {
        let (held, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let released = release.clone();
        let router = small().method("last", move |(): (), _: Context| {
            released.add_permits(1);
            async { Ok(()) }
        });
        let address = serve(wire, Limits::default(), router).await;
        let (client, sent) = watched(&address).await;
        let client = client.layer(tower::layer::layer_fn(|inner| Delaying {
            method: "add",
            held: held.clone(),
            release: release.clone(),
            inner,
        }));
        let mut batch = client.batch();
        let delayed = batch.call::<i64>("add", (1, 1));
        batch.notify("note", ());
        let last = batch.call::<()>("last", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(delayed).unwrap(), 2, "{wire}");
        replies.take(last).unwrap();
        assert_eq!(sent_methods(&sent), [vec!["note", "last"], vec!["add"]], "{wire}");
    }
}

/// The methods of each batch that was sent.
fn sent_methods(sent: &Sent) -> Vec<Vec<String>> {
    let methods = |batch: &String| {
        let batch: Vec<serde_json::Value> = serde_json::from_str(batch).unwrap();
        batch.iter().map(|entry| entry["method"].as_str().unwrap().to_owned()).collect()
    };
    sent.lock().unwrap().iter().map(methods).collect()
}

#[tokio::test]
async fn an_entry_that_a_layer_holds_is_not_sent_once_its_batch_is_dropped() {
    let (held, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let address = serve("memory:*", Limits::default(), small()).await;
    let (client, sent) = watched(&address).await;
    let delaying = client.clone().layer(tower::layer::layer_fn(|inner| Delaying {
        method: "note",
        held: held.clone(),
        release: release.clone(),
        inner,
    }));
    let mut batch = delaying.batch();
    batch.notify("note", ());
    let batch = tokio::spawn(batch.send());
    within(held.acquire()).await.unwrap().forget();
    batch.abort();
    assert!(within(batch).await.unwrap_err().is_cancelled());
    release.add_permits(1);
    // The layer's task has called the inner service when it has dropped its handle to the semaphore.
    within(async {
        while Arc::strong_count(&release) > 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    within(client.call::<i64>("add", (1, 1)).into_future()).await.unwrap();
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0].contains("add"));
}

#[tokio::test]
async fn a_batch_of_notifications_passes_layers_and_is_sent_as_one() {
    for wire in wires_and_http() {
        let address = serve(wire, Limits::default(), small()).await;
        let (client, sent) = watched(&address).await;
        let client = client.layer(Filter::new().deny(["denied"]));
        let mut batch = client.batch();
        for method in ["note", "denied", "note"] {
            batch.notify(method, ());
        }
        within(batch.send()).await.unwrap();
        within(client.call::<i64>("add", (1, 1)).into_future()).await.unwrap();
        let last = sent.lock().unwrap().pop().unwrap();
        assert!(last.contains("add"), "{wire}: {last}");
        assert_eq!(sent_methods(&sent), [["note", "note"]], "{wire}");
    }
}

/// More entries than the runtime lets a task receive at once.
#[tokio::test]
async fn a_large_batch_passes_layers_and_is_sent_as_one() {
    let address = serve("memory:*", Limits::default(), small()).await;
    let (client, sent) = watched(&address).await;
    let client = client.layer(Concurrency::new(1_000)).layer(Metrics::named("large", ["add"]));
    let mut batch = client.batch();
    let slots: Vec<_> = (0..500).map(|n| batch.call::<i64>("add", (n, n))).collect();
    let mut replies = within(batch.send()).await.unwrap();
    for (n, slot) in (0..).zip(slots) {
        assert_eq!(replies.take(slot).unwrap(), n + n);
    }
    assert_eq!(sent_methods(&sent), [vec!["add"; 500]]);
}

#[tokio::test(start_paused = true)]
async fn the_ready_layers_stand_on_this_side_too() {
    let Holding { router, mut entered, .. } = holding();
    let metrics = Metrics::named("out", ["hold"]);
    let address = serve("memory:*", Limits::default(), router).await;
    let client = Client::builder()
        .layer(Timeout::new(Duration::from_secs(1)))
        .layer(metrics.clone())
        .connect(&address)
        .await
        .unwrap();
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    entered.recv().await.unwrap();
    assert!(matches!(call.await.unwrap(), Err(CallError::TimedOut(_))));
    let page = metrics.render();
    assert!(page.contains("out_call_errors_total{method=\"hold\",code=\"-32012\"} 1\n"), "{page}");
}

#[tokio::test]
async fn subscriptions_pass_the_layers_of_both_sides() {
    use futures_util::{StreamExt as _, stream};

    for wire in wires() {
        let router = Router::new()
            .subscription("numbers", |(): (), _: Context| async { Ok(stream::iter(0..3)) })
            .subscription("denied", |(): (), _: Context| async { Ok(stream::iter(0..3)) });
        let denied = router.layer(Filter::new().deny(["subscribe_denied"]));
        let address = serve(wire, Limits::default(), denied).await;
        let log = Arc::<Mutex<Vec<String>>>::default();
        let client = connect(&address).await.layer(Seen(log.clone()));
        let numbers = within(client.subscribe::<u32>("numbers", ()).into_future()).await.unwrap();
        let numbers: Vec<u32> = within(numbers.map(Result::unwrap).collect()).await;
        assert_eq!(numbers, [0, 1, 2], "{wire}");
        let refused = within(client.subscribe::<u32>("denied", ()).into_future()).await;
        assert!(matches!(refused, Err(CallError::Rpc(error)) if error.code.0 == -32601), "{wire}");
        assert_eq!(log.lock().unwrap().len(), 2, "{wire}: {log:?}");
        let none = client.layer(Filter::new().deny(["*"]));
        let refused = within(none.subscribe::<u32>("numbers", ()).into_future()).await;
        assert!(matches!(refused, Err(CallError::Rejected(_))), "{wire}");
    }
}

#[cfg(feature = "ws")]
mod http {
    use super::*;
    use crate::support::{as_ws, bound, client};
    use antiphon::http::header::{AUTHORIZATION, HeaderName};
    use antiphon::http::{HeaderValue, Request, Response, StatusCode};
    use antiphon::layer::Auth;
    use antiphon::transport::http::HttpBody;
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};

    const NOTE: HeaderName = HeaderName::from_static("x-note");

    fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }

    /// Each version of HTTP, with TLS and without.
    fn versions() -> Vec<(&'static str, bool)> {
        let mut versions = vec![("http://127.0.0.1:0", false), ("http://127.0.0.1:0", true)];
        if cfg!(feature = "tls") {
            versions.extend([("https://127.0.0.1:0", false), ("https://127.0.0.1:0", true)]);
        }
        versions
    }

    fn noted() -> Router {
        Router::new().method("noted", |(): (), cx: Context| async move {
            let notes = cx.connection().headers().get_all(NOTE).iter();
            Ok(notes.map(|note| note.to_str().unwrap().to_owned()).collect::<Vec<_>>())
        })
    }

    #[tokio::test]
    async fn a_call_has_headers_of_its_own() {
        for (wire, http2) in versions() {
            let address = serve(wire, Limits::default(), noted()).await;
            let client = client().header(NOTE, value("all"));
            let client = if http2 { client.http2() } else { client };
            let client = client.connect(&address).await.unwrap();
            let plain = || within(client.call::<Vec<String>>("noted", ()).into_future());
            assert_eq!(plain().await.unwrap(), ["all"]);
            let own = client.call::<Vec<String>>("noted", ());
            let own = own.header(NOTE, value("one")).header(NOTE, value("two"));
            assert_eq!(within(own.into_future()).await.unwrap(), ["one", "two"]);
            assert_eq!(plain().await.unwrap(), ["all"], "the next call has its own");
            let mut batch = client.batch();
            let slots = [batch.call::<Vec<String>>("noted", ()), batch.call("noted", ())];
            let mut replies = within(batch.header(NOTE, value("batch")).send()).await.unwrap();
            for slot in slots {
                assert_eq!(replies.take(slot).unwrap(), ["batch"]);
            }
        }
    }

    #[tokio::test]
    async fn what_has_no_headers_says_so() {
        for wire in wires() {
            let address = serve(wire, Limits::default(), noted()).await;
            let client = connect(&address).await;
            let call = client.call::<Vec<String>>("noted", ()).header(NOTE, value("one"));
            let refused = within(call.into_future()).await.unwrap_err();
            assert!(matches!(refused, CallError::CannotSendHeaders(_)), "{wire}: {refused}");
            let mut batch = client.batch();
            let _ = batch.call::<Vec<String>>("noted", ());
            let refused = within(batch.header(NOTE, value("one")).send()).await.unwrap_err();
            assert!(matches!(refused, CallError::CannotSendHeaders(_)), "{wire}: {refused}");
            assert!(within(client.call::<Vec<String>>("noted", ()).into_future()).await.is_ok());
        }
    }

    /// Sends a token, reads the challenge, and sends another token.
    #[derive(Clone)]
    struct Tokens<S>(S);

    impl<S> Service<Request<HttpBody>> for Tokens<S>
    where
        S: Service<Request<HttpBody>, Response = Response<HttpBody>, Future: Send + 'static>
            + Clone
            + Send
            + 'static,
        S::Error: Send,
    {
        type Response = Response<HttpBody>;
        type Error = S::Error;
        type Future = antiphon::BoxFuture<'static, Result<Response<HttpBody>, S::Error>>;

        fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(poller)
        }

        fn call(&mut self, request: Request<HttpBody>) -> Self::Future {
            let mut inner = self.0.clone();
            Box::pin(async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let mut request = Request::from_parts(parts, body);
                request.headers_mut().insert(AUTHORIZATION, value("Bearer old"));
                let response = inner.call(request.clone().map(HttpBody::from)).await?;
                if response.status() != StatusCode::UNAUTHORIZED {
                    return Ok(response);
                }
                assert!(response.headers().contains_key("www-authenticate"), "{response:?}");
                request.headers_mut().insert(AUTHORIZATION, value("Bearer new"));
                inner.call(request.map(HttpBody::from)).await
            })
        }
    }

    #[tokio::test]
    async fn a_layer_around_each_post_sees_statuses_and_headers() {
        for (wire, http2) in versions() {
            let router = small().layer(Auth::new().bearer("new", "ada"));
            let address = serve(wire, Limits::default(), router).await;
            let client = client().http_layer(tower::layer::layer_fn(Tokens));
            let client = if http2 { client.http2() } else { client };
            let client = client.connect(&address).await.unwrap();
            assert_eq!(within(client.call::<i64>("add", (1, 2)).into_future()).await.unwrap(), 3);
            let mut batch = client.batch();
            let slot = batch.call::<i64>("add", (2, 2));
            assert_eq!(within(batch.send()).await.unwrap().take(slot).unwrap(), 4);
            within(client.notify("note", ())).await.unwrap();
        }
    }

    /// A compressed reply is decompressed within the limit of the client.
    #[tokio::test]
    async fn the_layers_of_tower_http_work_on_a_client() {
        use tower_http::compression::CompressionLayer;
        use tower_http::decompression::DecompressionLayer;
        use tower_http::trace::TraceLayer;

        let router = Router::new()
            .method("zeros", |(size,): (usize,), _: Context| async move { Ok("0".repeat(size)) });
        let server = bound("http://127.0.0.1:0").await.http_layer(CompressionLayer::new());
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(router));
        let limits = Limits { frame_bytes: 100_000, ..Limits::default() };
        let builder = client().limits(limits).http_layer(DecompressionLayer::new());
        let client = builder.http_layer(TraceLayer::new_for_http()).connect(&address).await;
        let client = client.unwrap();
        let zeros = |size: usize| within(client.call::<String>("zeros", [size]).into_future());
        assert_eq!(zeros(90_000).await.unwrap(), "0".repeat(90_000));
        // It arrives in a few thousand bytes.
        let error = zeros(1_000_000).await.unwrap_err();
        assert!(matches!(error, CallError::OverLimit(_)), "{error:?}");
        let told = antiphon::ErrorChain(&error).to_string();
        assert!(told.contains("100000 bytes"), "{told}");
    }

    #[cfg(feature = "ws")]
    #[tokio::test]
    async fn a_layer_around_each_post_is_refused_for_a_websocket() {
        let address = serve("ws://127.0.0.1:0", Limits::default(), small()).await;
        let layered = client().http_layer(tower::layer::layer_fn(Tokens));
        let waiting = antiphon::Reconnect::new().wait_for_server();
        for builder in [layered.clone(), layered.reconnect(waiting)] {
            let error = within(builder.connect(&address)).await.unwrap_err();
            let told = antiphon::ErrorChain(&error).to_string();
            assert!(told.contains("use `header`"), "{told}");
        }
    }

    /// A layer is built once, not once per connection, so it counts the requests of all connections.
    #[tokio::test]
    async fn a_limit_around_requests_holds_for_all_connections() {
        let most = Arc::new(AtomicUsize::new(0));
        let (running, top) = (Arc::new(AtomicUsize::new(0)), most.clone());
        let router = Router::new().method("slow", move |(): (), _: Context| {
            let (running, top) = (running.clone(), top.clone());
            async move {
                top.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        });
        let server = bound("http://127.0.0.1:0").await.http_layer(ConcurrencyLimitLayer::new(1));
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(router));
        let calls = (0..8).map(|_| async {
            let client = connect(&address).await;
            client.call::<()>("slow", ()).await
        });
        let outcomes = within(futures_util::future::join_all(calls)).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    /// Counts requests, and answers some of them itself with another body type.
    #[derive(Clone)]
    struct Door<S>(Arc<AtomicUsize>, S);

    impl<S, B> Service<Request<B>> for Door<S>
    where
        S: Service<Request<B>, Error: Into<BoxError>, Future: Send + 'static>,
        S::Response: Into<Response<antiphon::transport::http::HttpBody>>,
    {
        type Response = Response<Knocked>;
        type Error = BoxError;
        type Future = antiphon::BoxFuture<'static, Result<Self::Response, BoxError>>;

        fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), BoxError>> {
            self.1.poll_ready(poller).map_err(Into::into)
        }

        fn call(&mut self, request: Request<B>) -> Self::Future {
            self.0.fetch_add(1, Ordering::Relaxed);
            match request.uri().path() {
                "/shut" => Box::pin(std::future::ready(Ok(Response::builder()
                    .status(StatusCode::IM_A_TEAPOT)
                    .body(Knocked::Right(Full::new(Bytes::from_static(b"shut"))))
                    .unwrap()))),
                "/broken" => Box::pin(std::future::ready(Err("a secret".into()))),
                _ => {
                    let answer = self.1.call(request);
                    Box::pin(async move {
                        Ok(answer.await.map_err(Into::into)?.into().map(Knocked::Left))
                    })
                }
            }
        }
    }

    type Knocked = http_body_util::Either<HttpBody, Full<Bytes>>;

    #[tokio::test]
    async fn a_layer_of_the_server_sees_each_request_and_upgrades_too() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let door = tower::layer::layer_fn(move |inner| Door(counted.clone(), inner));
        let wire = if cfg!(feature = "tls") { "https://127.0.0.1:0" } else { "http://127.0.0.1:0" };
        let server = bound(wire).await.http_layer(door);
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(small()));
        for http2 in [false, true] {
            let client = client();
            let client = if http2 { client.http2() } else { client };
            let client = client.connect(&address).await.unwrap();
            for n in 0..3 {
                let sum = within(client.call::<i64>("add", (n, 1)).into_future()).await.unwrap();
                assert_eq!(sum, n + 1);
            }
            within(client.notify("note", ())).await.unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 8);
        let ws = connect(as_ws(&address)).await;
        for n in 0..3 {
            within(ws.call::<i64>("add", (n, 1)).into_future()).await.unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 9, "the upgrade is one request");
        for (path, says) in [("/shut", "418"), ("/broken", "500")] {
            let endpoint = format!("{}{path}", address.trim_end_matches('/'));
            let client = connect(&endpoint).await;
            let refused =
                within(client.call::<i64>("add", (1, 1)).into_future()).await.unwrap_err();
            assert!(ErrorChain(&refused).to_string().contains(says), "{refused}");
            assert!(!ErrorChain(&refused).to_string().contains("secret"), "{refused}");
        }
    }
}
