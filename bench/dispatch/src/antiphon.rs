//! Antiphon without a socket.

use std::error::Error;

use antiphon::transport::http::HttpService;
use antiphon::{Client, Context, Responder, Router, Server};

use crate::Meter;
use crate::case::{BATCH, Case};

fn router() -> Router {
    Router::new()
        .method("say_hello", |(): (), _cx: Context| async { Ok("hello") })
        .method("add", |(a, b): (i64, i64), _cx: Context| async move { Ok(a + b) })
}

pub(crate) fn service() -> HttpService {
    HttpService::new(router())
}

/// Text to text.
pub(crate) async fn responder(meter: &Meter, case: &Case) {
    let responder = Responder::new(router());
    let answer = async || responder.answer(case.request.clone()).await.expect("a reply");
    meter.run(async || case.check(&answer().await)).await;
}

/// A client and a server connected in memory: two connections, two tasks, all contracts.
pub(crate) async fn memory(meter: &Meter, case: &Case) -> Result<(), Box<dyn Error>> {
    tokio::spawn(Server::bind("memory:dispatch").await?.serve(router()));
    let client = Client::connect("memory:dispatch").await?;
    match case.name {
        "hello" => {
            let hello = async || client.call::<String>("say_hello", ()).await.expect("a reply");
            meter.run(async || assert_eq!(hello().await, "hello")).await;
        }
        "add" => {
            let add = async || client.call::<i64>("add", (2, 3)).await.expect("a reply");
            meter.run(async || assert_eq!(add().await, 5)).await;
        }
        _ => meter.run(async || batch(&client).await).await,
    }
    Ok(())
}

async fn batch(client: &Client) {
    let mut batch = client.batch();
    let slots: Vec<_> = (0..BATCH).map(|_| batch.call::<String>("say_hello", ())).collect();
    let mut replies = batch.send().await.expect("replies");
    for slot in slots {
        assert_eq!(replies.take(slot).expect("a reply"), "hello");
    }
}
