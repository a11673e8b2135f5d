//! Tools whose results have every kind of content.

use antiphon_mcp::types::{
    AudioContent, CallToolResult, ContentBlock, ImageContent, JsonObject, ResourceContents, Tool,
};
use antiphon_mcp::{RequestContext, ServerBuilder, ServerTool, Structured, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A picture of one pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

#[derive(Deserialize, JsonSchema)]
struct Terms {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Region {
    region: String,
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(simple("test_simple_text", "Returns a text.", || {
            vec![ContentBlock::text("This is a simple text response for testing.")]
        }))
        .tool(simple("test_image_content", "Returns a picture.", || vec![image()]))
        .tool(simple("test_audio_content", "Returns a sound.", || {
            vec![ContentBlock::Audio(AudioContent::from_base64(WAV, "audio/wav"))]
        }))
        .tool(simple("test_embedded_resource", "Returns a resource.", || {
            let text = "This is an embedded resource content.";
            vec![resource("test://embedded-resource", "text/plain", text)]
        }))
        .tool(simple("test_multiple_content_types", "Returns three kinds of content.", || {
            let data = r#"{"test":"data","value":123}"#;
            let mixed = resource("test://mixed-content-resource", "application/json", data);
            vec![ContentBlock::text("Multiple content types test:"), image(), mixed]
        }))
        .tool(
            ServerTool::new("test_error_handling", |(): (), _cx: RequestContext| async {
                let reason = "This tool intentionally returns an error for testing";
                Err::<(), _>(ToolError::new(reason))
            })
            .description("Fails."),
        )
        .tool(
            ServerTool::new(
                "test_structured_content",
                |Terms { a, b }, _cx: RequestContext| async move {
                    let sum =
                        a.checked_add(b).ok_or_else(|| ToolError::new("the sum is too large"))?;
                    Ok(Structured(Sum { sum }))
                },
            )
            .description("Adds two integers.")
            .read_only()
            .idempotent(),
        )
        .tool(
            ServerTool::new(
                "test_custom_headers_echo",
                |it: Region, _cx: RequestContext| async move { format!("region: {}", it.region) },
            )
            .description("Repeats an argument that is also a header.")
            .input_schema(object(json!({
                "type": "object",
                "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
                "required": ["region"],
            }))),
        )
        .tool(schema_tool())
}

/// A tool without arguments.
fn simple(
    name: &str,
    description: &str,
    content: impl Fn() -> Vec<ContentBlock> + Send + Sync + 'static,
) -> ServerTool {
    ServerTool::new(name, move |(): (), _cx: RequestContext| {
        let content = content();
        async move { content }
    })
    .description(description)
}

pub(crate) fn image() -> ContentBlock {
    ContentBlock::Image(ImageContent::from_base64(PNG, "image/png"))
}

pub(crate) fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(uri, text).with_mime_type(mime_type))
}

pub(crate) fn object(value: serde_json::Value) -> JsonObject {
    match value {
        serde_json::Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

fn schema_tool() -> ServerTool {
    let schema = object(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    }));
    let tool = Tool::new("json_schema_2020_12_tool", schema)
        .with_description("Tool with JSON Schema 2020-12 features");
    ServerTool::dynamic(
        tool,
        |arguments, _cx| async move { CallToolResult::text(arguments.as_str()) },
    )
    .expect("the schema is valid")
}
