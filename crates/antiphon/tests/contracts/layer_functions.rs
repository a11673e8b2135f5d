//! Layers made of async functions, on both sides.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use antiphon::layer::{IncomingCall, Next, OutgoingCall, from_fn, from_outgoing_fn};
use antiphon::{
    CallError, Client, Code, Context, ErrorObject, Handler, Limits, Params, RawJson, Reconnect,
    Router,
};
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::support::{Raw, connect, request, serve, wires, wires_and_http, within};

fn adding() -> Router {
    Router::new()
        .method("add", |(a, b): (i64, i64), _: Context| async move { Ok(a + b) })
        .notification("note", |(): (), _: Context| async {})
}

#[tokio::test]
async fn a_function_sees_each_call_notification_and_entry_once() {
    for wire in wires_and_http() {
        let (log, mut entries) = tokio::sync::mpsc::unbounded_channel();
        let seen = adding().layer(from_fn(move |request, next| {
            let log = log.clone();
            async move {
                let (method, is_call) = (request.call.method.clone(), request.cx.id().is_some());
                let outcome = next.run(request).await;
                log.send((method.to_string(), is_call, outcome.is_ok())).unwrap();
                outcome
            }
        }));
        let client = connect(&serve(wire, Limits::default(), seen).await).await;
        let sum = within(client.call::<i64>("add", (1, 2)).into_future()).await.unwrap();
        assert_eq!(sum, 3, "{wire}");
        within(client.notify("note", ())).await.unwrap();
        let mut batch = client.batch();
        let sum = batch.call::<i64>("add", (3, 4));
        batch.notify("note", ());
        let absent = batch.call::<i64>("absent", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(sum).unwrap(), 7, "{wire}");
        assert!(matches!(replies.take(absent), Err(CallError::Rpc(_))), "{wire}");
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(within(entries.recv()).await.unwrap());
        }
        seen.sort();
        let expected = [
            ("absent", true, false),
            ("add", true, true),
            ("add", true, true),
            ("note", false, true),
            ("note", false, true),
        ];
        let expected = expected.map(|(name, call, ok)| (name.to_owned(), call, ok));
        assert_eq!(seen, expected, "{wire}");
        assert!(entries.try_recv().is_err(), "{wire}");
    }
}

#[tokio::test]
async fn a_function_rejects_answers_and_changes_calls() {
    for wire in wires_and_http() {
        let service = adding().layer(from_fn(|mut request, next| async move {
            if request.call.method == "forbidden" {
                return Err(ErrorObject::unauthorized());
            }
            if request.call.method == "constant" {
                return Ok(RawJson::encode(&5).unwrap());
            }
            request.call.params = Params::encode(&(20, 22)).unwrap();
            next.run(request).await
        }));
        let client = connect(&serve(wire, Limits::default(), service).await).await;
        let call =
            async |method: &str| within(client.call::<i64>(method, (1, 2)).into_future()).await;
        assert_eq!(call("add").await.unwrap(), 42, "{wire}");
        assert_eq!(call("constant").await.unwrap(), 5, "{wire}");
        let refused = call("forbidden").await;
        assert!(
            matches!(&refused, Err(CallError::Rpc(error)) if error.code == Code::UNAUTHORIZED),
            "{wire}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_function_of_a_client_sends_a_call_again() {
    for wire in wires_and_http() {
        let client = connect(&serve(wire, Limits::default(), adding()).await).await;
        let tries = Arc::<Mutex<Vec<String>>>::default();
        let log = tries.clone();
        let client = client.layer(from_outgoing_fn(move |request, next| {
            let log = log.clone();
            async move {
                log.lock().unwrap().push(request.call.method.to_string());
                let mut other = request.clone();
                match next.clone().run(request).await {
                    Err(CallError::Rpc(error)) if error.code == Code::METHOD_NOT_FOUND => {
                        other.call.method = "add".into();
                        next.run(other).await
                    }
                    outcome => outcome,
                }
            }
        }));
        let sum = within(client.call::<i64>("sum", (1, 2)).into_future()).await.unwrap();
        assert_eq!(sum, 3, "{wire}");
        let mut batch = client.batch();
        let sum = batch.call::<i64>("plus", (3, 4));
        batch.notify("note", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(sum).unwrap(), 7, "{wire}");
        assert_eq!(*tries.lock().unwrap(), ["sum", "plus", "note"], "{wire}");
    }
}

/// Sends a message when it is dropped.
struct Told(mpsc::UnboundedSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// The topic `rows` with endless items, and a message for each of its streams that ends.
fn rows() -> (Router, mpsc::UnboundedReceiver<()>) {
    let (tell, ended) = mpsc::unbounded_channel();
    let router = Router::new().subscription("rows", move |(): (), _: Context| {
        let told = Told(tell.clone());
        let items = stream::iter([1]).chain(stream::pending());
        async move {
            Ok(items.map(move |item| {
                let _alive = &told;
                item
            }))
        }
    });
    (router, ended)
}

#[tokio::test]
async fn a_call_that_a_layer_runs_twice_opens_one_subscription() {
    for returns_first in [true, false] {
        let (router, mut ended) = rows();
        let (log, mut seconds) = mpsc::unbounded_channel();
        let twice = router.layer(from_fn(move |request, next| {
            let log = log.clone();
            async move {
                let first = next.clone().run(request.clone()).await;
                let second = next.run(request).await;
                log.send(second.clone()).unwrap();
                if returns_first { first } else { second }
            }
        }));
        let (mut raw, _served) = Raw::served(Limits::default(), twice);
        raw.send(&request(1, "subscribe_rows", "[]")).await;
        let reply = raw.next().await;
        let second = within(seconds.recv()).await.unwrap().unwrap_err();
        assert_eq!(second.code, Code::INTERNAL_ERROR);
        assert_eq!(second.data.unwrap().as_str(), r#""a call opens at most one subscription""#);
        within(ended.recv()).await.unwrap();
        if returns_first {
            let item = json!({"subscription": reply["result"], "result": 1});
            assert_eq!(raw.next().await["params"], item);
            assert!(ended.try_recv().is_err(), "the first stream has ended");
        } else {
            assert_eq!(reply["error"]["code"], -32603, "{reply}");
            within(ended.recv()).await.unwrap();
        }
    }
}

/// A task of a layer runs the call after the layer has refused it.
#[tokio::test]
async fn a_call_that_has_its_response_opens_no_subscription() {
    let (router, mut ended) = rows();
    let (run, runs) = mpsc::unbounded_channel::<()>();
    let runs = Arc::new(tokio::sync::Mutex::new(runs));
    let late = router.layer(from_fn(move |request, next| {
        let runs = runs.clone();
        async move {
            tokio::spawn(async move {
                runs.lock().await.recv().await;
                next.run(request).await
            });
            Err(ErrorObject::unauthorized())
        }
    }));
    let (mut raw, _served) = Raw::served(Limits::default(), late);
    raw.send(&request(1, "subscribe_rows", "[]")).await;
    assert_eq!(raw.next().await["error"]["code"], Code::UNAUTHORIZED.0);
    run.send(()).unwrap();
    within(ended.recv()).await.unwrap();
}

/// A layer that tries again after an error opens the subscription.
#[tokio::test]
async fn a_subscription_that_the_handler_refused_can_be_tried_again() {
    let tries = Arc::new(Mutex::new(0));
    let router = Router::new().subscription("rows", move |(): (), _: Context| {
        let mut tries = tries.lock().unwrap();
        *tries += 1;
        let refused = *tries == 1;
        async move {
            if refused { Err(ErrorObject::server_busy("not yet")) } else { Ok(stream::iter([1])) }
        }
    });
    let again = router.layer(from_fn(|request, next| async move {
        match next.clone().run(request.clone()).await {
            Err(_) => next.run(request).await,
            done => done,
        }
    }));
    let (mut raw, _served) = Raw::served(Limits::default(), again);
    raw.send(&request(1, "subscribe_rows", "[]")).await;
    let id = raw.next().await["result"].clone();
    assert_eq!(raw.next().await["params"], json!({"subscription": id, "result": 1}));
}

/// The topic of [`rows`] in two nested routers, and the methods that are called.
fn nested_rows() -> (impl Handler, mpsc::UnboundedReceiver<()>, mpsc::UnboundedReceiver<String>) {
    let (router, ended) = rows();
    let nested = Router::new().nest("a.", Router::new().nest("b.", router));
    let (log, called) = mpsc::unbounded_channel();
    let handler = nested.layer(from_fn(move |request: IncomingCall, next: Next| {
        log.send(request.call.method.to_string()).unwrap();
        next.run(request)
    }));
    (handler, ended, called)
}

/// A client that puts a prefix before each method, in a layer.
fn prefixed(client: Client, prefix: &'static str) -> Client {
    client.layer(from_outgoing_fn(move |mut request: OutgoingCall, next| {
        request.call.method = format!("{prefix}{}", request.call.method).as_str().into();
        next.run(request)
    }))
}

#[tokio::test]
async fn an_unsubscribe_call_passes_the_layers_of_its_client() {
    let (subscribe, unsubscribe) = ("a.b.subscribe_rows", "a.b.unsubscribe_rows");
    for wire in wires() {
        let (handler, mut ended, mut called) = nested_rows();
        let address = serve(wire, Limits::default(), handler).await;
        let client = prefixed(prefixed(connect(&address).await, "a."), "b.");
        let mut next = async || within(called.recv()).await.unwrap();
        // A request names its method from the innermost layer outwards.
        let rows = within(client.subscribe::<u64>("rows", ()).into_future()).await.unwrap();
        assert_eq!(next().await, subscribe, "{wire}");
        within(rows.unsubscribe()).await.unwrap();
        assert_eq!(next().await, unsubscribe, "{wire}");
        within(ended.recv()).await.unwrap();
        let rows = within(client.subscribe::<u64>("rows", ()).into_future()).await.unwrap();
        assert_eq!(next().await, subscribe, "{wire}");
        drop(rows);
        // It is sent before the drop returns: a later call follows it.
        let _ = within(client.call::<RawJson>("absent", ()).into_future()).await;
        assert_eq!(next().await, unsubscribe, "{wire}");
        assert_eq!(next().await, "a.b.absent", "{wire}");
        within(ended.recv()).await.unwrap();
    }
}

/// A layer lets the call wait. It is sent when the layer passes it on.
#[tokio::test]
async fn an_unsubscribe_call_that_a_layer_delays_is_sent_later() {
    let (handler, mut ended, mut called) = nested_rows();
    let address = serve("memory:*", Limits::default(), handler).await;
    let (held, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (holds, go) = (held.clone(), release.clone());
    let client = prefixed(connect(&address).await, "a.b.");
    let client = client.layer(from_outgoing_fn(move |request: OutgoingCall, next| {
        let (holds, go) = (holds.clone(), go.clone());
        async move {
            if request.call.method == "unsubscribe_rows" {
                holds.notify_one();
                go.notified().await;
            }
            next.run(request).await
        }
    }));
    let rows = within(client.subscribe::<u64>("rows", ()).into_future()).await.unwrap();
    assert_eq!(within(called.recv()).await.unwrap(), "a.b.subscribe_rows");
    drop(rows);
    within(held.notified()).await;
    let _ = within(client.call::<RawJson>("absent", ()).into_future()).await;
    assert_eq!(within(called.recv()).await.unwrap(), "a.b.absent");
    release.notify_one();
    assert_eq!(within(called.recv()).await.unwrap(), "a.b.unsubscribe_rows");
    within(ended.recv()).await.unwrap();
}

/// The server would send items for as long as the connection is open.
#[tokio::test]
async fn an_unsubscribe_call_that_a_layer_rejects_is_sent_without_it() {
    for panics in [false, true] {
        let (router, mut ended) = rows();
        let client = connect(&serve("memory:*", Limits::default(), router).await).await;
        let client =
            client.layer(from_outgoing_fn(move |request: OutgoingCall, next| async move {
                if request.call.method == "unsubscribe_rows" {
                    assert!(!panics, "as asked");
                    return Err(CallError::Rejected(Box::new(ErrorObject::server_busy("no"))));
                }
                next.run(request).await
            }));
        let rows = within(client.subscribe::<u64>("rows", ()).into_future()).await.unwrap();
        drop(rows);
        within(ended.recv()).await.unwrap();
        if !panics {
            let rows = within(client.subscribe::<u64>("rows", ()).into_future()).await.unwrap();
            let rejected = within(rows.unsubscribe()).await;
            assert!(matches!(rejected, Err(CallError::Rejected(_))), "{rejected:?}");
            within(ended.recv()).await.unwrap();
        }
    }
}

/// A subscription holds its layers, but they do not keep the connection open.
#[tokio::test]
async fn a_subscription_through_layers_ends_with_its_client() {
    for reconnects in [false, true] {
        let (handler, mut ended, _called) = nested_rows();
        let address = serve("memory:*", Limits::default(), handler).await;
        let builder = match reconnects {
            true => Client::builder().reconnect(Reconnect::new()),
            false => Client::builder(),
        };
        let client = prefixed(builder.connect(&address).await.unwrap(), "a.b.");
        let mut rows = within(client.subscribe::<u64>("rows", ()).into_future()).await.unwrap();
        drop(client);
        within(ended.recv()).await.unwrap();
        assert_eq!(within(rows.next()).await.unwrap().unwrap(), 1);
        let last = within(rows.next()).await;
        assert!(matches!(last, Some(Err(_))), "{last:?}");
    }
}

/// A layer that answers by itself has no items to deliver.
#[tokio::test]
async fn a_subscription_that_a_layer_does_not_pass_on_is_an_error() {
    let (router, _ended) = rows();
    let client = connect(&serve("memory:*", Limits::default(), router).await).await;
    let client = client.layer(from_outgoing_fn(|_: OutgoingCall, _| async { Ok(RawJson::NULL) }));
    let refused = within(client.subscribe::<u64>("rows", ()).into_future()).await;
    assert!(matches!(refused, Err(CallError::Layer(_))), "{refused:?}");
}
