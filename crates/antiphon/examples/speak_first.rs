//! A server that sends first, and keeps state for each connection.
//!
//! `serve_with` creates a handler for each connection before the first message is read. The handler owns
//! its state, so there is no lock and no map from connections to state.
//!
//! `cargo run -p antiphon --example speak_first`

use std::sync::atomic::{AtomicU64, Ordering};

use antiphon::{Client, Context, Peer, Router, Server};
use tokio::sync::mpsc;

/// The service of one connection.
fn service(peer: Peer) -> Router {
    let greeter = peer.clone();
    tokio::spawn(async move { greeter.notify("welcome", ["what is your name?"]).await });
    tokio::spawn(async move { println!("the connection ended: {}", peer.closed().await) });
    let calls = AtomicU64::new(0);
    Router::new().method("count", move |(): (), _cx: Context| {
        let count = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(count) }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::bind("tcp://127.0.0.1:0").await?;
    let endpoint = server.endpoint().clone();
    tokio::spawn(server.serve_with(|_connection, peer| service(peer)));

    let (sender, mut welcomes) = mpsc::unbounded_channel();
    let handler = Router::new().notification("welcome", move |(text,): (String,), _cx: Context| {
        let _ = sender.send(text);
        async {}
    });
    let first = Client::builder().handler(handler).connect(&endpoint).await?;
    println!("the server asks: {}", welcomes.recv().await.ok_or("no welcome")?);
    println!("calls: {}", first.call::<u64>("count", ()).await?);
    println!("calls: {}", first.call::<u64>("count", ()).await?);

    let second = Client::connect(&endpoint).await?;
    println!("calls on another connection: {}", second.call::<u64>("count", ()).await?);
    first.close().await;
    second.close().await;
    // Yield, so that the server task can run and detect the end of the connections.
    tokio::task::yield_now().await;
    Ok(())
}
