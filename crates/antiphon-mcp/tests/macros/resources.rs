//! Resources, templates, prompts and completions.

use std::collections::BTreeMap;

use antiphon_mcp::types::{PromptMessage, ReadResourceResult, ResourceContents};
use antiphon_mcp::{RequestContext, RequestError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::requests::TestClient;

struct Stations;

#[derive(Deserialize)]
struct Day {
    year: u16,
    day: String,
}

#[antiphon_mcp::server(name = "stations", version = "1")]
impl Stations {
    /// All stations.
    #[resource(
        uri = "weather://stations",
        mime_type = "application/json",
        title = "Stations",
        size = 2,
        icon = "https://weather.example/station.png"
    )]
    async fn stations(&self) -> Result<String, RequestError> {
        Ok("[]".to_owned())
    }

    #[resource(uri = "weather://bytes")]
    fn bytes(&self) -> Vec<u8> {
        vec![1, 2]
    }

    #[resource(uri = "weather://closed")]
    fn closed(&self, cx: &RequestContext) -> Result<&'static str, RequestError> {
        Err(RequestError::resource_not_found(cx, "weather://closed"))
    }

    #[resource(uri = "weather://broken")]
    fn broken(&self) -> Result<&'static str, std::fmt::Error> {
        Err(std::fmt::Error)
    }

    /// One station.
    #[resource(
        template = "weather://station/{id}/{+part}",
        mime_type = "text/plain",
        name = "a station"
    )]
    async fn station(&self, cx: RequestContext, part: String, id: u32) -> Result<String, String> {
        match id {
            0 => Err("there is no station 0".to_owned()),
            _ => Ok(format!("{id} {part} for {}", cx.client_info().is_some())),
        }
    }

    #[resource(template = "weather://day/{year}/{day}")]
    fn day(&self, #[params] day: Day) -> ReadResourceResult {
        let text = format!("{} in {}", day.day, day.year);
        ReadResourceResult::new(vec![ResourceContents::text("weather://day", text)])
    }

    #[resource(template = "weather://named/{of.all}")]
    fn named(&self, #[param(name = "of.all")] all: Option<String>) -> String {
        all.unwrap_or_default()
    }

    /// What to pack.
    #[prompt(title = "Packing list")]
    async fn packing_list(
        &self,
        /// Where to.
        to: String,
        style: Option<String>,
        #[param(name = "for")] people: u8,
    ) -> Result<Vec<PromptMessage>, RequestError> {
        if people == 0 {
            return Err(RequestError::invalid_params("nobody travels"));
        }
        let style = style.unwrap_or_else(|| "short".to_owned());
        let text =
            antiphon_mcp::types::ContentBlock::text(format!("A {style} list for {to}, {people}"));
        Ok(vec![PromptMessage::user(text)])
    }

    #[prompt(name = "plain", description = "A plain one.")]
    fn hello(&self) -> &'static str {
        "hello"
    }

    #[complete(prompt = "packing_list", argument = "to")]
    async fn cities(&self, typed: String) -> Vec<String> {
        let cities = ["Paris", "Parma", "Rome"];
        cities.into_iter().filter(|it| it.starts_with(&typed)).map(str::to_owned).collect()
    }

    #[complete(prompt = "packing_list", argument = "for")]
    fn people(&self, typed: &str, known: &BTreeMap<String, String>) -> Option<String> {
        Some(format!("{typed}{}", known.len()))
    }

    #[complete(template = "weather://station/{id}/{+part}", variable = "part")]
    fn parts(typed: &str) -> [&'static str; 1] {
        if typed.is_empty() { ["roof"] } else { ["cellar"] }
    }

    #[complete(template = "weather://day/{year}/{day}", variable = "day")]
    fn days(&self, _typed: &str, known: BTreeMap<String, String>) -> Vec<String> {
        known.into_values().collect()
    }
}

fn client() -> TestClient {
    TestClient::of(Stations)
}

async fn read(client: &TestClient, uri: &str) -> Value {
    let result = client.request("resources/read", json!({ "uri": uri })).await.unwrap();
    result["contents"][0].clone()
}

#[tokio::test]
async fn a_resource_is_described_and_read() {
    let client = client();
    let resource = client.listed("resources/list", "resources", "stations").await;
    let expected = json!({
        "uri": "weather://stations", "name": "stations", "title": "Stations", "description": "All stations.",
        "mimeType": "application/json", "size": 2, "icons": [{ "src": "https://weather.example/station.png" }],
    });
    assert_eq!(resource, expected);
    let expected =
        json!({ "uri": "weather://stations", "mimeType": "application/json", "text": "[]" });
    assert_eq!(read(&client, "weather://stations").await, expected);
    assert_eq!(read(&client, "weather://bytes").await["blob"], "AQI=");
}

#[tokio::test]
async fn a_resource_can_fail() {
    let client = client();
    for (uri, message) in [
        ("weather://closed", "Resource not found"),
        ("weather://broken", "an error occurred when formatting an argument"),
        ("weather://station/0/roof", "there is no station 0"),
    ] {
        let error = client.request("resources/read", json!({ "uri": uri })).await.unwrap_err();
        assert_eq!(error.message, message);
    }
}

#[tokio::test]
async fn a_template_passes_its_variables() {
    let client = client();
    let template =
        client.listed("resources/templates/list", "resourceTemplates", "a station").await;
    let expected = json!({
        "uriTemplate": "weather://station/{id}/{+part}", "name": "a station",
        "description": "One station.", "mimeType": "text/plain",
    });
    assert_eq!(template, expected);
    let station = read(&client, "weather://station/7/roof/left").await;
    assert_eq!(
        (&station["text"], &station["mimeType"]),
        (&json!("7 roof/left for true"), &json!("text/plain"))
    );
    assert_eq!(read(&client, "weather://day/2026/May%201").await["text"], "May 1 in 2026");
    assert_eq!(read(&client, "weather://named/x").await["text"], "x");
    // A variable that the method cannot take is a resource that does not exist.
    let uri = json!({ "uri": "weather://station/seven/roof" });
    let error = client.request("resources/read", uri).await.unwrap_err();
    assert_eq!(error.message, "Resource not found");
}

#[tokio::test]
async fn a_prompt_is_described_and_gotten() {
    let client = client();
    let prompt = client.listed("prompts/list", "prompts", "packing_list").await;
    let expected = json!({
        "name": "packing_list", "title": "Packing list", "description": "What to pack.",
        // In the order of the method.
        "arguments": [
            { "name": "to", "description": "Where to.", "required": true },
            { "name": "style", "required": false },
            { "name": "for", "required": true },
        ],
    });
    assert_eq!(prompt, expected);
    let arguments = json!({ "to": "Rome", "for": "2" });
    let params = json!({ "name": "packing_list", "arguments": arguments });
    let result = client.request("prompts/get", params).await.unwrap();
    let expected = json!({ "role": "user", "content": { "type": "text", "text": "A short list for Rome, 2" } });
    assert_eq!(result["messages"], json!([expected]));
    let plain = client.listed("prompts/list", "prompts", "plain").await;
    assert_eq!(plain, json!({ "name": "plain", "description": "A plain one." }));
    let result = client.request("prompts/get", json!({ "name": "plain" })).await.unwrap();
    assert_eq!(result["messages"][0]["content"]["text"], "hello");
}

#[tokio::test]
async fn invalid_arguments_of_a_prompt_are_refused() {
    let client = client();
    for (arguments, reason) in [
        (json!({ "to": "Rome" }), "missing argument `for`"),
        (json!({ "to": "Rome", "for": "many" }), "`many`: invalid digit"),
        (json!({ "to": "Rome", "for": "0" }), "nobody travels"),
    ] {
        let params = json!({ "name": "packing_list", "arguments": arguments });
        let error = client.request("prompts/get", params).await.unwrap_err();
        assert!(error.message.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn arguments_and_variables_are_completed() {
    let client = client();
    let prompt = json!({ "type": "ref/prompt", "name": "packing_list" });
    let part = json!({ "type": "ref/resource", "uri": "weather://station/{id}/{+part}" });
    let day = json!({ "type": "ref/resource", "uri": "weather://day/{year}/{day}" });
    for (reference, name, value, expected) in [
        (&prompt, "to", "Par", json!(["Paris", "Parma"])),
        (&prompt, "for", "1", json!(["11"])),
        (&prompt, "style", "s", json!([])),
        (&part, "part", "", json!(["roof"])),
        (&day, "day", "", json!(["known"])),
    ] {
        let params = json!({
            "ref": reference,
            "argument": { "name": name, "value": value },
            "context": { "arguments": { "other": "known" } },
        });
        let result = client.request("completion/complete", params).await.unwrap();
        assert_eq!(result["completion"]["values"], expected, "{name}");
    }
}
