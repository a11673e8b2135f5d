//! Contract 11: the connection cancels calls, and the dialect defines the message for it.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{
    CallError, Cancellation, Context, Dialect, ErrorObject, Handler as _, Limits, Router, Sink,
    layer,
};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::support::{
    Holding, Raw, bound, client, holding, notification, request, serve, wires, within,
};

fn cancel(id: &str) -> String {
    notification("$/cancelRequest", &format!("{{\"id\":{id}}}"))
}

fn ping(router: Router) -> Router {
    router.method("ping", |(): (), _cx: Context| async { Ok("pong") })
}

#[tokio::test]
async fn a_running_call_is_cancelled_and_answered() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), Limits::default(), router);
    for id in ["1", "\"one\"", "1.50", "null"] {
        let call = format!(r#"{{"jsonrpc":"2.0","method":"hold","id":{id}}}"#);
        raw.send(&call).await;
        within(entered.recv()).await.unwrap();
        raw.send(&cancel(id)).await;
        let answer = raw.next().await;
        assert_eq!(answer["error"]["code"], -32800, "{answer}");
        assert_eq!(answer["id"], serde_json::from_str::<serde_json::Value>(id).unwrap());
        within(gone.recv()).await.unwrap();
    }
}

/// A cancellation does not state the version of the call, but the id of a 1.0 call contains it.
#[tokio::test]
async fn a_call_of_version_1_is_cancelled() {
    let dialect = Dialect::v1().cancellation(Cancellation::new("stop", "id"));
    let stop = r#"{"method":"stop","params":{"id":7},"id":null}"#;
    let call = r#"{"method":"hold","id":7}"#;
    let cancelled =
        r#"{"result":null,"error":{"code":-32800,"message":"Request cancelled"},"id":7}"#;
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { in_flight: 1, ..Limits::default() };
    let (mut raw, _server) = Raw::served_in(dialect, limits, router);
    for (call, cancelled) in
        [(call.to_owned(), cancelled.to_owned()), (format!("[{call}]"), format!("[{cancelled}]"))]
    {
        raw.send(&call).await;
        within(entered.recv()).await.unwrap();
        raw.send(stop).await;
        assert_eq!(raw.next_text().await, cancelled);
        within(gone.recv()).await.unwrap();
    }

    // In a batch, a cancellation is an entry.
    raw.send(call).await;
    within(entered.recv()).await.unwrap();
    raw.send(&format!("[{stop}]")).await;
    assert_eq!(raw.next_text().await, cancelled);
    within(gone.recv()).await.unwrap();

    // The second call waits for the limit of calls in flight.
    raw.send(r#"{"method":"hold","id":8}"#).await;
    within(entered.recv()).await.unwrap();
    raw.send(call).await;
    raw.send(stop).await;
    assert_eq!(raw.next_text().await, cancelled);
}

#[tokio::test]
async fn a_dropped_call_of_version_1_is_cancelled_in_its_version() {
    let dialect = Dialect::v1().cancellation(Cancellation::new("stop", "id"));
    let (mut theirs, client) = Raw::served_in(dialect, Limits::default(), Router::new());
    let mut call = Box::pin(client.call::<()>("hold", ()).into_future());
    tokio::select! {
        biased;
        _ = &mut call => panic!("nobody responds"),
        call = theirs.next_text() => assert_eq!(call, r#"{"method":"hold","params":[],"id":1}"#),
    }
    drop(call);
    assert_eq!(theirs.next_text().await, r#"{"method":"stop","params":{"id":1},"id":null}"#);
}

#[tokio::test]
async fn a_cancelled_call_has_no_response_if_the_dialect_says_so() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let (mut raw, _server) = Raw::served_in(Dialect::mcp(), Limits::default(), ping(router));
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    raw.send(&notification("notifications/cancelled", r#"{"requestId":1,"reason":"no"}"#)).await;
    within(gone.recv()).await.unwrap();
    raw.send(&request(2, "ping", "[]")).await;
    assert_eq!(raw.next().await["id"], 2);
}

#[tokio::test]
async fn a_cancellation_of_a_finished_or_unknown_call_is_ignored() {
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), Limits::default(), ping(Router::new()));
    raw.send(&request(1, "ping", "[]")).await;
    assert_eq!(raw.next().await["result"], "pong");
    raw.send(&cancel("1")).await;
    raw.send(&cancel("99")).await;
    raw.send(&notification("$/cancelRequest", "[1]")).await;
    raw.send(r#"{"jsonrpc":"2.0","method":"$/cancelRequest"}"#).await;
    raw.send(&request(1, "ping", "[]")).await;
    assert_eq!(raw.next().await["result"], "pong");
}

/// A notification whose handler waits delays the call and the batch behind it, but no cancellation.
#[tokio::test]
async fn a_cancelled_call_that_has_not_started_never_starts() {
    let Holding { router, mut entered, release, .. } = holding();
    let (started, mut starts) = mpsc::channel(8);
    let router = router.method("start", move |(): (), cx: Context| {
        let started = started.clone();
        async move {
            started.send(cx.id().cloned()).await.map_err(|_| ErrorObject::internal_error())?;
            Ok("started")
        }
    });
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), Limits::default(), router);
    raw.send(&notification("hold_note", "[]")).await;
    within(entered.recv()).await.unwrap();
    raw.send(&request(1, "start", "[]")).await;
    raw.send(&format!("[{},{}]", request(2, "start", "[]"), request(3, "start", "[]"))).await;
    raw.send(&cancel("1")).await;
    raw.send(&cancel("3")).await;
    let first = raw.next().await;
    assert_eq!((&first["id"], &first["error"]["code"]), (&json!(1), &json!(-32800)));
    release.notify_one();
    let batch = raw.next().await;
    assert_eq!((&batch[0]["id"], &batch[0]["result"]), (&json!(2), &json!("started")));
    assert_eq!((&batch[1]["id"], &batch[1]["error"]["code"]), (&json!(3), &json!(-32800)));
    let ids: Vec<_> = std::iter::from_fn(|| starts.try_recv().ok()).collect();
    assert_eq!(ids, [Some(antiphon::Id::from(2))]);
}

/// At the in-flight limit further calls wait, and a cancellation lets one of them start.
#[tokio::test]
async fn at_the_in_flight_limit_cancellations_are_read() {
    let Holding { router, mut entered, .. } = holding();
    let limits = Limits { in_flight: 1, ..Limits::default() };
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), limits, ping(router));
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    raw.send(&request(2, "hold", "[]")).await;
    raw.send(&request(3, "ping", "[]")).await;
    raw.send(&cancel("1")).await;
    assert_eq!(raw.next().await["error"]["code"], -32800);
    within(entered.recv()).await.unwrap();
    raw.send(&cancel("2")).await;
    let (second, third) = (raw.next().await, raw.next().await);
    assert_eq!((&second["id"], &second["error"]["code"]), (&json!(2), &json!(-32800)));
    assert_eq!((&third["id"], &third["result"]), (&json!(3), &json!("pong")));
}

#[tokio::test]
async fn one_call_of_a_batch_is_cancelled_and_the_others_are_not() {
    let Holding { router, mut entered, .. } = holding();
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), Limits::default(), ping(router));
    let batch = [request(1, "hold", "[]"), request(2, "ping", "[]"), request(3, "hold", "[]")];
    raw.send(&format!("[{}]", batch.join(","))).await;
    within(entered.recv()).await.unwrap();
    within(entered.recv()).await.unwrap();
    raw.send(&cancel("3")).await;
    raw.send(&cancel("1")).await;
    let answers = raw.next().await;
    let codes: Vec<_> = (0..3).map(|at| answers[at]["error"]["code"].clone()).collect();
    assert_eq!(codes, [json!(-32800), json!(null), json!(-32800)]);
    assert_eq!(answers[1]["result"], "pong");
}

#[tokio::test]
async fn a_cancellation_inside_a_batch_is_applied() {
    let Holding { router, mut entered, .. } = holding();
    let (mut raw, _server) = Raw::served_in(Dialect::lsp(), Limits::default(), ping(router));
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    // One call before the batch, one before the cancellation in the batch, and one behind it.
    let batch =
        [request(2, "hold", "[]"), cancel("1"), cancel("2"), cancel("3"), request(3, "ping", "[]")];
    raw.send(&format!("[{}]", batch.join(","))).await;
    let (one, other) = (raw.next().await, raw.next().await);
    let (batch, single) = if one.is_array() { (one, other) } else { (other, one) };
    assert_eq!((&single["id"], &single["error"]["code"]), (&json!(1), &json!(-32800)));
    assert_eq!((&batch[0]["id"], &batch[0]["error"]["code"]), (&json!(2), &json!(-32800)));
    assert_eq!((&batch[1]["id"], &batch[1]["result"]), (&json!(3), &json!("pong")));
}

#[tokio::test]
async fn plain_json_rpc_cancels_nothing() {
    let heard = Arc::new(Notify::new());
    let hearing = heard.clone();
    let Holding { router, mut entered, release, .. } = holding();
    let router =
        router.notification("$/cancelRequest", move |_: serde_json::Value, _cx: Context| {
            hearing.notify_one();
            async {}
        });
    let (mut raw, _server) = Raw::served_in(Dialect::plain(), Limits::default(), router);
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    raw.send(&cancel("1")).await;
    within(heard.notified()).await;
    release.notify_one();
    assert_eq!(raw.next().await["result"], "held");
}

#[tokio::test]
async fn an_abandoned_call_is_cancelled_on_every_wire() {
    for wire in wires() {
        let Holding { router, mut entered, mut gone, .. } = holding();
        let server = bound(wire).await;
        let address = server.endpoint().to_string();
        tokio::spawn(server.dialect(Dialect::lsp()).serve(ping(router)));
        let client = client().dialect(Dialect::lsp()).connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(entered.recv()).await.unwrap();
        call.abort();
        within(gone.recv()).await.unwrap();
        // A timeout cancels too, and so do the pending calls of a batch.
        let late = client.call::<String>("hold", ()).timeout(Duration::from_millis(1));
        assert!(matches!(within(late.into_future()).await, Err(CallError::TimedOut(_))), "{wire}");
        within(gone.recv()).await.unwrap();
        let mut batch = client.batch();
        for method in ["hold", "ping", "hold"] {
            batch.call::<String>(method, ());
        }
        let batch = tokio::spawn(batch.send());
        while entered.try_recv().is_ok() {}
        within(entered.recv()).await.unwrap();
        batch.abort();
        within(gone.recv()).await.unwrap();
        within(gone.recv()).await.unwrap();
        let pong: String = within(client.call("ping", ()).into_future()).await.unwrap();
        assert_eq!(pong, "pong", "{wire}");
    }
}

#[tokio::test]
async fn an_answered_call_is_not_cancelled() {
    let (told, mut cancels) = mpsc::channel(8);
    let router =
        ping(Router::new()).notification("stop", move |_: serde_json::Value, _: Context| {
            let told = told.clone();
            async move { told.send(()).await.unwrap() }
        });
    let address = serve("memory:*", Limits::default(), router).await;
    let dialect = Dialect::plain().cancellation(Cancellation::new("stop", "id"));
    let client = client().dialect(dialect).connect(&address).await.unwrap();
    for _ in 0..100 {
        let _: String = within(client.call("ping", ()).into_future()).await.unwrap();
    }
    client.notify("stop", ()).await.unwrap();
    within(cancels.recv()).await.unwrap();
    let _: String = within(client.call("ping", ()).into_future()).await.unwrap();
    assert!(cancels.try_recv().is_err(), "only the one that was sent by hand");
}

/// Reports when it is dropped.
struct ReportsDrop(mpsc::Sender<()>);

impl Drop for ReportsDrop {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

/// A layer waits after the inner call has opened a subscription. The caller never learns its id.
#[tokio::test]
async fn a_cancelled_call_closes_the_subscription_that_it_has_opened() {
    for is_batch in [false, true] {
        let (opened, mut has_opened) = mpsc::channel(1);
        let (closed, mut has_closed) = mpsc::channel(1);
        let router =
            Router::new().subscription_with("ticks", move |(): (), sink: Sink, _cx: Context| {
                let closed = closed.clone();
                async move {
                    let _reported = ReportsDrop(closed);
                    sink.accept();
                    std::future::pending().await
                }
            });
        let service = router.layer(layer::from_fn(move |request, next| {
            let opened = opened.clone();
            async move {
                next.run(request).await?;
                opened.send(()).await.unwrap();
                std::future::pending().await
            }
        }));
        let (mut raw, _served) = Raw::served_in(Dialect::lsp(), Limits::default(), service);
        let subscribe = request(1, "subscribe_ticks", "[]");
        raw.send(&if is_batch { format!("[{subscribe}]") } else { subscribe }).await;
        within(has_opened.recv()).await.unwrap();
        raw.send(&cancel("1")).await;
        assert!(raw.next().await.to_string().contains("-32800"));
        within(has_closed.recv()).await.unwrap();
    }
}
