//! The connections of an HTTP client: which are reused, which are not, and when they end.

use std::future::IntoFuture;
use std::io::{Read as _, Write as _};
use std::sync::mpsc;
use std::time::Duration;

use antiphon::{Client, ErrorChain, Limits};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::scripted_http_server::{
    PLAIN, RawConnection, ScriptedServer, answered, let_runtime_run, one,
};
use crate::support::within;

#[tokio::test]
async fn there_are_as_many_connections_as_concurrent_calls() {
    let (hand, address) = ScriptedServer::listen().await;
    let server = tokio::spawn(hand.serve(PLAIN.to_owned(), 3 * 20));
    let client = Client::connect(&address).await.unwrap();
    for _ in 0..3 {
        for result in join_all((0..20).map(|_| one(&client))).await {
            assert_eq!(result.unwrap(), 1);
        }
    }
    assert_eq!(within(server).await.unwrap(), 20);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_reused() {
    // Some servers send a response before they close an idle connection.
    for farewell in ["", "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"] {
        let (hand, address) = ScriptedServer::listen().await;
        let client = Client::connect(&address).await.unwrap();
        for _ in 0..3 {
            let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
            let mut stream = hand.accept().await;
            stream.answer(PLAIN).await;
            assert_eq!(within(call).await.unwrap().unwrap(), 1);
            stream.say(farewell).await;
            drop(stream);
            let_runtime_run().await;
        }
    }
}

#[tokio::test]
async fn a_connection_with_unsolicited_bytes_is_not_reused() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::connect(&address).await.unwrap();
    let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
    let mut first = hand.accept().await;
    first.answer(PLAIN).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 1);
    // A forged response to the next call.
    let forged = r#"{"jsonrpc":"2.0","result":666,"id":2}"#;
    first.say(&format!("HTTP/1.1 200 OK\r\ncontent-length: 37\r\n\r\n{forged}")).await;
    let_runtime_run().await;
    let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
    hand.accept().await.answer(PLAIN).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 1);
    first.ended().await;
}

/// The thread is busy while the server closes, so the runtime has not seen the close when the call
/// begins.
#[tokio::test]
async fn a_close_that_the_runtime_has_not_seen_is_detected() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::connect(&address).await.unwrap();
    let (close, closing) = mpsc::channel();
    let (tell, closed) = mpsc::channel();
    std::thread::spawn(move || {
        for (mut stream, _) in std::iter::from_fn(|| listener.accept().ok()) {
            let mut request = [0; 1_000];
            let read = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..read]);
            let body = request.split("\r\n\r\n").nth(1).unwrap();
            stream.write_all(answered(PLAIN, body).as_bytes()).unwrap();
            if closing.recv().is_err() {
                return;
            }
            drop(stream);
            tell.send(()).unwrap();
        }
    });
    for _ in 0..3 {
        assert_eq!(one(&client).await.unwrap(), 1);
        close.send(()).unwrap();
        closed.recv().unwrap();
        // Longer than a connection may be idle without a check of its socket. Nothing else reveals
        // that time.
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_call_that_the_server_may_have_executed_is_not_repeated() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::connect(&address).await.unwrap();
    let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
    let mut stream = hand.accept().await;
    stream.answer(PLAIN).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 1);
    let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
    stream.request().await.unwrap();
    drop(stream);
    let error = ErrorChain(&within(call).await.unwrap().unwrap_err()).to_string();
    assert!(
        error.contains("without a response") && error.contains("may have been executed"),
        "{error}"
    );
    // The next connection belongs to the next call.
    let call = tokio::spawn(client.call::<u64>("m", (3,)).into_future());
    let (_, body) = hand.accept().await.request().await.unwrap();
    assert!(body.contains("[3]"), "{body}");
    call.abort();
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::connect(&address).await.unwrap();
    // Before the response, in its head, and in its body.
    for said in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"] {
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut stream = hand.accept().await;
        stream.request().await.unwrap();
        stream.say(said).await;
        let_runtime_run().await;
        call.abort();
        stream.ended().await;
    }
    let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
    hand.accept().await.answer(PLAIN).await;
    assert_eq!(within(call).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_host_with_several_addresses_is_tried_at_each() {
    // The first address of `localhost` may be ::1, where no server listens.
    let (hand, address) = ScriptedServer::listen().await;
    tokio::spawn(hand.serve(PLAIN.to_owned(), 1));
    let client = Client::connect(&address.replace("127.0.0.1", "localhost")).await.unwrap();
    assert_eq!(one(&client).await.unwrap(), 1);
}

#[tokio::test]
async fn a_refused_connection_is_reported_with_its_cause() {
    let (hand, address) = ScriptedServer::listen().await;
    drop(hand);
    let client = Client::connect(&address).await.unwrap();
    let error = ErrorChain(&one(&client).await.unwrap_err()).to_string();
    assert!(error.starts_with(&format!("cannot reach {address}: Connection refused")), "{error}");
}

#[tokio::test]
async fn idle_connections_end_after_their_timeout_or_with_their_client() {
    for rest in [None, Some(Duration::from_millis(1))] {
        let (hand, address) = ScriptedServer::listen().await;
        let limits = Limits { idle_timeout: rest, ..Limits::default() };
        let client = Client::builder().limits(limits).connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut stream = hand.accept().await;
        stream.answer(PLAIN).await;
        assert_eq!(within(call).await.unwrap().unwrap(), 1);
        let client = rest.map(|_| client);
        stream.ended().await;
        drop(client);
    }
}

/// A socket belongs to the runtime that created it.
#[test]
fn a_client_may_be_called_from_several_runtimes() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, one_of_two, other) = (runtime(), runtime(), runtime());
    let (hand, address) = server.block_on(ScriptedServer::listen());
    let serving = server.spawn(hand.serve(PLAIN.to_owned(), 4));
    let thread = std::thread::spawn(move || server.block_on(within(serving)).unwrap());
    let client = one_of_two.block_on(Client::connect(&address)).unwrap();
    for _ in 0..2 {
        // The other runtime is not polled meanwhile.
        assert_eq!(one_of_two.block_on(within(one(&client))).unwrap(), 1);
        assert_eq!(other.block_on(within(one(&client))).unwrap(), 1);
    }
    assert_eq!(thread.join().unwrap(), 2, "each has a connection of its own");
}

/// Some responses have no body whatever their head says. But a server whose head announces one may
/// send it, so the connection is not reused.
#[tokio::test]
async fn a_connection_that_may_still_deliver_a_body_is_not_reused() {
    for says in ["transfer-encoding: chunked", "content-length: 5"] {
        let (hand, address) = ScriptedServer::listen().await;
        let client = Client::connect(&address).await.unwrap();
        let notified = tokio::spawn({
            let client = client.clone();
            async move { client.notify("n", ()).await }
        });
        let mut first = hand.accept().await;
        first.request().await.unwrap();
        first.say(&format!("HTTP/1.1 204 No Content\r\n{says}\r\n\r\n")).await;
        within(notified).await.unwrap().unwrap();
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut second = hand.accept().await;
        second.answer(PLAIN).await;
        assert_eq!(within(call).await.unwrap().unwrap(), 1);
    }
}

/// A settings frame, the head of a 200 on stream 1, and the first byte of its body.
const HALF_BY_HTTP2: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\
    \x00\x00\x01\x01\x04\x00\x00\x00\x01\x88\
    \x00\x00\x01\x00\x00\x00\x00\x00\x01{";

#[tokio::test]
async fn a_stalled_response_fails_its_call() {
    let limits = Limits { stall_timeout: Duration::from_millis(50), ..Limits::default() };
    for http2 in [false, true] {
        let (hand, address) = ScriptedServer::listen().await;
        let builder = Client::builder().limits(limits.clone());
        let builder = if http2 { builder.http2() } else { builder };
        let client = builder.connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let RawConnection(mut stream) = hand.accept().await;
        let mut come = Vec::new();
        while !String::from_utf8_lossy(&come).contains("\"method\"") {
            within(stream.read_buf(&mut come)).await.unwrap();
        }
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{";
        stream.write_all(if http2 { HALF_BY_HTTP2 } else { half }).await.unwrap();
        let error = ErrorChain(&within(call).await.unwrap().unwrap_err()).to_string();
        assert!(
            error.contains("made no progress for 50ms; raise `Limits::stall_timeout`"),
            "{http2}: {error}"
        );
    }
}
