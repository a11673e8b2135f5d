//! Wires of the application's own: duplex transports, exchanges of one request and one reply, and
//! handlers in this process. Deadlines that have passed already, on all of them.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use antiphon::core::framing::FrameError;
use antiphon::transport::memory::{MemoryTransport, pair};
use antiphon::transport::{RequestMessage, TransportError};
use antiphon::{
    CallError, Client, Connection, Context, ErrorObject, Limits, Responder, Router, Server,
};
use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, oneshot};

use crate::support::{
    Raw, client, dial, holding, line, notification, request, serve, wires_and_http, within,
};

fn ping() -> Router {
    Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") })
}

async fn pong(client: &Client) -> Result<String, CallError> {
    within(client.call::<String>("ping", ()).into_future()).await
}

/// Tells when it is dropped.
struct Told(mpsc::UnboundedSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Where a transport fails or panics.
#[derive(Clone, Copy, Debug)]
enum Fault {
    ReadFails,
    ReadPanics,
    WriteFails,
    WritePanics,
}

/// A transport that breaks once a message has passed.
struct Breaks {
    transport: MemoryTransport,
    fault: Option<Fault>,
    received: usize,
}

fn broken() -> TransportError {
    TransportError::Broken("it is broken".to_owned())
}

impl Stream for Breaks {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        match self.fault {
            Some(Fault::ReadFails) if self.received == 1 => {
                return Poll::Ready(Some(Err(broken())));
            }
            Some(Fault::ReadPanics) if self.received == 1 => panic!("on purpose"),
            _ => {}
        }
        let next = self.transport.poll_next_unpin(cx);
        if next.is_ready() {
            self.received += 1;
        }
        next
    }
}

impl Sink<Bytes> for Breaks {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Result<(), Self::Error>> {
        self.transport.poll_ready_unpin(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        match self.fault {
            Some(Fault::WriteFails) => Err(broken()),
            Some(Fault::WritePanics) => panic!("on purpose"),
            _ => self.transport.start_send_unpin(message),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Result<(), Self::Error>> {
        self.transport.poll_flush_unpin(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Result<(), Self::Error>> {
        self.transport.poll_close_unpin(cx)
    }
}

const FAULTS: [Fault; 4] =
    [Fault::ReadFails, Fault::ReadPanics, Fault::WriteFails, Fault::WritePanics];

#[tokio::test]
async fn a_single_transport_ends_the_server_with_it() {
    let (ours, theirs) = pair();
    let serving = tokio::spawn(Server::from_transport(ours, Connection::new("pair")).serve(ping()));
    let client = Client::over(theirs);
    assert_eq!(pong(&client).await.unwrap(), "pong");
    drop(client);
    within(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_single_transport_that_fails_fails_the_server() {
    for fault in FAULTS {
        let (transport, theirs) = pair();
        let transport = Breaks { transport, fault: Some(fault), received: 0 };
        let server = Server::from_transport(transport, Connection::new("pair"));
        let serving = tokio::spawn(server.serve(ping()));
        let client = Client::over(theirs);
        let _ = pong(&client).await;
        let error = within(serving).await.unwrap().expect_err("the transport failed");
        if let Fault::ReadFails | Fault::WriteFails = fault {
            assert_eq!(error.to_string(), "it is broken", "{fault:?}");
        }
    }
}

#[tokio::test]
async fn one_of_several_transports_that_fails_ends_alone() {
    for fault in FAULTS {
        let ((first, bad), (second, good)) = (pair(), pair());
        let transports = [(first, Some(fault)), (second, None)];
        let transports =
            transports.map(|(transport, fault)| Breaks { transport, fault, received: 0 });
        let facts = Connection::new("pair");
        let transports = transports.map(|transport| (transport, facts.clone()));
        let server = Server::from_transports(stream::iter(transports));
        let limits = Limits { connections: 2, ..Limits::default() };
        let serving = tokio::spawn(server.limits(limits).serve(ping()));
        let (bad, good) = (Client::over(bad), Client::over(good));
        let _ = pong(&bad).await;
        within(bad.peer().unwrap().closed()).await;
        assert_eq!(pong(&good).await.unwrap(), "pong", "{fault:?}");
        drop(good);
        within(serving).await.unwrap().unwrap();
    }
}

/// A stream of transports, and the way to add one. It ends when the sender is dropped.
fn transports() -> (mpsc::UnboundedSender<MemoryTransport>, Server) {
    let (add, added) = mpsc::unbounded_channel();
    let transports = stream::unfold(added, |mut added| async move {
        let transport = added.recv().await?;
        Some(((transport, Connection::new("pair")), added))
    });
    (add, Server::from_transports(transports))
}

fn over(add: &mpsc::UnboundedSender<MemoryTransport>) -> Client {
    let (ours, theirs) = pair();
    add.send(theirs).unwrap();
    Client::over(ours)
}

#[tokio::test]
async fn a_transport_over_the_limit_is_dropped_and_room_is_made_again() {
    let (add, server) = transports();
    let limits = Limits { connections: 1, ..Limits::default() };
    tokio::spawn(server.limits(limits).serve(ping()));
    let first = over(&add);
    assert_eq!(pong(&first).await.unwrap(), "pong");
    let second = over(&add);
    assert!(pong(&second).await.is_err());
    within(second.peer().unwrap().closed()).await;
    drop(first);
    within(async { while pong(&over(&add)).await.is_err() {} }).await;
}

#[tokio::test]
async fn the_end_of_the_stream_waits_for_open_connections() {
    let (add, server) = transports();
    let mut holding = holding();
    let serving = tokio::spawn(server.serve(holding.router));
    let client = over(&add);
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(holding.entered.recv()).await.unwrap();
    drop(add);
    // The connection serves on after the stream has ended.
    let again = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(holding.entered.recv()).await.unwrap();
    assert!(!serving.is_finished());
    holding.release.notify_waiters();
    assert_eq!(within(call).await.unwrap().unwrap(), "held");
    assert_eq!(within(again).await.unwrap().unwrap(), "held");
    drop(client);
    within(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_shutdown_drains_the_transports() {
    let (add, server) = transports();
    let mut holding = holding();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.serve_until(holding.router, async { drop(stopped.await) });
    let serving = tokio::spawn(serving);
    let client = over(&add);
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(holding.entered.recv()).await.unwrap();
    drop(stop);
    within(add.closed()).await;
    holding.release.notify_waiters();
    assert_eq!(within(call).await.unwrap().unwrap(), "held");
    within(serving).await.unwrap().unwrap();
    within(client.peer().unwrap().closed()).await;
}

#[tokio::test]
async fn a_shutdown_without_time_cancels_what_runs_on_transports() {
    let mut holding = holding();
    let limits = Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() };
    let (ours, theirs) = pair();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = Server::from_transport(ours, Connection::new("pair")).limits(limits);
    let serving = server.serve_until(holding.router, async { drop(stopped.await) });
    let serving = tokio::spawn(serving);
    let client = Client::over(theirs);
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(holding.entered.recv()).await.unwrap();
    drop(stop);
    let error = within(call).await.unwrap().unwrap_err();
    assert!(matches!(&error, CallError::Rpc(error) if error.code.0 == -32009), "{error:?}");
    within(holding.gone.recv()).await.unwrap();
    within(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_facts_of_a_transport_reach_the_handlers_of_both_sides() {
    let facts = |name: &'static str| {
        let mut facts = Connection::new("pair").with_remote("192.0.2.1:1".parse().ok());
        facts.extensions.insert(name);
        facts
    };
    let whoami = |(): (), cx: Context| async move {
        let connection = cx.connection();
        let name = cx.extensions().get::<&'static str>().copied();
        Ok((connection.transport, connection.remote, name))
    };
    let ask = |(): (), cx: Context| async move {
        Ok::<_, ErrorObject>(cx.peer()?.call::<Value>("whoami", ()).await?)
    };
    let router = Router::new().method("whoami", whoami).method("ask", ask);
    let (ours, theirs) = pair();
    tokio::spawn(Server::from_transport(ours, facts("server")).serve(router.clone()));
    let client = Client::builder().handler(router).over_with(theirs, facts("client"));
    for (method, name) in [("whoami", "server"), ("ask", "client")] {
        let seen = within(client.call::<Value>(method, ()).into_future()).await.unwrap();
        assert_eq!(seen, json!(["pair", "192.0.2.1:1", name]));
    }
}

#[tokio::test]
async fn a_handler_in_this_process_calls_back_subscribes_and_panics() {
    let router = ping()
        .method("ask", |(): (), cx: Context| async move {
            Ok::<_, ErrorObject>(cx.peer()?.call::<String>("ping", ()).await? + "!")
        })
        .method("panic", |(): (), _cx: Context| async {
            assert!(std::env::args().count() == usize::MAX, "on purpose");
            Ok(())
        })
        .subscription("count", |(n,): (u64,), _cx: Context| async move { Ok(stream::iter(0..n)) });
    let client = Client::builder().handler(ping()).in_process(router);
    assert_eq!(pong(&client).await.unwrap(), "pong");
    let asked = within(client.call::<String>("ask", ()).into_future()).await.unwrap();
    assert_eq!(asked, "pong!");
    let items = within(client.subscribe::<u64>("count", [5]).into_future()).await.unwrap();
    let items: Vec<u64> = within(items.map(Result::unwrap).collect()).await;
    assert_eq!(items, [0, 1, 2, 3, 4]);
    let error = within(client.call::<()>("panic", ()).into_future()).await.unwrap_err();
    assert!(matches!(&error, CallError::Rpc(error) if error.code.0 == -32603), "{error:?}");
    assert_eq!(pong(&client).await.unwrap(), "pong");
}

#[tokio::test]
async fn the_limits_hold_in_this_process() {
    let limits = Limits { batch_entries: 1, ..Limits::default() };
    let client = Client::builder().limits(limits).in_process(ping());
    let mut batch = client.batch();
    let slot = batch.call::<String>("ping", ());
    let _ = batch.call::<String>("ping", ());
    let error = within(batch.send()).await.unwrap().take(slot).unwrap_err();
    assert!(matches!(&error, CallError::Rpc(error) if error.code.0 == -32010), "{error:?}");
    assert_eq!(pong(&client).await.unwrap(), "pong");
}

/// The task of the served side ends: what its handler owns is dropped.
#[tokio::test]
async fn dropping_a_client_in_this_process_leaves_nothing() {
    for closes in [false, true] {
        let (tell, mut dropped) = mpsc::unbounded_channel();
        let owned = Told(tell);
        let mut holding = holding();
        let router = holding.router.method("own", move |(): (), _cx: Context| {
            let _owned = &owned;
            async { Ok(()) }
        });
        let client = Client::in_process(router);
        let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(holding.entered.recv()).await.unwrap();
        call.abort();
        let _ = call.await;
        if closes {
            within(client.close()).await;
        } else {
            drop(client);
        }
        within(holding.gone.recv()).await.unwrap();
        within(dropped.recv()).await.unwrap();
    }
}

/// A handler that waits, and one that does not.
fn waiting() -> Router {
    ping()
        .method("wait", |(): (), _cx: Context| async {
            std::future::pending::<()>().await;
            Ok(())
        })
        .notification("wait_note", |(): (), _cx: Context| std::future::pending())
}

fn no_time() -> Limits {
    Limits { request_timeout: Some(Duration::ZERO), ..Limits::default() }
}

fn is_late(error: &CallError) -> bool {
    matches!(error, CallError::Rpc(error) if error.code.0 == -32012)
}

#[tokio::test]
async fn a_deadline_that_has_passed_is_answered_on_every_wire() {
    let mut wires: Vec<_> = wires_and_http().into_iter().map(|wire| (wire, false)).collect();
    wires.push(("http://127.0.0.1:0", true));
    for (wire, http2) in wires {
        let address = serve(wire, no_time(), waiting()).await;
        let builder = if http2 { client().http2() } else { client() };
        let client = builder.connect(&address).await.unwrap();
        for _ in 0..3 {
            let error = within(client.call::<()>("wait", ()).into_future()).await.unwrap_err();
            assert!(is_late(&error), "{wire}: {error:?}");
            assert_eq!(pong(&client).await.unwrap(), "pong", "{wire}");
        }
        let mut batch = client.batch();
        let (ready, late) = (batch.call::<String>("ping", ()), batch.call::<()>("wait", ()));
        batch.notify("wait_note", ());
        let behind = batch.call::<String>("ping", ());
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(ready).unwrap(), "pong", "{wire}");
        assert!(is_late(&replies.take(late).unwrap_err()), "{wire}");
        assert!(is_late(&replies.take(behind).unwrap_err()), "{wire}");
        // A notification that is late holds up nothing.
        within(client.notify("wait_note", ())).await.unwrap();
        assert_eq!(pong(&client).await.unwrap(), "pong", "{wire}");
    }
}

/// One answer each, and no more.
#[tokio::test]
async fn a_deadline_that_has_passed_is_answered_once() {
    let address = serve("tcp://127.0.0.1:0", no_time(), waiting()).await;
    let mut stream = dial(&address).await;
    let (late, note) = (request(1, "wait", "[]"), notification("wait_note", "[]"));
    let batch = format!("[{},{note},{}]", request(2, "wait", "[]"), request(3, "ping", "[]"));
    let text = format!("{late}\n{note}\n{batch}\n{}\n", request(4, "ping", "[]"));
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        match line(&mut stream).await {
            Value::Array(entries) => ids.extend(entries.iter().map(|entry| entry["id"].clone())),
            reply => ids.push(reply["id"].clone()),
        }
    }
    assert_eq!(ids, [1, 2, 3, 4]);

    let (mut raw, _client) = Raw::served(no_time(), waiting());
    for id in 0..3 {
        raw.send(&request(id, "wait", "[]")).await;
        let reply = raw.next().await;
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(id), &json!(-32012)));
    }
}

#[tokio::test]
async fn a_responder_answers_a_deadline_that_has_passed() {
    let responder = Responder::with_limits(waiting(), no_time());
    let answer = |text: String| {
        let responder = responder.clone();
        async move {
            let answer = within(responder.answer(text)).await;
            answer.map(|answer| serde_json::from_slice::<Value>(&answer).unwrap())
        }
    };
    let late = answer(request(1, "wait", "[]")).await.unwrap();
    assert_eq!((&late["id"], &late["error"]["code"]), (&json!(1), &json!(-32012)));
    let ready = answer(request(1, "ping", "[]")).await.unwrap();
    assert_eq!(ready["result"], "pong");
    assert_eq!(answer(notification("wait_note", "[]")).await, None);
    let batch = format!("[{},{}]", request(1, "wait", "[]"), request(2, "ping", "[]"));
    let all = answer(batch).await.unwrap();
    assert_eq!((&all[0]["error"]["code"], &all[1]["result"]), (&json!(-32012), &json!("pong")));
    assert_eq!(all.as_array().unwrap().len(), 2);
}

fn replying(reply: impl Fn(&str) -> String + Send + Sync + 'static) -> Client {
    Client::builder().over_request_reply(move |message: RequestMessage| {
        let reply = reply(std::str::from_utf8(&message.payload).unwrap());
        std::future::ready(Ok(Some(Bytes::from(reply))))
    })
}

fn response(id: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":"pong","id":{id}}}"#)
}

fn ids(message: &str) -> Vec<Value> {
    let entries: Vec<Value> = serde_json::from_str(message).unwrap();
    entries.iter().map(|entry| entry["id"].clone()).collect()
}

/// Contract of an exchange: each entry of a batch has its own result, whatever the others have.
#[tokio::test]
async fn a_batch_whose_reply_lacks_or_doubles_an_entry_fails_that_entry() {
    for (doubles, reason) in [(false, "lacks this call"), (true, "two responses")] {
        let client = replying(move |message| {
            let ids = ids(message);
            let mut replies = vec![response(&ids[2]), response(&ids[0])];
            if doubles {
                replies.extend([response(&ids[1]), response(&ids[1])]);
            }
            replies.push(response(&json!(4_000)));
            format!("[{}]", replies.join(","))
        });
        let mut batch = client.batch();
        let [first, second, third] = [(); 3].map(|()| batch.call::<String>("ping", ()));
        let mut replies = within(batch.send()).await.unwrap();
        assert_eq!(replies.take(first).unwrap(), "pong");
        assert_eq!(replies.take(third).unwrap(), "pong");
        let error = replies.take(second).unwrap_err();
        assert!(
            matches!(&error, CallError::Protocol(text) if text.to_string().contains(reason)),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_reply_that_is_no_batch_fails_the_batch() {
    for reply in ["", "nonsense", "1", r#"{"jsonrpc":"2.0","result":1,"id":1}"#] {
        let client = replying(move |_| reply.to_owned());
        let mut batch = client.batch();
        let _ = batch.call::<String>("ping", ());
        let error = within(batch.send()).await.map(drop).unwrap_err();
        assert!(matches!(error, CallError::Protocol(_)), "{reply:?}: {error:?}");
    }
}

#[tokio::test]
async fn calls_at_once_over_a_wire_get_their_own_replies() {
    let waiters = Arc::new(AtomicUsize::new(0));
    let barrier = Arc::new(tokio::sync::Barrier::new(16));
    let entered = waiters.clone();
    let responder = Responder::new(
        Router::new().method("echo", |(n,): (u64,), _cx: Context| async move { Ok(n) }),
    );
    let client = Client::builder().over_request_reply(move |message: RequestMessage| {
        let (barrier, responder) = (barrier.clone(), responder.clone());
        entered.fetch_add(1, Ordering::Relaxed);
        async move {
            barrier.wait().await;
            Ok(responder.answer(message.payload).await)
        }
    });
    let calls = (0..16).map(|n| client.call::<u64>("echo", [n]).into_future());
    let replies = within(futures_util::future::join_all(calls)).await;
    let replies: Vec<u64> = replies.into_iter().map(Result::unwrap).collect();
    assert_eq!(replies, (0..16).collect::<Vec<_>>());
    assert_eq!(waiters.load(Ordering::Relaxed), 16);
}

/// An exchange that nobody waits for is dropped: by its timeout, or with the call.
#[tokio::test(start_paused = true)]
async fn an_exchange_that_is_abandoned_is_dropped() {
    let (tell, mut dropped) = mpsc::unbounded_channel();
    let (enter, mut entered) = mpsc::unbounded_channel();
    let client = Client::builder().timeout(Duration::from_secs(1)).over_request_reply(
        move |_: RequestMessage| {
            let told = Told(tell.clone());
            enter.send(()).unwrap();
            async move {
                let _told = told;
                std::future::pending().await
            }
        },
    );
    let error = client.call::<String>("ping", ()).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    entered.recv().await.unwrap();
    within(dropped.recv()).await.unwrap();

    let call = tokio::spawn(client.call::<String>("ping", ()).into_future());
    within(entered.recv()).await.unwrap();
    call.abort();
    within(dropped.recv()).await.unwrap();

    let mut batch = client.batch();
    let slot = batch.call::<String>("ping", ());
    let sent = batch.send().await;
    let error = sent.and_then(|mut replies| replies.take(slot)).unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    within(dropped.recv()).await.unwrap();
}

#[tokio::test]
async fn an_error_of_the_wire_is_the_error_of_its_call() {
    let errors = [
        || CallError::Closed("down".into()),
        || CallError::Interrupted("cut".into()),
        || CallError::Transport("lost".into()),
    ];
    for make in errors {
        let client = Client::builder()
            .over_request_reply(move |_: RequestMessage| std::future::ready(Err(make())));
        let error = pong(&client).await.unwrap_err();
        assert_eq!(error.to_string(), make().to_string());
        let error = within(client.notify("note", ())).await.unwrap_err();
        assert_eq!(error.to_string(), make().to_string());
    }
}

/// A client of a duplex transport that is not served sees the end.
#[tokio::test]
async fn a_transport_that_ends_fails_its_calls() {
    let (ours, theirs) = pair();
    let client = Client::over(ours);
    let call = tokio::spawn(client.call::<String>("ping", ()).into_future());
    let mut raw = Raw(theirs);
    assert_eq!(raw.next().await["method"], "ping");
    drop(raw);
    let error = within(call).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Interrupted(_)), "{error:?}");
    assert!(matches!(pong(&client).await.unwrap_err(), CallError::Closed(_)));
}

/// A transport of these messages. It must not be polled behind its end, takes no message, and never
/// closes, where the test says so.
struct Scripted {
    incoming: Vec<Result<Bytes, TransportError>>,
    /// Stays open behind the last message.
    stays: bool,
    has_ended: bool,
    takes: bool,
    closes: bool,
    sent: mpsc::UnboundedSender<Bytes>,
}

impl Scripted {
    fn new(incoming: Vec<Result<Bytes, TransportError>>) -> (Self, mpsc::UnboundedReceiver<Bytes>) {
        let (sent, seen) = mpsc::unbounded_channel();
        let (stays, has_ended, takes, closes) = (false, false, true, true);
        (Self { incoming, stays, has_ended, takes, closes, sent }, seen)
    }
}

impl Stream for Scripted {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<Option<Self::Item>> {
        assert!(!self.has_ended, "polled behind its end");
        if !self.incoming.is_empty() {
            return Poll::Ready(Some(self.incoming.remove(0)));
        }
        if self.stays {
            return Poll::Pending;
        }
        self.has_ended = true;
        Poll::Ready(None)
    }
}

impl Sink<Bytes> for Scripted {
    type Error = TransportError;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<Result<(), Self::Error>> {
        if self.takes { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn start_send(self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        let _ = self.sent.send(message);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<Result<(), Self::Error>> {
        if self.closes { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

fn call(id: u64) -> Result<Bytes, TransportError> {
    Ok(Bytes::from(request(id, "ping", "[]")))
}

/// A message that cannot be taken is answered, and the next one is served.
#[tokio::test]
async fn a_transport_goes_on_after_a_frame_that_it_cannot_take() {
    let too_large = || Err(TransportError::Frame(FrameError::TooLarge { limit: 9 }));
    let (mut transport, mut sent) = Scripted::new(vec![call(1), too_large(), call(2)]);
    transport.stays = true;
    let server = Server::from_transport(transport, Connection::new("script"));
    let serving = tokio::spawn(server.serve(ping()));
    let mut replies = Vec::new();
    for _ in 0..3 {
        let reply = within(sent.recv()).await.unwrap();
        replies.push(serde_json::from_slice::<Value>(&reply).unwrap());
    }
    assert_eq!([&replies[0]["result"], &replies[2]["result"]], ["pong", "pong"]);
    assert_eq!(replies[1]["error"]["code"], -32007);
    serving.abort();
}

#[tokio::test]
async fn a_transport_is_not_polled_behind_its_end() {
    for incoming in [vec![], vec![call(1)], vec![Ok(Bytes::new()), call(1)]] {
        let (transport, _sent) = Scripted::new(incoming);
        let server = Server::from_transport(transport, Connection::new("script"));
        within(server.serve(ping())).await.unwrap();
    }
}

/// The clock of the test moves only while nothing else can.
#[tokio::test(start_paused = true)]
async fn a_transport_that_takes_nothing_is_ended_by_the_stall_timeout() {
    let (mut transport, _sent) = Scripted::new(vec![call(1)]);
    (transport.stays, transport.takes) = (true, false);
    let limits = Limits { stall_timeout: Duration::from_secs(5), ..Limits::default() };
    let server = Server::from_transport(transport, Connection::new("script")).limits(limits);
    let served = tokio::time::timeout(Duration::from_secs(60), server.serve(ping())).await;
    assert!(served.expect("it hangs").is_err());
}

/// A shutdown ends, whatever a transport does.
#[tokio::test(start_paused = true)]
async fn a_transport_that_neither_takes_nor_closes_does_not_hold_up_a_shutdown() {
    for takes in [true, false] {
        let (mut transport, mut sent) = Scripted::new(vec![call(1)]);
        (transport.stays, transport.takes, transport.closes) = (true, takes, false);
        let server = Server::from_transport(transport, Connection::new("script"));
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(ping(), async { drop(stopped.await) }));
        if takes {
            within(sent.recv()).await.unwrap();
        }
        tokio::task::yield_now().await;
        drop(stop);
        let served = tokio::time::timeout(Duration::from_secs(600), serving).await;
        served.expect("it hangs").unwrap().unwrap();
    }
}
