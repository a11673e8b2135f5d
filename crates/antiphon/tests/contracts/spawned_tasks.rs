//! `Context::spawn`: a task leaves the order of messages and ends with its connection.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{Context, Dialect, Limits, Responder, Router, SpawnError};
use tokio::sync::{Notify, mpsc};

use crate::support::{Raw, answer, client, notification, request, serve, wires, within};

type Reported = mpsc::UnboundedReceiver<&'static str>;

/// Reports when it is dropped.
struct Guard(mpsc::UnboundedSender<&'static str>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// The method `work` spawns a task that reports its start and its drop, and waits for the test.
fn working() -> (Router, Reported, Arc<Notify>) {
    let (report, reported) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let go = release.clone();
    let router = Router::new()
        .method("work", move |(): (), cx: Context| {
            let (report, go) = (report.clone(), go.clone());
            async move {
                cx.clone().spawn(async move {
                    let guard = Guard(report.clone());
                    report.send("started").unwrap();
                    go.notified().await;
                    cx.peer().unwrap().notify("done", ()).await.unwrap();
                    drop(guard);
                })?;
                Ok(())
            }
        })
        .method("ping", |(): (), _cx: Context| async { Ok("pong") });
    (router, reported, release)
}

#[tokio::test]
async fn a_task_that_calls_the_peer_delays_nothing() {
    for dialect in [Dialect::plain(), Dialect::lsp()] {
        let router = Router::new()
            .notification("open", |(): (), cx: Context| async move {
                cx.clone()
                    .spawn(async move {
                        let peer = cx.peer().unwrap();
                        peer.call::<()>("configuration", ()).await.unwrap();
                        peer.notify("configured", ()).await.unwrap();
                    })
                    .unwrap();
            })
            .method("ping", |(): (), _cx: Context| async { Ok("pong") });
        let (mut raw, _served) = Raw::served_in(dialect, Limits::default(), router);
        raw.send(&notification("open", "[]")).await;
        let question = raw.next().await;
        raw.send(&request(1, "ping", "[]")).await;
        assert_eq!(raw.next().await["result"], "pong");
        raw.send(&answer(&question["id"], "null")).await;
        assert_eq!(raw.next().await["method"], "configured");
    }
}

#[tokio::test]
async fn a_task_ends_when_its_connection_ends() {
    for wire in wires() {
        let (router, mut reported, _release) = working();
        // A peer that closes may still read, so a stream drains for the shutdown timeout.
        let limits = Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() };
        let address = serve(wire, limits, router).await;
        let caller = client().connect(&address).await.unwrap();
        within(caller.call::<()>("work", ()).into_future()).await.unwrap();
        assert_eq!(within(reported.recv()).await, Some("started"));
        drop(caller);
        assert_eq!(within(reported.recv()).await, Some("dropped"), "{wire}");
    }
}

#[tokio::test]
async fn a_graceful_close_waits_for_a_task() {
    let (router, mut reported, release) = working();
    let (mut raw, served) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "work", "[]")).await;
    raw.next().await;
    assert_eq!(within(reported.recv()).await, Some("started"));
    let closing = tokio::spawn(served.close());
    // A request is refused once the close has begun.
    raw.send(&request(2, "ping", "[]")).await;
    while raw.next().await["error"]["code"] != -32009 {
        raw.send(&request(2, "ping", "[]")).await;
    }
    assert!(reported.try_recv().is_err());
    release.notify_one();
    assert_eq!(raw.next().await["method"], "done");
    assert_eq!(within(reported.recv()).await, Some("dropped"));
    within(closing).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_drops_a_task_that_outlasts_its_timeout() {
    let (router, mut reported, _release) = working();
    let (mut raw, served) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "work", "[]")).await;
    raw.next().await;
    assert_eq!(reported.recv().await, Some("started"));
    served.close().await;
    assert_eq!(reported.recv().await, Some("dropped"));
}

#[tokio::test]
async fn a_panic_in_a_task_leaves_the_connection_open() {
    let (router, ..) = working();
    let router = router.method("panic", |(): (), cx: Context| async move {
        cx.spawn(async { panic!("a task panics on purpose") })?;
        Ok(())
    });
    let (mut raw, served) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "panic", "[]")).await;
    raw.send(&request(2, "ping", "[]")).await;
    raw.next().await;
    assert_eq!(raw.next().await["result"], "pong");
    // The close does not wait for it.
    within(served.close()).await;
}

#[tokio::test]
async fn tasks_are_limited_apart_from_requests() {
    let (router, mut reported, release) = working();
    let limits = Limits { in_flight: 2, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router);
    for id in [1, 2] {
        raw.send(&request(id, "work", "[]")).await;
        assert!(raw.next().await["error"].is_null());
        assert_eq!(within(reported.recv()).await, Some("started"));
    }
    raw.send(&request(3, "work", "[]")).await;
    assert_eq!(raw.next().await["error"]["code"], -32009);
    raw.send(&request(4, "ping", "[]")).await;
    assert_eq!(raw.next().await["result"], "pong");
    // A task that ends makes room.
    release.notify_one();
    assert_eq!(raw.next().await["method"], "done");
    assert_eq!(within(reported.recv()).await, Some("dropped"));
    loop {
        raw.send(&request(5, "work", "[]")).await;
        if raw.next().await["error"].is_null() {
            break;
        }
    }
}

#[tokio::test]
async fn without_a_connection_a_task_is_refused() {
    let router = Router::new().method("work", |(): (), cx: Context| async move {
        Ok(matches!(cx.spawn(async {}), Err(SpawnError::NoConnection("none"))))
    });
    let reply = Responder::new(router).answer(request(1, "work", "[]")).await.unwrap();
    assert!(reply.windows(13).any(|text| text == b"\"result\":true"), "{reply:?}");
}

/// Panics when it is dropped.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("a destructor panics on purpose");
    }
}

#[tokio::test]
async fn a_destructor_that_panics_does_not_keep_a_task_counted() {
    let (router, mut reported, _release) = working();
    let router = router.method("bad", |(): (), cx: Context| async move {
        cx.spawn(async {
            let _bad = PanicsOnDrop;
            std::future::pending::<()>().await;
        })?;
        Ok(())
    });
    let limits = Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() };
    let (mut raw, served) = Raw::served(limits, router);
    for method in ["bad", "work", "bad"] {
        raw.send(&request(1, method, "[]")).await;
        raw.next().await;
    }
    assert_eq!(within(reported.recv()).await, Some("started"));
    within(served.close()).await;
    assert_eq!(within(reported.recv()).await, Some("dropped"));
}

/// Each task starts its successor before it ends.
#[tokio::test(start_paused = true)]
async fn tasks_that_start_tasks_end_with_the_shutdown() {
    fn chain(cx: Context, ended: mpsc::UnboundedSender<SpawnError>) -> Result<(), SpawnError> {
        cx.clone().spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Err(error) = chain(cx, ended.clone()) {
                ended.send(error).unwrap();
            }
        })
    }
    let (ended, mut error) = mpsc::unbounded_channel();
    let router = Router::new().method("chain", move |(): (), cx: Context| {
        let started = chain(cx, ended.clone());
        async move { Ok(started?) }
    });
    let (mut raw, served) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "chain", "[]")).await;
    assert!(raw.next().await["error"].is_null());
    // A task that starts the next one must not keep the connection open. The clock is paused.
    tokio::time::timeout(Duration::from_secs(3_600), served.close()).await.unwrap();
    // The last task was dropped, or was told that the connection ends.
    let last = error.recv().await;
    assert!(matches!(last, None | Some(SpawnError::Closed(_))), "{last:?}");
}

#[tokio::test]
async fn the_calls_of_a_batch_share_the_limit_of_tasks() {
    let (router, ..) = working();
    let limits = Limits { in_flight: 2, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router);
    let calls: Vec<_> = (1..=3).map(|id| request(id, "work", "[]")).collect();
    raw.send(&format!("[{}]", calls.join(","))).await;
    let replies = raw.next().await;
    let errors: Vec<_> = (0..3).map(|at| replies[at]["error"]["code"].clone()).collect();
    assert_eq!(errors, [().into(), ().into(), serde_json::Value::from(-32009)]);
}
