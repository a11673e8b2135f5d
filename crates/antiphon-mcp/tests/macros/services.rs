//! The types that can be servers: generic ones, with lifetimes, several in one server.

use std::marker::PhantomData;
use std::sync::Arc;

use antiphon_mcp::{McpServer, McpService};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::requests::TestClient;

trait Backend: Send + Sync {
    fn name(&self) -> impl Future<Output = String> + Send;
}

struct Memory(&'static str);

impl Backend for Memory {
    async fn name(&self) -> String {
        self.0.to_owned()
    }
}

struct Store<B> {
    backend: B,
}

#[antiphon_mcp::server(name = "store", version = "1")]
impl<B: Backend> Store<B> {
    #[tool]
    async fn backend(&self, suffix: String) -> String {
        self.backend.name().await + &suffix
    }
}

/// Its parameters occur in arguments.
struct Typed<T, U, const N: usize>(PhantomData<fn() -> (T, U)>);

#[antiphon_mcp::server(name = "typed", version = "1")]
impl<T, U, const N: usize> Typed<T, U, N>
where
    T: DeserializeOwned + JsonSchema + ToString + Send,
{
    #[tool]
    fn text(&self, #[serde(default)] value: Option<T>, plain: u8) -> String {
        format!("{}{plain}{N}", value.map(|value| value.to_string()).unwrap_or_default())
    }

    #[tool]
    async fn all(&self, values: Vec<T>) -> usize {
        values.len()
    }

    #[prompt]
    fn prompt(&self, one: T) -> String {
        one.to_string()
    }

    #[resource(template = "typed://{value}")]
    fn read(&self, value: T) -> String {
        value.to_string()
    }
}

struct Borrowing<'a> {
    text: &'a str,
}

#[antiphon_mcp::server(name = "borrowing", version = "1")]
impl Borrowing<'_> {
    #[tool]
    fn text(&self) -> String {
        self.text.to_owned()
    }
}

struct Named<'a, T> {
    value: &'a T,
}

#[antiphon_mcp::server(name = "named", version = "1")]
impl<'a, T: Sync + ToString> Named<'a, T> {
    #[tool]
    fn value(&self) -> String {
        self.value.to_string()
    }
}

trait Contract {
    fn twice(&self, number: i32) -> i32;
}

struct Implementation;

#[antiphon_mcp::server(name = "contract", version = "1")]
impl Contract for Implementation {
    #[tool]
    fn twice(&self, number: i32) -> i32 {
        2 * number
    }
}

#[tokio::test]
async fn a_type_can_be_generic() {
    let client = TestClient::of(Store { backend: Memory("memory") });
    assert_eq!(client.text("backend", json!({ "suffix": "!" })).await, "memory!");
    let client = TestClient::of(Typed::<f64, std::cell::Cell<u8>, 3>(PhantomData));
    let schema = client.tool("text").await["inputSchema"].clone();
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["plain", "value"]);
    assert_eq!(client.text("text", json!({ "value": 1.5, "plain": 2 })).await, "1.523");
    assert_eq!(client.text("all", json!({ "values": [1, 2] })).await, "2");
    let result = client.request("resources/read", json!({ "uri": "typed://2.50" })).await.unwrap();
    assert_eq!(result["contents"][0]["text"], "2.5");
}

#[tokio::test]
async fn a_type_can_have_lifetimes() {
    let client = TestClient::of(Borrowing { text: "static" });
    assert_eq!(client.text("text", json!({})).await, "static");
    let client = TestClient::of(Named { value: &5 });
    assert_eq!(client.text("value", json!({})).await, "5");
}

#[tokio::test]
async fn methods_can_be_those_of_a_trait() {
    let client = TestClient::of(Implementation);
    assert_eq!(client.text("twice", json!({ "number": 4 })).await, "8");
}

#[tokio::test]
async fn several_services_are_one_server() {
    let builder = McpServer::builder("both", "2");
    let builder = Arc::new(Store { backend: Memory("m") }).add_to(builder);
    let server = Arc::new(Borrowing { text: "s" }).add_to(builder).build();
    let client = TestClient::of_server(server);
    assert_eq!(client.text("backend", json!({ "suffix": "" })).await, "m");
    assert_eq!(client.text("text", json!({})).await, "s");
    let about: Value = client.request("server/discover", json!({})).await.unwrap();
    assert_eq!(about["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "both");
}

#[cfg(test)]
struct Conditional;

#[antiphon_mcp::server(name = "conditional", version = "1")]
#[cfg(test)]
impl Conditional {
    #[cfg(any())]
    #[tool]
    fn one(&self, absent: Absent) -> Absent {
        absent
    }

    #[cfg(test)]
    #[tool]
    fn one(&self) -> u8 {
        1
    }

    #[prompt]
    #[cfg_attr(test, cfg(any()))]
    fn removed(&self, of: String) -> Absent {
        Absent::new(of)
    }

    #[cfg(any())]
    #[complete(prompt = "removed", argument = "of")]
    fn completion(&self, _typed: &str) -> Vec<String> {
        Vec::new()
    }
}

#[tokio::test]
async fn methods_can_have_conditions() {
    let client = TestClient::of(Conditional);
    assert_eq!(client.text("one", json!({})).await, "1");
    let error = client.request("prompts/list", json!({})).await.unwrap_err();
    assert_eq!(error.code, antiphon::Code::METHOD_NOT_FOUND);
}
