//! A session over HTTP.

use antiphon_mcp::McpServer;
use serde_json::{Value, json};

use super::http::{Http, HttpReply, HttpRequest};
use super::{initialize, notification, request};

/// The session of a legacy client.
pub(crate) struct HttpSession {
    pub(crate) http: Http,
    pub(crate) id: String,
    revision: String,
    next_id: u64,
}

impl HttpSession {
    /// Serves, and begins a session.
    pub(crate) async fn start(server: &McpServer, capabilities: Value) -> Self {
        Self::begin(Http::serve(server).await, "2025-11-25", capabilities).await
    }

    /// Begins a session.
    pub(crate) async fn begin(http: Http, revision: &str, capabilities: Value) -> Self {
        let params = initialize(revision, capabilities);
        let reply = http.post(request(0, "initialize", params).to_string()).send().await;
        assert_eq!(reply.status, 200);
        let id = reply.header("mcp-session-id").expect("no session").to_owned();
        assert!(reply.response().await["result"].is_object());
        let session = Self { http, id, revision: revision.to_owned(), next_id: 0 };
        let initialized = notification("notifications/initialized", json!({}));
        assert_eq!(session.post(&initialized).status().await, 202);
        session
    }

    /// A request with the headers of the session.
    pub(crate) fn of_session(&self, request: HttpRequest) -> HttpRequest {
        request
            .header("mcp-session-id", self.id.as_str())
            .header("mcp-protocol-version", self.revision.as_str())
    }

    pub(crate) fn post(&self, message: &Value) -> HttpRequest {
        self.of_session(self.http.post(message.to_string()))
    }

    /// A GET of the session's own stream.
    pub(crate) fn get(&self) -> HttpRequest {
        self.of_session(self.http.request("GET")).header("accept", "text/event-stream")
    }

    /// Resumes a stream after an event.
    pub(crate) async fn resume(&self, event: &str) -> HttpReply {
        self.get().header("last-event-id", event).send().await
    }

    pub(crate) fn delete(&self) -> HttpRequest {
        self.of_session(self.http.request("DELETE"))
    }

    /// Sends a request, and reads the head of the response.
    pub(crate) async fn open(&mut self, method: &str, params: Value) -> HttpReply {
        self.next_id += 1;
        self.post(&request(self.next_id, method, params)).send().await
    }

    /// Calls, and returns the response.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.open(method, params).await.response().await
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&self, request: &Value, result: Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        assert_eq!(self.post(&answer).status().await, 202);
    }
}
