//! A service and static files on the same port.
//!
//! `cargo run -p antiphon --features full --example fallback`

use antiphon::{Client, Context, Router, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_http::services::ServeDir;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router =
        Router::new().method("add", |(a, b): (i64, i64), _cx: Context| async move { Ok(a + b) });
    let files = ServeDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"));
    let server = Server::bind("http://127.0.0.1:0/rpc").await?.fallback(files);
    let endpoint = server.endpoint().clone();
    tokio::spawn(server.serve(router));

    let client = Client::connect(&endpoint).await?;
    println!("40 + 2 = {}", client.call::<i64>("add", (40, 2)).await?);
    let authority = endpoint.authority().map(ToString::to_string).unwrap_or_default();
    for path in ["/fallback.rs", "/missing.rs"] {
        println!("{path}: {}", get(&authority, path).await?);
    }
    Ok(())
}

/// The status and the first line of the response to a GET.
async fn get(authority: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(authority).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).unwrap_or_default();
    Ok(format!("{status} {}", body.lines().next().unwrap_or_default()))
}
