//! Tasks over HTTP.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::http_client::{Response, post, request, send, serve};
use crate::support::with_meta;
use crate::tools;

async fn modern(address: SocketAddr, method: &str, name: &str, params: Value) -> (u16, Value) {
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", name)];
    let message = request(1, method, &with_meta(params, true));
    let mut response = post(address, &headers, &message).await;
    (response.status, response.message().await)
}

/// A legacy session.
struct Session {
    address: SocketAddr,
    id: String,
}

impl Session {
    async fn begin(address: SocketAddr) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let response = post(address, &[], &request(0, "initialize", &params)).await;
        Self { address, id: response.session.unwrap() }
    }

    async fn post(&self, message: &Value) -> Response {
        let headers = [("Mcp-Session-Id", &*self.id), ("MCP-Protocol-Version", "2025-11-25")];
        post(self.address, &headers, message).await
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        self.post(&request(7, method, &params)).await.message().await
    }

    async fn begin_task(&self, tool: &str) -> String {
        let created = self.call("tools/call", json!({ "name": tool, "task": {} })).await;
        created["result"]["task"]["taskId"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_modern_task_lives_over_several_requests() {
    let (server, signals) = tools::server();
    let address = serve(&server).await;
    let params = json!({ "name": "wait" });
    let (status, created) = modern(address, "tools/call", "wait", params).await;
    assert_eq!((status, &created["result"]["resultType"]), (200, &json!("task")));
    let task = created["result"]["taskId"].as_str().unwrap();
    let params = json!({ "taskId": task });
    let (status, error) = modern(address, "tasks/get", "other", params.clone()).await;
    assert_eq!((status, &error["error"]["code"]), (400, &json!(-32020)));
    signals.gate.notify_one();
    loop {
        let (status, state) = modern(address, "tasks/get", task, params.clone()).await;
        assert_eq!(status, 200);
        if state["result"]["status"] == "completed" {
            assert_eq!(state["result"]["result"]["content"][0]["text"], "waited");
            return;
        }
    }
}

#[tokio::test]
async fn a_legacy_task_asks_on_the_stream_of_its_result() {
    let (server, _signals) = tools::server();
    let session = Session::begin(serve(&server).await).await;
    let task = session.begin_task("ask").await;
    let params = json!({ "taskId": task });
    let mut stream = session.post(&request(3, "tasks/result", &params)).await;
    let question = stream.message().await;
    assert_eq!(question["method"], "elicitation/create");
    let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related, &params);
    let state = session.call("tasks/get", params).await;
    assert_eq!(state["result"]["status"], "input_required");
    let answer = json!({ "action": "decline" });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    assert_eq!(session.post(&answer).await.status, 202);
    let result = stream.message().await;
    assert_eq!(result["id"], 3);
    assert_eq!(result["result"]["content"][0]["text"], "sure=decline");
}

#[tokio::test]
async fn a_question_whose_stream_is_gone_is_asked_on_the_next() {
    let (server, _signals) = tools::server();
    let session = Session::begin(serve(&server).await).await;
    let task = session.begin_task("ask").await;
    let params = json!({ "taskId": task });
    for id in [3, 4] {
        let mut stream = session.post(&request(id, "tasks/result", &params)).await;
        assert_eq!(stream.message().await["method"], "elicitation/create");
    }
}

#[tokio::test]
async fn the_status_is_told_on_the_stream_of_the_session() {
    let (server, signals) = tools::server();
    let session = Session::begin(serve(&server).await).await;
    let headers = [("Mcp-Session-Id", &*session.id)];
    let mut stream = send(session.address, "GET", &headers, "").await;
    let task = session.begin_task("wait").await;
    signals.gate.notify_one();
    let told = stream.message().await;
    assert_eq!(told["method"], "notifications/tasks/status");
    let expected = (&json!("completed"), &json!(task));
    assert_eq!((&told["params"]["status"], &told["params"]["taskId"]), expected);
}

#[tokio::test]
async fn a_task_is_invisible_in_another_session_and_ends_with_its_own() {
    let (server, signals) = tools::server();
    let address = serve(&server).await;
    let (session, other) = (Session::begin(address).await, Session::begin(address).await);
    let task = session.begin_task("wait").await;
    let error = other.call("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(error["error"]["code"], -32602);
    assert_eq!(other.call("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    signals.has_begun().await;
    let headers = [("Mcp-Session-Id", &*session.id)];
    assert_eq!(send(address, "DELETE", &headers, "").await.status, 204);
    signals.dropped(1).await;
}

#[tokio::test]
async fn without_sessions_there_is_no_list() {
    let (server, _signals) = tools::server();
    let http = antiphon_mcp::http::StreamableHttp::new().sessions(false);
    let bound = server.bind_with("http://127.0.0.1:0/mcp", http).await.unwrap();
    let endpoint = bound.endpoint().to_string();
    let address = endpoint.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    tokio::spawn(bound.serve(server.clone()));
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let initialized = post(address, &[], &request(0, "initialize", &params)).await.message().await;
    let declared = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(initialized["result"]["capabilities"]["tasks"], declared);
    let version = [("MCP-Protocol-Version", "2025-11-25")];
    let call = async |method: &str, params: Value| {
        post(address, &version, &request(1, method, &params)).await.message().await
    };
    let created = call("tools/call", json!({ "name": "number", "task": {} })).await;
    let task = &created["result"]["task"]["taskId"];
    // The id alone gives access.
    let result = call("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(result["result"]["structuredContent"], json!({ "number": u64::MAX }));
    assert_eq!(call("tasks/list", json!({})).await["error"]["code"], -32601);
}
