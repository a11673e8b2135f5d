//! The arguments of a tool that an HTTP client repeats in headers (2026-07-28, Streamable HTTP, "Custom Headers from Tool
//! Parameters").
//!
//! The schema marks them with `x-mcp-header`. A tool with an invalid mark is not usable over HTTP.

use serde_json::Value;

use crate::types::JsonObject;

/// The keyword in the schema of a param.
const KEYWORD: &str = "x-mcp-header";
/// The largest integer that every JSON parser keeps exactly.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// The params of a tool that are also headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParamHeaders(Vec<ParamHeader>);

/// A param that is also a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    /// The name of the header in lower case: `mcp-param-` and the name in the schema.
    pub(crate) header: String,
    /// The names of the properties that lead to the param.
    pub(crate) path: Vec<String>,
}

impl ParamHeaders {
    /// Reads the input schema of a tool.
    ///
    /// # Errors
    /// Fails if a header has no valid name, if two have the same one, or if its param is not a text, an integer or a
    /// Boolean that only `properties` lead to.
    pub(crate) fn of(schema: &JsonObject) -> Result<Self, String> {
        let mut found = Self::default();
        found.read_properties(schema, &mut Vec::new())?;
        match found.0.len() == count(schema) {
            true => Ok(found),
            false => Err(format!("`{KEYWORD}` is allowed only on properties of Objects")),
        }
    }

    fn read_properties(
        &mut self,
        schema: &JsonObject,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
        for (name, property) in properties {
            let Value::Object(property) = property else { continue };
            path.push(name.clone());
            if let Some(header) = property.get(KEYWORD) {
                self.add(header, property, path)?;
            }
            self.read_properties(property, path)?;
            path.pop();
        }
        Ok(())
    }

    fn add(
        &mut self,
        header: &Value,
        property: &JsonObject,
        path: &[String],
    ) -> Result<(), String> {
        let name = header.as_str().filter(|name| is_token(name));
        let name = name.ok_or_else(|| format!("{header} is not the name of a header"))?;
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["string", "integer", "boolean"].contains(&kind) {
            let param = path.join(".");
            return Err(format!("`{param}` is not a text, an integer or a Boolean"));
        }
        let header = format!("mcp-param-{}", name.to_ascii_lowercase());
        if self.0.iter().any(|known| known.header == header) {
            return Err(format!("two params have the header `{name}`"));
        }
        self.0.push(ParamHeader { header, path: path.to_vec() });
        Ok(())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ParamHeader> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ParamHeader {
    /// The value of the param in these arguments; `None` if it is absent or null.
    pub(crate) fn value<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        let value = self.path.iter().try_fold(arguments, |value, name| value.get(name))?;
        (!value.is_null()).then_some(value)
    }

    /// The name and the text of the header for these arguments; `None` if the param is absent or null, or has no text.
    pub(crate) fn of_arguments(&self, arguments: &Value) -> Option<(String, String)> {
        let text = match self.value(arguments)? {
            Value::String(text) => text.clone(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => integer(number)?.to_string(),
            _ => return None,
        };
        Some((self.header.clone(), text))
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

/// How often the keyword stands anywhere in a schema. As the name of a property it has no meaning.
fn count(schema: &JsonObject) -> usize {
    let within = |name: &str, value: &Value| match (name, value) {
        (
            "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
            Value::Object(members),
        ) => members.values().map(count_in).sum(),
        ("const" | "enum" | "default" | "examples", _) => 0,
        (_, value) => count_in(value),
    };
    let here = usize::from(schema.contains_key(KEYWORD));
    here + schema.iter().map(|(name, value)| within(name, value)).sum::<usize>()
}

fn count_in(value: &Value) -> usize {
    match value {
        Value::Object(schema) => count(schema),
        Value::Array(items) => items.iter().map(count_in).sum(),
        _ => 0,
    }
}

/// Whether a text is a token of RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(schema: &Value) -> Result<ParamHeaders, String> {
        ParamHeaders::of(schema.as_object().unwrap())
    }

    #[test]
    fn nested_properties_are_found() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "inner": { "type": "object", "properties": {
                "n": { "type": "integer", "x-mcp-header": "N" },
                "x-mcp-header": { "type": "string" },
            } },
        } });
        let found = headers(&schema).unwrap();
        let names: Vec<_> = found.iter().map(|it| (&*it.header, it.path.join("."))).collect();
        assert_eq!(
            names,
            [("mcp-param-n", "inner.n".to_owned()), ("mcp-param-region", "region".to_owned())]
        );
        let arguments = json!({ "inner": { "n": 7 }, "region": null });
        let values: Vec<_> = found.iter().map(|it| it.value(&arguments)).collect();
        assert_eq!(values, [Some(&json!(7)), None]);
    }

    #[test]
    fn arguments_become_texts() {
        let marked = |kind: &str| json!({ "type": kind, "x-mcp-header": kind });
        let schema = json!({ "properties": {
            "s": marked("string"), "i": marked("integer"), "b": marked("boolean"),
        } });
        let found = headers(&schema).unwrap();
        let of = |arguments: Value| -> Vec<_> {
            found.iter().filter_map(|it| it.of_arguments(&arguments)).collect()
        };
        let pair = |name: &str, text: &str| (format!("mcp-param-{name}"), text.to_owned());
        assert_eq!(
            of(json!({ "s": "eu", "i": 42.0, "b": false })),
            [pair("boolean", "false"), pair("integer", "42"), pair("string", "eu")]
        );
        assert_eq!(of(json!({ "s": null, "i": 9007199254740992_i64, "b": [] })), []);
    }

    #[test]
    fn names_of_properties_and_values_are_no_marks() {
        for schema in [
            json!({ "$defs": { "a": { "properties": { "x-mcp-header": { "type": "string" } } } } }),
            json!({ "properties": { "a": { "default": { "x-mcp-header": "A" } } } }),
        ] {
            assert_eq!(headers(&schema), Ok(ParamHeaders::default()), "{schema}");
        }
    }

    #[test]
    fn other_places_and_names_are_refused() {
        let string = |header: &str| json!({ "type": "string", "x-mcp-header": header });
        for schema in [
            json!({ "properties": { "a": string("") } }),
            json!({ "properties": { "a": string("a b") } }),
            json!({ "properties": { "a": string("a\r\nb") } }),
            json!({ "properties": { "a": { "x-mcp-header": "A" } } }),
            json!({ "type": "string", "x-mcp-header": "A" }),
            json!({ "properties": { "a": string("A"), "b": string("a") } }),
            json!({ "properties": { "a": { "type": "number", "x-mcp-header": "A" } } }),
            json!({ "properties": { "a": { "type": "array", "items": string("A") } } }),
            json!({ "oneOf": [{ "properties": { "a": string("A") } }] }),
            json!({ "$defs": { "a": string("A") } }),
            json!({ "properties": { "a": { "type": "string", "x-mcp-header": 7 } } }),
        ] {
            assert!(headers(&schema).is_err(), "{schema}");
        }
    }
}
