//! Chooses a tool that the suite may call.
//!
//! A call can do harm. Without a name from the user, only a tool that declares itself read-only is called.

use crate::transcript::json::{Json, JsonValue};

/// A tool, and arguments that fit its schema.
pub(super) struct HarmlessTool {
    pub(super) name: Json,
    pub(super) arguments: String,
    /// It needs arguments, so a call without them must fail.
    pub(super) has_required: bool,
}

/// Returns the tools that declare themselves read-only, and for which arguments can be made.
pub(super) fn harmless(tools: &[Json]) -> Vec<HarmlessTool> {
    tools.iter().filter(|tool| is_read_only(tool)).filter_map(with_arguments).collect()
}

/// Returns the tool that the user named.
pub(super) fn named(tools: &[Json], params: &Json) -> Option<HarmlessTool> {
    let name = params.member("name")?.clone();
    let tool = tools.iter().find(|tool| tool.member("name") == Some(&name));
    let has_required = tool.is_some_and(|tool| !required(tool).is_empty());
    let arguments = params.member("arguments").map_or("{}", Json::text).to_owned();
    Some(HarmlessTool { name, arguments, has_required })
}

fn is_read_only(tool: &Json) -> bool {
    let hint = tool.member("annotations").and_then(|hints| hints.member("readOnlyHint"));
    // A parameter with this annotation needs a header of its own.
    hint.is_some_and(|hint| hint.text() == "true") && !tool.text().contains("x-mcp-header")
}

fn required(tool: &Json) -> Vec<Json> {
    let required = tool.member("inputSchema").and_then(|schema| schema.member("required"));
    match required.map(|required| &required.value) {
        Some(JsonValue::Array(names)) => names.to_vec(),
        _ => Vec::new(),
    }
}

fn with_arguments(tool: &Json) -> Option<HarmlessTool> {
    let required = required(tool);
    let properties = tool.member("inputSchema").and_then(|schema| schema.member("properties"));
    let mut members = Vec::new();
    for name in &required {
        let value = example(properties?.member(&name.lossy())?)?;
        members.push(format!("{}:{value}", name.text()));
    }
    Some(HarmlessTool {
        name: tool.member("name").filter(|name| name.is_string())?.clone(),
        arguments: format!("{{{}}}", members.join(",")),
        has_required: !required.is_empty(),
    })
}

/// Returns a value for a simple schema.
fn example(schema: &Json) -> Option<String> {
    if let Some(JsonValue::Array(values)) = schema.member("enum").map(|values| &values.value) {
        return values.first().map(|value| value.text().to_owned());
    }
    let kind = schema.member("type").filter(|kind| kind.is_string())?.lossy();
    match &*kind {
        "string" if schema.member("format").is_none() && schema.member("pattern").is_none() => {
            Some(r#""antiphon""#.to_owned())
        }
        "integer" | "number" => Some(schema.member("minimum").map_or("1", Json::text).to_owned()),
        "boolean" => Some("false".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(annotations: &str, schema: &str) -> Json {
        let text = format!(r#"{{"name":"a","annotations":{annotations},"inputSchema":{schema}}}"#);
        Json::parse(&text).unwrap()
    }

    #[test]
    fn only_a_read_only_tool_with_simple_arguments_is_chosen() {
        let read_only = r#"{"readOnlyHint":true}"#;
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","minimum":3},"c":{"enum":["x"]}},"required":["a","b","c"]}"#;
        let found = harmless(&[tool(read_only, schema)]);
        assert_eq!(found[0].arguments, r#"{"a":"antiphon","b":3,"c":"x"}"#);
        assert!(found[0].has_required);
        assert!(!harmless(&[tool(read_only, r#"{"type":"object"}"#)])[0].has_required);
        let hard = r#"{"type":"object","properties":{"a":{"type":"array"}},"required":["a"]}"#;
        for tool in
            [tool("{}", "{}"), tool(r#"{"readOnlyHint":false}"#, "{}"), tool(read_only, hard)]
        {
            assert!(harmless(std::slice::from_ref(&tool)).is_empty(), "{tool}");
        }
    }

    #[test]
    fn the_tool_of_the_user_is_taken_as_it_is() {
        let params = Json::parse(r#"{"name":"a","arguments":{"x":1}}"#).unwrap();
        let strict = tool("{}", r#"{"required":["x"]}"#);
        let found = named(&[strict], &params).unwrap();
        assert_eq!((&*found.arguments, found.has_required), (r#"{"x":1}"#, true));
        assert!(named(&[], &Json::parse("{}").unwrap()).is_none());
    }
}
