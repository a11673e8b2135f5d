//! A proxy: serves HTTP and WebSocket, and forwards every call to a language server or any other
//! endpoint. Params and results are forwarded without deserializing them.
//!
//! `cargo run -p antiphon --features full --example proxy -- exec+header:clangd [LISTEN]`

use antiphon::{Client, Context, Invocation, Router, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let endpoint = args.next().ok_or("usage: proxy ENDPOINT [LISTEN]")?;
    let listen = args.next().unwrap_or("http://127.0.0.1:8651".to_owned());
    let upstream = Client::connect(&endpoint).await?;
    let router = Router::new().fallback(move |call: Invocation, cx: Context| {
        let upstream = upstream.clone();
        async move { Ok(upstream.forward(call, &cx).await?) }
    });
    let server = Server::bind(&listen).await?;
    println!("{} forwards to {endpoint}", server.endpoint());
    Ok(server.serve(router).await?)
}
