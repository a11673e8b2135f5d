//! A plain loop on a socket with a real parse: what a server without any framework reaches.
//!
//! Read, answer every whole message that was read, write once. Lines over TCP, and just enough of
//! HTTP/1.1 and WebSocket for a loader. Nothing is limited, nothing is concurrent, and methods that
//! wait are answered at once.

mod http;
mod line;
mod websocket;

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers the message that the bytes begin with, and says how long it was: none while it is not
/// whole.
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
