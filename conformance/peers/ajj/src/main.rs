//! ajj as its documentation has it: POST on `/` and WebSocket on `/ws` by axum, and IPC on a Unix socket.
//!
//! Usage: conformance-ajj PORT SOCKET

use std::error::Error;

use ajj::Router;
use ajj::pubsub::Connect as _;
use ajj::pubsub::ipc::{ListenerOptions, to_name};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Subtract {
    minuend: i64,
    subtrahend: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(port), Some(socket)) = (args.next(), args.next()) else {
        return Err("usage: conformance-ajj PORT SOCKET".into());
    };
    let port: u16 = port.to_str().ok_or("the port is no number")?.parse()?;
    // What a killed server left behind would be in the way.
    drop(std::fs::remove_file(&socket));
    let ipc = ListenerOptions::new().name(to_name(&socket)?).serve(router()).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, router().into_axum_with_ws("/", "/ws")).await?;
    drop(ipc);
    Ok(())
}

fn router() -> Router<()> {
    Router::<()>::new()
        .route("subtract", |p: Subtract| async move { Ok::<_, ()>(p.minuend - p.subtrahend) })
        .route("sum", |values: Vec<i64>| async move { Ok::<_, ()>(values.iter().sum::<i64>()) })
        .route("get_data", || async { Ok::<_, ()>(("hello", 5)) })
        .route("echo", |params: Box<RawValue>| async { Ok::<_, ()>(params) })
        .route("update", || async { Ok::<_, ()>(()) })
        .route("notify_hello", || async { Ok::<_, ()>(()) })
        .route("notify_sum", || async { Ok::<_, ()>(()) })
}
