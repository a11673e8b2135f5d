//! Contract 5: notifications finish in arrival order, and a request starts after those before it.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use antiphon::{Context, Dialect, Limits, Router};
use futures_util::future::join_all;

use crate::event_log::EventLog;
use crate::support::{Holding, Raw, answer, both, holding, notification, request, within};

type Log = Arc<Mutex<Vec<String>>>;

fn logging(log: &Log) -> Router {
    let (noted, asked) = (log.clone(), log.clone());
    Router::new()
        .notification("note", move |(n, waits): (u64, u64), _cx: Context| {
            let log = noted.clone();
            async move {
                for _ in 0..waits {
                    tokio::task::yield_now().await;
                }
                log.lock().unwrap().push(format!("note {n}"));
            }
        })
        .method("ask", move |(n,): (u64,), _cx: Context| {
            asked.lock().unwrap().push(format!("ask {n}"));
            async move {
                tokio::task::yield_now().await;
                Ok(n)
            }
        })
}

#[tokio::test]
async fn a_slow_notification_delays_the_messages_behind_it() {
    let log = Log::default();
    let (mut raw, _served) = Raw::served(Limits::default(), logging(&log));
    raw.send(&notification("note", "[1,50]")).await;
    raw.send(&notification("note", "[2,0]")).await;
    raw.send(&request(1, "ask", "[3]")).await;
    raw.send(&notification("note", "[4,10]")).await;
    raw.send(&request(2, "ask", "[5]")).await;
    raw.next().await;
    raw.next().await;
    assert_eq!(*log.lock().unwrap(), ["note 1", "note 2", "ask 3", "note 4", "ask 5"]);
}

#[tokio::test]
async fn the_order_holds_inside_a_batch_and_across_it() {
    let log = Log::default();
    let (mut raw, _served) = Raw::served(Limits::default(), logging(&log));
    let batch =
        [notification("note", "[1,20]"), request(1, "ask", "[2]"), notification("note", "[3,5]")];
    raw.send(&format!("[{}]", batch.join(","))).await;
    raw.send(&request(2, "ask", "[4]")).await;
    raw.next().await;
    raw.next().await;
    assert_eq!(*log.lock().unwrap(), ["note 1", "ask 2", "note 3", "ask 4"]);
}

#[tokio::test]
async fn handlers_are_called_in_arrival_order() {
    let log = Log::default();
    let (client, _server) =
        both((Limits::default(), Router::new()), (Limits::default(), logging(&log)));
    let calls: Vec<_> = (0..200).map(|n| client.call::<u64>("ask", (n,)).into_future()).collect();
    within(join_all(calls)).await;
    let expected: Vec<String> = (0..200).map(|n| format!("ask {n}")).collect();
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_handler_that_never_awaits_is_not_spawned() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let tasks = move || metrics.num_alive_tasks();
    let during = Router::new().method("tasks", move |(): (), _cx: Context| {
        let count = tasks();
        async move { Ok(count) }
    });
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), during));
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..10 {
        let count: usize = within(client.call("tasks", ()).into_future()).await.unwrap();
        assert_eq!(count, before);
    }
}

#[tokio::test]
async fn a_batch_with_a_notification_overtakes_nothing() {
    let log = Log::default();
    let router = logging(&log).notification("call_back", |(): (), cx: Context| async move {
        cx.peer().unwrap().call::<()>("ask", ()).await.unwrap();
    });
    let (mut raw, _served) = Raw::served(Limits::default(), router);
    raw.send(&notification("call_back", "[]")).await;
    let question = raw.next().await;
    // While the notification waits for our response, a request overtakes it, but a batch with a
    // notification does not.
    raw.send(&format!("[{},{}]", notification("note", "[1,20]"), request(1, "ask", "[1]"))).await;
    raw.send(&request(2, "ask", "[2]")).await;
    assert_eq!(raw.next().await["id"], 2);
    raw.send(&answer(&question["id"], "null")).await;
    let answers = raw.next().await;
    assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&1.into(), &1.into()));
    assert_eq!(*log.lock().unwrap(), ["ask 2", "note 1", "ask 1"]);
}

#[tokio::test]
async fn a_closing_connection_answers_queued_requests() {
    let log = Log::default();
    let router = logging(&log).notification("call_back", |(): (), cx: Context| async move {
        cx.peer().unwrap().call::<()>("ask", ()).await.unwrap();
    });
    let (mut raw, served) = Raw::served(Limits::default(), router);
    raw.send(&notification("call_back", "[]")).await;
    let question = raw.next().await;
    raw.send(&format!("[{},{}]", notification("note", "[1,20]"), request(1, "ask", "[1]"))).await;
    raw.send(&request(2, "ask", "[2]")).await;
    assert_eq!(raw.next().await["id"], 2);
    let closing = tokio::spawn(served.close());
    raw.send(&answer(&question["id"], "null")).await;
    assert_eq!(raw.next().await[0]["result"], 1);
    within(closing).await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["ask 2", "note 1", "ask 1"]);
}

#[tokio::test]
async fn a_handle_kept_from_a_notification_does_not_change_the_order() {
    let log = Log::default();
    let (answered, mut hearing) = tokio::sync::mpsc::channel::<()>(1);
    let Holding { router, mut entered, release, .. } = holding();
    let router = router.merge(logging(&log)).notification("start", move |(): (), cx: Context| {
        let (peer, answered) = (cx.peer().unwrap().clone(), answered.clone());
        tokio::spawn(async move {
            peer.call::<()>("later", ()).await.unwrap();
            answered.send(()).await.unwrap();
        });
        async {}
    });
    let (mut raw, _served) = Raw::served(Limits::default(), router);
    raw.send(&notification("start", "[]")).await;
    let question = raw.next().await;
    raw.send(&notification("hold_note", "[]")).await;
    within(entered.recv()).await.unwrap();
    raw.send(&request(1, "ask", "[1]")).await;
    // When this call arrives, the messages before it were read, and none of them has started.
    raw.send(&answer(&question["id"], "null")).await;
    within(hearing.recv()).await.unwrap();
    assert!(log.lock().unwrap().is_empty());
    release.notify_one();
    assert_eq!(raw.next().await["result"], 1);
}

/// A document server: `open` asks the peer, `change` sets the text, `hover` returns it.
fn documents() -> Router {
    let text = Arc::new(Mutex::new(0_u64));
    let shown = text.clone();
    Router::new()
        .notification("open", |(): (), cx: Context| async move {
            cx.peer().unwrap().call::<()>("configuration", ()).await.unwrap();
        })
        .notification("change", move |(version,): (u64,), _cx: Context| {
            let mut text = text.lock().unwrap();
            // Nothing is lost and nothing is out of order.
            assert_eq!(*text + 1, version);
            *text = version;
            async {}
        })
        .method("hover", move |(): (), _cx: Context| {
            let version = *shown.lock().unwrap();
            async move { Ok(version) }
        })
}

#[tokio::test]
async fn in_a_strict_order_a_request_sees_every_change_before_it() {
    for dialect in [Dialect::lsp(), Dialect::plain().strict_order(true)] {
        let (mut raw, _served) = Raw::served_in(dialect, Limits::default(), documents());
        raw.send(&notification("open", "[]")).await;
        let question = raw.next().await;
        for version in 1..=2_000 {
            raw.send(&notification("change", &format!("[{version}]"))).await;
        }
        raw.send(&request(1, "hover", "[]")).await;
        // The response passes all of them.
        raw.send(&answer(&question["id"], "null")).await;
        assert_eq!(raw.next().await["result"], 2_000);
    }
}

#[tokio::test]
async fn in_a_strict_order_a_cancellation_reaches_a_waiting_request() {
    let (mut raw, _served) = Raw::served_in(Dialect::lsp(), Limits::default(), documents());
    raw.send(&notification("open", "[]")).await;
    let question = raw.next().await;
    raw.send(&notification("change", "[1]")).await;
    raw.send(&request(1, "hover", "[]")).await;
    raw.send(&request(2, "hover", "[]")).await;
    raw.send(&notification("$/cancelRequest", r#"{"id":1}"#)).await;
    let cancelled = raw.next().await;
    assert_eq!((&cancelled["id"], &cancelled["error"]["code"]), (&1.into(), &(-32800).into()));
    raw.send(&answer(&question["id"], "null")).await;
    let shown = raw.next().await;
    assert_eq!((&shown["id"], &shown["result"]), (&2.into(), &1.into()));
}

#[tokio::test]
async fn an_overlong_queue_ends_the_connection_and_names_the_remedy() {
    let limits = Limits { queued_messages: 3, ..Limits::default() };
    let (mut raw, served) = Raw::served_in(Dialect::lsp(), limits, documents());
    raw.send(&notification("open", "[]")).await;
    raw.next().await;
    for version in 1..=3 {
        raw.send(&notification("change", &format!("[{version}]"))).await;
    }
    raw.send(&request(1, "hover", "[]")).await;
    assert_eq!(raw.next().await["error"]["code"], -32009);
    raw.send(&notification("change", "[4]")).await;
    let reason = within(served.peer().unwrap().closed()).await;
    for part in ["3 messages", "`Context::spawn`", "`Limits::queued_messages` (3)"] {
        assert!(reason.to_string().contains(part), "{reason}");
    }
}

#[tokio::test]
async fn overtaking_is_logged_once_with_its_remedy() {
    let log = EventLog::of_warnings();
    let _logging = tracing::subscriber::set_default(log.clone());
    let (mut raw, _served) = Raw::served_in(Dialect::plain(), Limits::default(), documents());
    raw.send(&notification("open", "[]")).await;
    raw.next().await;
    raw.send(&request(1, "hover", "[]")).await;
    raw.send(&request(2, "hover", "[]")).await;
    assert_eq!(raw.next().await["id"], 1);
    assert_eq!(raw.next().await["id"], 2);
    let logged = log.values();
    let [warning] = &logged[..] else { panic!("{logged:?}") };
    assert!(warning.contains("`Context::spawn`") && warning.contains("strict_order"), "{warning}");
}

#[tokio::test]
async fn a_notification_behind_a_refused_request_is_not_lost() {
    for dialect in [Dialect::plain(), Dialect::lsp()] {
        let log = Log::default();
        let router = logging(&log).method("ask_back", |(): (), cx: Context| async move {
            cx.peer().unwrap().call::<()>("question", ()).await.unwrap();
            Ok(())
        });
        let limits = Limits { in_flight: 1, ..Limits::default() };
        let (mut raw, _served) = Raw::served_in(dialect, limits, router);
        raw.send(&request(1, "ask_back", "[]")).await;
        let question = raw.next().await;
        // All of them arrive before the connection is polled again.
        raw.send(&request(2, "ask", "[2]")).await;
        raw.send(&notification("note", "[3,0]")).await;
        raw.send(&format!("[{},{}]", request(5, "ask", "[5]"), notification("note", "[4,0]")))
            .await;
        for n in 5..2_000 {
            raw.send(&notification("note", &format!("[{n},0]"))).await;
        }
        assert_eq!(raw.next().await["error"]["code"], -32009);
        assert_eq!(raw.next().await[0]["error"]["code"], -32009);
        raw.send(&answer(&question["id"], "null")).await;
        assert_eq!(raw.next().await["id"], 1);
        raw.send(&request(6, "ask", "[6]")).await;
        assert_eq!(raw.next().await["result"], 6);
        let notes = (3..2_000).map(|n| format!("note {n}"));
        let expected: Vec<_> = notes.chain(["ask 6".to_owned()]).collect();
        assert_eq!(*log.lock().unwrap(), expected);
    }
}
