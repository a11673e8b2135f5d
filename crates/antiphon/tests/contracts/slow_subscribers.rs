//! Subscriptions whose items are consumed slowly: items wait, are dropped, or end the subscription.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon::{
    Context, ErrorChain, ErrorObject, Limits, Overflow, Router, Sink, SubscriptionError, Topic,
};
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::sync::mpsc;

use crate::subscriptions::{is_reply, item};
use crate::support::{Raw, both, client, request, serve, within};

/// The peer does not read: items are queued up to the limit.
#[tokio::test]
async fn without_a_reader_the_oldest_items_are_dropped_and_counted() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let topic = Topic::new("fast").buffer(8).overflow(Overflow::DropOldest);
    let (all, mut done) = mpsc::channel(1);
    let router = Router::new().subscription_with(topic, move |(): (), sink: Sink, _cx: Context| {
        let (counted, all) = (counted.clone(), all.clone());
        async move {
            for item in 0..10_000_u64 {
                sink.send(item).await?;
                counted.fetch_add(1, Ordering::SeqCst);
            }
            all.send(()).await.map_err(|_| ErrorObject::internal_error())
        }
    });
    let limits = Limits { write_queue_bytes: 1_024, ..Limits::default() };
    let (mut raw, _server) = Raw::served(limits, router);
    raw.send(&request(1, "subscribe_fast", "[]")).await;
    // The source finishes although nothing is read.
    within(done.recv()).await.unwrap();
    assert_eq!(sent.load(Ordering::SeqCst), 10_000);
    assert!(is_reply(&raw.next().await));
    let (mut next, mut came, mut lost) = (0, 0, 0);
    loop {
        let message = raw.next().await;
        let gone = message["params"]["lost"].as_u64().unwrap_or(0);
        lost += gone;
        if message["params"]["closed"].is_string() {
            break;
        }
        let item = item(&message).as_u64().unwrap();
        assert_eq!(item, next + gone);
        next = item + 1;
        came += 1;
    }
    assert_eq!((next, came + lost), (10_000, 10_000));
    assert!(came < 200, "{came} items waited somewhere");
}

#[tokio::test]
async fn without_a_reader_the_subscription_closes_if_configured() {
    let topic = Topic::new("strict").buffer(8).overflow(Overflow::Close);
    let (stopped, mut heard) = mpsc::channel(1);
    let router = Router::new().subscription_with(topic, move |(): (), sink: Sink, _cx: Context| {
        let stopped = stopped.clone();
        async move {
            let mut sent = 0;
            while sink.send(sent).await.is_ok() {
                sent += 1;
            }
            let _ = stopped.send(sent).await;
            Ok(())
        }
    });
    let limits = Limits { write_queue_bytes: 1_024, ..Limits::default() };
    let (mut raw, _server) = Raw::served(limits, router);
    raw.send(&request(1, "subscribe_strict", "[]")).await;
    let sent: u64 = within(heard.recv()).await.unwrap();
    assert!(is_reply(&raw.next().await));
    for expected in 0..sent {
        assert_eq!(item(&raw.next().await), &json!(expected));
    }
    assert_eq!(raw.next().await["params"]["error"]["code"], -32009);
}

#[tokio::test]
async fn without_a_reader_the_source_waits_if_no_item_may_be_lost() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let (blocked, mut waiting) = mpsc::channel(1);
    let router = Router::new().subscription_with(
        Topic::new("patient").buffer(8),
        move |(): (), sink: Sink, _cx: Context| {
            let (counted, blocked) = (counted.clone(), blocked.clone());
            async move {
                for item in 0..1_000_u64 {
                    if !sink.try_send(item)? {
                        let _ = blocked.try_send(());
                        sink.send(item).await?;
                    }
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            }
        },
    );
    let limits = Limits { write_queue_bytes: 1_024, ..Limits::default() };
    let (mut raw, _server) = Raw::served(limits, router);
    raw.send(&request(1, "subscribe_patient", "[]")).await;
    within(waiting.recv()).await.unwrap();
    assert!(sent.load(Ordering::SeqCst) < 200);
    assert!(is_reply(&raw.next().await));
    for expected in 0..1_000 {
        assert_eq!(item(&raw.next().await), &json!(expected));
    }
}

/// Items that the subscriber does not take delay the reader, but no call.
#[tokio::test]
async fn a_subscriber_that_takes_no_items_can_still_call() {
    let router = Router::new()
        .subscription("many", |(): (), _cx: Context| async { Ok(stream::iter(0..500_u64)) })
        .method("ping", |(): (), _cx: Context| async { Ok("pong") });
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), router));
    let items = client.subscribe::<u64>("many", ()).buffer(4);
    let items = within(items.into_future()).await.unwrap();
    let pong: String = within(client.call("ping", ()).into_future()).await.unwrap();
    assert_eq!(pong, "pong");
    let seen: Vec<u64> = within(items.map(Result::unwrap).collect()).await;
    assert!(seen.into_iter().eq(0..500));
}

#[tokio::test]
async fn a_subscriber_drops_the_oldest_items_or_closes_if_configured() {
    let router = Router::new()
        .subscription("many", |(): (), _cx: Context| async { Ok(stream::iter(0..500_u64)) })
        .method("ping", |(): (), _cx: Context| async { Ok(()) })
        .subscription("fast", |(): (), _cx: Context| async { Ok(stream::iter(0_u64..)) });
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), router));
    let dropping = client.subscribe::<u64>("many", ()).buffer(4).overflow(Overflow::DropOldest);
    let mut items = within(dropping.into_future()).await.unwrap();
    // When this call is answered, all items have arrived: the end of the source follows them.
    while items.end_reason().is_none() {
        within(client.call::<()>("ping", ()).into_future()).await.unwrap();
    }
    assert!(matches!(within(items.next()).await, Some(Err(SubscriptionError::Lost(496)))));
    for expected in 496..500 {
        assert_eq!(within(items.next()).await.unwrap().unwrap(), expected);
    }
    assert!(within(items.next()).await.is_none());

    let closing = client.subscribe::<u64>("fast", ()).buffer(4).overflow(Overflow::Close);
    let mut items = within(closing.into_future()).await.unwrap();
    let last = loop {
        match within(items.next()).await.unwrap() {
            Ok(_) => within(client.call::<()>("ping", ()).into_future()).await.unwrap(),
            Err(error) => break error,
        }
    };
    assert!(matches!(last, SubscriptionError::TooSlow), "{last}");
}

/// An item that is too large for the subscriber cannot be told from a response. It is not lost without a sign.
#[tokio::test]
async fn an_item_over_the_limit_of_the_subscriber_ends_the_subscription() {
    for wire in ["tcp://127.0.0.1:0", "tcp+header://127.0.0.1:0"] {
        let router = Router::new().subscription("texts", |(): (), _cx: Context| async {
            let texts = [1, 10_000, 1].map(|len| "x".repeat(len));
            Ok(stream::iter(texts).chain(stream::pending()))
        });
        let address = serve(wire, Limits::default(), router).await;
        let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
        let client = client().limits(limits).connect(&address).await.unwrap();
        let mut texts =
            within(client.subscribe::<String>("texts", ()).into_future()).await.unwrap();
        assert_eq!(within(texts.next()).await.unwrap().unwrap(), "x");
        let end = within(texts.next()).await.unwrap().unwrap_err();
        assert!(matches!(end, SubscriptionError::Disconnected(_)), "{wire}: {end:?}");
        assert!(ErrorChain(&end).to_string().contains("limit"), "{end:?}");
        assert!(within(texts.next()).await.is_none());
    }
}
