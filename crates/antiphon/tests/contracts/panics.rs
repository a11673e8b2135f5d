//! Contract 1 for panics: whenever a handler panics, its request and all others are answered.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon::{
    BoxFuture, Context, Handler, Invocation, Limits, Outcome, RawJson, Router, Sink, layer,
};
use tokio::task::yield_now;

use crate::support::{Raw, connect, request, serve, wires_and_http, within};

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

/// A future that finishes after this many polls, and panics when it is dropped.
struct Fused(u8, Bomb);

impl Future for Fused {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Outcome> {
        let Some(left) = self.0.checked_sub(1) else { return Poll::Ready(Ok(RawJson::NULL)) };
        self.0 = left;
        poller.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A future that panics after this many polls, and again when it is dropped.
struct Twice(u8);

impl Future for Twice {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<Outcome> {
        let Some(left) = self.0.checked_sub(1) else { panic!("polled") };
        self.0 = left;
        poller.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Twice {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

struct Panicky;

impl Handler for Panicky {
    fn call(&self, call: Invocation, _cx: Context) -> BoxFuture<'static, Outcome> {
        match call.method.as_str() {
            "when it is made" => panic!("made"),
            "at once" => Box::pin(async { panic!("polled") }),
            "later" => Box::pin(async {
                yield_now().await;
                panic!("polled again")
            }),
            "twice" => Box::pin(Twice(0)),
            "twice, later" => Box::pin(Twice(1)),
            "when it is dropped" => Box::pin(Fused(0, Bomb)),
            "when it is dropped later" => Box::pin(Fused(1, Bomb)),
            "when it runs out of time" => Box::pin(async {
                let _bomb = Bomb;
                std::future::pending().await
            }),
            "with what panics" => Box::pin(async { std::panic::panic_any(Bomb) }),
            "with what panics later" => Box::pin(async {
                yield_now().await;
                std::panic::panic_any(Bomb)
            }),
            _ => Box::pin(async { Ok(RawJson::NULL) }),
        }
    }

    fn notify(&self, _: Invocation, _: Context) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

const WHEN: [&str; 10] = [
    "when it is made",
    "at once",
    "later",
    "twice",
    "twice, later",
    "when it is dropped",
    "when it is dropped later",
    "when it runs out of time",
    "with what panics",
    "with what panics later",
];

#[tokio::test]
async fn a_handler_may_panic_at_any_time() {
    let request_timeout = Some(Duration::from_millis(50));
    for wire in wires_and_http() {
        let limits = Limits { request_timeout, ..Limits::default() };
        let address = serve(wire, limits, Panicky).await;
        let client = connect(&address).await;
        for when in WHEN {
            // Some of these panic after the outcome is known.
            let _ = within(async { client.call::<RawJson>(when, ()).await }).await;
            within(async { client.call::<RawJson>("well", ()).await }).await.unwrap();
            let mut batch = client.batch();
            let before = batch.call::<RawJson>("well", ());
            let panics = batch.call::<RawJson>(when, ());
            let after = batch.call::<RawJson>("well", ());
            let mut answers = within(batch.send()).await.unwrap();
            answers.take(before).unwrap();
            answers.take(after).unwrap();
            if let Err(error) = answers.take(panics) {
                assert!(error.to_string().contains("-32"), "{wire} {when}: {error}");
            }
        }
    }
}

/// A layer panics after the inner call has opened a subscription. The caller does not know it, so it is closed.
#[tokio::test]
async fn a_subscription_whose_call_panics_is_closed() {
    for is_batch in [false, true] {
        let router = Router::new().subscription_with(
            "ticks",
            |(): (), sink: Sink, _cx: Context| async move {
                sink.accept();
                sink.closed().await;
                Ok(())
            },
        );
        let panics = Arc::new(AtomicBool::new(true));
        let service = router.layer(layer::from_fn(move |request, next| {
            let panics = panics.clone();
            async move {
                let outcome = next.run(request).await;
                assert!(!panics.swap(false, Ordering::Relaxed), "a layer panics on purpose");
                outcome
            }
        }));
        let limits = Limits { subscriptions: 1, ..Limits::default() };
        let (mut raw, _served) = Raw::served(limits, service);
        let first = request(1, "subscribe_ticks", "[]");
        raw.send(&if is_batch { format!("[{first}]") } else { first }).await;
        assert!(raw.next().await.to_string().contains("-32603"));
        raw.send(&request(2, "subscribe_ticks", "[]")).await;
        let reply = raw.next().await;
        assert!(reply["result"].is_string() || reply["result"].is_number(), "{reply}");
    }
}
