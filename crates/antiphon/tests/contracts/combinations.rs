//! Subscriptions, cancellations and reconnecting clients in combination, under load.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon::transport::memory::pair;
use antiphon::{
    CallError, Client, ConnectionState, Context, Dialect, Limits, Overflow, Reconnect, Router,
    SubscriptionError, Topic,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{
    FOREVER, Holding, Raw, answer, connect, holding, notification, request, serve, wires, within,
};

fn cancel(id: &str) -> String {
    notification("$/cancelRequest", &format!("{{\"id\":{id}}}"))
}

fn ping(router: Router) -> Router {
    router.method("ping", |(): (), _cx: Context| async { Ok("pong") })
}

/// Reads a request and replies with this result.
async fn answered(stream: &mut BufReader<TcpStream>, result: &str) -> Option<Value> {
    let mut line = String::new();
    if within(stream.read_line(&mut line)).await.unwrap_or(0) == 0 {
        return None;
    }
    let call: Value = serde_json::from_str(&line).unwrap();
    stream.write_all(format!("{}\n", answer(&call["id"], result)).as_bytes()).await.unwrap();
    Some(call)
}

/// A subscriber of a fast source may call: the response arrives behind many items.
#[tokio::test]
async fn a_loop_over_items_may_call_on_the_same_connection() {
    let router = ping(Router::new())
        .subscription("n", |(): (), _cx: Context| async { Ok(stream::iter(0..5_000_u64)) });
    for wire in wires() {
        let client = connect(&serve(wire, Limits::default(), router.clone()).await).await;
        let mut items = within(client.subscribe::<u64>("n", ()).into_future()).await.unwrap();
        for expected in 0..5_000 {
            assert_eq!(within(items.next()).await.unwrap().unwrap(), expected, "{wire}");
            if expected % 50 == 0 {
                let pong = within(client.call::<String>("ping", ()).into_future()).await;
                assert_eq!(pong.unwrap(), "pong", "{wire}");
            }
        }
    }
}

/// Over all limits the subscription ends, and not the connection.
#[tokio::test]
async fn a_subscriber_that_blocks_the_connection_is_ended() {
    let (ours, theirs) = pair();
    let limits = Limits { in_flight: 2, frame_bytes: 4_096, ..Limits::default() };
    let client = Client::builder().limits(limits).over(theirs);
    let mut raw = Raw(ours);
    let subscribing = tokio::spawn(client.subscribe::<u64>("n", ()).buffer(1).into_future());
    let id = raw.next().await["id"].clone();
    raw.send(&answer(&id, "\"s\"")).await;
    let mut items = within(subscribing).await.unwrap().unwrap();
    let call = tokio::spawn(client.call::<u64>("late", ()).into_future());
    let late = raw.next().await["id"].clone();
    for n in 0..200 {
        raw.send(&notification("n", &format!("{{\"subscription\":\"s\",\"result\":{n}}}"))).await;
    }
    assert_eq!(raw.next().await["method"], "unsubscribe_n");
    raw.send(&answer(&late, "7")).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 7);
    let last = loop {
        match within(items.next()).await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(last, SubscriptionError::TooSlow), "{last}");
}

#[tokio::test]
async fn a_client_closes_although_items_are_not_consumed() {
    let router = ping(Router::new())
        .subscription("n", |(): (), _cx: Context| async { Ok(stream::iter(0_u64..)) });
    let limits = Limits { shutdown_timeout: FOREVER, ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", Limits::default(), router).await;
    let client = Client::builder().limits(limits).connect(&address).await.unwrap();
    let items = client.subscribe::<u64>("n", ()).buffer(1);
    let _items = within(items.into_future()).await.unwrap();
    let _: String = within(client.call("ping", ()).into_future()).await.unwrap();
    within(client.close()).await;
}

#[tokio::test]
async fn a_source_that_is_always_ready_lets_other_tasks_run() {
    let topic = Topic::new("n").overflow(Overflow::DropOldest);
    let router = ping(Router::new())
        .subscription(topic, |(): (), _cx: Context| async { Ok(stream::iter(0_u64..)) });
    let client = connect(&serve("tcp://127.0.0.1:0", Limits::default(), router).await).await;
    let dropping = client.subscribe::<u64>("n", ()).overflow(Overflow::DropOldest);
    let _items = within(dropping.into_future()).await.unwrap();
    let _: String = within(client.call("ping", ()).into_future()).await.unwrap();
}

#[tokio::test]
async fn the_count_of_lost_items_does_not_overflow() {
    let (ours, theirs) = pair();
    let client = Client::builder().over(theirs);
    let mut raw = Raw(ours);
    let items = client.subscribe::<u64>("n", ()).buffer(1).overflow(Overflow::DropOldest);
    let subscribing = tokio::spawn(items.into_future());
    let id = raw.next().await["id"].clone();
    raw.send(&answer(&id, "\"s\"")).await;
    for n in 0..3 {
        let params = format!("{{\"subscription\":\"s\",\"lost\":{},\"result\":{n}}}", u64::MAX);
        raw.send(&notification("n", &params)).await;
    }
    let mut items = within(subscribing).await.unwrap().unwrap();
    let last = loop {
        match within(items.next()).await.unwrap() {
            Ok(item) if item == 2 => break item,
            Ok(_) | Err(SubscriptionError::Lost(_)) => {}
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(last, 2);
}

#[tokio::test]
async fn a_duplicate_subscription_id_does_not_affect_the_first() {
    let (ours, theirs) = pair();
    let client = Client::builder().over(theirs);
    let mut raw = Raw(ours);
    let mut subscribed = Vec::new();
    for topic in ["a", "b"] {
        let subscribing = tokio::spawn(client.subscribe::<u64>(topic, ()).into_future());
        let id = raw.next().await["id"].clone();
        raw.send(&answer(&id, "1")).await;
        subscribed.push(within(subscribing).await.unwrap());
    }
    let second = subscribed.pop().unwrap();
    assert!(matches!(second, Err(CallError::Protocol(_))), "{second:?}");
    drop(second);
    raw.send(&notification("a", r#"{"subscription":1,"result":10}"#)).await;
    let mut first = subscribed.pop().unwrap().unwrap();
    assert_eq!(within(first.next()).await.unwrap().unwrap(), 10);
}

#[tokio::test]
async fn a_subscription_whose_reply_was_too_large_ends() {
    let router = Router::new()
        .method("pad", |(): (), _cx: Context| async { Ok("x".repeat(150)) })
        .subscription("n", |(): (), _cx: Context| async {
            Ok(stream::iter(0..3_u64).chain(stream::pending()))
        });
    let limits = Limits { response_bytes: 200, subscriptions: 1, ..Limits::default() };
    let (mut raw, _server) = Raw::served_in(Dialect::plain(), limits, router);
    raw.send(&format!("[{},{}]", request(1, "pad", "[]"), request(2, "subscribe_n", "[]"))).await;
    let answers = raw.next().await;
    assert_eq!(answers[1]["error"]["code"], -32008);
    loop {
        let message = raw.next().await;
        if message["params"]["error"].is_object() {
            break;
        }
    }
    // It no longer counts against the limit.
    raw.send(&request(3, "subscribe_n", "[]")).await;
    assert!(raw.next().await["result"].is_string());
}

#[tokio::test]
async fn a_request_that_waits_for_the_limit_is_cancelled_at_once() {
    let Holding { router, mut entered, .. } = holding();
    let limits = Limits { in_flight: 1, stall_timeout: FOREVER, ..Limits::default() };
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), limits, ping(router));
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    // The first request waits for the limit, the second behind it. Both are answered while the limit
    // is reached.
    raw.send(&request(2, "ping", "[]")).await;
    raw.send(&request(3, "ping", "[]")).await;
    for id in [3, 2] {
        raw.send(&cancel(&id.to_string())).await;
        let answer = raw.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32800)));
    }
    raw.send(&request(4, "ping", "[]")).await;
    raw.send(&cancel("1")).await;
    assert_eq!(raw.next().await["id"], 1);
    assert_eq!(raw.next().await["result"], "pong");
}

/// Cancellations of a peer that does not read its replies are not read.
#[tokio::test]
async fn cancelled_requests_do_not_accumulate_replies() {
    let limits = Limits {
        write_queue_bytes: 1_024,
        response_bytes: 1_024,
        stall_timeout: FOREVER,
        ..Limits::default()
    };
    let router = Router::new().method("big", |(): (), _cx: Context| async { Ok("y".repeat(900)) });
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), limits, router);
    let mut taken = 0;
    while taken < 50_000 {
        let both = async {
            raw.send(&request(taken, "big", "[]")).await;
            raw.send(&cancel(&taken.to_string())).await;
        };
        if tokio::time::timeout(Duration::from_millis(200), both).await.is_err() {
            break;
        }
        taken += 1;
    }
    assert!(taken < 5_000, "{taken} pairs were taken in");
}

#[tokio::test]
async fn progress_is_delivered_behind_items_that_are_not_consumed() {
    let router = Router::new()
        .subscription("n", |(): (), _cx: Context| async {
            Ok(stream::iter(0..10_u64).chain(stream::pending()))
        })
        .method("work", |_: Value, cx: Context| async move {
            for step in 0..4_u64 {
                cx.progress(step).await?;
            }
            Ok(1)
        });
    let (ours, theirs) = pair();
    let _server = Client::builder().dialect(Dialect::lsp()).handler(router).over(theirs);
    let client = Client::builder().dialect(Dialect::lsp()).over(ours);
    let items = client.subscribe::<u64>("n", ()).buffer(1);
    let _items = within(items.into_future()).await.unwrap();
    let (call, progress) = client.call::<u64>("work", ()).with_progress::<u64>();
    let both = async { tokio::join!(call.into_future(), progress.collect::<Vec<_>>()) };
    let (result, steps) = within(both).await;
    assert_eq!((result.unwrap(), steps.len()), (1, 4));
    // It also ends without a pending call.
    let (call, progress) = client.call::<u64>("work", 5).with_progress::<u64>();
    let both = async { tokio::join!(call.into_future(), progress.collect::<Vec<_>>()) };
    let (result, steps) = within(both).await;
    assert!(matches!(result, Err(CallError::Encode(_))) && steps.is_empty());
}

/// The server ends the connection while a handler still runs or items are not consumed. Calls wait, and
/// do not keep the only thread busy.
#[tokio::test]
async fn a_reconnecting_client_waits_for_the_end_of_a_connection_without_polling() {
    let Holding { router, mut entered, release, .. } = holding();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let policy = Reconnect::new().pause(Duration::ZERO, Duration::from_millis(1));
    let client = Client::builder().handler(router).reconnect(policy);
    let client = client.connect(&address).await.unwrap();
    let (mut first, _) = within(listener.accept()).await.unwrap();
    first.write_all(format!("{}\n", request(1, "hold", "[]")).as_bytes()).await.unwrap();
    within(entered.recv()).await.unwrap();
    drop(first);
    let peer = client.peer().unwrap();
    // The end is detected once a call is not sent.
    while !matches!(
        within(async { peer.call::<u64>("y", ()).await }).await,
        Err(CallError::Closed(_))
    ) {}
    assert!(!peer.is_closed());
    let call = tokio::spawn(client.call::<u64>("x", ()).into_future());
    // Other tasks run meanwhile, or this would hang.
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    release.notify_one();
    within(peer.closed()).await;
    let (second, _) = within(listener.accept()).await.unwrap();
    within(answered(&mut BufReader::new(second), "7")).await.unwrap();
    assert_eq!(within(call).await.unwrap().unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_pause_grows_if_the_server_closes_every_connection() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let counted = accepted.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let client = Client::builder().reconnect(Reconnect::new().attempts(5));
    let client = client.connect(&address).await.unwrap();
    let mut states = client.states().unwrap();
    let closed = |state: &ConnectionState| matches!(state, ConnectionState::Closed { .. });
    drop(states.wait_for(closed).await.unwrap());
    assert_eq!(accepted.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn a_batch_is_repeated_only_if_all_of_its_calls_may_be() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let policy = Reconnect::new().pause(Duration::ZERO, Duration::from_millis(1));
    let client = Client::builder().reconnect(policy.idempotent(["get"]));
    let client = client.connect(&address).await.unwrap();
    let mut batch = client.batch();
    batch.notify("increment", ());
    let get = batch.call::<u64>("get", ());
    let sending = tokio::spawn(batch.send());
    let (first, _) = within(listener.accept()).await.unwrap();
    let mut line = String::new();
    within(BufReader::new(first).read_line(&mut line)).await.unwrap();
    let mut replies = within(sending).await.unwrap().unwrap();
    let lost = replies.take(get);
    assert!(matches!(lost, Err(CallError::Interrupted(_))), "{lost:?}");
}

#[tokio::test]
async fn unanswered_subscribe_calls_leave_capacity_for_calls() {
    let (ours, theirs) = pair();
    let limits = Limits { pending_calls: 4, ..Limits::default() };
    let client = Client::builder().limits(limits).over(theirs);
    let mut raw = Raw(ours);
    let mut ids = Vec::new();
    for _ in 0..100 {
        let subscribing = tokio::spawn(client.subscribe::<u64>("n", ()).into_future());
        ids.push(raw.next().await["id"].clone());
        subscribing.abort();
        let _ = subscribing.await;
    }
    let call = tokio::spawn(client.call::<u64>("x", ()).into_future());
    let id = raw.next().await["id"].clone();
    // One of them is answered late, after its caller is gone.
    raw.send(&answer(ids.last().unwrap(), "\"s\"")).await;
    let unsubscribe = raw.next().await;
    assert_eq!(
        (&unsubscribe["method"], &unsubscribe["params"]),
        (&json!("unsubscribe_n"), &json!(["s"]))
    );
    raw.send(&answer(&id, "7")).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 7);
}
