//! Requests of a client to a server in this process.

use antiphon::{CallError, Client, ErrorObject};
use antiphon_mcp::{McpServer, McpService};
use serde_json::{Value, json};

/// A modern client: it needs no handshake.
pub(crate) struct TestClient(Client);

impl TestClient {
    pub(crate) fn of(service: impl McpService) -> Self {
        Self::of_server(service.into_server())
    }

    pub(crate) fn of_server(server: McpServer) -> Self {
        Self(Client::in_process(server))
    }

    /// Sends a request. Its params are an Object.
    pub(crate) async fn request(
        &self,
        method: &str,
        mut params: Value,
    ) -> Result<Value, ErrorObject> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        match self.0.call(method, params).await {
            Ok(result) => Ok(result),
            Err(CallError::Rpc(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    /// The only member of this list with this name.
    pub(crate) async fn listed(&self, method: &str, list: &str, name: &str) -> Value {
        let result = self.request(method, json!({})).await.unwrap();
        let entries = result[list].as_array().unwrap();
        let mut found = entries.iter().filter(|entry| entry["name"] == name);
        let (first, second) = (found.next(), found.next());
        assert!(second.is_none(), "two entries `{name}` in {result}");
        first.unwrap_or_else(|| panic!("no `{name}` in {result}")).clone()
    }

    pub(crate) async fn tool(&self, name: &str) -> Value {
        self.listed("tools/list", "tools", name).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", params).await.unwrap()
    }

    /// The text of a call that succeeds.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{result}");
        text_of(&result)
    }

    /// The text of a call that fails.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        text_of(&result)
    }
}

fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}
