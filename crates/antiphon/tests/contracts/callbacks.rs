//! Contract 4: the reader never waits for a handler that may be waiting for the reader.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use antiphon::{CallError, Client, Context, Limits, Router};
use futures_util::future::join_all;

use crate::support::{Raw, both, notification, request, within};

/// Calls the peer back until the depth is 0, and adds one per level.
fn descend() -> Router {
    Router::new().method("descend", |(depth,): (u64,), cx: Context| async move {
        if depth == 0 {
            return Ok(0);
        }
        let below: u64 = cx.peer()?.call("descend", (depth - 1,)).await?;
        Ok(below + 1)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_handlers_notify_and_call_back_on_one_connection() {
    let heard = Arc::new(AtomicUsize::new(0));
    let hearing = heard.clone();
    let ours = Router::new()
        .notification("progress", move |(_,): (u64,), _cx: Context| {
            hearing.fetch_add(1, Ordering::SeqCst);
            async {}
        })
        .method("double", |(n,): (u64,), _cx: Context| async move { Ok(2 * n) });
    let theirs = Router::new().method("work", |(n,): (u64,), cx: Context| async move {
        let peer = cx.peer()?;
        peer.notify("progress", (n,)).await?;
        let doubled: u64 = peer.call("double", (n,)).await?;
        peer.notify("progress", (n,)).await?;
        Ok(doubled + 1)
    });
    // A small write queue: the handlers' notifications fill it many times.
    let limits = Limits { write_queue_bytes: 256, ..Limits::default() };
    let (client, _server) = both((limits.clone(), ours), (limits, theirs));
    let calls = (0..1_000).map(|n| client.call::<u64>("work", (n,)).into_future());
    for (n, result) in within(join_all(calls)).await.into_iter().enumerate() {
        assert_eq!(result.unwrap(), 2 * n as u64 + 1);
    }
    assert_eq!(heard.load(Ordering::SeqCst), 2_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_callbacks_at_the_in_flight_limit_finish() {
    for in_flight in [1, 2, 16] {
        let limits = Limits { in_flight, ..Limits::default() };
        let (left, _right) = both((limits.clone(), descend()), (limits, descend()));
        let calls = (0..in_flight * 4).map(|_| left.call::<u64>("descend", (6,)).into_future());
        let results = within(join_all(calls)).await;
        for result in results {
            // Each call succeeds or fails with "server busy"; none is left without a response.
            match result {
                Ok(depth) => assert_eq!(depth, 6),
                Err(CallError::Rpc(error)) => assert_eq!(error.code.0, -32009, "{error}"),
                Err(other) => panic!("{other}"),
            }
        }
        // The connection can still be used.
        assert_eq!(within(left.call::<u64>("descend", (1,)).into_future()).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn nested_callbacks_below_the_limit_all_succeed() {
    let (left, _right) = both((Limits::default(), descend()), (Limits::default(), descend()));
    let calls = (0..50).map(|_| left.call::<u64>("descend", (10,)).into_future());
    for result in within(join_all(calls)).await {
        assert_eq!(result.unwrap(), 10);
    }
}

#[tokio::test]
async fn a_notification_may_call_back_and_be_called_back() {
    // The handler of a notification calls us, and we call its side before we answer.
    let (done, mut finished) = tokio::sync::mpsc::channel::<u64>(1);
    let theirs = descend().notification("start", move |(): (), cx: Context| {
        let done = done.clone();
        async move {
            let depth = cx.peer().unwrap().call::<u64>("descend", (5,)).await.unwrap();
            done.send(depth).await.unwrap();
        }
    });
    let (client, _server) = both((Limits::default(), descend()), (Limits::default(), theirs));
    client.notify("start", ()).await.unwrap();
    assert_eq!(within(finished.recv()).await, Some(5));
}

#[tokio::test]
async fn requests_behind_a_notification_start_when_it_calls_back() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = gate.clone();
    let theirs = Router::new()
        .notification("hold", move |(): (), cx: Context| {
            let gate = gate.clone();
            async move {
                gate.notified().await;
                cx.peer().unwrap().call::<()>("ask", ()).await.unwrap();
            }
        })
        .method("ping", |(): (), _cx: Context| async { Ok("pong") });
    let (mut raw, served) = Raw::served(Limits::default(), theirs);
    // A pending call of the served side keeps its reader active.
    let waiting = served.call::<()>("first", ()).into_future();
    let waiting = tokio::spawn(waiting);
    let first = raw.next().await;
    assert_eq!(first["method"], "first");
    raw.send(&notification("hold", "[]")).await;
    raw.send(&request(1, "ping", "[]")).await;
    opened.notify_one();
    let mut seen = [raw.next().await, raw.next().await];
    seen.sort_by_key(|message| message["method"].is_null());
    assert_eq!(seen[0]["method"], "ask");
    assert_eq!(seen[1]["result"], "pong");
    for message in [&first, &seen[0]] {
        raw.send(&format!(r#"{{"jsonrpc":"2.0","result":null,"id":{}}}"#, message["id"])).await;
    }
    within(waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn ids_of_the_two_directions_never_collide() {
    let theirs = Router::new().method("ask", |(): (), cx: Context| async move {
        Ok(cx.peer()?.call::<String>("name", ()).await?)
    });
    let (mut raw, _served) = Raw::served(Limits::default(), theirs);
    raw.send(&request(1, "ask", "[]")).await;
    let question = raw.next().await;
    assert_eq!((&question["method"], &question["id"]), (&"name".into(), &1.into()));
    // A request with the id of the call that the other side has pending.
    raw.send(&request(1, "ask", "[]")).await;
    let second = raw.next().await;
    for (question, name) in [(&question, "ada"), (&second, "bob")] {
        let id = &question["id"];
        raw.send(&format!(r#"{{"jsonrpc":"2.0","result":"{name}","id":{id}}}"#)).await;
        assert_eq!(raw.next().await["result"], name);
    }
}

#[tokio::test]
async fn at_the_limit_the_reader_pauses_and_later_serves_all() {
    let (release, held) = tokio::sync::watch::channel(false);
    let theirs = Router::new().method("hold", move |(n,): (u64,), _cx: Context| {
        let mut held = held.clone();
        async move {
            held.wait_for(|free| *free).await.unwrap();
            Ok(n)
        }
    });
    let limits = Limits { in_flight: 4, ..Limits::default() };
    let (client, _server): (Client, Client) =
        both((Limits::default(), Router::new()), (limits, theirs));
    let calls: Vec<_> =
        (0..100).map(|n| tokio::spawn(client.call::<u64>("hold", (n,)).into_future())).collect();
    release.send(true).unwrap();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(within(call).await.unwrap().unwrap(), n as u64);
    }
}

#[tokio::test]
async fn a_notification_may_call_back_through_any_handle() {
    // The handler of a notification calls through a client that it holds, and its side is called
    // before the response.
    let cell: Arc<OnceLock<Client>> = Arc::default();
    let given = cell.clone();
    let (done, mut finished) = tokio::sync::mpsc::channel::<u64>(1);
    let ours = descend().notification("start", move |(): (), _cx: Context| {
        let (client, done) = (given.get().unwrap().clone(), done.clone());
        async move {
            let depth = client.call::<u64>("descend", (5,)).await.unwrap();
            done.send(depth).await.unwrap();
        }
    });
    let (client, server) = both((Limits::default(), ours), (Limits::default(), descend()));
    cell.set(client.clone()).unwrap();
    server.notify("start", ()).await.unwrap();
    assert_eq!(within(finished.recv()).await, Some(5));
}
