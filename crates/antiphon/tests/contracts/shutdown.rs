//! Contracts 9 and 10: disconnect, end of input, shutdown; and no task remains.

use std::future::IntoFuture;
use std::time::Duration;

use antiphon::{CallError, Client, Context, Limits, Router, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

#[cfg(feature = "http")]
use crate::support::rest;
use crate::support::{
    FOREVER, Holding, Raw, dial, holding, notification, refused_at_shutdown, request, serve, within,
};

#[tokio::test]
async fn a_disconnect_cancels_running_calls() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let (mut raw, served) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    drop(raw);
    within(gone.recv()).await.unwrap();
    within(served.peer().unwrap().closed()).await;
}

#[tokio::test]
async fn the_end_of_input_finishes_accepted_calls() {
    let Holding { router, mut entered, release, .. } = holding();
    let address = serve("tcp://127.0.0.1:0", Limits::default(), router).await;
    let mut stream = TcpStream::connect(address.trim_start_matches("tcp://")).await.unwrap();
    stream.write_all(request(1, "hold", "[]").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    within(entered.recv()).await.unwrap();
    release.notify_one();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("\"held\""), "{answer}");
}

#[tokio::test]
async fn a_shutdown_finishes_running_calls_and_rejects_new_ones() {
    for endpoint in ["tcp://127.0.0.1:0", "memory:shutdown"] {
        let Holding { router, mut entered, release, .. } = holding();
        let server = Server::bind(endpoint).await.unwrap();
        let address = server.endpoint().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(router, stopped));
        let client = Client::connect(&address).await.unwrap();
        let held = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(entered.recv()).await.unwrap();
        stop.send(()).unwrap();
        let refused = within(refused_at_shutdown(&client)).await;
        assert!(matches!(&refused, CallError::Rpc(error) if error.code.0 == -32009), "{refused}");
        release.notify_one();
        assert_eq!(within(held).await.unwrap().unwrap(), "held");
        within(serving).await.unwrap().unwrap();
        assert!(Client::connect(&address).await.is_err());
    }
}

#[tokio::test]
async fn a_shutdown_over_its_timeout_cancels() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { shutdown_timeout: Duration::from_millis(30), ..Limits::default() };
    let server = Server::bind("tcp://127.0.0.1:0").await.unwrap().limits(limits);
    let address = server.endpoint().to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(router, stopped));
    let client = Client::connect(&address).await.unwrap();
    let held = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    stop.send(()).unwrap();
    within(gone.recv()).await.unwrap();
    within(serving).await.unwrap().unwrap();
    // The call is cancelled and still answered.
    let busy = within(held).await.unwrap().unwrap_err();
    assert!(matches!(&busy, CallError::Rpc(error) if error.code.0 == -32009), "{busy}");
}

#[tokio::test]
async fn a_closed_client_has_sent_its_queued_messages() {
    let (heard, mut hearing) = mpsc::channel(200);
    let router = Router::new().notification("note", move |(n,): (u64,), _cx: Context| {
        let heard = heard.clone();
        async move { heard.send(n).await.unwrap() }
    });
    let address = serve("tcp://127.0.0.1:0", Limits::default(), router).await;
    let client = Client::connect(&address).await.unwrap();
    for n in 0..100u64 {
        client.notify("note", (n,)).await.unwrap();
    }
    within(client.close()).await;
    for n in 0..100 {
        assert_eq!(within(hearing.recv()).await, Some(n));
    }
}

#[tokio::test]
async fn dropping_the_last_client_ends_the_connection() {
    let Holding { router, .. } = holding();
    let (raw, served) = Raw::served(Limits::default(), router);
    let peer = served.peer().unwrap().clone();
    let clone = served.clone();
    drop(served);
    clone.notify("still", ()).await.unwrap();
    drop(clone);
    within(peer.closed()).await;
    drop(raw);
}

#[tokio::test]
async fn tasks_end_with_their_connection() {
    let Holding { router, mut entered, .. } = holding();
    // The time limit for accepted calls after the end of input.
    let limits = Limits { shutdown_timeout: Duration::from_millis(50), ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", limits, router).await;
    let open = Client::connect(&address).await.unwrap();
    open.call::<()>("nowhere", ()).await.unwrap_err();
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    for _ in 0..20 {
        let client = Client::connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(entered.recv()).await.unwrap();
        call.abort();
        within(client.close()).await;
    }
    within(async {
        while metrics.num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_notification_over_the_request_timeout_is_cancelled() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { request_timeout: Some(Duration::from_millis(20)), ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router);
    raw.send(&notification("hold_note", "[]")).await;
    within(entered.recv()).await.unwrap();
    within(gone.recv()).await.unwrap();
}

#[tokio::test]
async fn the_end_of_input_cancels_an_unfinished_notification() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { shutdown_timeout: Duration::from_millis(30), ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", limits, router).await;
    let mut stream = dial(&address).await;
    stream.write_all(notification("hold_note", "[]").as_bytes()).await.unwrap();
    within(entered.recv()).await.unwrap();
    drop(stream);
    within(gone.recv()).await.unwrap();
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_disconnect_cancels_the_call_of_an_http_request() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let address = serve("http://127.0.0.1:0", Limits::default(), router).await;
    let entries = format!("[{},{}]", request(1, "hold", "[]"), request(2, "hold", "[]"));
    for (body, runs) in
        [(request(1, "hold", "[]"), 1), (entries, 2), (notification("hold_note", "[]"), 1)]
    {
        let mut stream = dial(&address).await;
        let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        let message = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(message.as_bytes()).await.unwrap();
        for _ in 0..runs {
            within(entered.recv()).await.unwrap();
        }
        drop(stream);
        for _ in 0..runs {
            within(gone.recv()).await.unwrap();
        }
    }
}

/// On the fast path and through hyper.
#[cfg(feature = "http")]
#[tokio::test]
async fn a_shutdown_over_its_timeout_answers_over_http_too() {
    for header in ["", "te: x\r\n"] {
        let Holding { router, mut entered, mut gone, .. } = holding();
        let limits = Limits { shutdown_timeout: Duration::from_millis(30), ..Limits::default() };
        let server = Server::bind("http://127.0.0.1:0").await.unwrap().limits(limits);
        let address = server.endpoint().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(router, stopped));
        let mut stream = dial(&address).await;
        let body = request(1, "hold", "[]");
        let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        let message = format!("{head}{header}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(message.as_bytes()).await.unwrap();
        within(entered.recv()).await.unwrap();
        stop.send(()).unwrap();
        let response = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(response.starts_with("HTTP/1.1 503"), "{response}");
        assert!(response.contains("-32009"), "{response}");
        assert!(response.contains("connection: close\r\n"), "{response}");
        within(gone.recv()).await.unwrap();
        within(serving).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_dropped_ends_its_connections() {
    let mut endpoints = vec!["tcp://127.0.0.1:0", "memory:dropped"];
    if cfg!(feature = "ws") {
        endpoints.push("ws://127.0.0.1:0");
    }
    for endpoint in endpoints {
        let Holding { router, mut entered, mut gone, .. } = holding();
        let server = Server::bind(endpoint).await.unwrap();
        let address = server.endpoint().to_string();
        let serving = tokio::spawn(server.serve(router));
        let client = Client::connect(&address).await.unwrap();
        let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(entered.recv()).await.unwrap();
        serving.abort();
        within(client.peer().unwrap().closed()).await;
        within(gone.recv()).await.unwrap();
        within(call).await.unwrap().unwrap_err();
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_server_that_is_dropped_ends_its_http_connections() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let server = Server::bind("http://127.0.0.1:0").await.unwrap();
    let address = server.endpoint().to_string();
    let serving = tokio::spawn(server.serve(router));
    let mut resting = dial(&address).await;
    let client = Client::connect(&address).await.unwrap();
    let call = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    serving.abort();
    within(gone.recv()).await.unwrap();
    within(call).await.unwrap().unwrap_err();
    rest(&mut resting).await;
}

#[tokio::test]
async fn a_client_closes_although_its_handler_does_not_finish() {
    let limits = Limits { shutdown_timeout: Duration::from_millis(30), ..Limits::default() };
    let asks = Router::new().method("work", |(): (), cx: Context| async move {
        Ok(cx.peer()?.call::<String>("ask", ()).await?)
    });
    let (mut raw, served) = Raw::served(limits.clone(), asks);
    raw.send(&request(1, "work", "[]")).await;
    assert_eq!(raw.next().await["method"], "ask");
    within(served.close()).await;
    assert_eq!(raw.next().await["error"]["code"], -32009);
    // Also with an unfinished notification, and calls that wait behind it.
    let Holding { router, mut entered, mut gone, .. } = holding();
    let (mut raw, served) = Raw::served(limits, router);
    raw.send(&notification("hold_note", "[]")).await;
    within(entered.recv()).await.unwrap();
    within(served.close()).await;
    within(gone.recv()).await.unwrap();
}

#[cfg(all(feature = "child", unix))]
#[tokio::test]
async fn the_child_of_a_dropped_client_exits() {
    let left = std::env::temp_dir().join(format!("antiphon-{}-left", std::process::id()));
    // The child sends a call, reads its stdin to the end, and then leaves a file.
    let call = request(1, "hold", "[]").replace('"', "\\\"");
    let child = format!("exec:sh -c 'echo \"{call}\"; cat >&2; echo > {}'", left.display());
    let Holding { router, mut entered, .. } = holding();
    let limits = Limits { shutdown_timeout: Duration::from_millis(30), ..Limits::default() };
    let client = Client::builder().limits(limits).handler(router).connect(&child).await.unwrap();
    within(entered.recv()).await.unwrap();
    drop(client);
    within(async {
        while !left.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    std::fs::remove_file(left).unwrap();
}

#[tokio::test]
async fn the_end_of_input_serves_frames_that_were_read_ahead() {
    // One call runs and the reader pauses; the other calls are read ahead, up to the end of input.
    let Holding { router, mut entered, release, gone: _gone } = holding();
    let limits = Limits { in_flight: 1, ..Limits::default() };
    let address = serve("tcp://127.0.0.1:0", limits, router).await;
    let mut stream = TcpStream::connect(address.trim_start_matches("tcp://")).await.unwrap();
    for id in 1..=5 {
        stream.write_all(request(id, "hold", "[]").as_bytes()).await.unwrap();
    }
    stream.shutdown().await.unwrap();
    for _ in 1..=5 {
        within(entered.recv()).await.unwrap();
        release.notify_one();
    }
    let mut answers = String::new();
    within(stream.read_to_string(&mut answers)).await.unwrap();
    assert_eq!(answers.lines().count(), 5, "{answers}");
    assert!(answers.lines().all(|answer| answer.contains("\"held\"")), "{answers}");
}

#[tokio::test]
async fn a_disconnect_cancels_a_notification() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { stall_timeout: FOREVER, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router);
    raw.send(&notification("hold_note", "[]")).await;
    within(entered.recv()).await.unwrap();
    drop(raw);
    within(gone.recv()).await.unwrap();
}

#[tokio::test]
async fn a_disconnect_cancels_running_calls_while_the_reader_pauses() {
    let Holding { router, mut entered, mut gone, .. } = holding();
    let limits = Limits { in_flight: 2, stall_timeout: FOREVER, ..Limits::default() };
    let (mut raw, _served) = Raw::served(limits, router);
    for id in 0..4 {
        raw.send(&request(id, "hold", "[]")).await;
    }
    for _ in 0..2 {
        within(entered.recv()).await.unwrap();
    }
    drop(raw);
    within(gone.recv()).await.unwrap();
}

/// Requests that are pipelined behind a response are not read any more, and must not truncate it.
#[cfg(feature = "http")]
#[tokio::test]
async fn a_shutdown_sends_a_whole_response_despite_pipelined_requests() {
    const SIZE: usize = 8 << 20;
    let (enter, mut entered) = mpsc::channel(1);
    let release = std::sync::Arc::new(tokio::sync::Notify::new());
    let go = release.clone();
    let router = Router::new().method("big", move |(): (), _cx: Context| {
        let (enter, go) = (enter.clone(), go.clone());
        async move {
            enter.send(()).await.unwrap();
            go.notified().await;
            Ok("x".repeat(SIZE))
        }
    });
    let server = Server::bind("http://127.0.0.1:0").await.unwrap();
    let address = server.endpoint().to_string();
    let authority = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(router, stopped));
    let body = request(1, "big", "[]");
    let big = format!(
        "POST / HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = dial(&address).await;
    // More pipelined requests than the server reads ahead.
    stream.write_all((big.clone() + &big.repeat(1_000)).as_bytes()).await.unwrap();
    within(entered.recv()).await.unwrap();
    stop.send(()).unwrap();
    while TcpStream::connect(&authority).await.is_ok() {
        tokio::task::yield_now().await;
    }
    release.notify_one();
    let answer = rest(&mut stream).await;
    assert!(answer.len() > SIZE, "{} of {SIZE} bytes came", answer.len());
    drop(stream);
    within(serving).await.unwrap().unwrap();
}
