//! JSON-RPC under one path of an axum application: by POST and by WebSocket. Ctrl-C shuts the
//! application down gracefully.
//!
//! `cargo run -p antiphon --features full,axum --example axum [ADDRESS]`, then
//! `antiphon call http://127.0.0.1:3000/rpc greet name=Ada` or
//! `antiphon call ws://127.0.0.1:3000/rpc greet name=Ada`.

use std::net::SocketAddr;

use antiphon::transport::http::{Guard, HttpService};
use antiphon::{Context, ErrorObject, Router};
use serde::Deserialize;

#[derive(Deserialize)]
struct Greet {
    name: String,
}

async fn greet(p: Greet, cx: Context) -> Result<String, ErrorObject> {
    // axum knows the address, since it accepts the connections.
    let address = cx.connection().remote.map(|remote| remote.ip().to_string());
    Ok(format!("hello, {} from {}", p.name, address.unwrap_or_default()))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".to_owned());
    // Loopback hosts only, so that a web page cannot reach the service by DNS rebinding.
    let rpc =
        HttpService::new(Router::new().method("greet", greet)).guard(Guard::new().loopback_only());
    let app: axum::Router = axum::Router::new()
        .route("/", axum::routing::get(|| async { "JSON-RPC is at /rpc\n" }))
        .route_service("/rpc", rpc.clone());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("JSON-RPC is at http://{}/rpc", listener.local_addr()?);
    let stop = async move {
        let _ = tokio::signal::ctrl_c().await;
        rpc.shutdown().await;
    };
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(stop)
        .await
}
