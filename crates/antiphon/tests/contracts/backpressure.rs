//! Contract 7: queues are bounded, and two sides that both send much still make progress.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon::{CallError, Context, Limits, Peer, Router};
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{
    FOREVER, Holding, Raw, answer, client, elsewhere, holding, notification, request, serve, wires,
    within,
};

/// The behaviour of the notification handler.
#[derive(Clone, Copy, Debug)]
enum Handling {
    AtOnce,
    Waits,
    NotifiesBack,
}

type Received = mpsc::UnboundedReceiver<u64>;

/// Receives `note` and `ack`, and passes each to its own channel.
fn receiving(handling: Handling) -> (Router, Received, Received) {
    let (note, notes) = mpsc::unbounded_channel();
    let (ack, acks) = mpsc::unbounded_channel();
    let router = Router::new()
        .notification("note", move |(n, _): (u64, String), cx: Context| {
            let note = note.clone();
            async move {
                match handling {
                    Handling::AtOnce => {}
                    Handling::Waits if n % 16 == 0 => elsewhere().await,
                    Handling::Waits => {}
                    Handling::NotifiesBack => cx.peer().unwrap().notify("ack", (n,)).await.unwrap(),
                }
                note.send(n).unwrap();
            }
        })
        .notification("ack", move |(n,): (u64,), _cx: Context| {
            ack.send(n).unwrap();
            async {}
        });
    (router, notes, acks)
}

async fn send_notes(peer: Peer, notes: u64) {
    let text = "x".repeat(1_000);
    for n in 0..notes {
        peer.notify("note", (n, &text)).await.unwrap();
    }
}

/// Both sides send many notifications concurrently, and each receives all of them in order.
async fn both_send(endpoint: &str, write_queue_bytes: usize, handling: Handling, notes: u64) {
    // No timeout may resolve a deadlock.
    let limits = Limits { stall_timeout: FOREVER, write_queue_bytes, ..Limits::default() };
    let (served, mut served_notes, mut served_acks) = receiving(handling);
    let served = served.notification("talk", move |(): (), cx: Context| {
        tokio::spawn(send_notes(cx.peer().unwrap().clone(), notes));
        async {}
    });
    let address = serve(endpoint, limits.clone(), served).await;
    let (ours, mut our_notes, mut our_acks) = receiving(handling);
    let client = client().limits(limits).handler(ours).connect(&address).await.unwrap();
    client.notify("talk", ()).await.unwrap();
    tokio::spawn(send_notes(client.peer().unwrap().clone(), notes));
    for heard in [&mut served_notes, &mut our_notes] {
        for n in 0..notes {
            assert_eq!(within(heard.recv()).await, Some(n), "{endpoint} {handling:?}");
        }
    }
    if let Handling::NotifiesBack = handling {
        for heard in [&mut served_acks, &mut our_acks] {
            for n in 0..notes {
                assert_eq!(within(heard.recv()).await, Some(n), "{endpoint} {handling:?}");
            }
        }
    }
    within(client.close()).await;
}

/// More than the default write queue holds.
const MANY: u64 = 1_300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sides_that_both_send_make_progress() {
    for wire in wires() {
        both_send(wire, Limits::default().write_queue_bytes, Handling::AtOnce, MANY).await;
        both_send(wire, 1, Handling::AtOnce, 300).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sides_with_slow_handlers_make_progress() {
    for wire in wires() {
        both_send(wire, Limits::default().write_queue_bytes, Handling::Waits, MANY).await;
        both_send(wire, 1, Handling::Waits, 300).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sides_that_notify_back_make_progress() {
    for wire in wires() {
        // As many as may be queued while handlers wait for capacity.
        let notes = Limits::default().in_flight as u64 / 2;
        both_send(wire, Limits::default().write_queue_bytes, Handling::NotifiesBack, notes).await;
        both_send(wire, 1, Handling::NotifiesBack, 300).await;
    }
}

#[tokio::test]
async fn the_queue_behind_a_notification_is_bounded_in_bytes() {
    let Holding { router, mut entered, .. } = holding();
    let router = router.notification("note", |_: (String,), _cx: Context| async {});
    let limits = Limits { frame_bytes: 100_000, ..Limits::default() };
    let (mut raw, served) = Raw::served(limits, router);
    // A pending call of the served side keeps its reader active.
    let _waiting = tokio::spawn(served.call::<()>("ask", ()).into_future());
    raw.next().await;
    raw.send(&notification("hold_note", "[]")).await;
    within(entered.recv()).await.unwrap();
    let large = notification("note", &format!("[\"{}\"]", "x".repeat(20_000)));
    for _ in 0..5 {
        raw.send(&large).await;
    }
    // The queue is full. A request is rejected. A notification cannot be rejected, so it ends the
    // connection.
    raw.send(&request(1, "hold", "[]")).await;
    assert_eq!(raw.next().await["error"]["code"], -32009);
    raw.send(&large).await;
    let reason = within(served.peer().unwrap().closed()).await;
    assert!(reason.to_string().contains("too many notifications"), "{reason}");
}

#[tokio::test]
async fn a_queue_behind_unread_replies_names_that_reason() {
    let router = Router::new()
        .method("echo", |n: (u64,), _cx: Context| async move { Ok(n) })
        .notification("note", |(): (), _cx: Context| async {});
    let limits = Limits { write_queue_bytes: 1, queued_messages: 3, ..Limits::default() };
    let (mut raw, served) = Raw::served(limits, router);
    // A pending call of the served side keeps its reader active.
    let _waiting = tokio::spawn(served.call::<()>("ask", ()).into_future());
    raw.next().await;
    // More replies than fit into the wire, and then more notifications than may be queued.
    for n in 0..100 {
        raw.send(&request(n, "echo", "[1]")).await;
    }
    for _ in 0..4 {
        raw.send(&notification("note", "[]")).await;
    }
    let reason = within(served.peer().unwrap().closed()).await.to_string();
    for part in ["3 messages", "to read its replies", "`Limits::queued_messages` (3)"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn the_queue_behind_a_notification_continues_when_it_finishes() {
    let Holding { router, mut entered, release, .. } = holding();
    let router = router
        .notification("note", |_: (String,), _cx: Context| async {})
        .method("echo", |(n,): (u64,), _cx: Context| async move { Ok(n) });
    let limits = Limits { frame_bytes: 100_000, ..Limits::default() };
    let (mut raw, served) = Raw::served(limits, router);
    let waiting = tokio::spawn(served.call::<()>("ask", ()).into_future());
    let question = raw.next().await;
    let large = notification("note", &format!("[\"{}\"]", "x".repeat(20_000)));
    // Payloads that have left the queue do not count.
    for round in 0..5 {
        raw.send(&notification("hold_note", "[]")).await;
        within(entered.recv()).await.unwrap();
        for _ in 0..4 {
            raw.send(&large).await;
        }
        raw.send(&request(round, "echo", &format!("[{round}]"))).await;
        release.notify_one();
        assert_eq!(raw.next().await["result"], round);
    }
    raw.send(&answer(&question["id"], "null")).await;
    within(waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_running_batch_frees_the_capacity_of_its_finished_calls() {
    let Holding { router, mut entered, .. } = holding();
    let step = Arc::new(tokio::sync::Notify::new());
    let go = step.clone();
    let router = router
        .method("step", move |(): (), _cx: Context| {
            let go = go.clone();
            async move {
                go.notified().await;
                Ok(())
            }
        })
        .method("quick", |(): (), _cx: Context| async { Ok("quick") });
    let limits = Limits { in_flight: 2, stall_timeout: FOREVER, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router);
    raw.send(&format!("[{},{}]", request(1, "step", "[]"), request(2, "hold", "[]"))).await;
    within(entered.recv()).await.unwrap();
    raw.send(&request(3, "quick", "[]")).await;
    raw.send(&request(4, "quick", "[]")).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    step.notify_one();
    for id in [3, 4] {
        assert_eq!(raw.next().await, json!({"jsonrpc": "2.0", "result": "quick", "id": id}));
    }
}

/// The peer floods a connection with requests and reads no reply, while the handler of a notification waits
/// for it. The requests may overtake the notification, but their replies are limited.
#[tokio::test]
async fn a_flood_that_overtakes_a_notification_is_bounded() {
    let limits = Limits {
        write_queue_bytes: 4_000,
        response_bytes: 2_000,
        queued_messages: 4,
        stall_timeout: FOREVER,
        ..Limits::default()
    };
    let router = Router::new()
        .notification("note", |(): (), cx: Context| async move {
            let _ = cx.peer().unwrap().call::<()>("never", ()).await;
        })
        .method("large", |(): (), _cx: Context| async { Ok("x".repeat(1_000)) });
    let (mut raw, served) = Raw::served(limits, router);
    raw.send(&notification("note", "[]")).await;
    assert_eq!(raw.next().await["method"], "never");
    let flood = async {
        for id in 0..20_000 {
            raw.send(&request(id, "large", "[]")).await;
        }
    };
    let peer = served.peer().unwrap();
    let reason = tokio::select! {
        biased;
        reason = within(peer.closed()) => reason,
        () = flood => panic!("every request was accepted"),
    };
    assert_eq!(reason.to_string(), "the peer does not read its replies");
}

#[tokio::test]
async fn a_destructor_notifies_while_the_queue_is_full() {
    let limits = Limits { write_queue_bytes: 1, ..Limits::default() };
    let (mut raw, served) = Raw::served(limits, Router::new());
    let peer = served.peer().unwrap();
    assert!(peer.notify("note", ["first"]).now_or_never().is_some());
    assert!(peer.notify("note", ["waits"]).now_or_never().is_none());
    peer.notify_now("note", ["now"]).unwrap();
    assert_eq!(raw.next().await["params"][0], "first");
    assert_eq!(raw.next().await["params"][0], "now");
    within(served.close()).await;
    let error = peer.notify_now("note", ()).unwrap_err();
    assert!(matches!(error, CallError::Closed(_)), "{error:?}");
}

/// A notification of a destructor does not wait, so only the reader can stop a peer that causes them and does not
/// read.
#[tokio::test(start_paused = true)]
async fn notifications_of_destructors_are_bounded() {
    struct Job(Peer);
    impl Drop for Job {
        fn drop(&mut self) {
            let _ = self.0.notify_now("end", ["x".repeat(1_000)]);
        }
    }
    let (ended, count) = (Arc::new(AtomicUsize::new(0)), 1_000);
    let counter = ended.clone();
    let router = Router::new().notification("begin", move |(): (), cx: Context| {
        drop(Job(cx.peer().unwrap().clone()));
        counter.fetch_add(1, Ordering::Relaxed);
        async {}
    });
    let limits = Limits { write_queue_bytes: 10_000, stall_timeout: FOREVER, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router);
    let mut sent = 0;
    let flood = async {
        for _ in 0..count {
            raw.send(&notification("begin", "[]")).await;
            sent += 1;
        }
    };
    // The clock advances only when both sides wait.
    assert!(timeout(Duration::from_secs(1), flood).await.is_err(), "the reader never paused");
    // Ten are queued, and the wire holds 64.
    assert!(ended.load(Ordering::Relaxed) < 100, "{ended:?} of {sent}");
    for _ in 0..sent {
        assert_eq!(raw.next().await["method"], "end");
    }
}
