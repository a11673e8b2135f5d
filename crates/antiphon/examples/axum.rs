//! JSON-RPC under one path of an axum application: by POST and by WebSocket.
//!
//! `cargo run -p antiphon --features full --example axum [ADDRESS]`, then
//! `antiphon call http://127.0.0.1:3000/rpc greet name=Ada` or
//! `antiphon call ws://127.0.0.1:3000/rpc greet name=Ada`.

use antiphon::transport::http::{Guard, HttpService};
use antiphon::{Context, Router};
use serde::Deserialize;

#[derive(Deserialize)]
struct Greet {
    name: String,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".to_owned());
    let rpc = Router::new()
        .method("greet", |p: Greet, _cx: Context| async move { Ok(format!("hello, {}", p.name)) });
    let app: axum::Router = axum::Router::new()
        .route("/", axum::routing::get(|| async { "JSON-RPC is at /rpc\n" }))
        // Loopback hosts only, so that a web page cannot reach the service by DNS rebinding.
        .route_service("/rpc", HttpService::new(rpc).guard(Guard::new().loopback_only()));
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("JSON-RPC is at http://{}/rpc", listener.local_addr()?);
    axum::serve(listener, app).await
}
