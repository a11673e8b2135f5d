//! A service and a call to it over TCP: the smallest complete program.
//!
//! `cargo run -p antiphon --example hello`

use antiphon::{Client, Context, Router, Server};
use serde::Deserialize;

#[derive(Deserialize)]
struct Subtract {
    minuend: i64,
    subtrahend: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new().method("subtract", |p: Subtract, _cx: Context| async move {
        Ok(p.minuend - p.subtrahend)
    });
    let server = Server::bind("tcp://127.0.0.1:0").await?;
    let endpoint = server.endpoint().clone();
    println!("listening on {endpoint}");
    tokio::spawn(server.serve(router));

    let client = Client::connect(&endpoint).await?;
    let by_position: i64 = client.call("subtract", (42, 23)).await?;
    println!("42 - 23 = {by_position}");
    let params = serde_json::json!({"subtrahend": 23, "minuend": 42});
    let by_name: i64 = client.call("subtract", params).await?;
    println!("by name: {by_name}");
    if let Err(error) = client.call::<i64>("subtract", ("forty-two", 23)).await {
        println!("with a wrong type: {error}");
    }
    Ok(())
}
