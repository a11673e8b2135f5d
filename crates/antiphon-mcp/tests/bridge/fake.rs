//! A server that sends exactly what a test writes.

use antiphon_mcp::bridge::Upstream;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::duplex::Duplex;
use crate::support::within;

/// A legacy server on TCP, whose every message a test writes.
pub(crate) struct Fake {
    listener: TcpListener,
}

impl Fake {
    pub(crate) async fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub(crate) fn upstream(&self) -> Upstream {
        Upstream::new(format!("tcp://{}", self.listener.local_addr().unwrap()))
    }

    /// Waits for a connection.
    pub(crate) async fn accept(&self) -> Duplex {
        let (stream, _) = within(self.listener.accept()).await.unwrap();
        Duplex::of_stream(stream)
    }

    /// Waits for a connection, and offers these tools.
    pub(crate) async fn offer(&self, tools: Value) -> Duplex {
        let mut wire = self.accept().await;
        hello(&mut wire, json!({ "tools": { "listChanged": true } })).await;
        answer_list(&mut wire, "tools/list", json!({ "tools": tools })).await;
        wire
    }
}

/// Serves the handshake of a legacy server.
pub(crate) async fn hello(wire: &mut Duplex, capabilities: Value) {
    loop {
        let request = wire.next().await;
        if request["method"] != "initialize" {
            refuse(wire, &request, -32601).await;
            continue;
        }
        let info = json!({ "name": "fake", "version": "1" });
        let result = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info,
        });
        wire.answer(&request, result).await;
        let initialized = wire.next().await;
        assert_eq!(initialized["method"], "notifications/initialized");
        return;
    }
}

/// Answers the request of a list.
pub(crate) async fn answer_list(wire: &mut Duplex, method: &str, result: Value) {
    let request = wire.next().await;
    assert_eq!(request["method"], method, "{request}");
    wire.answer(&request, result).await;
}

/// Waits for a request of this method. Others are refused.
pub(crate) async fn expect(wire: &mut Duplex, method: &str) -> Value {
    loop {
        let request = wire.next().await;
        if request["method"] == method {
            return request;
        }
        refuse(wire, &request, -32601).await;
    }
}

async fn refuse(wire: &mut Duplex, request: &Value, code: i64) {
    if request["id"].is_null() {
        return;
    }
    let error = json!({ "code": code, "message": "refused" });
    wire.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
}

/// The description of a tool.
pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}
