//! A client of a duplex connection that reads and writes single lines.

use antiphon::Limits;
use antiphon_mcp::McpServer;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::{initialize, notification, request, within};

/// One connection, whose messages are lines.
pub(crate) struct Duplex {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    buffer: Vec<u8>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    next_id: u64,
    /// The process at the other end, if it is one.
    child: Option<Child>,
}

/// Serves over TCP. Returns the port.
pub(crate) async fn serve_tcp(server: &McpServer, limits: Limits) -> u16 {
    let bound = server.bind("tcp://127.0.0.1:0").await.unwrap().limits(limits);
    let port = bound.endpoint().port().unwrap();
    tokio::spawn(bound.serve(server.clone()));
    port
}

impl Duplex {
    /// Connects to a server of this test.
    pub(crate) async fn connect(server: &McpServer) -> Self {
        Self::connect_with(server, Limits::default()).await
    }

    pub(crate) async fn connect_with(server: &McpServer, limits: Limits) -> Self {
        Self::to_port(serve_tcp(server, limits).await).await
    }

    pub(crate) async fn to_port(port: u16) -> Self {
        Self::of_stream(within(TcpStream::connect(("127.0.0.1", port))).await.unwrap())
    }

    pub(crate) fn of_stream(stream: TcpStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self::new(Box::new(reader), Box::new(writer), None)
    }

    /// Connects, and does the handshake.
    pub(crate) async fn start(server: &McpServer, revision: &str, capabilities: Value) -> Self {
        let mut client = Self::connect(server).await;
        client.initialize(revision, capabilities).await;
        client
    }

    /// Starts the example as a process, which speaks on its stdin and stdout.
    pub(crate) fn child() -> Self {
        let mut child = Command::new(super::everything_server())
            .arg("stdio:")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Self::new(Box::new(reader), Box::new(writer), Some(child))
    }

    fn new(
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
        child: Option<Child>,
    ) -> Self {
        Self { reader, buffer: Vec::new(), writer, next_id: 0, child }
    }

    pub(crate) async fn initialize(&mut self, revision: &str, capabilities: Value) -> Value {
        let response = self.call("initialize", initialize(revision, capabilities)).await;
        assert!(response["result"].is_object(), "{response}");
        self.send(&notification("notifications/initialized", json!({}))).await;
        response
    }

    /// Sends a line as it is.
    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send_bytes(format!("{text}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        within(async {
            self.writer.write_all(bytes).await.unwrap();
            self.writer.flush().await.unwrap();
        })
        .await;
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    /// The next line; `None` at the end.
    pub(crate) async fn next_line(&mut self) -> Option<String> {
        let mut searched = 0;
        loop {
            let end = self.buffer[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| searched + end) {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            searched = self.buffer.len();
            let read = within(self.reader.read_buf(&mut self.buffer)).await;
            if read.unwrap_or_default() == 0 {
                return None;
            }
        }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.next_line().await.expect("the connection is closed");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    }

    /// Sends a request. Returns its id.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&request(id, method, params)).await;
        id
    }

    /// Calls, and returns the response, which must be the next message.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        let response = self.next().await;
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// The most memory that the process at the other end has used, in KiB.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        super::memory_of(self.child.as_ref()?.id()?, "VmHWM")
    }
}
