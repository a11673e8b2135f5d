//! The messages of a server are valid in the schema of their revision.

use serde_json::{Value, json};

use super::samples::Definitions;
use crate::support::duplex::Duplex;
use crate::support::{modern_with, names, notification};

/// Checks the messages of one revision.
struct Wire {
    server: Duplex,
    definitions: Definitions,
    is_modern: bool,
    capabilities: Value,
    kinds: std::collections::BTreeSet<String>,
}

impl Wire {
    /// Sends a request, and checks all messages until its response. Questions are answered with a refusal.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let params = match self.is_modern {
            true => modern_with(params, self.capabilities.clone()),
            false => params,
        };
        let id = self.server.begin(method, params).await;
        loop {
            let message = self.server.next().await;
            match (&message["method"], &message["id"]) {
                (Value::String(kind), Value::Null) => {
                    self.kinds.insert(kind.clone());
                    self.check("ServerNotification", &message);
                }
                (Value::String(kind), _) => {
                    self.kinds.insert(kind.clone());
                    self.check("ServerRequest", &message);
                    self.server.answer(&message, answer(kind)).await;
                }
                (_, answered) => {
                    assert_eq!(*answered, id);
                    self.check("JSONRPCResponse", &message);
                    self.check_result(method, &message);
                    return message;
                }
            }
        }
    }

    fn check_result(&mut self, method: &str, message: &Value) {
        let Some(result) = message.get("result") else { return };
        let name = match (method, result["resultType"].as_str()) {
            (_, Some("input_required")) => "InputRequiredResult",
            ("initialize", _) => "InitializeResult",
            ("server/discover", _) => "DiscoverResult",
            ("tools/list", _) => "ListToolsResult",
            ("tools/call", _) => "CallToolResult",
            ("resources/list", _) => "ListResourcesResult",
            ("resources/templates/list", _) => "ListResourceTemplatesResult",
            ("resources/read", _) => "ReadResourceResult",
            ("prompts/list", _) => "ListPromptsResult",
            ("prompts/get", _) => "GetPromptResult",
            ("completion/complete", _) => "CompleteResult",
            _ => "EmptyResult",
        };
        self.kinds.insert(name.to_owned());
        self.check(name, result);
    }

    fn check(&self, name: &str, message: &Value) {
        let validator = self.definitions.validator(name);
        let faults: Vec<_> = validator.iter_errors(message).map(|it| it.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {message}: {faults:?}");
    }

    /// Uses all that the server offers.
    async fn exercise(&mut self) {
        let tools = self.call("tools/list", json!({})).await;
        // One tool waits for its cancellation.
        for name in names(&tools, "tools").iter().filter(|name| *name != "test_cancellation") {
            let params =
                json!({ "name": name, "arguments": {}, "_meta": { "progressToken": "p" } });
            self.call("tools/call", params).await;
        }
        let resources = self.call("resources/list", json!({})).await;
        for resource in resources["result"]["resources"].as_array().unwrap() {
            self.call("resources/read", json!({ "uri": resource["uri"] })).await;
        }
        self.call("resources/read", json!({ "uri": "nowhere:1" })).await;
        self.call("resources/templates/list", json!({})).await;
        let prompts = self.call("prompts/list", json!({})).await;
        for prompt in prompts["result"]["prompts"].as_array().unwrap() {
            let given = prompt["arguments"].as_array().into_iter().flatten();
            let given: serde_json::Map<_, _> = given
                .map(|it| (it["name"].as_str().unwrap().to_owned(), json!("file:///a")))
                .collect();
            for name in given.keys() {
                let reference = json!({ "type": "ref/prompt", "name": prompt["name"] });
                let argument = json!({ "name": name, "value": "" });
                self.call("completion/complete", json!({ "ref": reference, "argument": argument }))
                    .await;
            }
            self.call("prompts/get", json!({ "name": prompt["name"], "arguments": given })).await;
        }
        self.call("nothing", json!({})).await;
    }

    fn has_seen(&self, kinds: &[&str]) {
        let missing: Vec<_> = kinds.iter().filter(|kind| !self.kinds.contains(**kind)).collect();
        assert!(missing.is_empty(), "{missing:?} are not among {:?}", self.kinds);
    }
}

/// The answer to a question of the server.
fn answer(method: &str) -> Value {
    let content = json!({ "type": "text", "text": "x" });
    match method {
        "roots/list" => json!({ "roots": [] }),
        "elicitation/create" => json!({ "action": "decline" }),
        _ => json!({ "role": "assistant", "content": content, "model": "m" }),
    }
}

fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}

#[tokio::test]
async fn legacy_messages_are_valid() {
    let definitions = Definitions::of("2025-11-25");
    let (server, kinds) = (Duplex::child(), std::collections::BTreeSet::new());
    let mut wire =
        Wire { server, definitions, is_modern: false, capabilities: capabilities(), kinds };
    let initialize = crate::support::initialize("2025-11-25", capabilities());
    wire.call("initialize", initialize).await;
    wire.server.send(&notification("notifications/initialized", json!({}))).await;
    wire.call("ping", json!({})).await;
    wire.call("logging/setLevel", json!({ "level": "debug" })).await;
    wire.exercise().await;
    wire.has_seen(&[
        "notifications/progress",
        "notifications/message",
        "elicitation/create",
        "sampling/createMessage",
        "CallToolResult",
        "CompleteResult",
        "GetPromptResult",
        "ReadResourceResult",
    ]);
}

#[tokio::test]
async fn modern_messages_are_valid() {
    let definitions = Definitions::of("2026-07-28");
    let (server, kinds) = (Duplex::child(), std::collections::BTreeSet::new());
    let mut wire =
        Wire { server, definitions, is_modern: true, capabilities: capabilities(), kinds };
    wire.call("server/discover", json!({})).await;
    wire.exercise().await;
    wire.has_seen(&[
        "notifications/progress",
        "InputRequiredResult",
        "CallToolResult",
        "CompleteResult",
        "DiscoverResult",
        "GetPromptResult",
        "ReadResourceResult",
    ]);
}
