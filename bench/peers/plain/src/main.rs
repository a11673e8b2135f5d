//! A plain loop on a socket with a real parser: the speed of a server without any framework.
//!
//! Read, respond to every complete message, write once. Lines over TCP, and just enough of HTTP/1.1
//! and WebSocket for a load generator. There are no limits and no concurrency, and slow methods
//! respond at once.

mod http;
mod line;
mod websocket;

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Responds to the message at the start of the bytes and returns its length; `None` while it is
/// incomplete.
type Answer = fn(&mut [u8], &mut Vec<u8>) -> io::Result<Option<usize>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let http = listen(|stream| converse(stream, http::answer)).await?;
    let ws = listen(websocket::serve).await?;
    let tcp = listen(|stream| converse(stream, line::answer)).await?;
    println!(r#"{{"http":"http://{http}","ws":"ws://{ws}","tcp":"tcp+line://{tcp}"}}"#);
    std::future::pending().await
}

async fn listen<F>(serve: fn(TcpStream) -> F) -> io::Result<SocketAddr>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream.set_nodelay(true));
            tokio::spawn(serve(stream));
        }
    });
    Ok(address)
}

async fn converse(mut stream: TcpStream, answer: Answer) -> io::Result<()> {
    let (mut input, mut output) = (BytesMut::new(), Vec::new());
    loop {
        input.reserve(8 * 1024);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
        while let Some(len) = answer(&mut input, &mut output)? {
            input.advance(len);
        }
        stream.write_all(&output).await?;
        output.clear();
    }
}
