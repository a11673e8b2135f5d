//! A tap sees each message once, in order, with the connection that carries it.

use std::collections::HashMap;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use antiphon::transport::http::{EventStreamOptions, HttpMessage, HttpPolicy, MessageDecision};
use antiphon::transport::memory::pair;
use antiphon::{
    CallError, Client, CloseReason, Connection, Context, Direction, ErrorObject, Router, Server,
    Tap, TappedMessage,
};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use crate::support::{bound, client, connect, dial, line, rest, wires, wires_and_http, within};

/// One thing that a tap has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Opened,
    Sent(String),
    Received(String),
    Closed,
}

/// Everything that a tap has seen, in order, with the id of the connection.
#[derive(Clone)]
struct Recorder {
    seen: Arc<Mutex<Vec<(u64, Seen)>>>,
    closed: mpsc::UnboundedSender<u64>,
}

impl Recorder {
    fn new() -> (Self, mpsc::UnboundedReceiver<u64>) {
        let (closed, closes) = mpsc::unbounded_channel();
        (Self { seen: Arc::default(), closed }, closes)
    }

    fn push(&self, connection: &Connection, seen: Seen) {
        self.seen.lock().unwrap().push((connection.id(), seen));
    }

    /// The recorded messages of each connection.
    fn by_connection(&self) -> HashMap<u64, Vec<Seen>> {
        let mut all = HashMap::<u64, Vec<Seen>>::new();
        for (id, seen) in &*self.seen.lock().unwrap() {
            all.entry(*id).or_default().push(seen.clone());
        }
        all
    }

    /// The recorded messages of the only connection.
    fn only(&self) -> Vec<Seen> {
        let mut all = self.by_connection();
        assert_eq!(all.len(), 1, "{all:?}");
        all.drain().next().unwrap().1
    }
}

impl Tap for Recorder {
    fn message(&self, message: &TappedMessage<'_>) {
        let text = String::from_utf8_lossy(message.bytes).into_owned();
        let seen = match message.direction {
            Direction::Sent => Seen::Sent(text),
            Direction::Received => Seen::Received(text),
        };
        self.push(message.connection, seen);
    }

    fn opened(&self, connection: &Connection) {
        self.push(connection, Seen::Opened);
    }

    fn closed(&self, connection: &Connection, reason: &CloseReason) {
        assert!(!reason.to_string().is_empty());
        self.push(connection, Seen::Closed);
        let _ = self.closed.send(connection.id());
    }
}

fn sent(seen: &[Seen]) -> Vec<&str> {
    seen.iter()
        .filter_map(|seen| match seen {
            Seen::Sent(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn received(seen: &[Seen]) -> Vec<&str> {
    seen.iter()
        .filter_map(|seen| match seen {
            Seen::Received(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Calls the caller back, and notifies it.
fn service() -> Router {
    Router::new()
        .method("double", |(n,): (u64,), _cx: Context| async move { Ok(n * 2) })
        .method("ask", |(n,): (u64,), cx: Context| async move {
            cx.notify("note", [n]).await?;
            let answer: u64 = cx.peer()?.call("double", [n]).await?;
            Ok::<_, ErrorObject>(answer)
        })
        .notification("note", |(_,): (u64,), _cx: Context| async {})
}

/// On each connection, one side receives the messages that the other has sent, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_see_each_message_once_and_in_order() {
    for wire in wires() {
        let (at_server, mut closes) = Recorder::new();
        let server = bound(wire).await.tap(at_server.clone());
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(service()));
        let (mut at_clients, mut ids) = (Vec::new(), Vec::new());
        for connection in 0..2 {
            let (tap, _) = Recorder::new();
            at_clients.push(tap.clone());
            let client = client().handler(service()).tap(tap).connect(&address).await.unwrap();
            let calls = (0..20).map(|n| client.call::<u64>("ask", [n + connection]).into_future());
            for reply in within(futures_util::future::join_all(calls)).await {
                reply.unwrap();
            }
            client.notify("note", [1]).await.unwrap();
            let mut batch = client.batch();
            let _ = batch.call::<u64>("double", [1]);
            batch.notify("note", [2]);
            let _ = batch.call::<u64>("missing", ());
            within(batch.send()).await.unwrap();
            within(client.close()).await;
            ids.push(within(closes.recv()).await.unwrap());
        }
        assert_ne!(ids[0], ids[1]);
        let seen = at_server.by_connection();
        assert_eq!(seen.len(), 2, "{wire}: {seen:?}");
        for (id, at_client) in ids.into_iter().zip(at_clients) {
            let (here, there) = (&seen[&id], at_client.only());
            for seen in [here, &there] {
                assert_eq!(seen.first(), Some(&Seen::Opened), "{wire}");
                assert_eq!(seen.last(), Some(&Seen::Closed), "{wire}");
                let others = [Seen::Opened, Seen::Closed];
                assert_eq!(seen.iter().filter(|seen| others.contains(seen)).count(), 2, "{wire}");
                // 20 calls, their replies, their notifications, the calls back and their replies;
                // a notification; a batch and its replies.
                assert_eq!(seen.len(), 2 + 5 * 20 + 1 + 2, "{wire}");
            }
            assert_eq!(sent(here), received(&there), "{wire}");
            assert_eq!(received(here), sent(&there), "{wire}");
        }
    }
}

const GARBAGE: &str = "{nonsense";

#[tokio::test]
async fn garbage_batches_and_several_texts_on_a_line_are_seen_as_they_came() {
    let (tap, mut closes) = Recorder::new();
    let server = bound("tcp://127.0.0.1:0").await.tap(tap.clone());
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(service()));
    let mut stream = dial(&address).await;
    let one = r#"{"jsonrpc":"2.0","method":"double","params":[1],"id":1}"#;
    let two = r#"{"jsonrpc":"2.0","method":"double","params":[2],"id":2}"#;
    let batch = format!("[{one},1,{two}]");
    let lost = r#"{"jsonrpc":"2.0","result":1,"id":77}"#;
    let lines = [one, GARBAGE, &batch, "[]", lost, &format!("{one}{two}"), two].join("\n");
    stream.write_all(format!("{lines}\n").as_bytes()).await.unwrap();
    let mut replies = Vec::new();
    for _ in 0..7 {
        replies.push(line(&mut stream).await);
    }
    stream.shutdown().await.unwrap();
    rest(&mut stream).await;
    within(closes.recv()).await.unwrap();
    let seen = tap.only();
    assert_eq!(received(&seen), [one, GARBAGE, &batch, "[]", lost, one, two, two]);
    let written: Vec<serde_json::Value> =
        sent(&seen).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(written, replies);
}

/// A connection whose first message never comes is opened and closed.
#[tokio::test]
async fn a_silent_connection_is_opened_and_closed_once() {
    for wire in wires() {
        let (tap, mut closes) = Recorder::new();
        let server = bound(wire).await.tap(tap.clone());
        let address = server.endpoint().to_string();
        tokio::spawn(server.serve(service()));
        connect(&address).await.close().await;
        within(closes.recv()).await.unwrap();
        assert_eq!(tap.only(), [Seen::Opened, Seen::Closed], "{wire}");
    }
}

/// Dropped in the middle, not closed.
#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections_for_the_tap() {
    for wire in wires() {
        let (tap, mut closes) = Recorder::new();
        let server = bound(wire).await.tap(tap.clone());
        let address = server.endpoint().to_string();
        let serving = tokio::spawn(server.serve(service()));
        let client = connect(&address).await;
        within(client.call::<u64>("double", [1]).into_future()).await.unwrap();
        serving.abort();
        within(closes.recv()).await.unwrap();
        let seen = tap.only();
        assert_eq!(seen.last(), Some(&Seen::Closed), "{wire}");
        assert_eq!(seen.len(), 4, "{wire}: {seen:?}");
    }
}

/// Panics at one kind of event, once.
struct Panics(&'static str, AtomicBool);

impl Panics {
    fn at(&self, event: &str) {
        if self.0 == event {
            assert!(self.1.swap(true, Ordering::Relaxed), "on purpose");
        }
    }
}

impl Tap for Panics {
    fn message(&self, message: &TappedMessage<'_>) {
        self.at(match message.direction {
            Direction::Sent => "sent",
            Direction::Received => "received",
        });
    }

    fn opened(&self, _: &Connection) {
        self.at("opened");
    }

    fn closed(&self, _: &Connection, _: &CloseReason) {
        self.at("closed");
    }
}

#[tokio::test]
async fn a_tap_that_panics_ends_only_its_connection() {
    for wire in wires() {
        for event in ["opened", "received", "sent", "closed"] {
            let (tell, mut told) = mpsc::unbounded_channel();
            let server = bound(wire).await.tap(Panics(event, AtomicBool::new(false)));
            let address = server.endpoint().to_string();
            tokio::spawn(server.serve_with(move |_: &Connection, peer| {
                let tell = tell.clone();
                tokio::spawn(async move {
                    peer.closed().await;
                    tell.send(())
                });
                service()
            }));
            let first = connect(&address).await;
            let reply = within(first.call::<u64>("double", [1]).into_future()).await;
            assert_eq!(reply.is_ok(), event == "closed", "{wire}, {event}: {reply:?}");
            within(first.close()).await;
            within(told.recv()).await.unwrap();
            let second = connect(&address).await;
            let reply = within(second.call::<u64>("double", [2]).into_future()).await;
            assert_eq!(reply.unwrap(), 4, "{wire}, {event}");
        }
    }
}

#[tokio::test]
async fn a_single_transport_and_a_client_in_this_process_are_seen() {
    let (tap, mut closes) = Recorder::new();
    let (ours, mut theirs) = pair();
    let server = Server::from_transport(ours, Connection::new("pair")).tap(tap.clone());
    let serving = tokio::spawn(server.serve(service()));
    let call = r#"{"jsonrpc":"2.0","method":"double","params":[4],"id":"a"}"#;
    theirs.send(Bytes::from_static(call.as_bytes())).await.unwrap();
    let reply = within(theirs.next()).await.unwrap().unwrap();
    drop(theirs);
    within(serving).await.unwrap().unwrap();
    within(closes.recv()).await.unwrap();
    let reply = String::from_utf8(reply.to_vec()).unwrap();
    let expected = [Seen::Opened, Seen::Received(call.into()), Seen::Sent(reply), Seen::Closed];
    assert_eq!(tap.only(), expected);

    let (tap, mut closes) = Recorder::new();
    let client = Client::builder().tap(tap.clone()).in_process(service());
    within(client.call::<u64>("double", [1]).into_future()).await.unwrap();
    client.close().await;
    within(closes.recv()).await.unwrap();
    let seen = tap.only();
    assert!(matches!(&seen[..], [Seen::Opened, Seen::Sent(_), Seen::Received(_), Seen::Closed]));
}

/// HTTP has no connections that a tap sees open: the messages alone.
#[tokio::test]
async fn a_client_over_http_shows_its_messages() {
    for http2 in [false, true] {
        let address =
            crate::support::serve("http://127.0.0.1:0", antiphon::Limits::default(), service());
        let (tap, _) = Recorder::new();
        let client = Client::builder().tap(tap.clone());
        let client = if http2 { client.http2() } else { client };
        let client = client.connect(&address.await).await.unwrap();
        within(client.call::<u64>("double", [1]).into_future()).await.unwrap();
        within(client.notify("note", [1])).await.unwrap();
        let error = within(client.call::<u64>("missing", ()).into_future()).await.unwrap_err();
        assert!(matches!(error, CallError::Rpc(_)));
        let mut batch = client.batch();
        let _ = batch.call::<u64>("double", [1]);
        batch.notify("note", [1]);
        within(batch.send()).await.unwrap();
        let seen = tap.seen.lock().unwrap().clone();
        let kinds: Vec<bool> = seen.iter().map(|(_, seen)| matches!(seen, Seen::Sent(_))).collect();
        assert_eq!(kinds, [true, false, true, true, false, true, false], "{seen:?}");
    }
}

/// Answers by a stream where there is a notification, or at once, or never.
struct Streams(Option<EventStreamOptions>);

impl HttpPolicy for Streams {
    fn on_message(&self, _: &mut Connection, _: &HttpMessage) -> MessageDecision {
        self.0.clone().map_or(MessageDecision::Dispatch, MessageDecision::Stream)
    }
}

/// The ways in which an HTTP request can be served.
#[derive(Clone, Copy, Debug)]
enum Served {
    /// By the fast path, or by hyper for a client that speaks HTTP/2.
    Plainly,
    ByPolicy,
    /// As a stream from the first notification on.
    ByStream,
    /// As a stream at once.
    ByImmediateStream,
}

async fn served_over_http(served: Served, tap: Recorder, router: Router) -> String {
    let server = bound("http://127.0.0.1:0").await.tap(tap);
    let options = EventStreamOptions::new();
    let server = match served {
        Served::Plainly => server,
        Served::ByPolicy => server.http_policy(Streams(None)),
        Served::ByStream => server.http_policy(Streams(Some(options))),
        Served::ByImmediateStream => server.http_policy(Streams(Some(options.immediately()))),
    };
    let address = server.endpoint().to_string();
    tokio::spawn(server.serve(router));
    address
}

/// Calls by hand. Returns the response when it is complete.
async fn exchange(address: &str, more: &str, body: &str) -> String {
    let mut stream = dial(address).await;
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let length = body.len();
    let text = format!("{head}{more}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    String::from_utf8(rest(&mut stream).await).unwrap()
}

/// Each request has an id of its own, which its reply has too. Nothing opens or closes.
#[tokio::test]
async fn a_server_shows_each_message_of_an_http_request_once() {
    let router = service()
        .method("later", |(n,): (u64,), _cx: Context| async move {
            tokio::task::yield_now().await;
            Ok(n)
        })
        .method("long", |(n,): (usize,), _cx: Context| async move { Ok("x".repeat(n)) });
    let call = |method: &str, params: &str| crate::support::request(1, method, params);
    let batch = format!("[{},{GARBAGE_ENTRY},{}]", call("double", "[1]"), call("later", "[2]"));
    let messages = [
        (call("double", "[1]"), 1),
        (call("later", "[1]"), 1),
        (call("long", "[100]"), 1),
        (call("long", "[300000]"), 1),
        (call("missing", "[]"), 1),
        (crate::support::notification("note", "[1]"), 0),
        (batch, 1),
        (GARBAGE.to_owned(), 1),
        ("[]".to_owned(), 1),
    ];
    for served in [Served::Plainly, Served::ByPolicy, Served::ByStream, Served::ByImmediateStream] {
        // hyper serves the second.
        for more in ["", "te: x\r\n"] {
            for (message, replies) in &messages {
                let (tap, _) = Recorder::new();
                let address = served_over_http(served, tap.clone(), router.clone()).await;
                let response = exchange(&address, more, message).await;
                let seen = tap.only();
                let about = format!("{served:?} {more:?} {message}");
                assert_eq!(seen.len(), 1 + replies, "{about}: {seen:?}");
                assert_eq!(seen[0], Seen::Received(message.clone()), "{about}");
                if let Some(Seen::Sent(reply)) = seen.get(1) {
                    assert!(reply.len() > 20, "{about}: {reply}");
                    // A long body is chunked.
                    let is_whole = reply.len() > 10_000 || response.contains(reply);
                    assert!(is_whole, "{about}: {response}");
                    serde_json::from_str::<serde_json::Value>(reply).unwrap();
                }
                exchange(&address, more, message).await;
                let ids: Vec<u64> = tap.by_connection().into_keys().collect();
                assert_eq!(ids.len(), 2, "{about}");
            }
        }
    }
}

const GARBAGE_ENTRY: &str = "1";

#[tokio::test]
async fn a_server_shows_the_events_of_a_stream_in_order() {
    let router = Router::new().method("flood", |(n,): (u64,), cx: Context| async move {
        for item in 0..n {
            cx.notify("item", [item]).await?;
        }
        Ok::<_, ErrorObject>("done")
    });
    for served in [Served::ByStream, Served::ByImmediateStream] {
        let (tap, _) = Recorder::new();
        let address = served_over_http(served, tap.clone(), router.clone()).await;
        let call = crate::support::request(1, "flood", "[1000]");
        exchange(&address, "", &call).await;
        let seen = tap.only();
        assert_eq!(received(&seen), [call]);
        let sent = sent(&seen);
        assert_eq!(sent.len(), 1_001, "{served:?}");
        for (number, message) in sent[..1_000].iter().enumerate() {
            assert!(message.contains(&format!("[{number}]")), "{message}");
        }
        assert!(sent[1_000].contains("done"));
    }
}

/// A message that a tap cannot take ends its connection and no other.
#[tokio::test]
async fn a_tap_that_panics_over_http_ends_only_its_connection() {
    for event in ["received", "sent"] {
        for more in ["", "te: x\r\n"] {
            let server =
                bound("http://127.0.0.1:0").await.tap(Panics(event, AtomicBool::new(false)));
            let address = server.endpoint().to_string();
            tokio::spawn(server.serve(service()));
            let call = crate::support::request(1, "double", "[1]");
            assert_eq!(exchange(&address, more, &call).await, "", "{event} {more:?}");
            let reply = exchange(&address, more, &call).await;
            assert!(reply.contains("\"result\":2"), "{event} {more:?}: {reply}");
        }
    }
}

/// `on_connect`, the tap and the handler see one number.
#[tokio::test]
async fn the_id_of_a_connection_is_the_same_everywhere() {
    for wire in wires_and_http() {
        let (tap, _) = Recorder::new();
        let (tell, mut told) = mpsc::unbounded_channel();
        let server = bound(wire).await.tap(tap.clone());
        let server = server.on_connect(move |connection| tell.send(connection.id()).unwrap());
        let address = server.endpoint().to_string();
        let id = |(): (), cx: Context| async move { Ok(cx.connection().id()) };
        tokio::spawn(server.serve(Router::new().method("id", id)));
        let client = connect(&address).await;
        let id = within(client.call::<u64>("id", ()).into_future()).await.unwrap();
        assert_eq!(within(told.recv()).await, Some(id), "{wire}");
        let seen: Vec<u64> = tap.by_connection().into_keys().collect();
        assert_eq!(seen, [id], "{wire}");
        let again = within(client.call::<u64>("id", ()).into_future()).await.unwrap();
        assert_eq!(again == id, !wire.starts_with("http"), "{wire}");
    }
}
