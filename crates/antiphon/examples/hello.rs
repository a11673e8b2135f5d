//! A service and a call to it, over TCP: the smallest whole program.

use antiphon::{Client, Context, ErrorObject, Router, Server};
use serde::Deserialize;

#[derive(Deserialize)]
struct Subtract {
    minuend: i64,
    subtrahend: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new().method("subtract", |p: Subtract, _cx: Context| async move {
        p.minuend.checked_sub(p.subtrahend).ok_or(ErrorObject::new(1, "overflow"))
    });
    let server = Server::bind("tcp://127.0.0.1:0").await?;
    let address = server.endpoints()[0].to_string();
    tokio::spawn(server.serve(router));

    let client = Client::connect(&address).await?;
    let by_position: i64 = client.call("subtract", (42, 23)).await?;
    let by_name: i64 =
        client.call("subtract", serde_json::json!({"subtrahend": 23, "minuend": 42})).await?;
    println!("{address}: {by_position} and {by_name}");
    Ok(())
}
