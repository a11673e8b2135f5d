//! The responses of an HTTP server that a client accepts, and those that fail.

use std::future::IntoFuture;

use antiphon::{Client, ErrorChain, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scripted_http_server::{CHUNKED, PLAIN, ScriptedServer, answered, let_runtime_run, one};
use crate::support::within;

#[tokio::test]
async fn a_response_may_have_any_form() {
    // Each with the number of connections that two calls use.
    for (response, connections) in [
        (PLAIN, 1),
        (CHUNKED, 1),
        ("HTTP/1.1 200 OK\nContent-Length: {size}\n\n{json}", 1),
        ("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\ncontent-length: {size}\r\n\r\n{json}", 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: {size}, {size}\r\n\r\n{json}", 1),
        ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: {size}\r\n\r\n{json}", 1),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n{json}", 1),
        // Other status codes may carry JSON-RPC too.
        ("HTTP/1.1 500 Oh\r\ncontent-length: {size}\r\n\r\n{json}", 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n{json}", 2),
        ("HTTP/1.0 200 OK\r\ncontent-length: {size}\r\n\r\n{json}", 2),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n\
             a\r\n{left}\r\n{hex}\r\n{right}\r\n0\r\n\r\n",
            2,
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n{json}\r\n", 2),
    ] {
        let (hand, address) = ScriptedServer::listen().await;
        let server = tokio::spawn(hand.serve(response.to_owned(), 2));
        let client = Client::connect(&address).await.unwrap();
        for _ in 0..2 {
            assert_eq!(one(&client).await.unwrap(), 1, "{response}");
        }
        assert_eq!(within(server).await.unwrap(), connections, "{response}");
    }
}

#[tokio::test]
async fn a_response_may_extend_to_the_end_of_the_connection() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::connect(&address).await.unwrap();
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\n"] {
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        hand.accept().await.answer(&format!("{head}{{json}}")).await;
        assert_eq!(within(call).await.unwrap().unwrap(), 1);
    }
}

#[tokio::test]
async fn a_response_may_arrive_in_any_two_pieces() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::connect(&address).await.unwrap();
    tokio::spawn(async move {
        let mut stream = hand.accept().await;
        for at in 1.. {
            let Some((_, body)) = stream.request().await else { return };
            let texts = [PLAIN, CHUNKED].map(|response| answered(response, &body));
            let text = &texts[at % 2];
            let (left, right) = text.split_at((at / 2).min(text.len()));
            stream.say(left).await;
            let_runtime_run().await;
            stream.say(right).await;
        }
    });
    for at in 0..2 * CHUNKED.len() {
        assert_eq!(one(&client).await.unwrap(), 1, "at {at}");
    }
}

#[tokio::test]
async fn a_response_before_the_request_is_read_is_delivered() {
    let large = "x".repeat(16 << 20);
    for stays in [false, true] {
        let (hand, address) = ScriptedServer::listen().await;
        let client = Client::connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<u64>("m", (large.as_str(),)).into_future());
        let mut stream = hand.accept().await;
        within(stream.0.read_u8()).await.unwrap();
        stream.say("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 8\r\n\r\ntoo much").await;
        let stream = stays.then_some(stream);
        let error = ErrorChain(&within(call).await.unwrap().unwrap_err()).to_string();
        assert!(error.contains("413") && error.contains("too much"), "{error}");
        drop(stream);
        // A connection whose request was not sent completely is not reused.
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        hand.accept().await.answer(PLAIN).await;
        assert_eq!(within(call).await.unwrap().unwrap(), 1);
    }
}

#[tokio::test]
async fn large_requests_and_large_responses_are_carried() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::connect(&address).await.unwrap();
    tokio::spawn(async move {
        let mut stream = hand.accept().await;
        for head in
            ["content-length: {size}\r\n\r\n", "transfer-encoding: chunked\r\n\r\n{hex}\r\n"]
        {
            let (_, body) = stream.request().await.unwrap();
            let call: serde_json::Value = serde_json::from_str(&body).unwrap();
            let (text, id) = (&call["params"][0], &call["id"]);
            let json = format!(r#"{{"jsonrpc":"2.0","result":{text},"id":{id}}}"#);
            let head = head.replace("{size}", &json.len().to_string());
            let head = head.replace("{hex}", &format!("{:x}", json.len()));
            stream.say(&format!("HTTP/1.1 200 OK\r\n{head}{json}")).await;
            if head.contains("chunked") {
                stream.say("\r\n0\r\n\r\n").await;
            }
        }
    });
    let text = "abcdefgh".repeat(1 << 18);
    for _ in 0..2 {
        let call = client.call::<String>("echo", (text.as_str(),));
        assert!(within(call.into_future()).await.unwrap() == text);
    }
}

#[tokio::test]
async fn errors_name_their_cause_and_affect_no_other_call() {
    let long = "y".repeat(70_000);
    let many = "x: y\r\n".repeat(101);
    let cases = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{json}", "ended early"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\n{left}\r\n", "ended early"),
        ("HTTP/1.1 200 OK\r\ncontent-le", "ended early"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{json}", "two lengths"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "`gzip`"),
        ("HTTP/1.1 200 OK\r\nx: y\r\n folded\r\n\r\n", "is not HTTP/1.1"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "is not HTTP/1.1"),
        ("SSH-2.0-OpenSSH_9.9\r\n", "is not HTTP/1.1"),
        (&format!("HTTP/1.1 200 OK\r\nx: {long}\r\n\r\n"), "its head is over 65536 bytes"),
        (&format!("HTTP/1.1 200 OK\r\n{many}\r\n"), "more than 100 headers"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n",
            "the body is larger than `Limits::frame_bytes` (1000 bytes)",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9999999999999999999\r\n\r\n", "(1000 bytes)"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            "(1000 bytes)",
        ),
        (&format!("HTTP/1.1 200 OK\r\n\r\n{long}"), "(1000 bytes)"),
        ("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n", "302 Found"),
        ("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", "101 Switching"),
        ("HTTP/1.1 204 No Content\r\n\r\n", "no reply to a call"),
        ("", "without a response"),
    ];
    let (hand, address) = ScriptedServer::listen().await;
    let limits = Limits { frame_bytes: 1_000, ..Limits::default() };
    let client = Client::builder().limits(limits).connect(&address).await.unwrap();
    for (response, reason) in cases {
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut stream = hand.accept().await;
        let (_, body) = stream.request().await.unwrap();
        // A client may close before it has read the whole response.
        let _ = stream.0.write_all(answered(response, &body).as_bytes()).await;
        drop(stream);
        let error = ErrorChain(&within(call).await.unwrap().unwrap_err()).to_string();
        assert!(error.contains(reason), "{response:.60}: {error}");
        let_runtime_run().await;
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut stream = hand.accept().await;
        stream.answer(PLAIN.replace("OK", "OK\r\nconnection: close").as_str()).await;
        assert_eq!(within(call).await.unwrap().unwrap(), 1, "after {response:.60}");
    }
}

#[tokio::test]
async fn headers_are_sent_as_they_are_set() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::builder()
        .header("host".parse().unwrap(), "other.example".parse().unwrap())
        .header("content-type".parse().unwrap(), "application/json-rpc".parse().unwrap())
        .header("connection".parse().unwrap(), "close".parse().unwrap())
        .connect(&format!("{address}/a?b=c"))
        .await
        .unwrap();
    for _ in 0..2 {
        let call = tokio::spawn(client.call::<u64>("m", ()).into_future());
        let mut stream = hand.accept().await;
        let (head, body) = stream.request().await.unwrap();
        assert!(head.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{head}");
        for line in ["host: other.example", "content-type: application/json-rpc"] {
            assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
        }
        assert_eq!(head.matches("host:").count() + head.matches("type:").count(), 2, "{head}");
        stream.say(&answered(PLAIN, &body)).await;
        assert_eq!(within(call).await.unwrap().unwrap(), 1);
        stream.ended().await;
    }
}

#[tokio::test]
async fn a_notification_needs_no_body() {
    let (hand, address) = ScriptedServer::listen().await;
    let client = Client::connect(&address).await.unwrap();
    let server = tokio::spawn(async move {
        let mut stream = hand.accept().await;
        for status in ["204 No Content\r\n\r\n", "202 Accepted\r\ncontent-length: 0\r\n\r\n"] {
            stream.request().await.unwrap();
            stream.say(&format!("HTTP/1.1 {status}")).await;
        }
    });
    for _ in 0..2 {
        within(client.notify("n", ())).await.unwrap();
    }
    within(server).await.unwrap();
}
