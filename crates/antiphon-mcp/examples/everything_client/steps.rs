//! The requests of each scenario.

use antiphon_mcp::client::McpClient;
use antiphon_mcp::types::Tool;
use serde_json::{Value, json};

use super::Failure;
use super::scenario::Scenario;

/// Sends the requests of a scenario.
pub(crate) async fn run(client: &McpClient, scenario: &Scenario) -> Result<(), Failure> {
    let tools = client.list_tools().await?;
    match &*scenario.name {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Ok(()),
        "tools_call" => call(client, "add_numbers", json!({"a": 2, "b": 3})).await,
        "elicitation-sep1034-client-defaults" => {
            call(client, "test_client_elicitation_defaults", json!({})).await
        }
        "sse-retry" => call(client, "test_reconnection", json!({})).await,
        "sep-2322-client-request-state" => call_with_input(client).await,
        "http-standard-headers" => use_every_feature(client, &tools).await,
        "http-custom-headers" => call_as_given(client, &scenario.context).await,
        "http-invalid-tool-headers" => call_each(client, &tools, json!({"region": "eu"})).await,
        "json-schema-2020-12-preservation" => echo_schema(client, &tools).await,
        name if name.starts_with("auth/") => call(client, "test-tool", json!({})).await,
        other => Err(format!("unknown scenario {other:?}").into()),
    }
}

/// Calls a tool whose result does not matter.
async fn call(client: &McpClient, tool: &str, arguments: Value) -> Result<(), Failure> {
    client.call_tool(tool, arguments).await?;
    Ok(())
}

/// Calls the tools that ask for input.
async fn call_with_input(client: &McpClient) -> Result<(), Failure> {
    for tool in ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"] {
        call(client, tool, json!({})).await?;
    }
    Ok(())
}

/// Calls each tool that the client lists. A tool with an invalid annotation is not listed.
async fn call_each(client: &McpClient, tools: &[Tool], arguments: Value) -> Result<(), Failure> {
    for tool in tools {
        call(client, &tool.name, arguments.clone()).await?;
    }
    Ok(())
}

/// Calls tools, reads resources and gets prompts.
async fn use_every_feature(client: &McpClient, tools: &[Tool]) -> Result<(), Failure> {
    call_each(client, tools, json!({})).await?;
    for resource in client.list_resources().await? {
        client.read_resource(&resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt::<String, String>(&prompt.name, []).await?;
    }
    Ok(())
}

/// Makes the calls of the context with its arguments.
async fn call_as_given(client: &McpClient, context: &Value) -> Result<(), Failure> {
    let calls = context["toolCalls"].as_array().ok_or("the context has no list `toolCalls`")?;
    for given in calls {
        let tool = given["name"].as_str().ok_or("a call of the context has no name")?;
        call(client, tool, given["arguments"].clone()).await?;
    }
    Ok(())
}

/// Sends the schema of a tool back to the server.
async fn echo_schema(client: &McpClient, tools: &[Tool]) -> Result<(), Failure> {
    let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = &tool.ok_or("the tool `json_schema_2020_12_tool` is not listed")?.input_schema;
    call(client, "json_schema_echo", json!({"schema": schema})).await
}
