//! Contracts 9 and 10: disconnect, end of input, shutdown; and nothing left behind.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use antiphon::{CallError, Client, Context, ErrorObject, Limits, Router, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::support::{Raw, request, serve, within};

/// `hold` announces itself and waits until the test lets it go; `gone` hears of its cancellation.
fn holding() -> (Router, mpsc::Receiver<()>, Arc<Notify>, mpsc::Receiver<()>) {
    let (entered, seen_entered) = mpsc::channel(8);
    let (gone, seen_gone) = mpsc::channel(8);
    let release = Arc::new(Notify::new());
    let go = release.clone();
    let router = Router::new().method("hold", move |(): (), cx: Context| {
        let (entered, gone, go) = (entered.clone(), gone.clone(), go.clone());
        async move {
            let token = cx.cancellation().clone();
            tokio::spawn(async move {
                token.cancelled().await;
                let _ = gone.send(()).await;
            });
            entered.send(()).await.unwrap();
            go.notified().await;
            Ok::<_, ErrorObject>("held")
        }
    });
    (router, seen_entered, release, seen_gone)
}

#[tokio::test]
async fn a_disconnect_cancels_what_runs() {
    let (router, mut entered, _release, mut gone) = holding();
    let (mut raw, served) = Raw::served(Limits::default(), router);
    raw.send(&request(1, "hold", "[]")).await;
    within(entered.recv()).await.unwrap();
    drop(raw);
    within(gone.recv()).await.unwrap();
    within(served.peer().unwrap().closed()).await;
}

#[tokio::test]
async fn the_end_of_input_drains_what_was_accepted() {
    let (router, mut entered, release, _gone) = holding();
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
async fn a_shutdown_finishes_what_runs_and_refuses_what_comes() {
    for endpoint in ["tcp://127.0.0.1:0", "memory:shutdown"] {
        let (router, mut entered, release, _gone) = holding();
        let server = Server::bind(endpoint).await.unwrap();
        let address = server.endpoints()[0].to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve_until(router, async { drop(stopped.await) }));
        let client = Client::connect(&address).await.unwrap();
        let held = tokio::spawn(client.call::<String>("hold", ()).into_future());
        within(entered.recv()).await.unwrap();
        stop.send(()).unwrap();
        // Until the server says that it shuts down, it may still take a call.
        let refused = within(async {
            loop {
                match client.call::<String>("nowhere", ()).await {
                    Err(CallError::Rpc(error)) if error.code.0 == -32601 => {}
                    other => return other.unwrap_err(),
                }
            }
        })
        .await;
        assert!(matches!(&refused, CallError::Rpc(error) if error.code.0 == -32009), "{refused}");
        release.notify_one();
        assert_eq!(within(held).await.unwrap().unwrap(), "held");
        within(serving).await.unwrap().unwrap();
        assert!(Client::connect(&address).await.is_err());
    }
}

#[tokio::test]
async fn a_shutdown_over_its_time_cancels() {
    let (router, mut entered, _release, mut gone) = holding();
    let limits = Limits { shutdown_timeout: Duration::from_millis(30), ..Limits::default() };
    let server = Server::bind("tcp://127.0.0.1:0").await.unwrap().limits(limits);
    let address = server.endpoints()[0].to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(router, async { drop(stopped.await) }));
    let client = Client::connect(&address).await.unwrap();
    let held = tokio::spawn(client.call::<String>("hold", ()).into_future());
    within(entered.recv()).await.unwrap();
    stop.send(()).unwrap();
    within(gone.recv()).await.unwrap();
    within(serving).await.unwrap().unwrap();
    // Cancelled, and still answered.
    let busy = within(held).await.unwrap().unwrap_err();
    assert!(matches!(&busy, CallError::Rpc(error) if error.code.0 == -32009), "{busy}");
}

#[tokio::test]
async fn a_closed_client_has_sent_what_was_queued() {
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
    let (router, ..) = holding();
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
    let (router, mut entered, _release, gone) = holding();
    drop(gone);
    // What is still accepted after the end of input is drained for this long at most.
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
