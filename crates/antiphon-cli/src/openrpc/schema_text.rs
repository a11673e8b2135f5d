//! A JSON Schema as short text, such as `Array of Integer from 0`.
//!
//! References into the components are followed. A recursive or deeply nested schema is shown by its
//! name.

use serde_json::{Map, Value};

/// The maximum depth of nested Objects.
const DEPTH: usize = 3;

/// The maximum number of schemas in one text, since a peer's document may branch without limit.
const PARTS: usize = 500;

/// Formats a schema as text.
pub(crate) fn schema_text(schema: &Value, components: &Map<String, Value>) -> String {
    SchemaWriter { components, within: Vec::new(), left: PARTS }.of(schema)
}

struct SchemaWriter<'a> {
    components: &'a Map<String, Value>,
    /// The names of the references that are being followed, and "" for an Object.
    within: Vec<&'a str>,
    /// The number of schemas that may still be added.
    left: usize,
}

impl<'a> SchemaWriter<'a> {
    fn of(&mut self, schema: &'a Value) -> String {
        let Value::Object(members) = schema else {
            return if schema == &Value::Bool(false) { "nothing" } else { "anything" }.to_owned();
        };
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return "...".to_owned();
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.referred(reference);
        }
        if let Some(only) = members.get("const") {
            return only.to_string();
        }
        if let Some(values) = members.get("enum").and_then(Value::as_array) {
            return any_of(values.iter().map(Value::to_string));
        }
        for (word, joint) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
            if let Some(parts) = members.get(word).and_then(Value::as_array) {
                let parts: Vec<_> = parts.iter().map(|part| self.of(part)).collect();
                return parts.join(joint);
            }
        }
        match members.get("type") {
            Some(Value::Array(types)) => {
                let types = types.iter().filter_map(Value::as_str);
                any_of(types.map(|kind| self.typed(kind, members)))
            }
            Some(Value::String(kind)) => self.typed(kind, members),
            _ if members.contains_key("properties") => self.object(members),
            _ if members.contains_key("items") => self.array(members),
            _ => "anything".to_owned(),
        }
    }

    /// Follows a reference, unless it is already being followed.
    fn referred(&mut self, reference: &'a str) -> String {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        let found = reference.strip_prefix("#/components/schemas/");
        let found = found.and_then(|name| self.components.get(name));
        match found {
            Some(found) if !self.within.contains(&name) && self.within.len() < DEPTH => {
                self.inside(name, |writer| writer.of(found))
            }
            _ => name.to_owned(),
        }
    }

    fn inside(&mut self, name: &'a str, write: impl FnOnce(&mut Self) -> String) -> String {
        self.within.push(name);
        let text = write(self);
        self.within.pop();
        text
    }

    fn typed(&mut self, kind: &str, members: &'a Map<String, Value>) -> String {
        match kind {
            "array" => self.array(members),
            "object" => self.object(members),
            "string" => string(members),
            "integer" => format!("Integer{}", range(members)),
            "number" => format!("Number{}", range(members)),
            "boolean" => "Boolean".to_owned(),
            other => other.to_owned(),
        }
    }

    fn array(&mut self, members: &'a Map<String, Value>) -> String {
        match members.get("items") {
            Some(Value::Array(items)) => {
                let items: Vec<_> = items.iter().map(|item| self.of(item)).collect();
                format!("[{}]", items.join(", "))
            }
            None | Some(Value::Bool(true)) => "Array".to_owned(),
            Some(item) => match self.of(item) {
                item if item.contains(' ') => format!("Array of ({item})"),
                item => format!("Array of {item}"),
            },
        }
    }

    fn object(&mut self, members: &'a Map<String, Value>) -> String {
        let Some(properties) = members.get("properties").and_then(Value::as_object) else {
            return match members.get("additionalProperties") {
                Some(values @ Value::Object(_)) => format!("Object of {}", self.of(values)),
                _ => "Object".to_owned(),
            };
        };
        if self.within.len() >= DEPTH {
            return "Object".to_owned();
        }
        let required = members.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
        self.inside("", |writer| {
            let text = properties.iter().map(|(name, schema)| {
                let mark = if is_required(name) { "" } else { "?" };
                format!("{name}{mark}: {}", writer.of(schema))
            });
            format!("{{{}}}", text.collect::<Vec<_>>().join(", "))
        })
    }
}

fn any_of(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" or ")
}

fn string(members: &Map<String, Value>) -> String {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    match (text("format"), text("pattern")) {
        (Some(format), _) => format!("String ({format})"),
        (None, Some(pattern)) => format!("String like {pattern}"),
        (None, None) => "String".to_owned(),
    }
}

fn range(members: &Map<String, Value>) -> String {
    let bound = |name: &str| members.get(name).filter(|bound| bound.is_number());
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!(" {least} to {most}"),
        (Some(least), None) => format!(" from {least}"),
        (None, Some(most)) => format!(" up to {most}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_become_text() {
        let components = json!({
            "Name": {"type": "string"},
            "Tree": {"type": "object", "required": ["name"], "properties": {
                "name": {"$ref": "#/components/schemas/Name"},
                "parent": {"anyOf": [{"$ref": "#/components/schemas/Tree"}, {"type": "null"}]},
            }},
        });
        for (schema, words) in [
            (json!(true), "anything"),
            (json!({}), "anything"),
            (json!(false), "nothing"),
            (json!({"type": "string", "format": "date-time"}), "String (date-time)"),
            (json!({"type": "string", "pattern": "^0x"}), "String like ^0x"),
            (json!({"type": ["integer", "null"], "minimum": 0}), "Integer from 0 or null"),
            (json!({"type": "integer", "minimum": 0, "maximum": 255}), "Integer 0 to 255"),
            (json!({"enum": ["a", 1]}), "\"a\" or 1"),
            (json!({"const": "a"}), "\"a\""),
            (json!({"type": "array"}), "Array"),
            (json!({"type": "array", "items": {"type": "number"}}), "Array of Number"),
            (
                json!({"items": {"type": ["string", "null"]}, "type": "array"}),
                "Array of (String or null)",
            ),
            (json!({"type": "array", "items": [{"type": "string"}, true]}), "[String, anything]"),
            (
                json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
                "Object of Boolean",
            ),
            (json!({"$ref": "#/components/schemas/Name"}), "String"),
            (json!({"$ref": "#/components/schemas/Tree"}), "{name: String, parent?: Tree or null}"),
            (json!({"$ref": "#/components/schemas/Lost"}), "Lost"),
            (json!({"$ref": "https://example.com/a.json"}), "a.json"),
            (json!({"type": 7}), "anything"),
        ] {
            assert_eq!(schema_text(&schema, components.as_object().unwrap()), words, "{schema}");
        }
    }

    /// Each schema refers to the next one twice: without a limit, 2^100 schemas.
    #[test]
    fn deep_nesting_is_cut() {
        let next = |n: usize| json!({"$ref": format!("#/components/schemas/{}", n + 1)});
        let components: Map<_, _> = (0..100)
            .map(|n| (n.to_string(), json!({"properties": {"a": next(n), "b": next(n)}})))
            .collect();
        assert!(schema_text(&next(0), &components).len() < 1000);
        // Each of 100 schemas refers to all of them: 100 to the power of the depth.
        let all: Vec<_> = (0..100).map(next).collect();
        let components: Map<_, _> =
            (0..100).map(|n| (n.to_string(), json!({"oneOf": all}))).collect();
        assert!(schema_text(&next(0), &components).len() < 100_000);
        let mut deep = json!({"type": "string"});
        for _ in 0..50 {
            deep = json!({"properties": {"a": deep}});
        }
        assert_eq!(schema_text(&deep, &Map::new()), "{a?: {a?: {a?: Object}}}");
    }
}
