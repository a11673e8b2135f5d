//! Prompts.

use antiphon_mcp::types::PromptMessage;
use antiphon_mcp::{RequestContext, RequestError, ServerBuilder, ServerPrompt};
use schemars::JsonSchema;
use serde::Deserialize;

use super::asking::ask;
use super::content::{image, resource};

#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    /// The URI of the resource.
    resource_uri: String,
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .prompt(
            ServerPrompt::new("test_simple_prompt", |(): (), _cx: RequestContext| async {
                Ok("This is a simple prompt for testing.")
            })
            .description("A prompt without arguments."),
        )
        .prompt(
            ServerPrompt::new("test_prompt_with_arguments", |it: TwoArguments, _cx| async move {
                Ok(format!("Prompt with arguments: arg1='{}', arg2='{}'", it.arg1, it.arg2))
            })
            .description("A prompt with two arguments.")
            .complete("arg1", |typed, _known| async move {
                let known = ["paris", "park", "party", "testing"].into_iter();
                known.filter(|word| word.starts_with(&typed)).map(str::to_owned).collect()
            }),
        )
        .prompt(
            ServerPrompt::new(
                "test_prompt_with_embedded_resource",
                |it: Embedded, _cx| async move {
                    let text = "Embedded resource content for testing.";
                    Ok(vec![
                        PromptMessage::user(resource(&it.resource_uri, "text/plain", text)),
                        user("Please process the embedded resource above."),
                    ])
                },
            )
            .description("A prompt with a resource."),
        )
        .prompt(
            ServerPrompt::new("test_prompt_with_image", |(): (), _cx| async {
                Ok(vec![PromptMessage::user(image()), user("Please analyze the image above.")])
            })
            .description("A prompt with a picture."),
        )
        .prompt(
            ServerPrompt::new("test_input_required_result_prompt", |(): (), cx| async move {
                let question = "What context should the prompt use?";
                let context = ask(&cx, "user_context", question, "context").await;
                let context = context.map_err(RequestError::from_tool)?;
                Ok(format!("Prompt with context: {context}"))
            })
            .description("A prompt that asks the user."),
        )
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::user(antiphon_mcp::types::ContentBlock::text(text))
}
