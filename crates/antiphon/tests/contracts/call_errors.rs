//! What the error of a call tells: whether it was sent, whether it may have run, and each reason once.

use std::error::Error;
use std::future::IntoFuture;
use std::io;
use std::time::Duration;

use antiphon::http::StatusCode;
use antiphon::layer::Filter;
use antiphon::{
    CallError, Cause, Client, CloseReason, Code, Context, ErrorChain, Limits, Reconnect, Router,
    SubscriptionError, layer,
};
use futures_util::StreamExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpSocket};

use crate::support::{Holding, Raw, both, client, connect, holding, serve, wires, within};

/// Asserts whether the call was not sent, and whether it may have run.
fn tells(error: &CallError, was_not_sent: bool, may_have_run: bool) {
    let told = (error.was_not_sent(), error.may_have_run());
    assert_eq!(told, (was_not_sent, may_have_run), "{error:?}");
    reasons_appear_once(error);
}

/// Each level of the chain speaks for itself: no level contains the text of its cause.
fn reasons_appear_once(error: &(dyn Error + 'static)) {
    let mut levels = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        levels.push(cause.to_string());
        source = cause.source();
    }
    for (index, level) in levels.iter().enumerate() {
        for cause in &levels[index + 1..] {
            assert!(!level.contains(cause.as_str()), "{levels:?}");
        }
    }
    assert_eq!(ErrorChain(error).to_string(), levels.join(": "));
}

/// An address that refuses connections. The socket keeps other tests from listening there.
fn refusing_address() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_refused_connection_means_that_nothing_was_sent() {
    for http2 in [false, true] {
        let (_socket, address) = refusing_address();
        let server = format!("http://{address}");
        let builder = if http2 { client().http2() } else { client() };
        let client = builder.connect(&format!("{server}/secret")).await.unwrap();
        let error = within(client.call::<u64>("m", ()).into_future()).await.unwrap_err();
        tells(&error, true, false);
        assert_eq!(error.to_string(), format!("cannot reach {server}"));
        let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused, "{http2}");
    }
}

#[tokio::test]
async fn a_refused_stream_names_the_endpoint_and_the_cause_once() {
    let (_socket, address) = refusing_address();
    let endpoint = format!("tcp://{address}");
    let error = Client::connect(&endpoint).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot connect to {endpoint}"));
    reasons_appear_once(&error);
    let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_server_that_dies_during_a_call_may_have_executed_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = connect(&format!("tcp://{}", listener.local_addr().unwrap())).await;
    let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
    let (stream, _) = within(listener.accept()).await.unwrap();
    let mut stream = BufReader::new(stream);
    within(stream.read_line(&mut String::new())).await.unwrap();
    drop(stream);
    let error = within(call).await.unwrap().unwrap_err();
    tells(&error, false, true);
    assert!(matches!(error, CallError::Interrupted(CloseReason::ByPeer)), "{error:?}");
    client.peer().unwrap().closed().await;
    let error = within(client.call::<u64>("m", ()).into_future()).await.unwrap_err();
    tells(&error, true, false);
    assert_eq!(ErrorChain(&error).to_string(), "the connection is closed: the peer closed it");
}

#[cfg(feature = "http")]
#[tokio::test]
async fn an_http_server_that_dies_during_a_call_may_have_executed_it() {
    use crate::scripted_http_server::ScriptedServer;
    for sent in ["", "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"] {
        let (hand, address) = ScriptedServer::listen().await;
        let client = Client::connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut stream = hand.accept().await;
        stream.request().await.unwrap();
        stream.say(sent).await;
        drop(stream);
        let error = within(call).await.unwrap().unwrap_err();
        tells(&error, false, true);
        assert!(matches!(error, CallError::Interrupted(_)), "{error:?}");
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_status_without_json_rpc_is_told_as_a_status() {
    use crate::scripted_http_server::ScriptedServer;
    // A layer or a gateway responds with 408 when a handler that has begun takes too long.
    let refused = [401, 404, 413, 429].map(|status| (status, false));
    let in_doubt = [408, 499, 502, 503, 504].map(|status| (status, true));
    for (status, may_have_run) in refused.into_iter().chain(in_doubt) {
        let (hand, address) = ScriptedServer::listen().await;
        let client = Client::connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut stream = hand.accept().await;
        stream.request().await.unwrap();
        stream.say(&format!("HTTP/1.1 {status} X\r\ncontent-length: 4\r\n\r\nsome")).await;
        let error = within(call).await.unwrap().unwrap_err();
        tells(&error, false, may_have_run);
        assert_eq!(error.http_status(), StatusCode::from_u16(status).ok());
        let CallError::HttpStatus(error) = error else { panic!("{error:?}") };
        assert_eq!((error.server.as_str(), error.body.as_str()), (address.as_str(), "some"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_timed_out_may_have_run() {
    let (_raw, client) = Raw::served(Limits::default(), Router::new());
    let call = client.call::<u64>("m", ()).timeout(Duration::from_secs(1));
    let error = call.await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)));
    tells(&error, false, true);
    assert_eq!(error.http_status(), None);
}

#[tokio::test]
async fn a_call_that_finds_no_connection_within_its_timeout_was_not_sent() {
    let limit = Duration::from_millis(200);
    let (_socket, address) = refusing_address();
    let policy = Reconnect::new().wait_for_server().pause(Duration::ZERO, limit / 20);
    for scheme in
        ["tcp", "ws"].into_iter().filter(|scheme| cfg!(feature = "ws") || *scheme == "tcp")
    {
        let server = format!("{scheme}://{address}");
        let builder = client().reconnect(policy.clone()).timeout(limit);
        let client = builder.connect(&format!("{server}/")).await.unwrap();
        let layered = client.clone().layer(antiphon::layer::Concurrency::new(8));
        for client in [client, layered] {
            let mut batch = client.batch();
            batch.notify("m", ());
            for error in [
                client.call::<u64>("m", ()).await.unwrap_err(),
                client.subscribe::<u64>("m", ()).await.unwrap_err(),
                batch.send().await.unwrap_err(),
                client.call::<u64>("m", ()).with_progress::<u64>().0.await.unwrap_err(),
            ] {
                tells(&error, true, false);
                let told = ErrorChain(&error).to_string();
                let start = format!("cannot reach {server}: no connection within {limit:?}: ");
                assert!(told.starts_with(&start), "{told}");
                let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
                assert_eq!(cause.kind(), io::ErrorKind::TimedOut);
            }
        }
    }
}

#[tokio::test]
async fn a_retried_call_that_finds_no_further_connection_in_time_may_have_run() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let builder = client().reconnect(Reconnect::new().idempotent(["m"]));
    let client = builder.connect(&address).await.unwrap();
    let call = client.call::<u64>("m", ()).timeout(Duration::from_millis(300));
    let call = tokio::spawn(call.into_future());
    let (stream, _) = within(listener.accept()).await.unwrap();
    let mut stream = BufReader::new(stream);
    within(stream.read_line(&mut String::new())).await.unwrap();
    drop((stream, listener));
    let error = within(call).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    tells(&error, false, true);
}

/// The peer does not read, so later calls wait for room in the write queue.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_the_write_queue_until_its_timeout_was_not_sent() {
    let limits = Limits { write_queue_bytes: 1_000, ..Limits::default() };
    let (mut raw, client) = Raw::served(limits, Router::new());
    let calls = (0..200).map(|_| {
        let call = client.call::<u64>("m", ["x".repeat(500)]).timeout(Duration::from_secs(1));
        tokio::spawn(call.into_future())
    });
    let calls: Vec<_> = calls.collect();
    let (mut sent, mut unsent) = (0, 0);
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        match error {
            CallError::SendTimedOut(_) => {
                tells(&error, true, false);
                unsent += 1;
            }
            _ => {
                assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
                sent += 1;
            }
        }
    }
    assert!(unsent > 0);
    // Exactly the others arrive.
    for _ in 0..sent {
        raw.next().await;
    }
    drop(client);
    assert!(raw.0.next().await.is_none());
}

#[tokio::test]
async fn a_call_that_a_layer_rejects_was_not_sent() {
    for wire in wires() {
        let client = connect(&serve(wire, Limits::default(), Router::new()).await).await;
        let client = client.layer(Filter::new().deny(["denied"]));
        let error = within(client.call::<u64>("denied", ()).into_future()).await.unwrap_err();
        assert!(matches!(error, CallError::Rejected(_)), "{wire}: {error:?}");
        tells(&error, true, false);
        // The server has rejected it, so it was sent and has not run.
        let error = within(client.call::<u64>("absent", ()).into_future()).await.unwrap_err();
        tells(&error, false, false);
    }
}

#[test]
fn a_failure_of_a_foreign_layer_may_have_followed_the_call() {
    let error = CallError::Layer("the budget is used up".into());
    tells(&error, false, true);
    assert_eq!(ErrorChain(&error).to_string(), "a layer failed the call: the budget is used up");
}

#[test]
fn every_error_speaks_of_its_own_level() {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    for error in [
        CallError::Closed(refused().into()),
        CallError::Interrupted(CloseReason::failed(CallError::Protocol("odd".into()))),
        CallError::Protocol("no id".into()),
        CallError::OverLimit("9 bytes".into()),
        CallError::Transport(Cause::new(refused())),
        CallError::Rejected(antiphon::ErrorObject::unauthorized().into()),
        CallError::Rpc(antiphon::ErrorObject::internal_error()),
    ] {
        reasons_appear_once(&error);
        // A copy has the same cause.
        assert_eq!(ErrorChain(&error.clone()).to_string(), ErrorChain(&error).to_string());
    }
    reasons_appear_once(&SubscriptionError::Gap(CloseReason::ByPeer));
    reasons_appear_once(&SubscriptionError::Disconnected(refused().into()));
}

#[tokio::test]
async fn a_call_that_a_shutdown_cuts_off_may_have_run() {
    let Holding { router, mut entered, .. } = holding();
    let limits = Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() };
    let (client, served) = both((Limits::default(), Router::new()), (limits, router));
    let call = tokio::spawn(client.call::<()>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    within(served.close()).await;
    let error = within(call).await.unwrap().unwrap_err();
    assert!(
        matches!(&error, CallError::Rpc(error) if error.code == Code::SERVER_BUSY),
        "{error:?}"
    );
    tells(&error, false, true);
}

/// Notifications have no reply, but the server can refuse their request.
#[cfg(feature = "http")]
#[tokio::test]
async fn a_refused_batch_of_notifications_fails() {
    use crate::scripted_http_server::ScriptedServer;
    for (status, body) in [
        (503, "some"),
        (401, ""),
        (
            413,
            r#"{"jsonrpc":"2.0","error":{"code":-32007,"message":"Request too large"},"id":null}"#,
        ),
    ] {
        let (hand, address) = ScriptedServer::listen().await;
        let client = Client::connect(&address).await.unwrap();
        let mut batch = client.batch();
        batch.notify("one", ());
        batch.notify("two", ());
        let sent = tokio::spawn(batch.send());
        let mut stream = hand.accept().await;
        stream.request().await.unwrap();
        let length = body.len();
        stream.say(&format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}")).await;
        let error = within(sent).await.unwrap().unwrap_err();
        tells(&error, false, status == 503);
        assert_eq!(error.http_status().is_some(), status != 413, "{error:?}");
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn an_unreadable_reply_over_http_is_shown_with_its_type() {
    use crate::scripted_http_server::ScriptedServer;
    for layered in [false, true] {
        for (headers, body, shown) in [
            (
                "content-type: text/html",
                "<!DOCTYPE html>\n<h1>\"Log in\"</h1>",
                "`<!DOCTYPE html>\\n<h1>\"Log in\"</h1>` (content-type: text/html)",
            ),
            ("content-encoding: gzip", "\u{1f}\u{8}", "`\\u{1f}\\u{8}` (content-encoding: gzip)"),
            ("content-type: application/json; charset=utf-8", "nonsense", "`nonsense`"),
            ("x: y", "{\"error\":\"no\"}", "`{\"error\":\"no\"}`"),
        ] {
            let (hand, address) = ScriptedServer::listen().await;
            let builder = client();
            let builder = match layered {
                true => builder.http_layer(tower::layer::util::Identity::new()),
                false => builder,
            };
            let client = builder.connect(&address).await.unwrap();
            let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
            let mut stream = hand.accept().await;
            stream.request().await.unwrap();
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\ncontent-length: {length}\r\n\r\n");
            stream.say(&format!("{head}{body}")).await;
            let error = within(call).await.unwrap().unwrap_err();
            tells(&error, false, true);
            assert!(matches!(error, CallError::Protocol(_)), "{error:?}");
            let told = ErrorChain(&error).to_string();
            let expected = format!("the peer violated the protocol: cannot read {shown}: ");
            assert!(told.starts_with(&expected), "{told}");
            // The reason of the parser is the last cause.
            let parser = error.source().unwrap().source().unwrap();
            assert!(parser.is::<antiphon::ErrorObject>(), "{parser:?}");
        }
    }
}

#[tokio::test]
async fn an_unreadable_message_on_a_stream_is_shown() {
    let long = "x".repeat(1_000);
    for (message, shown) in [
        ("INFO starting", "`INFO starting`".to_owned()),
        ("<html>\t\u{1b}[1m", "`<html>\\t\\u{1b}[1m`".to_owned()),
        (long.as_str(), format!("`{}…`", &long[..79])),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = connect(&format!("tcp://{}", listener.local_addr().unwrap())).await;
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let (stream, _) = within(listener.accept()).await.unwrap();
        let mut stream = BufReader::new(stream);
        within(stream.read_line(&mut String::new())).await.unwrap();
        stream.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let error = within(call).await.unwrap().unwrap_err();
        tells(&error, false, true);
        let told = ErrorChain(&error).to_string();
        let expected = format!("the peer violated the protocol: cannot read {shown}: Parse error");
        assert!(told.starts_with(&expected), "{told}");
    }
}

#[tokio::test]
async fn a_response_without_an_outcome_fails_its_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = connect(&format!("tcp://{}", listener.local_addr().unwrap())).await;
    let (stream, _) = within(listener.accept()).await.unwrap();
    let mut stream = BufReader::new(stream);
    for (id, members) in [(1, ""), (2, r#","neither":1"#)] {
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut line = String::new();
        within(stream.read_line(&mut line)).await.unwrap();
        // Nothing is sent in between: the peer would take an error with this id as the response to its own call.
        assert!(line.contains(r#""method":"m""#), "{line}");
        let response = format!(r#"{{"jsonrpc":"2.0","id":{id}{members}}}"#);
        stream.write_all(format!("{response}\n").as_bytes()).await.unwrap();
        let error = within(call).await.unwrap().unwrap_err();
        tells(&error, false, true);
        let told = ErrorChain(&error).to_string();
        assert!(told.ends_with("the response has neither a `result` nor an `error`"), "{told}");
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn an_http_layer_does_not_hide_what_an_error_tells() {
    for http2 in [false, true] {
        let builder = if http2 { client().http2() } else { client() };
        let builder = builder.http_layer(tower::layer::util::Identity::new());
        let (_socket, address) = refusing_address();
        let client = builder.connect(&format!("http://{address}")).await.unwrap();
        let error = within(client.call::<u64>("m", ()).into_future()).await.unwrap_err();
        tells(&error, true, false);
    }
}

/// The only call fails by what was read before the end, and the end comes inside a message.
#[tokio::test]
async fn a_connection_that_breaks_inside_a_response_interrupts_the_call() {
    for (framing, part) in [
        ("tcp", "{\"jsonrpc\":\"2.0\",\"res"),
        ("tcp+line", "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":1"),
        ("tcp+values", "[{"),
        ("tcp+header", "Content-Length: 99\r\n\r\n{\"jsonrpc\":\"2.0\""),
        ("tcp+header", "Content-Le"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = connect(&format!("{framing}://{}", listener.local_addr().unwrap())).await;
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let (mut stream, _) = within(listener.accept()).await.unwrap();
        let mut request = [0; 8];
        within(stream.read_exact(&mut request)).await.unwrap();
        stream.write_all(part.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let error = within(call).await.unwrap().unwrap_err();
        tells(&error, false, true);
        assert!(matches!(error, CallError::Interrupted(_)), "{framing}: {error:?}");
    }
}

/// A server that is killed while calls run, on every wire and over HTTP.
#[tokio::test]
async fn a_killed_server_may_have_executed_the_call_on_every_wire() {
    for wire in crate::support::wires_and_http() {
        let Holding { router, mut entered, .. } = holding();
        let server = crate::support::bound(wire).await;
        let address = server.endpoint().to_string();
        let serving = tokio::spawn(server.serve(router));
        let client = connect(&address).await;
        let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(entered.recv()).await.unwrap();
        serving.abort();
        let error = within(call).await.unwrap().unwrap_err();
        tells(&error, false, true);
        // Nothing listens any more, and the connection is gone.
        let _ = serving.await;
        if let Some(peer) = client.peer() {
            within(peer.closed()).await;
        }
        let error = within(client.call::<String>("hold", ()).into_future()).await.unwrap_err();
        tells(&error, true, false);
    }
}

/// The child writes a notification and fails. Its end is an end of input: the handler may finish.
#[cfg(all(unix, feature = "child"))]
#[tokio::test]
async fn what_a_failed_child_has_sent_is_still_handled() {
    let Holding { router, mut entered, release, mut gone } = holding();
    let note = crate::support::notification("hold_note", "[]");
    let endpoint = format!("exec:sh -c 'echo '\\''{note}'\\''; read line; exit 3'");
    let client = client().handler(router).connect(&endpoint).await.unwrap();
    within(entered.recv()).await.unwrap();
    let error = within(client.call::<u64>("m", ()).into_future()).await.unwrap_err();
    tells(&error, false, true);
    assert!(ErrorChain(&error).to_string().contains("exited with status 3"), "{error:?}");
    assert!(gone.try_recv().is_err(), "the handler was dropped");
    release.notify_one();
    let reason = within(client.peer().unwrap().closed()).await;
    assert!(ErrorChain(&reason).to_string().contains("exited with status 3"), "{reason:?}");
}

/// A layer sends something else after the call was answered, and waits until the timeout of the call.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_sent_times_out_even_if_its_layer_waits_to_send_more() {
    let limits = Limits { write_queue_bytes: 1, ..Limits::default() };
    let (_raw, other) = Raw::served(limits, Router::new());
    let second = Duration::from_secs(1);
    while tokio::time::timeout(second, other.notify("fill", ())).await.is_ok() {}
    let router = Router::new().method("ping", |(): (), _cx: Context| async { Ok("pong") });
    let client = Client::in_process(router).layer(layer::from_outgoing_fn(move |request, next| {
        let other = other.clone();
        async move {
            let outcome = next.run(request).await;
            other.notify("audit", ()).await?;
            outcome
        }
    }));
    let call = client.call::<String>("ping", ()).timeout(second);
    let error = call.await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    tells(&error, false, true);
}
