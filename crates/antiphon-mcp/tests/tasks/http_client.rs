//! A small HTTP client, which sees headers and single events.

use std::net::SocketAddr;

use antiphon_mcp::McpServer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::support::within;

/// Serves over HTTP. Returns the address.
pub(crate) async fn serve(server: &McpServer) -> SocketAddr {
    let bound = server.bind("http://127.0.0.1:0/mcp").await.unwrap();
    let endpoint = bound.endpoint().to_string();
    let address = endpoint.strip_prefix("http://").and_then(|it| it.strip_suffix("/mcp"));
    let address = address.unwrap().parse().unwrap();
    tokio::spawn(bound.serve(server.clone()));
    address
}

/// A response whose body is still read.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    reader: BufReader<TcpStream>,
    is_stream: bool,
}

/// Sends a request with these headers. The server closes the connection after its response.
pub(crate) async fn send(
    address: SocketAddr,
    verb: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = format!("{verb} /mcp HTTP/1.0\r\nHost: {address}\r\n");
    let length = body.len().to_string();
    let common = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Length", &length),
    ];
    for (name, value) in common.iter().chain(headers) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
    read_head(stream).await
}

async fn read_head(stream: TcpStream) -> Response {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        within(reader.read_line(&mut line)).await.unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let header = |wanted: &str| {
        let mut pairs = lines.iter().filter_map(|line| line.split_once(": "));
        let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        Some(value.to_owned())
    };
    let is_stream = header("content-type").is_some_and(|it| it.starts_with("text/event-stream"));
    Response { status, session: header("mcp-session-id"), reader, is_stream }
}

impl Response {
    /// The next message of an event stream, or the only one of a plain response.
    pub(crate) async fn message(&mut self) -> Value {
        if !self.is_stream {
            let mut body = String::new();
            within(self.reader.read_to_string(&mut body)).await.unwrap();
            return serde_json::from_str(&body).unwrap();
        }
        loop {
            let mut line = String::new();
            let bytes = within(self.reader.read_line(&mut line)).await.unwrap();
            assert_ne!(bytes, 0, "the stream has ended");
            if let Some(data) = line.strip_prefix("data: ")
                && !data.trim().is_empty()
            {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

/// A POST of one message.
pub(crate) async fn post(
    address: SocketAddr,
    headers: &[(&str, &str)],
    message: &Value,
) -> Response {
    send(address, "POST", headers, &message.to_string()).await
}

pub(crate) fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
