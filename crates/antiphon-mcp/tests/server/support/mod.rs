//! Raw clients, which send exactly what a test writes, and a few servers.

pub(crate) mod duplex;
pub(crate) mod gate;
pub(crate) mod http;
pub(crate) mod http_session;

use std::time::Duration;

use serde_json::{Value, json};

/// The longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a future, but not forever.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing has happened for a long time")
}

/// A request.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// A notification.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The params of `tools/call`.
pub(crate) fn tool(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// The params of `initialize`.
pub(crate) fn initialize(revision: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// Adds the metadata of a modern request to its params.
pub(crate) fn modern(params: Value) -> Value {
    modern_with(params, json!({}))
}

/// Like [`modern`], with the capabilities of the client.
pub(crate) fn modern_with(mut params: Value, capabilities: Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

/// The text of the first content of a tool result.
pub(crate) fn text(response: &Value) -> &str {
    let text = response["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("not a text: {response}"))
}

/// The code of an error response.
pub(crate) fn code(response: &Value) -> i64 {
    let code = response["error"]["code"].as_i64();
    code.unwrap_or_else(|| panic!("not an error: {response}"))
}

/// The names in a list of a result.
pub(crate) fn names(response: &Value, list: &str) -> Vec<String> {
    let entries = response["result"][list].as_array();
    let entries = entries.unwrap_or_else(|| panic!("not a list: {response}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

/// The example, which cargo has built beside this test.
pub(crate) fn everything_server() -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(2).unwrap();
    let name = format!("everything_server{}", std::env::consts::EXE_SUFFIX);
    target.join("examples").join(name)
}

/// A value of `/proc/PID/status`, in KiB; `None` where there is no such file.
pub(crate) fn memory_of(process: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The params of `subscriptions/listen`.
pub(crate) fn changes_filter(filter: Value) -> Value {
    json!({ "notifications": filter })
}
