//! A server in this process that answers from a script, over a connection in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use antiphon::{Context, ErrorObject, Invocation, Params, RawJson, Router, Server};
use antiphon_mcp::client::{McpClient, McpClientBuilder, McpError};
use serde_json::{Value, json};

/// What a server answers to a request.
pub(super) type Reply = Result<Value, ErrorObject>;

/// A server whose answers are a function of the method and the params.
pub(super) struct Scripted {
    pub(super) endpoint: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Scripted {
    /// Starts a server. The function also gets the context, to call back.
    pub(super) async fn start<F, Fut>(answer: F) -> Self
    where
        F: Fn(String, Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let endpoint = format!("memory:mcp-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let seen = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let log = seen.clone();
        let answer = Arc::new(answer);
        let router = Router::new().fallback(move |call: Invocation, cx: Context| {
            let (log, answer) = (log.clone(), answer.clone());
            async move {
                let params = call.params.map(Params::into_json);
                let params = params.map_or(json!({}), |params| params.decode().unwrap());
                let method = call.method.as_str().to_owned();
                log.lock().unwrap().push((method.clone(), params.clone()));
                let reply = answer(method, params, cx).await?;
                RawJson::encode(&reply).map_err(ErrorObject::internal)
            }
        });
        let server = Server::bind(&*endpoint).await.unwrap();
        let dialect = antiphon::Dialect::mcp();
        tokio::spawn(server.dialect(dialect).serve(router));
        Self { endpoint, seen }
    }

    /// Connects a client with default settings.
    pub(super) async fn client(&self) -> McpClient {
        self.connect(McpClient::builder()).await.unwrap()
    }

    pub(super) async fn connect(&self, builder: McpClientBuilder) -> Result<McpClient, McpError> {
        builder.connect(&*self.endpoint).await
    }

    /// The methods of the messages that the server has received.
    pub(super) fn methods(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(method, _)| method.clone()).collect()
    }

    /// The params of the messages of one method.
    pub(super) fn params(&self, method: &str) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(it, _)| it == method).map(|(_, params)| params.clone()).collect()
    }
}

/// The result of `server/discover`.
pub(super) fn discovered(capabilities: &Value) -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        "ttlMs": 0, "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}}})
}

/// The result of `initialize`.
pub(super) fn initialized(version: &str, capabilities: &Value) -> Value {
    json!({"protocolVersion": version, "capabilities": capabilities,
        "serverInfo": {"name": "scripted", "version": "1"}})
}

/// The result of `tools/call` with one text.
pub(super) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(super) fn unknown() -> Reply {
    Err(ErrorObject::method_not_found())
}
