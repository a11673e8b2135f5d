//! An editor that writes and reads single messages on a socket, so that a test decides what is sent when.

use std::time::Duration;

use antiphon::{Dialect, Limits, Server};
use antiphon_lsp::{Editor, LanguageServer, LanguageService};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

pub(crate) struct RawEditor {
    stream: BufReader<TcpStream>,
}

impl RawEditor {
    /// Serves one editor over TCP, and connects to the server without a handshake.
    pub(crate) async fn connect<S: LanguageServer>(
        make: impl Fn(Editor) -> S + Send + Sync + 'static,
    ) -> Self {
        Self::connect_with(Dialect::lsp().limits(), make).await
    }

    /// Like [`connect`](Self::connect), with limits of the server.
    pub(crate) async fn connect_with<S: LanguageServer>(
        limits: Limits,
        make: impl Fn(Editor) -> S + Send + Sync + 'static,
    ) -> Self {
        let server = Server::bind("tcp+header://127.0.0.1:0").await.unwrap();
        let port = server.endpoint().port().unwrap();
        let server = server.dialect(Dialect::lsp()).limits(limits);
        let serving =
            server.serve_with(move |_connection, peer| LanguageService::for_peer(peer, &make));
        tokio::spawn(serving);
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Like [`connect`](Self::connect), with the handshake. These are the capabilities of the editor.
    pub(crate) async fn start<S: LanguageServer>(
        capabilities: Value,
        make: impl Fn(Editor) -> S + Send + Sync + 'static,
    ) -> Self {
        Self::connect(make).await.initialized(capabilities).await
    }

    /// Does the handshake.
    pub(crate) async fn initialized(mut self, capabilities: Value) -> Self {
        let editor = &mut self;
        editor.request(0, "initialize", json!({ "capabilities": capabilities })).await;
        assert_eq!(editor.next().await["id"], 0);
        editor.notify("initialized", json!({})).await;
        self
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let text = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        let writing = self.stream.get_mut().write_all(frame.as_bytes());
        within(writing).await.unwrap();
    }

    pub(crate) async fn request(&mut self, id: u32, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(message).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// The next message of the server.
    pub(crate) async fn next(&mut self) -> Value {
        let mut header = String::new();
        while !header.ends_with("\r\n\r\n") {
            assert_ne!(within(self.stream.read_line(&mut header)).await.unwrap(), 0, "closed");
        }
        let (_, length) = header.split_once("Content-Length: ").unwrap();
        let mut text = vec![0; length.lines().next().unwrap().parse().unwrap()];
        within(self.stream.read_exact(&mut text)).await.unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// Reads what is left, until the server closes the connection.
    pub(crate) async fn closed(&mut self) {
        let mut rest = Vec::new();
        // A server that closes while it has unread input resets the connection.
        let _ = within(self.stream.read_to_end(&mut rest)).await;
    }

    /// The next message, which is a request or notification of this name.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// The next message, which is the response to this request.
    pub(crate) async fn response(&mut self, id: u32) -> Value {
        let message = self.next().await;
        assert_eq!((&message["id"], message.get("method")), (&json!(id), None), "{message}");
        message
    }
}

/// Fails a test that waits for something that never comes.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("nothing within {limit:?}"))
}
