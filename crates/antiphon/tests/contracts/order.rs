//! Contract 5: notifications finish in arrival order, and a request starts after those before it.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use antiphon::{Context, ErrorObject, Limits, Router};
use futures_util::future::join_all;

use crate::support::{Raw, both, notification, request, within};

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
                Ok::<_, ErrorObject>(n)
            }
        })
}

#[tokio::test]
async fn a_slow_notification_holds_back_what_follows() {
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
async fn handlers_are_entered_in_arrival_order() {
    let log = Log::default();
    let (client, _server) =
        both((Limits::default(), Router::new()), (Limits::default(), logging(&log)));
    let calls: Vec<_> = (0..200).map(|n| client.call::<u64>("ask", (n,)).into_future()).collect();
    within(join_all(calls)).await;
    let expected: Vec<String> = (0..200).map(|n| format!("ask {n}")).collect();
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_handler_that_does_not_wait_is_no_task() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let tasks = move || metrics.num_alive_tasks();
    let during = Router::new().method("tasks", move |(): (), _cx: Context| {
        let count = tasks();
        async move { Ok::<_, ErrorObject>(count) }
    });
    let (client, _server) = both((Limits::default(), Router::new()), (Limits::default(), during));
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..10 {
        let count: usize = within(client.call("tasks", ()).into_future()).await.unwrap();
        assert_eq!(count, before);
    }
}
