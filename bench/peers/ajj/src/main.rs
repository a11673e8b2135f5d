//! ajj on axum, as its README recommends: POST on `/`, WebSocket on `/ws`.
//!
//! Raised limit: axum rejects bodies over 2 MB by default, and some workloads are larger.

use std::error::Error;
use std::time::Duration;

use ajj::Router;
use axum::extract::DefaultBodyLimit;
use axum::serve::ListenerExt;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = router().into_axum_with_ws("/", "/ws").layer(DefaultBodyLimit::max(32 << 20));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!(r#"{{"http":"http://{address}","ws":"ws://{address}/ws"}}"#);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, app).await?)
}

fn router() -> Router<()> {
    Router::<()>::new()
        .route("say_hello", || async { Ok::<_, ()>("hello") })
        .route("add", |(a, b): (i64, i64)| async move { Ok::<_, ()>(a + b) })
        .route("echo", |params: Box<RawValue>| async { Ok::<_, ()>(params) })
        .route("sleep", |(ms,): (u64,)| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok::<_, ()>(ms)
        })
}
