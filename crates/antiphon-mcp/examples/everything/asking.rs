//! Tools that ask the client: forms, the model, the roots.

use antiphon_mcp::types::{
    BooleanSchema, ClientCapabilities, CreateMessageParams, ElicitFormParams, ElicitResult,
    ElicitationSchema, SamplingCapability, SamplingMessage, StringSchema,
};
use antiphon_mcp::{RequestContext, ServerBuilder, ServerTool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    /// The prompt for the model.
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    /// The message for the user.
    message: String,
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    rounds(questions(builder))
}

fn questions(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(
            ServerTool::new("test_sampling", |it: Prompt, cx: RequestContext| async move {
                let answer = cx.question("sample").sample(sampling(&it.prompt, 100)).await?;
                Ok::<_, ToolError>(format!("LLM response: {}", text(&answer.content)))
            })
            .description("Asks the model."),
        )
        .tool(
            ServerTool::new("test_elicitation", |it: Message, cx: RequestContext| async move {
                let form = ElicitationSchema::new()
                    .required("username", StringSchema::new().with_description("User's response"))
                    .required(
                        "email",
                        StringSchema::new().with_description("User's email address"),
                    );
                let form = ElicitFormParams::new(it.message, form);
                let answer = cx.question("elicit").elicit(form).await?;
                Ok::<_, ToolError>(format!("User response: {}", summary(&answer)))
            })
            .description("Asks the user for a name and an address."),
        )
        .tool(form_tool(
            "test_elicitation_sep1034_defaults",
            "Asks with defaults.",
            json!({ "type": "object", "properties": {
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": { "type": "boolean", "default": true },
            }, "required": [] }),
        ))
        .tool(form_tool(
            "test_elicitation_sep1330_enums",
            "Asks with every kind of choice.",
            json!({ "type": "object", "properties": {
                "untitledSingle": {
                    "type": "string",
                    "description": "Select one option",
                    "enum": ["option1", "option2", "option3"],
                },
                "titledSingle": { "type": "string", "oneOf": titled("value", "Option") },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array", "minItems": 1, "maxItems": 3,
                    "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
                },
                "titledMulti": {
                    "type": "array", "minItems": 1, "maxItems": 3,
                    "items": { "anyOf": titled("value", "Choice") },
                },
            }, "required": [] }),
        ))
        .tool(
            ServerTool::new("test_roots", |(): (), cx: RequestContext| async move {
                let roots = cx.question("client_roots").roots().await?;
                let uris: Vec<_> = roots.into_iter().map(|root| root.uri).collect();
                Ok::<_, ToolError>(uris.join(", "))
            })
            .description("Asks for the roots of the client."),
        )
        .tool(
            ServerTool::new("test_missing_capability", |(): (), cx: RequestContext| async move {
                let sampling = SamplingCapability::default();
                cx.require(ClientCapabilities::new().with_sampling(sampling))?;
                Ok::<_, ToolError>("Success")
            })
            .description("Needs a client that can ask its model."),
        )
        .tool(
            ServerTool::new(
                "test_streaming_elicitation",
                |(): (), cx: RequestContext| async move {
                    cx.progress(1.0, None, None).await;
                    "Streaming complete"
                },
            )
            .description("Reports progress and completes."),
        )
}

/// Tools whose modern requests take several rounds.
fn rounds(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(round("elicitation", |cx| async move {
            let name = ask(&cx, "user_name", "What is your name?", "name").await?;
            Ok(format!("Hello, {name}!"))
        }))
        .tool(round("sampling", |cx| async move {
            let params = sampling("What is the capital of France?", 100);
            let answer = cx.question("capital_question").sample(params).await?;
            Ok(text(&answer.content))
        }))
        .tool(round("list_roots", |cx| async move {
            let roots = cx.question("client_roots").roots().await?;
            Ok(format!("Found {} root(s)", roots.len()))
        }))
        .tool(round("request_state", |cx| async move {
            remember(&cx).await?;
            confirm(&cx).await?;
            Ok("state-ok: requestState validated".to_owned())
        }))
        .tool(round("multiple_inputs", |cx| async move {
            remember(&cx).await?;
            let (name, greeting, roots) = tokio::join!(
                ask(&cx, "user_name", "What is your name?", "name"),
                cx.question("greeting").sample(sampling("Generate a greeting", 50)),
                cx.question("client_roots").roots(),
            );
            let (name, greeting, roots) = (name?, greeting?, roots?);
            Ok(format!("{} {name}, {} root(s)", text(&greeting.content), roots.len()))
        }))
        .tool(round("multi_round", |cx| async move {
            remember(&cx).await?;
            let name = ask(&cx, "step1", "Step 1: What is your name?", "name").await?;
            let color = ask(&cx, "step2", "Step 2: What is your favorite color?", "color").await?;
            Ok(format!("Multi-round complete for {name} who likes {color}"))
        }))
        .tool(round("tampered_state", |cx| async move {
            remember(&cx).await?;
            confirm(&cx).await?;
            Ok("the state was not changed".to_owned())
        }))
        .tool(round("capabilities", |cx| async move {
            let declared = cx.client_capabilities();
            if declared.sampling.is_some() {
                let answer = cx.question("greeting").sample(sampling("Say hello", 50)).await?;
                return Ok(text(&answer.content));
            }
            if declared.elicitation.is_some() {
                return ask(&cx, "user_name", "What is your name?", "name").await;
            }
            Ok("nothing to ask".to_owned())
        }))
}

/// A tool of the conformance suite that asks in rounds.
fn round<F>(name: &str, handler: impl Fn(RequestContext) -> F + Send + Sync + 'static) -> ServerTool
where
    F: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    let name = format!("test_input_required_result_{name}");
    ServerTool::new(name, move |(): (), cx: RequestContext| handler(cx))
        .description("Asks the client, in one or several rounds.")
}

/// Keeps something in the state of the request.
async fn remember(cx: &RequestContext) -> Result<(), ToolError> {
    cx.once("begun", async { Ok::<_, ToolError>(true) }).await.map(drop)
}

/// Asks for one text.
pub(crate) async fn ask(
    cx: &RequestContext,
    key: &str,
    message: &str,
    field: &str,
) -> Result<String, ToolError> {
    let form = ElicitationSchema::new().required(field, StringSchema::new());
    let answer = cx.question(key).elicit(ElicitFormParams::new(message, form)).await?;
    let text = answer.content.as_ref().and_then(|content| content.get(field)?.as_str());
    text.map(str::to_owned).ok_or_else(|| ToolError::new("the user did not answer"))
}

async fn confirm(cx: &RequestContext) -> Result<(), ToolError> {
    let form = ElicitationSchema::new().required("ok", BooleanSchema::new());
    cx.question("confirm").elicit(ElicitFormParams::new("Please confirm", form)).await?;
    Ok(())
}

fn form_tool(name: &str, description: &str, schema: Value) -> ServerTool {
    let schema: ElicitationSchema = serde_json::from_value(schema).expect("the form is valid");
    ServerTool::new(name, move |(): (), cx: RequestContext| {
        let form = ElicitFormParams::new("Please fill in the form", schema.clone());
        async move {
            let answer = cx.question("form").elicit(form).await?;
            Ok::<_, ToolError>(format!("Elicitation completed: {}", summary(&answer)))
        }
    })
    .description(description)
}

fn titled(value: &str, title: &str) -> Value {
    let option = |(number, name): (usize, &str)| json!({ "const": format!("{value}{}", number + 1), "title": format!("{name} {title}") });
    ["First", "Second", "Third"].into_iter().enumerate().map(option).collect()
}

fn summary(answer: &ElicitResult) -> String {
    let action = json!(answer.action);
    let content = json!(answer.content);
    format!("action={}, content={content}", action.as_str().unwrap_or_default())
}

fn sampling(prompt: &str, max_tokens: u64) -> CreateMessageParams {
    let message = SamplingMessage::user(antiphon_mcp::types::SamplingContent::text(prompt));
    CreateMessageParams::new(vec![message], max_tokens)
}

fn text(content: &[antiphon_mcp::types::SamplingContent]) -> String {
    content.iter().find_map(|block| block.as_text()).unwrap_or_default().to_owned()
}
