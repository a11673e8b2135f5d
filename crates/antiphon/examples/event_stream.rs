//! A call over HTTP whose handler notifies the caller: the response is a stream of events.
//!
//! `cargo run -p antiphon --features full --example event_stream`

use antiphon::transport::http::{EventStreamOptions, HttpMessage, HttpPolicy, MessageDecision};
use antiphon::{Connection, Context, Router, Server};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Allows a stream to each client that accepts one.
struct Streaming;

impl HttpPolicy for Streaming {
    fn on_message(&self, request: &mut Connection, _message: &HttpMessage) -> MessageDecision {
        let accept = request.headers().get("accept").and_then(|value| value.to_str().ok());
        match accept {
            Some(accept) if accept.contains("text/event-stream") => {
                MessageDecision::Stream(EventStreamOptions::new())
            }
            _ => MessageDecision::Dispatch,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router =
        Router::new().method("index", |(files,): (Vec<String>,), cx: Context| async move {
            for file in &files {
                cx.notify("indexed", [file]).await?; // waits while the client does not read
            }
            Ok(files.len())
        });
    let server = Server::bind("http://127.0.0.1:0").await?.http_policy(Streaming);
    let authority = server.endpoint().authority().map(ToString::to_string).unwrap_or_default();
    tokio::spawn(server.serve(router));

    let body = r#"{"jsonrpc":"2.0","method":"index","params":[["a.rs","b.rs"]],"id":1}"#;
    let mut stream = BufReader::new(TcpStream::connect(&authority).await?);
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut lines = stream.lines();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with("content-type") || line.starts_with("data") {
            println!("{line}");
        }
    }
    Ok(())
}
