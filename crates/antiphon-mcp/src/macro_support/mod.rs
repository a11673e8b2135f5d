//! Support code for the expansion of `#[antiphon_mcp::server]`.
//!
//! Not a public API: it changes with the macro.

mod returned;

pub use returned::{
    BoxedFailure, BoxedRequestFailure, Failure, Infallible, Plain, RequestFailure, Returned,
};
pub use schemars;
pub use serde;

use crate::types::{TaskSupport, ToolExecution};
use crate::{InvalidTemplate, ServerPrompt, ServerTemplate, ServerTool};

/// The template of a method, which the macro has checked.
///
/// # Panics
/// Panics if the template is not valid.
pub fn template(template: Result<ServerTemplate, InvalidTemplate>) -> ServerTemplate {
    template.expect("the macro has checked the template")
}

/// The prompt with its arguments in the order of the method.
pub fn ordered(mut prompt: ServerPrompt, names: &[&str]) -> ServerPrompt {
    let position = |name: &str| names.iter().position(|known| *known == name);
    if let Some(arguments) = prompt.arguments_mut() {
        arguments.sort_by_key(|argument| position(&argument.name));
    }
    prompt
}

/// The tool with its support of tasks.
pub fn with_tasks(mut tool: ServerTool, support: TaskSupport) -> ServerTool {
    let execution = ToolExecution::default().with_task_support(support);
    tool.description_mut().execution = Some(execution);
    tool
}

/// The values of a completion as texts.
pub fn completed(values: impl IntoIterator<Item: Into<String>>) -> Vec<String> {
    values.into_iter().map(Into::into).collect()
}
