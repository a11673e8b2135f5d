//! A long call that reports its progress, and one that its caller cancels.
//!
//! Plain JSON-RPC has neither; a `Dialect` adds both, and both peers must use the same dialect.
//!
//! `cargo run -p antiphon --example progress`

use std::time::Duration;

use antiphon::{Client, Context, Dialect, Router, Server};
use futures_util::StreamExt;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (begun, mut works) = mpsc::channel(1);
    let router = Router::new().method("index", move |_: serde_json::Value, cx: Context| {
        let begun = begun.clone();
        async move {
            // A cancelled handler is dropped at its await point; work that it has started can use the token.
            let _ = begun.send(cx.cancellation().clone()).await;
            for percent in [0, 50, 100] {
                cx.progress(percent).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok("indexed")
        }
    });
    let server = Server::bind("tcp://127.0.0.1:0").await?.dialect(Dialect::lsp());
    let endpoint = server.endpoint().clone();
    tokio::spawn(server.serve(router));
    let client = Client::builder().dialect(Dialect::lsp()).connect(&endpoint).await?;

    let (call, progress) = client.call::<String>("index", ()).with_progress::<u8>();
    let (result, seen) = tokio::join!(call, progress.collect::<Vec<_>>());
    for percent in seen {
        println!("{} %", percent?);
    }
    let _first_work = works.recv().await;
    println!("{}", result?);

    let (call, mut progress) = client.call::<String>("index", ()).with_progress::<u8>();
    tokio::select! {
        done = call => println!("{}", done?),
        percent = progress.next() => println!("cancel the call after the progress {percent:?}"),
    }
    // `select!` dropped the call, which sends `$/cancelRequest`.
    if let Some(work) = works.recv().await {
        work.cancelled().await;
        println!("the handler was cancelled");
    }
    Ok(())
}
