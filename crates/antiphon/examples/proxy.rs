//! A proxy: serves HTTP and WebSocket, and passes every call on to a language server or any other
//! endpoint. Params and results are not looked at on the way.
//!
//! `cargo run -p antiphon --features full --example proxy -- exec+header:clangd`

use antiphon::{Client, Context, Invocation, Router, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let endpoint = std::env::args().nth(1).ok_or("usage: proxy ENDPOINT")?;
    let upstream = Client::connect(&endpoint).await?;
    let router = Router::new().fallback(move |call: Invocation, cx: Context| {
        let upstream = upstream.clone();
        async move { Ok(upstream.forward(call, &cx).await?) }
    });
    let server = Server::bind("http://127.0.0.1:8651").await?;
    eprintln!("{} stands before {endpoint}", server.endpoints()[0]);
    server.serve(router).await?;
    Ok(())
}
