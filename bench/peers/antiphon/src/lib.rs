//! Antiphon's own server, as in its README: one router on every wire, with default limits.

use std::error::Error;
use std::time::Duration;

use antiphon::{Context, RawJson, Router, Server};

/// Serves until it is killed. The first argument is the path of its Unix socket.
pub async fn serve(allocations: fn() -> usize) -> Result<(), Box<dyn Error>> {
    let mut server = Server::bind("http://127.0.0.1:0").await?.and("tcp://127.0.0.1:0").await?;
    if let Some(path) = std::env::args().nth(1) {
        server = server.and(&format!("unix:{path}")).await?;
    }
    announce(&server);
    Ok(server.serve(router(allocations)).await?)
}

fn router(allocations: fn() -> usize) -> Router {
    Router::new()
        .method("say_hello", |(): (), _cx: Context| async { Ok("hello") })
        .method("add", |(a, b): (i64, i64), _cx: Context| async move { Ok(a + b) })
        .method("echo", |params: RawJson, _cx: Context| async { Ok(params) })
        .method("sleep", |(ms,): (u64,), _cx: Context| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(ms)
        })
        .method("allocations", move |(): (), _cx: Context| async move { Ok(allocations()) })
}

fn announce(server: &Server) {
    let endpoints = server.endpoints();
    let http = endpoints[0].to_string();
    let ws = http.replacen("http", "ws", 1);
    let unix = endpoints.get(2).map(|unix| format!(r#","unix":"{unix}""#)).unwrap_or_default();
    println!(r#"{{"http":"{http}","ws":"{ws}","tcp":"{}"{unix}}}"#, endpoints[1]);
}
