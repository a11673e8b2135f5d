//! A tap on a server: every message of every connection, as bytes and decoded.
//!
//! `cargo run -p antiphon --features full --example tap`

use antiphon::core::{Message, Payload};
use antiphon::{
    Client, CloseReason, Connection, Context, Direction, Router, Server, Tap, TappedMessage,
};

struct Recorder;

impl Tap for Recorder {
    fn message(&self, message: &TappedMessage<'_>) {
        let arrow = if message.direction == Direction::Received { "-->" } else { "<--" };
        let kind = match message.decode() {
            Payload::Batch(batch) => format!("batch of {}", batch.len()),
            Payload::One(Ok(Message::Request(request))) => format!("request {}", request.id),
            Payload::One(Ok(Message::Response(response))) => format!("response {}", response.id),
            Payload::One(Ok(Message::Notification(_))) => "notification".to_owned(),
            Payload::One(Err(invalid)) => format!("not a message: {}", invalid.error),
        };
        let Connection { transport, .. } = message.connection;
        let text = String::from_utf8_lossy(message.bytes);
        println!("{transport} {arrow} {kind}: {text}");
    }

    fn opened(&self, connection: &Connection) {
        println!("{} opened", connection.transport);
    }

    fn closed(&self, connection: &Connection, reason: &CloseReason) {
        println!("{} closed: {reason}", connection.transport);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router =
        Router::new().method("double", |(n,): (i64,), _cx: Context| async move { Ok(n * 2) });
    let server = Server::bind("tcp://127.0.0.1:0").await?.and("http://127.0.0.1:0").await?;
    let endpoints: Vec<_> = server.endpoints().into_iter().cloned().collect();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopping = async { drop(stopped.await) };
    let serving = tokio::spawn(server.tap(Recorder).serve_until(router, stopping));
    for endpoint in &endpoints {
        let client = Client::connect(endpoint).await?;
        client.call::<i64>("double", [21]).await?;
        client.close().await;
    }
    let _ = stop.send(());
    serving.await??;
    Ok(())
}
