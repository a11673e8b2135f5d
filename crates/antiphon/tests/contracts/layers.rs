//! Layers of a server: each sees each call once, in order, and the next call is unaffected.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon::layer::{BoxError, Concurrency, Filter, IncomingCall, Timeout};
use antiphon::{CallError, Code, Context, ErrorObject, Handler, Limits, PerConnection, Router};
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::timeout::TimeoutLayer;
use tower::{Layer, Service, ServiceBuilder};

use crate::support::{
    Holding, Raw, connect, holding, request, serve, wires, wires_and_http, within,
};

/// Records the calls that pass.
#[derive(Clone)]
struct Seen {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Seeing<S>(Seen, S);

impl<S> Layer<S> for Seen {
    type Service = Seeing<S>;

    fn layer(&self, inner: S) -> Seeing<S> {
        Seeing(self.clone(), inner)
    }
}

impl<S: Service<IncomingCall>> Service<IncomingCall> for Seeing<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), S::Error>> {
        self.1.poll_ready(poller)
    }

    fn call(&mut self, request: IncomingCall) -> S::Future {
        let kind = if request.cx.id().is_some() { "call" } else { "note" };
        let line = format!("{} {kind} {}", self.0.name, request.call.method);
        self.0.log.lock().unwrap().push(line);
        self.1.call(request)
    }
}

fn seen(name: &'static str) -> (Seen, Arc<Mutex<Vec<String>>>) {
    let log = Arc::<Mutex<Vec<String>>>::default();
    (Seen { name, log: log.clone() }, log)
}

fn small() -> Router {
    Router::new()
        .method("add", |(a, b): (i64, i64), _: Context| async move { Ok(a + b) })
        .method("fail", |(): (), _: Context| async { Err::<(), _>(ErrorObject::new(7, "no")) })
        .notification("note", |(): (), _: Context| async {})
}

fn code(error: &CallError) -> i64 {
    match error {
        CallError::Rpc(error) => error.code.0,
        other => panic!("the other side did not answer: {other}"),
    }
}

#[tokio::test]
async fn each_entry_of_a_batch_is_seen_once_on_every_wire() {
    for wire in wires_and_http() {
        let (layer, log) = seen("layer");
        let address = serve(wire, Limits::default(), small().layer(layer)).await;
        let client = connect(&address).await;
        let mut batch = client.batch();
        let sum = batch.call::<i64>("add", (1, 2));
        batch.notify("note", ());
        let fail = batch.call::<()>("fail", ());
        let gone = batch.call::<()>("gone", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(sum).unwrap(), 3, "{wire}");
        assert_eq!(code(&replies.take(fail).unwrap_err()), 7, "{wire}");
        assert_eq!(code(&replies.take(gone).unwrap_err()), -32601, "{wire}");
        assert_eq!(within(client.call::<i64>("add", (2, 2)).into_future()).await.unwrap(), 4);
        let expected = ["call add", "note note", "call fail", "call gone", "call add"];
        let expected = expected.map(|line| format!("layer {line}"));
        assert_eq!(*log.lock().unwrap(), expected, "{wire}");
    }
}

#[tokio::test]
async fn the_layer_added_last_sees_a_call_first() {
    let log = Arc::<Mutex<Vec<String>>>::default();
    let seen = |name| Seen { name, log: log.clone() };
    let handler = small().layer(seen("inner")).layer(seen("middle"));
    let handler: Arc<dyn Handler> = Arc::new(handler);
    let handler = handler.layer(seen("outer"));
    let address = serve("memory:*", Limits::default(), handler).await;
    let client = connect(&address).await;
    within(client.call::<i64>("add", (1, 1)).into_future()).await.unwrap();
    let order: Vec<_> = log.lock().unwrap().clone();
    assert_eq!(order, ["outer call add", "middle call add", "inner call add"]);
}

#[tokio::test(start_paused = true)]
async fn layers_of_tower_fit() {
    let slow = small().method("slow", |(): (), _: Context| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    });
    let stack = ServiceBuilder::new()
        .map_err(|error: BoxError| match error.is::<tower::timeout::error::Elapsed>() {
            true => BoxError::from(ErrorObject::new(1, "too slow")),
            false => error,
        })
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(TimeoutLayer::new(Duration::from_secs(1)));
    let address = serve("memory:*", Limits::default(), slow.layer(stack)).await;
    let client = connect(&address).await;
    assert_eq!(client.call::<i64>("add", (1, 2)).await.unwrap(), 3);
    assert_eq!(code(&client.call::<()>("fail", ()).await.unwrap_err()), 7);
    let (slow, shed) = tokio::join!(
        client.call::<()>("slow", ()).into_future(),
        client.call::<i64>("add", (1, 2)).into_future()
    );
    assert_eq!(code(&slow.unwrap_err()), 1);
    assert_eq!(code(&shed.unwrap_err()), -32603, "an error of tower is internal");
    assert_eq!(client.call::<i64>("add", (1, 2)).await.unwrap(), 3, "the permit is released");
}

/// A limit of tower waits in `poll_ready`, which is polled only for calls that have reached it.
#[tokio::test]
async fn a_service_that_is_not_ready_is_waited_for() {
    let Holding { router, mut entered, release, .. } = holding();
    let limited = router.layer(ConcurrencyLimitLayer::new(1));
    let address = serve("memory:*", Limits::default(), limited).await;
    let client = connect(&address).await;
    let first = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    let second = tokio::spawn(client.call::<String>("hold", ()).into_future());
    release.notify_one();
    within(first).await.unwrap().unwrap();
    within(entered.recv()).await.unwrap();
    release.notify_one();
    within(second).await.unwrap().unwrap();
}

/// Marks the calls of one method.
#[derive(Clone)]
struct Marking<S>(S);

#[derive(Debug, PartialEq)]
struct Mark(&'static str);

impl<S: Service<IncomingCall>> Service<IncomingCall> for Marking<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(poller)
    }

    fn call(&mut self, IncomingCall { call, mut cx }: IncomingCall) -> S::Future {
        if call.method.as_str() == "marked" {
            cx = cx.with(Mark("first")).with(7_u8).with(Mark("last"));
        }
        self.0.call(IncomingCall { call, cx })
    }
}

#[tokio::test]
async fn what_a_layer_adds_ends_with_its_call() {
    let tell = |(): (), cx: Context| async move {
        Ok((cx.get::<Mark>().map(|mark| mark.0), cx.get::<u8>().copied()))
    };
    for wire in wires_and_http() {
        let router = Router::new().method("marked", tell).method("plain", tell);
        let marked = router.layer(tower::layer::layer_fn(Marking));
        let address = serve(wire, Limits::default(), marked).await;
        let client = connect(&address).await;
        for _ in 0..3 {
            let added: (Option<String>, Option<u8>) = client.call("marked", ()).await.unwrap();
            assert_eq!(added, (Some("last".to_owned()), Some(7)), "{wire}");
            let added: (Option<String>, Option<u8>) = client.call("plain", ()).await.unwrap();
            assert_eq!(added, (None, None), "{wire}");
        }
        let mut batch = client.batch();
        let slots: Vec<_> = ["marked", "plain", "marked", "plain"]
            .map(|method| batch.call::<(Option<String>, Option<u8>)>(method, ()))
            .into();
        let mut replies = within(batch.send()).await.unwrap();
        let added = slots.into_iter().map(|slot| replies.take(slot).unwrap().1);
        assert_eq!(added.collect::<Vec<_>>(), [Some(7), None, Some(7), None], "{wire}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_call_is_dropped_and_its_token_cancelled() {
    let Holding { router, mut entered, release, mut gone } = holding();
    let limits = Limits { request_timeout: None, ..Limits::default() };
    let short = Duration::from_secs(1);
    let timeout = Timeout::new(short).method("patient", Duration::from_secs(3_600));
    let router = router.method("patient", |(): (), _: Context| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok("at last")
    });
    let address = serve("memory:*", limits, router.layer(timeout)).await;
    let client = connect(&address).await;
    let late = tokio::spawn(client.call::<String>("hold", ()).into_future());
    entered.recv().await.unwrap();
    assert_eq!(code(&late.await.unwrap().unwrap_err()), Code::TIMED_OUT.0);
    gone.recv().await.expect("the token of the call is cancelled");
    drop(release);
    assert_eq!(client.call::<String>("patient", ()).await.unwrap(), "at last");
}

#[tokio::test]
async fn calls_over_the_limit_wait_and_calls_over_the_queue_are_rejected() {
    let Holding { router, mut entered, release, .. } = holding();
    let handler = router.layer(Concurrency::new(1).queue(1));
    let (mut raw, _served) = Raw::served(Limits::default(), handler);
    for id in 1..=3 {
        raw.send(&request(id, "hold", "[]")).await;
    }
    let refused = raw.next().await;
    assert_eq!(refused["id"], 3);
    assert_eq!(refused["error"]["code"], Code::SERVER_BUSY.0);
    within(entered.recv()).await.unwrap();
    assert!(entered.try_recv().is_err(), "the second waits");
    release.notify_one();
    assert_eq!(raw.next().await["id"], 1);
    within(entered.recv()).await.unwrap();
    release.notify_one();
    assert_eq!(raw.next().await["id"], 2);
}

/// A call that ends with its connection, running or queued, releases its permit.
#[tokio::test]
async fn a_cancelled_call_releases_its_permit() {
    let Holding { router, mut entered, release, mut gone } = holding();
    let limit = Concurrency::new(1).queue(1);
    let (mut raw, served) = Raw::served(Limits::default(), router.clone().layer(limit.clone()));
    for id in 1..=3 {
        raw.send(&request(id, "hold", "[]")).await;
    }
    assert_eq!(raw.next().await["id"], 3, "one runs, one waits, and the third is rejected");
    within(entered.recv()).await.unwrap();
    drop(raw);
    within(served.peer().unwrap().closed()).await;
    within(gone.recv()).await.unwrap();

    let (mut raw, _served) = Raw::served(Limits::default(), router.layer(limit));
    for id in 1..=3 {
        raw.send(&request(id, "hold", "[]")).await;
    }
    assert_eq!(raw.next().await["id"], 3, "the limit is as before");
    within(entered.recv()).await.unwrap();
    release.notify_one();
    assert_eq!(raw.next().await["result"], "held");
}

#[tokio::test]
async fn a_denied_method_looks_like_an_absent_one() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let router = small().method("secret", move |(): (), _: Context| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(()) }
    });
    for wire in wires_and_http() {
        let handler = router.clone().layer(Filter::new().deny(["sec*"]));
        let address = serve(wire, Limits::default(), handler).await;
        let client = connect(&address).await;
        let denied = within(client.call::<()>("secret", ()).into_future()).await.unwrap_err();
        let absent = within(client.call::<()>("absent", ()).into_future()).await.unwrap_err();
        assert_eq!(denied.to_string(), absent.to_string(), "{wire}");
        client.notify("secret", ()).await.unwrap();
        assert_eq!(within(client.call::<i64>("add", (1, 2)).into_future()).await.unwrap(), 3);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

/// The handler of a connection keeps its state, inside of layers that all connections share.
#[tokio::test]
async fn layers_stand_around_the_handler_of_each_connection() {
    for wire in wires() {
        let handler = PerConnection::new(|_, _| {
            let calls = AtomicUsize::new(0);
            Router::new().method("count", move |(): (), _: Context| {
                let count = calls.fetch_add(1, Ordering::Relaxed) + 1;
                async move { Ok(count) }
            })
        });
        let (inner, inner_log) = seen("inner");
        let (outer, outer_log) = seen("outer");
        let handler: Arc<dyn Handler> = Arc::new(handler.layer(inner));
        let address = serve(wire, Limits::default(), handler.layer(outer)).await;
        for _ in 0..2 {
            let client = connect(&address).await;
            for expected in 1..=3 {
                let count = within(client.call::<usize>("count", ()).into_future()).await.unwrap();
                assert_eq!(count, expected, "{wire}");
            }
        }
        for log in [inner_log, outer_log] {
            assert_eq!(log.lock().unwrap().len(), 6, "{wire}");
        }
    }
}
