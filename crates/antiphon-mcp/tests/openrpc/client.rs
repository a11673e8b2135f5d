//! A client of the protocol, in raw messages, and documents for services.

use std::time::Duration;

use antiphon::openrpc::Document;
use antiphon::{BoxFuture, Client, Context, Dialect, Handler, Invocation, Outcome, RawJson};
use antiphon_mcp::McpServer;
use antiphon_mcp::from_openrpc::ToolsFromOpenRpc;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for at most [`PATIENCE`].
pub(crate) async fn soon<T>(work: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work.into_future()).await.expect("it takes too long")
}

/// A legacy client whose session has begun.
pub(crate) struct McpClient {
    pub(crate) rpc: Client,
    notifications: UnboundedReceiver<(String, Value)>,
}

struct Notified(UnboundedSender<(String, Value)>);

impl Handler for Notified {
    fn call(&self, _: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Err(antiphon::ErrorObject::method_not_found())))
    }

    fn notify(&self, it: Invocation, _: Context) -> BoxFuture<'static, ()> {
        let params = it.params.map(|params| params.as_json().decode().unwrap());
        let _ = self.0.send((it.method.as_str().to_owned(), params.unwrap_or_default()));
        Box::pin(std::future::ready(()))
    }
}

impl McpClient {
    pub(crate) async fn of(server: McpServer) -> Self {
        let (told, notifications) = unbounded_channel();
        let (ours, theirs) = antiphon::transport::memory::pair();
        tokio::spawn(async move {
            let served = Client::builder().dialect(Dialect::mcp()).handler(server).over(theirs);
            served.peer().unwrap().closed().await;
        });
        let rpc = Client::builder().dialect(Dialect::mcp()).handler(Notified(told)).over(ours);
        let client = Self { rpc, notifications };
        client
            .call(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": { "name": "test", "version": "1" },
                }),
            )
            .await;
        client.rpc.notify("notifications/initialized", ()).await.unwrap();
        client
    }

    /// Serves the tools of a service.
    pub(crate) async fn of_tools(tools: ToolsFromOpenRpc) -> Self {
        let server = McpServer::builder("test", "1").tools_from(tools).unwrap().build();
        Self::of(server).await
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        soon(self.rpc.call(method, params)).await.unwrap()
    }

    /// Calls a tool with these arguments as text, and returns the result as text.
    pub(crate) async fn tool_text(&self, name: &str, arguments: &str) -> String {
        let params = RawJson::parse(format!(r#"{{"name":"{name}","arguments":{arguments}}}"#));
        let result: RawJson = soon(self.rpc.call("tools/call", params.unwrap())).await.unwrap();
        result.as_str().to_owned()
    }

    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// The text of a tool error.
    pub(crate) async fn tool_error(&self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn tools(&self) -> Vec<Value> {
        self.call("tools/list", json!({})).await["tools"].as_array().unwrap().clone()
    }

    pub(crate) async fn tool_names(&self) -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        self.tools().await.iter().map(name).collect()
    }

    /// Waits for the next notification of this method.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        loop {
            let (name, params) = soon(self.notifications.recv()).await.unwrap();
            if name == method {
                return params;
            }
        }
    }
}

/// A document with these methods.
pub(crate) fn document(methods: &Value) -> Document {
    document_with(methods, &json!({}))
}

/// A document with these methods and components.
pub(crate) fn document_with(methods: &Value, components: &Value) -> Document {
    let document = json!({
        "openrpc": "1.3.2", "info": { "title": "Service", "version": "1" },
        "methods": methods, "components": components,
    });
    Document::parse(&document.to_string()).unwrap()
}

/// A service that returns the params of each call as they were written, and null without params.
pub(crate) fn echo() -> Client {
    Client::in_process(Echo)
}

struct Echo;

impl Handler for Echo {
    fn call(&self, call: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        let params = call.params.map_or(RawJson::NULL, |params| params.as_json().clone());
        let text = format!(r#"{{"method":{},"params":{params}}}"#, call.method.as_json());
        Box::pin(std::future::ready(Ok(RawJson::parse(text).unwrap())))
    }

    fn notify(&self, _: Invocation, _: Context) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
