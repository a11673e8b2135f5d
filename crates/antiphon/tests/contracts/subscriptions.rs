//! Subscriptions: the id is sent first, no item is lost, and no source remains.

use std::future::IntoFuture;
use std::sync::Arc;

use antiphon::{
    CallError, Context, ErrorObject, Limits, RawJson, Router, Sink, SubscriptionError, Topic,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::support::{Raw, answer, both, connect, notification, request, serve, wires, within};

/// A router with a subscription whose source reports its end.
struct Source {
    router: Router,
    ended: mpsc::Receiver<()>,
}

/// Sends a message when it is dropped.
struct Told(mpsc::Sender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

/// `endless` sends one item and then waits until it is ended.
fn source() -> Source {
    let (tell, ended) = mpsc::channel(1_024);
    let router = Router::new().subscription("endless", move |(): (), _cx: Context| {
        let told = Told(tell.clone());
        async move {
            let items = stream::iter([1]).chain(stream::pending());
            Ok(items.map(move |item| {
                let _alive = &told;
                item
            }))
        }
    });
    Source { router, ended }
}

pub(crate) fn is_reply(message: &Value) -> bool {
    message.get("result").is_some() && message["id"].is_number()
}

pub(crate) fn item(message: &Value) -> &Value {
    &message["params"]["result"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_id_arrives_before_ten_thousand_items_and_none_is_lost() {
    async fn flood((n,): (u64,), sink: Sink, _cx: Context) -> Result<(), ErrorObject> {
        for item in 0..n {
            sink.send(item).await?;
        }
        Ok(())
    }
    for wire in wires() {
        let router = Router::new().subscription_with("flood", flood);
        let address = serve(wire, Limits::default(), router).await;
        let client = connect(&address).await;
        let items =
            within(client.subscribe::<u64>("flood", (10_000,)).into_future()).await.unwrap();
        let seen: Vec<u64> = within(items.map(Result::unwrap).collect()).await;
        assert!(seen.iter().copied().eq(0..10_000), "{wire}: {} items", seen.len());
    }
}

/// The handler sends items before it returns, itself and from other tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reply_is_sent_before_the_items_alone_and_in_a_batch() {
    let router = Router::new()
        .subscription_with("eager", |(): (), sink: Sink, _cx: Context| async move {
            for _ in 0..4 {
                let sink = sink.clone();
                tokio::spawn(async move {
                    for item in 0..50 {
                        sink.send(item).await.unwrap();
                    }
                });
            }
            // Other tasks run and send their items before the handler has returned.
            tokio::task::yield_now().await;
            Ok(())
        })
        .method("later", |(): (), _cx: Context| async {
            tokio::task::yield_now().await;
            Ok(())
        });
    for round in 0..50 {
        let (mut raw, _server) = Raw::served(Limits::default(), router.clone());
        let subscribe = request(1, "subscribe_eager", "[]");
        if round % 2 == 0 {
            raw.send(&subscribe).await;
            assert!(is_reply(&raw.next().await));
        } else {
            raw.send(&format!("[{subscribe},{}]", request(2, "later", "[]"))).await;
            let answers = raw.next().await;
            assert!(answers.as_array().unwrap().iter().all(|answer| answer["id"].is_number()));
        }
        for _ in 0..200 {
            assert!(item(&raw.next().await).is_number());
        }
        assert_eq!(raw.next().await["params"]["closed"], "the source has ended");
    }
}

#[tokio::test]
async fn messages_of_a_handler_are_sent_before_its_response() {
    let router = Router::new().method("work", |(): (), cx: Context| async move {
        cx.peer()?.notify("begun", ()).await?;
        Ok("done")
    });
    let (mut raw, _server) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "work", "[]")).await;
    assert_eq!(raw.next().await["method"], "begun");
    assert_eq!(raw.next().await["result"], "done");
}

#[tokio::test]
async fn an_error_before_the_first_item_is_the_reply() {
    let router = Router::new().subscription_with(
        "refused",
        |(after,): (u64,), sink: Sink, _cx: Context| async move {
            for item in 0..after {
                sink.send(item).await?;
            }
            Err(ErrorObject::new(7, "no more").with_data(&after))
        },
    );
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), router));
    let refused = within(client.subscribe::<u64>("refused", (0,)).into_future()).await;
    assert!(matches!(refused, Err(CallError::Rpc(error)) if error.code.0 == 7));
    let mut items = within(client.subscribe::<u64>("refused", (2,)).into_future()).await.unwrap();
    for expected in 0..2 {
        assert_eq!(within(items.next()).await.unwrap().unwrap(), expected);
    }
    let Some(Err(SubscriptionError::Failed(error))) = within(items.next()).await else {
        panic!("it should fail");
    };
    assert_eq!((error.code.0, error.data.unwrap().as_str()), (7, "2"));
    assert!(within(items.next()).await.is_none());
}

#[tokio::test]
async fn a_panic_after_the_reply_ends_only_the_subscription() {
    let router = Router::new().subscription_with(
        "crash",
        |(early,): (bool,), sink: Sink, _cx: Context| async move {
            if !early {
                sink.send(1).await?;
                tokio::task::yield_now().await;
            }
            panic!("as asked");
        },
    );
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), router));
    let refused = within(client.subscribe::<u64>("crash", (true,)).into_future()).await;
    assert!(matches!(refused, Err(CallError::Rpc(error)) if error.code.0 == -32603));
    let mut items = within(client.subscribe::<u64>("crash", (false,)).into_future()).await.unwrap();
    assert_eq!(within(items.next()).await.unwrap().unwrap(), 1);
    let failed = within(items.next()).await;
    assert!(
        matches!(failed, Some(Err(SubscriptionError::Failed(error))) if error.code.0 == -32603)
    );
}

#[tokio::test]
async fn a_source_that_ends_sends_the_reason_and_frees_its_subscription() {
    let router = Router::new().subscription("few", |(): (), _cx: Context| async {
        Ok(stream::iter([json!(null), json!({"a": 1})]))
    });
    let limits = Limits { subscriptions: 1, ..Limits::default() };
    let (client, _server) = both((Limits::default(), Router::new()), (limits, router));
    // More than the limit of open subscriptions: each one is removed when it has ended.
    for _ in 0..5 {
        let mut items = within(client.subscribe::<Value>("few", ()).into_future()).await.unwrap();
        assert_eq!(within(items.next()).await.unwrap().unwrap(), json!(null));
        assert_eq!(within(items.next()).await.unwrap().unwrap(), json!({"a": 1}));
        assert!(within(items.next()).await.is_none());
        assert_eq!(items.end_reason().as_deref(), Some("the source has ended"));
    }
}

#[tokio::test]
async fn unsubscribing_ends_the_source() {
    let Source { router, mut ended } = source();
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), router));
    let mut items = within(client.subscribe::<u64>("endless", ()).into_future()).await.unwrap();
    assert_eq!(within(items.next()).await.unwrap().unwrap(), 1);
    within(items.unsubscribe()).await.unwrap();
    within(ended.recv()).await.unwrap();
    // Dropping it ends the source too.
    let items = within(client.subscribe::<u64>("endless", ()).into_future()).await.unwrap();
    drop(items);
    within(ended.recv()).await.unwrap();
}

#[tokio::test]
async fn after_the_reply_to_unsubscribe_no_item_is_sent() {
    let router =
        Router::new().subscription("busy", |(): (), _cx: Context| async { Ok(stream::repeat(1)) });
    let (mut raw, _server) = Raw::served(Limits::default(), router.clone());
    for round in 0..20 {
        raw.send(&request(1, "subscribe_busy", "[]")).await;
        let id = raw.next().await["result"].clone();
        for _ in 0..round {
            assert!(item(&raw.next().await).is_number());
        }
        raw.send(&request(2, "unsubscribe_busy", &format!("[{id}]"))).await;
        let reply = loop {
            let message = raw.next().await;
            if is_reply(&message) {
                break message;
            }
        };
        assert_eq!(reply["result"], true);
        raw.send(&request(3, "unsubscribe_busy", &format!("{{\"subscription\":{id}}}"))).await;
        let next = raw.next().await;
        assert_eq!((&next["id"], &next["result"]), (&json!(3), &json!(false)), "{next}");
    }
}

#[tokio::test]
async fn a_disconnect_ends_the_source_and_the_stream() {
    let Source { router, mut ended } = source();
    let address = serve("tcp://127.0.0.1:0", Limits::default(), router).await;
    let client = connect(&address).await;
    let mut items = within(client.subscribe::<u64>("endless", ()).into_future()).await.unwrap();
    assert_eq!(within(items.next()).await.unwrap().unwrap(), 1);
    within(client.close()).await;
    within(ended.recv()).await.unwrap();
    let last = within(items.next()).await;
    assert!(matches!(last, Some(Err(SubscriptionError::Disconnected(_)))), "{last:?}");
    assert!(within(items.next()).await.is_none());
}

#[tokio::test]
async fn a_server_that_closes_ends_its_subscriptions_with_a_reason() {
    let Source { router, mut ended } = source();
    let (mut raw, server) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "subscribe_endless", "[]")).await;
    assert!(is_reply(&raw.next().await));
    assert_eq!(item(&raw.next().await), &json!(1));
    let closing = tokio::spawn(server.close());
    assert_eq!(raw.next().await["params"]["closed"], "shutting down");
    within(ended.recv()).await.unwrap();
    within(closing).await.unwrap();
}

#[tokio::test]
async fn an_abandoned_subscribe_call_is_unsubscribed_when_it_is_answered() {
    let Source { router, mut ended } = source();
    let asked = Arc::new(Notify::new());
    let asking = asked.clone();
    let hold = Arc::new(Notify::new());
    let held = hold.clone();
    let slow = Router::new().fallback(move |call: antiphon::Invocation, cx: Context| {
        let (asked, held, router) = (asking.clone(), held.clone(), router.clone());
        async move {
            if call.method.as_str() == "subscribe_endless" {
                asked.notify_one();
                held.notified().await;
            }
            antiphon::Handler::call(&router, call, cx).await
        }
    });
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), slow));
    let subscribing = tokio::spawn(client.subscribe::<u64>("endless", ()).into_future());
    within(asked.notified()).await;
    subscribing.abort();
    let _ = subscribing.await;
    hold.notify_one();
    within(ended.recv()).await.unwrap();
}

#[tokio::test]
async fn a_connection_respects_the_subscription_limit() {
    let Source { router, .. } = source();
    let limits = Limits { subscriptions: 2, ..Limits::default() };
    let (client, _server) = both((Limits::default(), Router::new()), (limits, router));
    let subscribe = || within(client.subscribe::<u64>("endless", ()).into_future());
    let first = subscribe().await.unwrap();
    let _second = subscribe().await.unwrap();
    let third = subscribe().await;
    let Err(CallError::Rpc(error)) = third else { panic!("{third:?}") };
    assert_eq!(error.code.0, -32006);
    within(first.unsubscribe()).await.unwrap();
    let _third = subscribe().await.unwrap();
}

#[tokio::test]
async fn ethereum_has_one_method_for_all_kinds() {
    #[derive(serde::Deserialize)]
    struct Filter {
        address: String,
    }
    let router = Router::new()
        .subscription(Topic::ethereum("newHeads"), |(): (), _cx: Context| async {
            Ok(stream::iter([json!({"number": "0x1"})]).chain(stream::pending()))
        })
        .subscription(Topic::ethereum("logs"), |(filter,): (Filter,), _cx: Context| async move {
            Ok(stream::iter([json!({"address": filter.address})]).chain(stream::pending()))
        });
    let (mut raw, _server) = Raw::served(Limits::default(), router.clone());
    raw.send(&request(1, "eth_subscribe", r#"["logs",{"address":"0xab"}]"#)).await;
    let id = raw.next().await["result"].clone();
    assert!(id.as_str().unwrap().starts_with("0x"));
    let expected = json!({
        "jsonrpc": "2.0",
        "method": "eth_subscription",
        "params": {"subscription": id, "result": {"address": "0xab"}}
    });
    assert_eq!(raw.next().await, expected);
    raw.send(&request(2, "eth_unsubscribe", &format!("[{id}]"))).await;
    assert_eq!(raw.next().await["result"], true);
    for params in [r#"["nonsense"]"#, "[]", "[1]", "{}"] {
        raw.send(&request(3, "eth_subscribe", params)).await;
        let error = raw.next().await["error"].clone();
        assert_eq!(error["code"], -32602);
        assert!(error["data"]["reason"].as_str().unwrap().contains("newHeads, logs"));
    }
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), router));
    let heads = client.subscribe::<Value>(Topic::ethereum("newHeads"), ());
    let mut heads = within(heads.into_future()).await.unwrap();
    assert_eq!(within(heads.next()).await.unwrap().unwrap(), json!({"number": "0x1"}));
}

#[tokio::test]
async fn nested_topics_keep_their_prefix_on_every_message() {
    let inner = Router::new().subscription("tick", |(): (), _cx: Context| async {
        Ok(stream::iter([1]).chain(stream::pending()))
    });
    let (mut raw, _server) = Raw::served(Limits::default(), Router::new().nest("clock.", inner));
    raw.send(&request(1, "clock.subscribe_tick", "[]")).await;
    let id = raw.next().await["result"].clone();
    assert_eq!(raw.next().await["method"], "clock.tick");
    raw.send(&request(2, "clock.unsubscribe_tick", &format!("[{id}]"))).await;
    assert_eq!(raw.next().await["result"], true);
}

/// The server subscribes to a topic of the client.
#[tokio::test]
async fn either_side_can_subscribe() {
    let ours = Router::new()
        .subscription("mine", |(): (), _cx: Context| async { Ok(stream::iter([1, 2, 3])) });
    let theirs = Router::new().method("sum", |(): (), cx: Context| async move {
        let items = cx.peer()?.subscribe::<u64>("mine", ()).await?;
        Ok(items.map(Result::unwrap).fold(0, |sum, item| async move { sum + item }).await)
    });
    let (client, _server) = both((Limits::default(), ours), (Limits::default(), theirs));
    let sum: u64 = within(client.call("sum", ()).into_future()).await.unwrap();
    assert_eq!(sum, 6);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn over_http_both_sides_report_that_there_are_no_subscriptions() {
    let Source { router, .. } = source();
    let address = serve("http://127.0.0.1:0", Limits::default(), router).await;
    let client = connect(&address).await;
    let refused = within(client.subscribe::<u64>("endless", ()).into_future()).await;
    assert!(matches!(refused, Err(CallError::CannotCallBack("http"))));
    let called = within(client.call::<RawJson>("subscribe_endless", ()).into_future()).await;
    let Err(CallError::Rpc(error)) = called else { panic!("{called:?}") };
    assert!(error.data.unwrap().as_str().contains("use a WebSocket"));
}

#[tokio::test]
async fn items_of_another_type_are_errors_between_the_others() {
    let router = Router::new().subscription("mixed", |(): (), _cx: Context| async {
        Ok(stream::iter([json!(1), json!("two"), json!(3)]))
    });
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), router));
    let mut items = within(client.subscribe::<u64>("mixed", ()).into_future()).await.unwrap();
    assert_eq!(within(items.next()).await.unwrap().unwrap(), 1);
    assert!(matches!(within(items.next()).await, Some(Err(SubscriptionError::Decode(_)))));
    assert_eq!(within(items.next()).await.unwrap().unwrap(), 3);
}

/// A stream that fails, with the names of Ethereum and with its own, on every wire.
#[tokio::test]
async fn the_error_of_a_stream_reaches_the_subscriber_on_every_wire() {
    for wire in wires() {
        for good in [0, 2] {
            let fails = move |(): (), _cx: Context| async move {
                let failed = stream::iter([Err(ErrorObject::new(7, "gone")), Ok(99)]);
                Ok(stream::iter(0..good).map(Ok).chain(failed))
            };
            let router = Router::new()
                .try_subscription("rows", fails)
                .try_subscription(Topic::ethereum("rows"), fails);
            let client = connect(&serve(wire, Limits::default(), router).await).await;
            for topic in [Topic::new("rows"), Topic::ethereum("rows")] {
                let mut rows =
                    within(client.subscribe::<u64>(&topic, ()).into_future()).await.unwrap();
                for n in 0..good {
                    assert_eq!(within(rows.next()).await.unwrap().unwrap(), n, "{wire}");
                }
                let error = within(rows.next()).await.unwrap().unwrap_err();
                let error = error.as_error::<ErrorObject>().unwrap();
                assert_eq!((error.code.0, &*error.message), (7, "gone"), "{wire}");
                assert!(within(rows.next()).await.is_none(), "{wire}");
            }
        }
    }
}

/// The data of an error has numbers that no Rust type holds.
#[tokio::test]
async fn the_data_of_a_stream_error_arrives_unchanged() {
    for data in ["340282366920938463463374607431768211455", "[1.50e400]", r#"{"n":1.50}"#, "null"] {
        let error = ErrorObject {
            data: Some(RawJson::parse(data).unwrap()),
            ..ErrorObject::new(7, "gone")
        };
        let failed = error.clone();
        let router = Router::new().try_subscription("rows", move |(): (), _cx: Context| {
            let items = stream::iter([Ok(1), Err(failed.clone())]);
            async move { Ok(items) }
        });
        let (client, _server) =
            both((Limits::default(), Router::new()), (Limits::default(), router));
        let mut rows = within(client.subscribe::<u64>("rows", ()).into_future()).await.unwrap();
        assert_eq!(within(rows.next()).await.unwrap().unwrap(), 1);
        let failed = within(rows.next()).await;
        let Some(Err(SubscriptionError::Failed(failed))) = failed else { panic!("{failed:?}") };
        assert_eq!(failed, error);
        assert!(within(rows.next()).await.is_none());
    }
}

/// Another server ends subscriptions in its own way.
#[tokio::test]
async fn a_last_message_of_another_form_ends_the_subscription() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let ours = Router::new().fallback(move |call: antiphon::Invocation, _cx: Context| {
        let _ = tell.send(call.method);
        async { Ok(RawJson::NULL) }
    });
    let (mut raw, client) = Raw::served(Limits::default(), ours);
    for (last, reason) in [
        (r#""closed":5"#, Ok("5")),
        (r#""closed":{"code":1},"lost":-1"#, Ok(r#"{"code":1}"#)),
        (r#""error":"gone""#, Err(r#""gone""#)),
        (r#""error":{"code":"x"}"#, Err(r#"{"code":"x"}"#)),
    ] {
        let subscribing = tokio::spawn(client.subscribe::<u64>("rows", ()).into_future());
        let subscribe = raw.next().await;
        raw.send(&answer(&subscribe["id"], "7")).await;
        let mut rows = within(subscribing).await.unwrap().unwrap();
        let item = r#"{"subscription":7,"result":1,"error":null,"closed":null}"#;
        raw.send(&notification("rows", item)).await;
        assert_eq!(within(rows.next()).await.unwrap().unwrap(), 1);
        raw.send(&notification("rows", &format!(r#"{{"subscription":7,{last}}}"#))).await;
        match (within(rows.next()).await, reason) {
            (None, Ok(reason)) => assert_eq!(rows.end_reason().as_deref(), Some(reason)),
            (Some(Err(SubscriptionError::Failed(error))), Err(data)) => {
                assert_eq!((error.code.0, error.data.unwrap().as_str()), (-32000, data));
            }
            (other, _) => panic!("{last}: {other:?}"),
        }
    }
    assert!(told.try_recv().is_err(), "an item message went to the handler");
}

/// The stream fails in the moment in which it is dropped by the unsubscribe call.
#[tokio::test]
async fn a_stream_that_fails_after_unsubscribe_sends_nothing() {
    for topic in [Topic::new("rows"), Topic::ethereum("rows")] {
        let fail = Arc::new(Notify::new());
        let failing = fail.clone();
        let router = Router::new().try_subscription(topic, move |(): (), _cx: Context| {
            let failing = failing.clone();
            async move {
                let last = stream::once(async move {
                    failing.notified().await;
                    Err(ErrorObject::new(7, "gone"))
                });
                Ok(stream::iter([Ok(1)]).chain(last))
            }
        });
        let router = router.method("ping", |(): (), _cx: Context| async { Ok("pong") });
        let (mut raw, _served) = Raw::served(Limits::default(), router.clone());
        let (open, close) = match router.names().any(|name| name == "eth_subscribe") {
            true => (request(1, "eth_subscribe", r#"["rows"]"#), "eth_unsubscribe"),
            false => (request(1, "subscribe_rows", "[]"), "unsubscribe_rows"),
        };
        raw.send(&open).await;
        let id = raw.next().await["result"].clone();
        assert_eq!(raw.next().await["params"]["result"], 1);
        raw.send(&request(2, close, &format!("[{id}]"))).await;
        fail.notify_one();
        assert_eq!(raw.next().await["result"], true);
        raw.send(&request(3, "ping", "[]")).await;
        assert_eq!(raw.next().await["id"], 3);
    }
}
