//! Calls over a transport without connections: a pair of channels, in place of a message queue.
//!
//! Each request contains the channel for its reply. The calling side is a `Client` over a `RequestReply`.
//! The serving side is a `Responder`, which takes a payload and returns the reply.
//!
//! `cargo run -p antiphon --example request_reply`

use antiphon::transport::RequestMessage;
use antiphon::{CallError, Client, Context, Responder, Router};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// A payload, and the channel for its reply.
type Delivery = (Bytes, oneshot::Sender<Option<Bytes>>);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (queue, deliveries) = mpsc::channel(16);
    let server = tokio::spawn(serve(deliveries));

    let client = Client::builder()
        .over_request_reply(move |message: RequestMessage| exchange(queue.clone(), message));
    let difference: i64 = client.call("subtract", (42, 23)).await?;
    println!("42 - 23 = {difference}");
    client.notify("log", ["a notification expects no reply"]).await?;

    let mut batch = client.batch();
    let first = batch.call::<i64>("subtract", (5, 3));
    let second = batch.call::<i64>("subtract", ("five", 3));
    let mut replies = batch.send().await?;
    println!("in a batch: {}", replies.take(first)?);
    if let Err(error) = replies.take(second) {
        println!("and an error: {error}");
    }

    drop(client);
    server.await?;
    Ok(())
}

/// Sends one payload, and waits for its reply if one is expected.
async fn exchange(
    queue: mpsc::Sender<Delivery>,
    message: RequestMessage,
) -> Result<Option<Bytes>, CallError> {
    let (reply_to, reply) = oneshot::channel();
    let not_sent = |_| CallError::Closed("the queue is closed".into());
    queue.send((message.payload, reply_to)).await.map_err(not_sent)?;
    if !message.expects_reply {
        return Ok(None);
    }
    reply.await.map_err(|_| CallError::Interrupted("the server stopped".into()))
}

/// Replies to each payload until the queue is closed.
async fn serve(mut deliveries: mpsc::Receiver<Delivery>) {
    let responder = Responder::new(
        Router::new()
            .method("subtract", |(a, b): (i64, i64), _cx: Context| async move { Ok(a - b) })
            .method("log", |(text,): (String,), _cx: Context| async move {
                println!("the server logs: {text}");
                Ok(())
            }),
    );
    while let Some((payload, reply_to)) = deliveries.recv().await {
        // The send fails if the caller has given up.
        let _ = reply_to.send(responder.answer(payload).await);
    }
}
