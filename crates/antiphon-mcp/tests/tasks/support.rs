//! Clients of the tests: raw params, raw results.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon::{
    BoxFuture, CallError, Client, Context, Dialect, ErrorObject, Handler, Identity, Invocation,
    Outcome, Peer, RawJson,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// How often a state is polled. Each poll lets every other task run, so few are needed.
const ATTEMPTS: usize = 10_000;

/// A duplex connection to a server.
pub(crate) struct Wire {
    client: Client,
    incoming: mpsc::UnboundedReceiver<(String, Value)>,
    answers: Answers,
}

/// The answers to the calls of the server, in their order. A call without one waits.
type Answers = Arc<Mutex<Vec<Result<Value, ErrorObject>>>>;

impl Wire {
    pub(crate) fn new(server: impl Handler) -> Self {
        let (sender, incoming) = mpsc::unbounded_channel();
        let answers = Answers::default();
        let handler = Incoming { sender, answers: answers.clone() };
        let builder = Client::builder().dialect(Dialect::mcp()).handler(handler);
        Self { client: builder.in_process(server), incoming, answers }
    }

    /// A wire with a legacy session of this revision.
    pub(crate) async fn legacy(server: impl Handler, revision: &str) -> (Self, Value) {
        let wire = Self::new(server);
        let params = json!({
            "protocolVersion": revision,
            "capabilities": { "elicitation": {}, "sampling": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let result = wire.call("initialize", params).await.unwrap();
        wire.client.notify("notifications/initialized", json!({})).await.unwrap();
        (wire, result)
    }

    /// The answer to a later call of the server.
    pub(crate) fn answer(&self, answer: Result<Value, ErrorObject>) {
        self.answers.lock().unwrap().push(answer);
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        rpc(self.client.call::<Value>(method, params).await)
    }

    /// The text of a result.
    pub(crate) async fn raw(&self, method: &str, params: Value) -> String {
        self.client.call::<RawJson>(method, params).await.unwrap().as_str().to_owned()
    }

    /// Calls from a task of its own.
    pub(crate) fn spawn(
        &self,
        method: &'static str,
        params: Value,
    ) -> tokio::task::JoinHandle<Result<Value, ErrorObject>> {
        let client = self.client.clone();
        tokio::spawn(async move { rpc(client.call::<Value>(method, params).await) })
    }

    /// The next message that the server has sent by itself.
    pub(crate) async fn incoming(&mut self) -> (String, Value) {
        within(self.incoming.recv()).await.unwrap()
    }

    /// The messages that the server has sent so far.
    pub(crate) fn waiting(&mut self) -> Vec<(String, Value)> {
        std::iter::from_fn(|| self.incoming.try_recv().ok()).collect()
    }

    /// Calls with the metadata of 2026-07-28 and the tasks extension.
    pub(crate) async fn modern(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        self.call(method, with_meta(params, true)).await
    }

    /// Begins a modern task, and returns its id.
    pub(crate) async fn begin(&self, tool: &str) -> String {
        let result = self.modern("tools/call", json!({ "name": tool })).await.unwrap();
        assert_eq!(result["resultType"], "task", "{result}");
        id(&result)
    }

    /// The state of a modern task.
    pub(crate) async fn state(&self, task: &str) -> Value {
        self.modern("tasks/get", json!({ "taskId": task })).await.unwrap()
    }

    /// Waits for a state of a modern task.
    pub(crate) async fn until(&self, task: &str, status: &str) -> Value {
        self.until_state(task, |state| state["status"] == status).await
    }

    /// Waits for a state of a modern task that `is_expected` accepts.
    pub(crate) async fn until_state(
        &self,
        task: &str,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Value {
        for _ in 0..ATTEMPTS {
            let state = self.state(task).await;
            if is_expected(&state) {
                return state;
            }
            tokio::task::yield_now().await;
        }
        panic!("not the expected state: {}", self.state(task).await)
    }

    /// Begins a legacy task, and returns its id.
    pub(crate) async fn begin_legacy(&self, tool: &str) -> String {
        let params = json!({ "name": tool, "arguments": {}, "task": {} });
        let result = self.call("tools/call", params).await.unwrap();
        id(&result["task"])
    }

    /// Waits for a state of a legacy task.
    pub(crate) async fn until_legacy(&self, task: &str, status: &str) -> Value {
        for _ in 0..ATTEMPTS {
            let state = self.call("tasks/get", json!({ "taskId": task })).await.unwrap();
            if state["status"] == status {
                return state;
            }
            tokio::task::yield_now().await;
        }
        panic!("the task is not {status}")
    }
}

/// The id of a task.
pub(crate) fn id(task: &Value) -> String {
    task["taskId"].as_str().unwrap().to_owned()
}

/// Adds the metadata of 2026-07-28, with or without the extension.
pub(crate) fn with_meta(mut params: Value, has_extension: bool) -> Value {
    let mut capabilities = json!({ "elicitation": {}, "sampling": {} });
    if has_extension {
        capabilities["extensions"] = json!({ EXTENSION: {} });
    }
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

/// Fails a test that would hang. With a paused clock, it fails as soon as nothing else happens.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future).await.unwrap()
}

fn rpc(result: Result<Value, CallError>) -> Result<Value, ErrorObject> {
    match result {
        Ok(result) => Ok(result),
        Err(CallError::Rpc(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// What the server sends to the client.
struct Incoming {
    sender: mpsc::UnboundedSender<(String, Value)>,
    answers: Answers,
}

impl Incoming {
    fn note(&self, message: &Invocation) {
        let params = message.params.as_ref();
        let params =
            params.map_or(Value::Null, |it| serde_json::from_str(it.as_json().as_str()).unwrap());
        let _ = self.sender.send((message.method.as_str().to_owned(), params));
    }
}

impl Handler for Incoming {
    fn call(&self, call: Invocation, _: Context) -> BoxFuture<'static, Outcome> {
        self.note(&call);
        let mut answers = self.answers.lock().unwrap();
        if answers.is_empty() {
            return Box::pin(std::future::pending());
        }
        let answer = answers.remove(0).map(|answer| RawJson::encode(&answer).unwrap());
        Box::pin(std::future::ready(answer))
    }

    fn notify(&self, notification: Invocation, _: Context) -> BoxFuture<'static, ()> {
        self.note(&notification);
        Box::pin(std::future::ready(()))
    }
}

/// A server whose callers have this identity.
pub(crate) struct As<H>(pub(crate) &'static str, pub(crate) H);

impl<H: Handler> Handler for As<H> {
    fn call(&self, call: Invocation, cx: Context) -> BoxFuture<'static, Outcome> {
        self.1.call(call, cx.with(Identity::new(self.0)))
    }

    fn notify(&self, notification: Invocation, cx: Context) -> BoxFuture<'static, ()> {
        self.1.notify(notification, cx)
    }

    fn for_connection(&self, peer: &Peer) -> Option<Arc<dyn Handler>> {
        let inner = self.1.for_connection(peer)?;
        Some(Arc::new(As(self.0, inner)))
    }
}
