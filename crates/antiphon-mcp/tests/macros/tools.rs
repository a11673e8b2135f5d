//! Tools: their descriptions, their arguments and their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use antiphon_mcp::types::{CallToolResult, ContentBlock};
use antiphon_mcp::{RequestContext, Structured, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::requests::TestClient;

#[derive(Default)]
struct Weather {
    calls: AtomicU32,
}

#[derive(Serialize, JsonSchema)]
struct Report {
    /// In degrees Celsius.
    temperature: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Range {
    first_day: u32,
    last_day: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
#[error("the station is closed")]
struct Closed(#[from] std::num::ParseIntError);

/// The weather of the world.
#[antiphon_mcp::server(
    name = "weather",
    version = concat!("1", ".0"),
    title = "Weather",
    instructions = "Ask for cities.",
    website = "https://weather.example",
    icon = "https://weather.example/icon.png"
)]
impl Weather {
    /// Current weather of a city.
    ///
    /// For up to ten days.
    #[tool(
        title = "Current weather",
        read_only,
        idempotent,
        destructive = false,
        open_world = false,
        scope = "weather:read",
        scope = "weather:all",
        task = "optional",
        icon = "https://weather.example/current.png"
    )]
    async fn current(
        &self,
        /// The name of the city.
        city: String,
        #[schemars(range(min = 1, max = 10))] days: Option<u8>,
        cx: RequestContext,
    ) -> Result<Structured<Report>, ToolError> {
        cx.progress(1.0, None, None).await;
        if city.is_empty() {
            return Err(ToolError::new("which city?"));
        }
        Ok(Structured(Report { temperature: f64::from(days.unwrap_or(20)) }))
    }

    #[tool(name = "sum.of", description = "Adds.")]
    fn add(&self, a: i64, #[param(name = "second")] b: i64) -> i64 {
        self.calls.fetch_add(1, Ordering::Relaxed);
        a + b
    }

    #[tool]
    async fn whole(&self, cx: &RequestContext, #[params] range: Range) -> String {
        let last = range.last_day.unwrap_or(range.first_day);
        format!("{} to {last} for {}", range.first_day, cx.client_info().unwrap().name)
    }

    #[tool]
    fn defaults(
        &self,
        #[param(default = 7)] one: u32,
        #[param(default)] two: u32,
        #[serde(default = "nine", rename = "drei")] three: u32,
    ) -> String {
        format!("{one}{two}{three}")
    }

    #[tool]
    fn nothing(&self) {}

    #[tool]
    fn maybe(&self, is_there: bool) -> Option<&'static str> {
        is_there.then_some("there")
    }

    #[tool]
    fn own_error(&self, number: String) -> Result<bool, Closed> {
        Ok(number.parse::<i32>()? > 0)
    }

    #[tool]
    fn text_error(&self) -> Result<(), String> {
        Err("no".to_owned())
    }

    #[tool]
    async fn boxed_error(
        &self,
    ) -> Result<Vec<ContentBlock>, Box<dyn std::error::Error + Send + Sync>> {
        Err(Box::new(antiphon::ErrorObject::new(-32_050, "not now")))
    }

    #[tool]
    fn anything(&self) -> impl antiphon_mcp::IntoToolResult + use<> {
        CallToolResult::text("any")
    }

    #[tool]
    async fn shared(self: Arc<Self>, by: u32) -> u32 {
        let task = tokio::spawn(async move { self.calls.fetch_add(by, Ordering::Relaxed) + by });
        task.await.unwrap()
    }

    #[tool]
    fn shared_by_reference(self: &Arc<Self>) -> usize {
        Arc::strong_count(self)
    }

    #[tool]
    fn associated(mut text: String) -> String {
        text.push('!');
        text
    }

    /// Not a tool.
    fn helper(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

fn nine() -> u32 {
    9
}

fn client() -> TestClient {
    TestClient::of(Weather::default())
}

#[tokio::test]
async fn a_tool_is_described() {
    let tool = client().tool("current").await;
    assert_eq!(tool["title"], "Current weather");
    assert_eq!(tool["description"], "Current weather of a city.\n\nFor up to ten days.");
    assert_eq!(tool["icons"][0]["src"], "https://weather.example/current.png");
    let hints = json!({
        "readOnlyHint": true, "idempotentHint": true, "destructiveHint": false, "openWorldHint": false,
    });
    assert_eq!(tool["annotations"], hints);
    let input = &tool["inputSchema"];
    assert_eq!(input["type"], "object");
    assert_eq!(input["required"], json!(["city"]));
    assert_eq!(input["properties"]["city"]["description"], "The name of the city.");
    assert_eq!(input["properties"]["days"]["maximum"], 10);
    assert_eq!(input["properties"].as_object().unwrap().len(), 2, "{input}");
    let output = &tool["outputSchema"]["properties"]["temperature"];
    assert_eq!(output["description"], "In degrees Celsius.");
}

#[tokio::test]
async fn options_and_comments_are_optional() {
    let client = client();
    let sum = client.tool("sum.of").await;
    assert_eq!(sum["description"], "Adds.");
    assert_eq!(sum["inputSchema"]["required"], json!(["a", "second"]));
    let nothing = client.tool("nothing").await;
    assert_eq!(nothing, json!({ "name": "nothing", "inputSchema": { "type": "object" } }));
    let whole = client.tool("whole").await;
    assert_eq!(whole["inputSchema"]["required"], json!(["firstDay"]));
}

#[tokio::test]
async fn a_default_is_in_the_schema_and_used() {
    let client = client();
    let schema = client.tool("defaults").await["inputSchema"].clone();
    assert_eq!(schema.get("required"), None, "{schema}");
    assert_eq!(schema["properties"]["one"]["default"], 7);
    assert_eq!(schema["properties"]["drei"]["default"], 9);
    assert_eq!(client.text("defaults", json!({})).await, "709");
    assert_eq!(client.text("defaults", json!({ "two": 5, "drei": 1 })).await, "751");
}

#[tokio::test]
async fn results_have_their_form() {
    let client = client();
    let report = client.call("current", json!({ "city": "Rome", "days": 3 })).await;
    assert_eq!(report["structuredContent"], json!({ "temperature": 3.0 }));
    assert_eq!(client.text("sum.of", json!({ "a": 1, "second": -3 })).await, "-2");
    assert_eq!(client.text("whole", json!({ "firstDay": 4 })).await, "4 to 4 for test");
    assert_eq!(client.text("maybe", json!({ "is_there": true })).await, "there");
    assert_eq!(client.text("own_error", json!({ "number": "1" })).await, "true");
    assert_eq!(client.text("anything", json!({})).await, "any");
    assert_eq!(client.text("associated", json!({ "text": "a" })).await, "a!");
    for empty in
        [client.call("nothing", json!({})), client.call("maybe", json!({"is_there": false}))]
    {
        assert_eq!(empty.await["content"], json!([]));
    }
}

#[tokio::test]
async fn the_service_is_shared() {
    let service = Arc::new(Weather::default());
    let server = antiphon_mcp::McpService::builder(Arc::clone(&service)).build();
    let client = TestClient::of_server(server);
    client.text("sum.of", json!({ "a": 1, "second": 1 })).await;
    assert_eq!(client.text("shared", json!({ "by": 4 })).await, "5");
    assert_eq!(service.helper(), 5);
    let count: usize = client.text("shared_by_reference", json!({})).await.parse().unwrap();
    assert!(count > 1);
}

#[tokio::test]
async fn the_model_reads_the_place_of_an_invalid_argument() {
    let client = client();
    let fault = client.failure("current", json!({ "city": "Rome", "days": 11 })).await;
    assert!(fault.starts_with("invalid argument `days`: 11"), "{fault}");
    let fault = client.failure("sum.of", json!({ "a": "1", "second": 1 })).await;
    assert!(fault.starts_with("invalid argument `a`: invalid type: string"), "{fault}");
    let fault = client.failure("sum.of", json!({ "a": 1 })).await;
    assert_eq!(fault, "invalid arguments: missing field `second`");
    let fault = client.failure("whole", json!({ "firstDay": null })).await;
    assert!(fault.starts_with("invalid argument `firstDay`"), "{fault}");
}

#[tokio::test]
async fn errors_of_every_type_reach_the_model() {
    let client = client();
    assert_eq!(client.failure("current", json!({ "city": "" })).await, "which city?");
    let own = client.failure("own_error", json!({ "number": "x" })).await;
    assert_eq!(own, "the station is closed: invalid digit found in string");
    assert_eq!(client.failure("text_error", json!({})).await, "no");
    // A JSON-RPC error stays one, although it was boxed.
    let params = json!({ "name": "boxed_error", "arguments": {} });
    let error = client.request("tools/call", params).await.unwrap_err();
    assert_eq!((error.code.0, &*error.message), (-32_050, "not now"));
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let about = client().request("server/discover", json!({})).await.unwrap();
    assert_eq!(about["instructions"], "Ask for cities.");
    let info = &about["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "weather");
    assert_eq!(info["version"], "1.0");
    assert_eq!(info["title"], "Weather");
    assert_eq!(info["description"], "The weather of the world.");
    assert_eq!(info["websiteUrl"], "https://weather.example");
    assert_eq!(info["icons"][0]["src"], "https://weather.example/icon.png");
    assert!(about["capabilities"]["resources"].is_null(), "{about}");
}

struct Unnamed;

#[antiphon_mcp::server]
impl Unnamed {
    #[tool(task = "required")]
    fn one(&self) -> u8 {
        1
    }
}

/// Only 2025-11-25 lists the support of tasks.
#[tokio::test]
async fn a_tool_can_support_tasks() {
    let client = antiphon::Client::in_process(antiphon_mcp::McpService::into_server(Unnamed));
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "old", "version": "1" },
    });
    client.call::<serde_json::Value>("initialize", hello).await.unwrap();
    let listed: serde_json::Value = client.call("tools/list", json!({})).await.unwrap();
    assert_eq!(listed["tools"][0]["execution"]["taskSupport"], "required", "{listed}");
}

#[tokio::test]
async fn the_default_name_is_that_of_the_package() {
    let server = antiphon_mcp::McpService::into_server(Unnamed);
    assert_eq!(server.implementation().name, env!("CARGO_PKG_NAME"));
    assert_eq!(server.implementation().version, env!("CARGO_PKG_VERSION"));
}
