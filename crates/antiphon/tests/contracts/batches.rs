//! Contract 6: the entries of a batch run concurrently up to a limit, and are answered in request order.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon::{BoxFuture, CallError, Context, Handler, Invocation, Limits, Outcome, Router};
use tokio::sync::Barrier;

use crate::support::{
    FOREVER, Raw, both, client, connect, elsewhere, request, serve, wires_and_http, within,
};

#[tokio::test]
async fn entries_run_concurrently() {
    // The barrier opens only when all three calls have reached it.
    let barrier = Arc::new(Barrier::new(3));
    let meet = Router::new().method("meet", move |(n,): (u64,), _cx: Context| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(n)
        }
    });
    let (mut raw, _served) = Raw::served(Limits::default(), meet);
    let batch: Vec<_> = (1..=3).map(|n| request(n, "meet", &format!("[{n}]"))).collect();
    raw.send(&format!("[{}]", batch.join(","))).await;
    let answers = raw.next().await;
    for n in 1..=3 {
        assert_eq!(answers[n - 1]["result"], n);
    }
}

#[tokio::test]
async fn entries_respect_the_in_flight_limit() {
    let running = Arc::new(AtomicUsize::new(0));
    let peak = Arc::new(AtomicUsize::new(0));
    let (now, most) = (running.clone(), peak.clone());
    let work = Router::new().method("work", move |(n,): (u64,), _cx: Context| {
        let (now, most) = (now.clone(), most.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(n)
        }
    });
    let limits = Limits { in_flight: 5, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, work);
    let batch: Vec<_> = (0..200).map(|n| request(n, "work", &format!("[{n}]"))).collect();
    raw.send(&format!("[{}]", batch.join(","))).await;
    let answers = raw.next().await;
    for n in 0..200 {
        assert_eq!((&answers[n]["id"], &answers[n]["result"]), (&n.into(), &n.into()));
    }
    assert_eq!(peak.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_client_batch_has_a_type_for_each_result() {
    let service = Router::new()
        .method(
            "sum",
            |values: Vec<i64>, _cx: Context| async move { Ok(values.iter().sum::<i64>()) },
        )
        .method("name", |(): (), _cx: Context| async { Ok("ada") })
        .notification("update", |_: Vec<i64>, _cx: Context| async {});
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), service));
    let mut batch = client.batch();
    let sum = batch.call::<i64>("sum", [1, 2, 4]);
    batch.notify("update", [1]);
    let name = batch.call::<String>("name", ());
    let missing = batch.call::<()>("nowhere", ());
    let wrong = batch.call::<bool>("name", ());
    let mut replies = within(batch.send()).await.unwrap();
    assert_eq!(
        replies.take(wrong).unwrap_err().to_string(),
        "the result of `name` does not have the expected type"
    );
    assert_eq!(replies.take(name).unwrap(), "ada");
    assert_eq!(replies.take(sum).unwrap(), 7);
    assert!(matches!(replies.take(missing), Err(CallError::Rpc(error)) if error.code.0 == -32601));
    let empty = within(client.batch().send()).await;
    assert!(empty.is_ok());
}

#[tokio::test]
async fn a_slot_takes_no_result_of_another_batch() {
    let service = Router::new().method("id", |(n,): (i64,), _cx: Context| async move { Ok(n) });
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), service));
    let (mut first, mut second) = (client.batch(), client.batch());
    let one = first.call::<i64>("id", (1,));
    let two = second.call::<i64>("id", (2,));
    let mut replies = within(second.send()).await.unwrap();
    let error = replies.take(one).unwrap_err();
    assert!(antiphon::ErrorChain(&error).to_string().contains("another batch"), "{error:?}");
    assert_eq!(replies.take(two).unwrap(), 2);
}

#[tokio::test]
async fn a_batch_whose_reply_lacks_a_response_does_not_hang() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let mut batch = client.batch();
    let first = batch.call::<u64>("a", ());
    let second = batch.call::<u64>("b", ());
    let sent = tokio::spawn(batch.send());
    let message = raw.next().await;
    raw.send(&format!(r#"[{{"jsonrpc":"2.0","result":5,"id":{}}}]"#, message[1]["id"])).await;
    let mut replies = within(sent).await.unwrap().unwrap();
    assert_eq!(replies.take(second).unwrap(), 5);
    assert!(matches!(replies.take(first), Err(CallError::Protocol(_))));
}

#[tokio::test]
async fn a_batch_that_is_rejected_as_a_whole_fails_each_call() {
    let (mut raw, client) = Raw::served(Limits::default(), Router::new());
    let mut batch = client.batch();
    let call = batch.call::<u64>("a", ());
    let sent = tokio::spawn(batch.send());
    raw.next().await;
    raw.send(r#"{"jsonrpc":"2.0","error":{"code":-32005,"message":"no batches"},"id":null}"#).await;
    let mut replies = within(sent).await.unwrap().unwrap();
    assert!(matches!(replies.take(call), Err(CallError::Rpc(error)) if error.code.0 == -32005));
    let again = client.call::<u64>("b", ()).into_future();
    let again = tokio::spawn(again);
    let message = raw.next().await;
    raw.send(&format!(r#"{{"jsonrpc":"2.0","result":1,"id":{}}}"#, message["id"])).await;
    assert_eq!(within(again).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_batch_larger_than_the_in_flight_limit_finishes_on_every_wire() {
    let work = Router::new().method("work", |(n,): (u64,), _cx: Context| async move {
        elsewhere().await;
        Ok(n)
    });
    for wire in wires_and_http() {
        for (in_flight, entries) in [(1, 2), (2, 3), (2, 50), (1_024, 1_100)] {
            let limits = Limits { in_flight, stall_timeout: FOREVER, ..Limits::default() };
            let address = serve(wire, limits, work.clone()).await;
            let client = connect(&address).await;
            let mut batch = client.batch();
            let slots: Vec<_> = (0..entries).map(|n| batch.call::<u64>("work", (n,))).collect();
            let mut replies = within(batch.send()).await.unwrap();
            for (n, slot) in slots.into_iter().enumerate() {
                assert_eq!(replies.take(slot).unwrap(), n as u64, "{wire} {in_flight}");
            }
        }
    }
}

#[tokio::test]
async fn a_client_accepts_a_reply_as_long_as_its_batch() {
    // The limit for batches of the peer does not apply to the reply to our own batch.
    let few = Limits { batch_entries: 3, ..Limits::default() };
    let service = Router::new().method("one", |(): (), _cx: Context| async { Ok(1) });
    for wire in wires_and_http() {
        let address = serve(wire, Limits::default(), service.clone()).await;
        let only_calls = client().limits(few.clone());
        let serves_too = client().limits(few.clone()).handler(Router::new());
        for builder in [only_calls, serves_too] {
            let client = builder.connect(&address).await.unwrap();
            let mut batch = client.batch();
            let slots: Vec<_> = (0..20).map(|_| batch.call::<u64>("one", ())).collect();
            let mut replies = within(batch.send()).await.unwrap();
            for slot in slots {
                assert_eq!(replies.take(slot).unwrap(), 1, "{wire}");
            }
        }
    }
}

/// A handler that serves single requests only.
struct Single(Router);

impl Handler for Single {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        self.0.call(call, cx)
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        self.0.notify(notification, cx)
    }

    fn accepts_batches(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_handler_can_refuse_batches() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let router = Router::new().method("count", move |(): (), _cx: Context| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let (mut raw, _served) = Raw::served(Limits::default(), Single(router));
    raw.send(&format!("[{},{}]", request(1, "count", "[]"), request(2, "count", "[]"))).await;
    let refused = raw.next().await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&(-32600).into(), &().into()));
    raw.send(&request(3, "count", "[]")).await;
    assert_eq!(raw.next().await["id"], 3);
    assert_eq!(calls.load(Ordering::SeqCst), 1, "no entry of the batch ran");
}
