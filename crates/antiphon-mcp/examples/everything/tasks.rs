//! Tools whose calls become tasks.

use std::time::Duration;

use antiphon::ErrorObject;
use antiphon_mcp::types::{
    BooleanSchema, ElicitFormParams, ElicitResult, ElicitationSchema, StringSchema, TaskSupport,
};
use antiphon_mcp::{AskError, RequestContext, ServerBuilder, ServerTool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the tools.
pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    let slow_compute = ServerTool::new("slow_compute", slow_compute)
        .description("Computes for some seconds.")
        .task(TaskSupport::Optional);
    let failing_job = ServerTool::new("failing_job", |(): (), _cx: RequestContext| failing_job())
        .description("Reports an error after a second.")
        .task(TaskSupport::Required);
    let protocol_error_job =
        ServerTool::new("protocol_error_job", |(): (), _cx: RequestContext| protocol_error_job())
            .description("Ends with a JSON-RPC error.")
            .task(TaskSupport::Required);
    let confirm_delete = ServerTool::new("confirm_delete", confirm_delete)
        .description("Asks before it deletes a file, which it does not.")
        .task(TaskSupport::Required);
    let multi_input = ServerTool::new("multi_input", |(): (), cx| multi_input(cx))
        .description("Asks two questions at once.")
        .task(TaskSupport::Required);
    let after_input = ServerTool::new("test_tool_with_task", |(): (), cx| greet_in_task(cx))
        .description("Asks for a name before it becomes a task.")
        .task(TaskSupport::Required)
        .task_on_demand();
    let greet = ServerTool::new("greet", |it: Name, _cx: RequestContext| greet(it))
        .description("Greets at once.");
    [greet, slow_compute, failing_job, protocol_error_job, confirm_delete, multi_input, after_input]
        .into_iter()
        .fold(builder, ServerBuilder::tool)
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn greet(Name { name }: Name) -> String {
    format!("Hello, {name}!")
}

#[derive(Deserialize, JsonSchema)]
struct Computation {
    /// How long it takes.
    seconds: f64,
    #[serde(default)]
    label: String,
}

async fn slow_compute(
    Computation { seconds, label }: Computation,
    cx: RequestContext,
) -> Result<String, ToolError> {
    cx.progress(0.0, Some(1.0), Some("computing")).await;
    let time = Duration::try_from_secs_f64(seconds)?;
    tokio::time::sleep(time).await;
    Ok(format!("computed {label} in {seconds} s"))
}

async fn failing_job() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("the job has failed"))
}

async fn protocol_error_job() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    Err(ToolError::request(ErrorObject::new(-32603, "the job cannot run")))
}

#[derive(Deserialize, JsonSchema)]
struct File {
    filename: String,
}

async fn confirm_delete(File { filename }: File, cx: RequestContext) -> Result<String, ToolError> {
    let form = ElicitationSchema::new().required("confirm", BooleanSchema::new());
    let message = format!("Delete {filename}?");
    let answer = cx.question("confirm").elicit(ElicitFormParams::new(message, form)).await?;
    let is_confirmed = content(&answer, "confirm").and_then(serde_json::Value::as_bool);
    Ok(match is_confirmed {
        Some(true) => format!("deleted {filename}"),
        _ => format!("kept {filename}"),
    })
}

async fn multi_input(cx: RequestContext) -> Result<String, ToolError> {
    let (one, two) = tokio::try_join!(ask_name(&cx, "first"), ask_name(&cx, "second"))?;
    Ok(format!("Hello, {one} and {two}!"))
}

async fn ask_name(cx: &RequestContext, key: &str) -> Result<String, AskError> {
    let form = ElicitationSchema::new().required("name", StringSchema::new());
    let message = format!("The {key} name?");
    let answer = cx.question(key).elicit(ElicitFormParams::new(message, form)).await?;
    let name = content(&answer, "name").and_then(|name| name.as_str());
    Ok(name.unwrap_or("nobody").to_owned())
}

async fn greet_in_task(cx: RequestContext) -> Result<String, ToolError> {
    let name = ask_name(&cx, "user_name").await?;
    cx.begin_task().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(format!("Hello, {name}!"))
}

fn content<'a>(answer: &'a ElicitResult, member: &str) -> Option<&'a serde_json::Value> {
    answer.content.as_ref()?.get(member)
}
