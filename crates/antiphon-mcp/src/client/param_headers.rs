//! Arguments that are repeated in HTTP headers (2026-07-28, Streamable HTTP, "Custom Headers from Tool Parameters").
//!
//! The schema of a tool marks them with `x-mcp-header`. A tool with an invalid mark is not usable over HTTP.

use std::collections::HashSet;

use serde_json::Value;

use crate::types::JsonObject;

/// The mark in a schema.
const MARK: &str = "x-mcp-header";
/// The deepest place of a mark. The schema itself is limited by the parser.
const MAX_DEPTH: usize = 128;
/// The largest integer that every JSON parser keeps exactly.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParamHeader {
    /// The name after `Mcp-Param-`.
    name: String,
    /// The members that lead to the argument.
    path: Vec<String>,
}

impl ParamHeader {
    /// Finds the marks of a schema.
    ///
    /// # Errors
    /// Fails if a mark is invalid, with the reason.
    pub(super) fn of_schema(schema: &JsonObject) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        let mut names = HashSet::new();
        collect(schema, &mut Vec::new(), &mut found)?;
        for header in &found {
            if !names.insert(header.name.to_ascii_lowercase()) {
                return Err(format!("`{MARK}` {:?} is used twice", header.name));
            }
        }
        Ok(found)
    }

    /// Returns the name and the value of the header; `None` if the argument is absent or null.
    pub(super) fn of_arguments(&self, arguments: &Value) -> Option<(String, String)> {
        let mut value = arguments;
        for member in &self.path {
            value = value.get(member)?;
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => integer(number)?.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((self.name.clone(), text))
    }
}

/// The integer, if it is one that every JSON parser keeps.
fn integer(number: &serde_json::Number) -> Option<i64> {
    let integer = number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0).then_some(float as i64)
    })?;
    (-MAX_INTEGER..=MAX_INTEGER).contains(&integer).then_some(integer)
}

/// Collects the marks of properties. A mark anywhere else is an error.
fn collect(
    schema: &JsonObject,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    if path.len() > MAX_DEPTH {
        return Err("the schema is nested too deeply".to_owned());
    }
    if let Some(mark) = schema.get(MARK) {
        found.push(marked(schema, mark, path)?);
    }
    for (keyword, value) in schema {
        match value {
            Value::Object(properties) if keyword == "properties" => {
                for (name, property) in properties {
                    let Value::Object(property) = property else { continue };
                    path.push(name.clone());
                    collect(property, path, found)?;
                    path.pop();
                }
            }
            // These are values, not schemas.
            _ if ["const", "default", "enum", "examples"].contains(&keyword.as_str()) => {}
            other if has_mark(other, 0) => {
                return Err(format!("`{MARK}` is under `{keyword}`, and not a direct property"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn marked(schema: &JsonObject, mark: &Value, path: &[String]) -> Result<ParamHeader, String> {
    let name = mark.as_str().unwrap_or_default();
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("`{MARK}` {mark} is not the name of a header"));
    }
    let types = schema.get("type").and_then(Value::as_str);
    if !types.is_some_and(|it| ["string", "integer", "boolean"].contains(&it)) || path.is_empty() {
        return Err(format!("`{MARK}` {name:?} is not on a string, an integer or a boolean"));
    }
    Ok(ParamHeader { name: name.to_owned(), path: path.to_vec() })
}

fn has_mark(value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(members) => {
            members.contains_key(MARK)
                || depth > MAX_DEPTH
                || members.values().any(|it| has_mark(it, depth + 1))
        }
        Value::Array(items) => depth > MAX_DEPTH || items.iter().any(|it| has_mark(it, depth + 1)),
        _ => false,
    }
}

/// A character of a header name (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(schema: &Value) -> Result<Vec<ParamHeader>, String> {
        ParamHeader::of_schema(schema.as_object().unwrap())
    }

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limits": {"type": "object", "properties": {
                "count": {"type": "integer", "x-mcp-header": "Count"},
                "strict": {"type": "boolean", "x-mcp-header": "Strict"}}}}});
        let found = headers(&schema).unwrap();
        let of = |arguments: Value| -> Vec<_> {
            found.iter().filter_map(|it| it.of_arguments(&arguments)).collect()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            of(json!({"region": "eu", "limits": {"count": 42.0, "strict": false}})),
            [pair("Count", "42"), pair("Strict", "false"), pair("Region", "eu")]
        );
        assert_eq!(of(json!({"region": null, "limits": {"count": 9007199254740992_i64}})), []);
    }

    #[test]
    fn invalid_marks_are_errors() {
        let of = |property: Value| headers(&json!({"properties": {"a": property}}));
        for property in [
            json!({"type": "string", "x-mcp-header": ""}),
            json!({"type": "string", "x-mcp-header": "a b"}),
            json!({"type": "string", "x-mcp-header": "a\r\nb"}),
            json!({"type": "string", "x-mcp-header": 1}),
            json!({"type": "number", "x-mcp-header": "A"}),
            json!({"x-mcp-header": "A"}),
            json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
            json!({"oneOf": [{"type": "string", "x-mcp-header": "A"}]}),
        ] {
            assert!(of(property.clone()).is_err(), "{property}");
        }
        let twice = json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"},
            "b": {"type": "string", "x-mcp-header": "a"}}});
        assert!(headers(&twice).is_err());
        assert!(of(json!({"type": "string", "default": {"x-mcp-header": "A"}})).is_ok());
    }
}
