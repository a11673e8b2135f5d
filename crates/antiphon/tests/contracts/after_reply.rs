//! `Context::notify_after_reply`: a notification right behind the reply of a call.

use std::future::IntoFuture;
use std::time::Duration;

use antiphon::{CallError, Context, ErrorObject, Limits, Responder, Router, Sink};
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::support::{Raw, client, elsewhere, notification, request, serve, wires, within};

/// Each method registers a notification `after` with its first param.
fn following() -> Router {
    let after = |cx: Context, n: u64| async move { cx.notify_after_reply("after", (n,)).await };
    Router::new()
        .method("at_once", move |(n,): (u64,), cx: Context| async move {
            after(cx, n).await?;
            Ok(n)
        })
        .method("later", move |(n,): (u64,), cx: Context| async move {
            after(cx, n).await?;
            elsewhere().await;
            Ok(n)
        })
        .method("fails", move |(n,): (u64,), cx: Context| async move {
            after(cx, n).await?;
            Err::<(), _>(ErrorObject::invalid_params())
        })
        .method("panics", move |(n,): (u64,), cx: Context| async move {
            after(cx, n).await?;
            assert!(n == 0, "a handler panics on purpose");
            Ok(())
        })
        .method("large", move |(n,): (u64,), cx: Context| async move {
            after(cx, n).await?;
            Ok("x".repeat(1_000))
        })
        .notification("note", move |(n,): (u64,), cx: Context| async move {
            after(cx, n).await.unwrap();
        })
}

fn is_after(message: &Value, n: u64) -> bool {
    message["method"] == "after" && message["params"][0] == n
}

#[tokio::test]
async fn the_notification_follows_its_reply() {
    let (mut raw, _served) = Raw::served(Limits::default(), following());
    for method in ["at_once", "later"] {
        raw.send(&request(7, method, "[3]")).await;
        assert_eq!(raw.next().await["id"], 7);
        assert!(is_after(&raw.next().await, 3));
    }
    raw.send(&notification("note", "[4]")).await;
    assert!(is_after(&raw.next().await, 4));
}

#[tokio::test]
async fn in_a_batch_the_notifications_follow_the_whole_reply() {
    let (mut raw, _served) = Raw::served(Limits::default(), following());
    let batch =
        [request(1, "later", "[1]"), request(2, "fails", "[2]"), request(3, "at_once", "[3]")];
    raw.send(&format!("[{}]", batch.join(","))).await;
    assert_eq!(raw.next().await.as_array().unwrap().len(), 3);
    let mut heard = [raw.next().await, raw.next().await];
    heard.sort_by_key(|message| message["params"][0].as_u64());
    assert!(is_after(&heard[0], 1) && is_after(&heard[1], 3), "{heard:?}");
}

#[tokio::test]
async fn an_error_is_followed_by_nothing() {
    let limits = Limits { response_bytes: 500, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, following());
    for method in ["fails", "panics", "large"] {
        raw.send(&request(1, method, "[1]")).await;
        assert!(raw.next().await["error"].is_object(), "{method}");
        raw.send(&format!("[{}]", request(2, method, "[1]"))).await;
        assert!(raw.next().await[0]["error"].is_object(), "{method}");
        raw.send(&request(3, "at_once", "[2]")).await;
        assert_eq!(raw.next().await["id"], 3, "{method}");
        assert!(is_after(&raw.next().await, 2));
    }
}

#[tokio::test]
async fn the_notifications_after_one_reply_are_bounded() {
    let limits = Limits { response_bytes: 500, ..Limits::default() };
    let router = Router::new().method("many", |(): (), cx: Context| async move {
        let mut kept = 0;
        loop {
            match cx.notify_after_reply("after", (kept,)).await {
                Ok(()) => kept += 1,
                Err(CallError::OverLimit(_)) => return Ok(kept),
                Err(error) => return Err(error.into()),
            }
        }
    });
    let (mut raw, _served) = Raw::served(limits, router);
    raw.send(&request(1, "many", "[]")).await;
    let kept = raw.next().await["result"].as_u64().unwrap();
    assert!((2..=50).contains(&kept), "{kept}");
    for n in 0..kept {
        assert!(is_after(&raw.next().await, n));
    }
}

/// The reply of a batch that runs out of time has a result that is too large.
#[tokio::test(start_paused = true)]
async fn an_expired_batch_with_a_large_result_is_followed_by_nothing() {
    let hanging = Router::new()
        .method("hangs", |(): (), _cx: Context| std::future::pending::<Result<(), _>>());
    let limits = Limits {
        response_bytes: 500,
        request_timeout: Some(Duration::from_secs(1)),
        ..Limits::default()
    };
    let (mut raw, _served) = Raw::served(limits, following().merge(hanging));
    let batch = [request(1, "large", "[1]"), request(2, "hangs", "[]")];
    raw.send(&format!("[{}]", batch.join(","))).await;
    assert_eq!(raw.next().await.as_array().unwrap().len(), 2);
    raw.send(&request(3, "at_once", "[2]")).await;
    assert_eq!(raw.next().await["id"], 3);
    assert!(is_after(&raw.next().await, 2));
}

/// A raw peer on the in-process wire sees the order of a thousand pipelined replies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_pipelined_replies_are_each_followed() {
    for method in ["at_once", "later"] {
        let (mut raw, _served) = Raw::served(Limits::default(), following());
        for n in 0..1_000 {
            raw.send(&request(n, method, &format!("[{n}]"))).await;
        }
        let mut replied = vec![false; 1_000];
        let mut heard = 0;
        while heard < 1_000 {
            let message = raw.next().await;
            match message["id"].as_u64() {
                Some(id) => replied[usize::try_from(id).unwrap()] = true,
                None => {
                    let n = usize::try_from(message["params"][0].as_u64().unwrap()).unwrap();
                    assert!(replied[n], "{method}: the notification {n} is before its reply");
                    heard += 1;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_notification_arrives_on_every_wire() {
    for wire in wires() {
        let address = serve(wire, Limits::default(), following()).await;
        let (hear, mut heard) = mpsc::unbounded_channel();
        let hearing = Router::new().notification("after", move |(n,): (u64,), _cx: Context| {
            hear.send(n).unwrap();
            async {}
        });
        let caller = client().handler(hearing).connect(&address).await.unwrap();
        let calls = (0..1_000).map(|n| {
            let method = if n % 2 == 0 { "at_once" } else { "later" };
            caller.call::<u64>(method, (n,)).into_future()
        });
        for reply in within(join_all(calls)).await {
            reply.unwrap();
        }
        let mut all = Vec::new();
        for _ in 0..1_000 {
            all.push(within(heard.recv()).await.unwrap());
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1_000), "{wire}");
    }
}

#[tokio::test]
async fn without_a_connection_it_fails() {
    let router = Router::new().method("try", |(): (), cx: Context| async move {
        let tried = cx.notify_after_reply("after", ()).await;
        Ok(matches!(tried, Err(CallError::CannotCallBack(_))))
    });
    let reply = Responder::new(router).answer(request(1, "try", "[]")).await.unwrap();
    assert!(reply.windows(13).any(|text| text == b"\"result\":true"), "{reply:?}");
}

/// The reply of a subscription is sent while its handler runs on.
#[tokio::test]
async fn after_the_reply_a_notification_is_sent_at_once() {
    let router =
        Router::new().subscription_with("ticks", |(): (), sink: Sink, cx: Context| async move {
            cx.notify_after_reply("after", (0,)).await?;
            sink.send("tick").await?;
            sink.closed().await;
            Ok(())
        });
    let router = router.subscription_with("late", |(): (), sink: Sink, cx: Context| async move {
        sink.accept();
        tokio::task::yield_now().await;
        for n in 0..3 {
            cx.notify_after_reply("after", (n,)).await?;
        }
        sink.closed().await;
        Ok(())
    });
    let (mut raw, _served) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "subscribe_ticks", "[]")).await;
    assert_eq!(raw.next().await["id"], 1);
    let mut next = [raw.next().await, raw.next().await];
    next.sort_by_key(|message| message["method"].as_str().map(str::to_owned));
    assert!(is_after(&next[0], 0) && next[1]["method"] == "ticks", "{next:?}");
    raw.send(&request(2, "subscribe_late", "[]")).await;
    assert_eq!(raw.next().await["id"], 2);
    for n in 0..3 {
        assert!(is_after(&raw.next().await, n));
    }
}

/// A task that the handler has started keeps the context, and notifies after the reply.
#[tokio::test]
async fn a_task_that_outlives_its_call_can_notify() {
    let (go, signal) = watch::channel(());
    let late = move |cx: Context, n: u64| {
        let mut signal = signal.clone();
        signal.borrow_and_update();
        tokio::spawn(async move {
            signal.changed().await.unwrap();
            cx.notify_after_reply("after", (n,)).await.unwrap();
        });
    };
    let slow = late.clone();
    let router = Router::new()
        .method("at_once", move |(n,): (u64,), cx: Context| {
            late(cx, n);
            async move { if n == 0 { Err(ErrorObject::invalid_params()) } else { Ok(n) } }
        })
        .method("later", move |(n,): (u64,), cx: Context| {
            slow(cx, n);
            async move {
                elsewhere().await;
                if n == 0 { Err(ErrorObject::invalid_params()) } else { Ok(n) }
            }
        });
    let (mut raw, _served) = Raw::served(Limits::default(), router);
    for method in ["at_once", "later"] {
        for is_batch in [false, true] {
            let two = [request(1, method, "[0]"), request(2, method, "[2]")];
            if is_batch {
                raw.send(&format!("[{}]", two.join(","))).await;
                assert_eq!(raw.next().await.as_array().unwrap().len(), 2);
            } else {
                for one in &two {
                    raw.send(one).await;
                    raw.next().await;
                }
            }
            go.send(()).unwrap();
            assert!(is_after(&raw.next().await, 2), "{method} {is_batch}");
            // The failed call is followed by nothing: the next message is this response.
            raw.send(&request(3, "nowhere", "[]")).await;
            assert_eq!(raw.next().await["id"], 3, "{method} {is_batch}");
        }
    }
}
