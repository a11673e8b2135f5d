//! What a tool is for, from the description of its method.

use antiphon::openrpc::Method;
use serde_json::{Map, Value};

use super::arguments::MethodParams;

/// The longest title, the largest number of errors and examples, and the longest example.
const MAX_TITLE: usize = 100;
const MAX_ERRORS: usize = 8;
const MAX_EXAMPLES: usize = 2;
const MAX_EXAMPLE: usize = 400;

/// The name of a tool for people: the summary of the method, if it is short.
pub(super) fn title(method: &Method) -> Option<String> {
    let summary = method.summary.as_deref()?.trim().trim_end_matches('.');
    let is_title = !summary.is_empty() && !summary.contains('\n') && summary.len() <= MAX_TITLE;
    is_title.then(|| summary.to_owned())
}

/// What a tool does, for the model: the prose of the method, its errors and examples.
pub(super) fn description(method: &Method, params: &MethodParams) -> Option<String> {
    let mut parts = Vec::new();
    if method.deprecated {
        parts.push("Deprecated.".to_owned());
    }
    parts.extend(prose(method));
    parts.extend(errors(method));
    parts.extend(examples(method, params));
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

pub(super) fn prose(method: &Method) -> Option<String> {
    let text = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match (text(&method.summary), text(&method.description)) {
        (Some(summary), Some(description)) if !description.starts_with(&summary) => {
            Some(format!("{summary}\n\n{description}"))
        }
        (summary, description) => description.or(summary),
    }
}

fn errors(method: &Method) -> Option<String> {
    let known: Vec<_> = method.errors.iter().take(MAX_ERRORS).collect();
    let listed: Vec<_> =
        known.iter().map(|error| format!("{} {}", error.code, error.message)).collect();
    (!listed.is_empty()).then(|| format!("Errors: {}.", listed.join("; ")))
}

fn examples(method: &Method, params: &MethodParams) -> Option<String> {
    let examples = method.rest.get("examples").and_then(Value::as_array)?;
    let lines = examples.iter().filter_map(|example| line(example, params));
    let lines: Vec<_> = lines.filter(|line| line.len() <= MAX_EXAMPLE).take(MAX_EXAMPLES).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// An example with the arguments of the tool: an example in OpenRPC has params by position.
fn line(example: &Value, params: &MethodParams) -> Option<String> {
    let given = example.get("params").and_then(Value::as_array)?;
    let value = |given: &Value| given.get("value").cloned();
    let named = params.params.iter().zip(given);
    let arguments: Map<_, _> = named
        .filter(|(param, _)| !param.is_repeated)
        .filter_map(|(param, given)| Some((param.argument.clone(), value(given)?)))
        .collect();
    let arguments = Value::from(arguments);
    Some(match example.get("result").and_then(|result| result.get("value")) {
        Some(result) => format!("Example: {arguments} returns {result}"),
        None => format!("Example: {arguments}"),
    })
}
