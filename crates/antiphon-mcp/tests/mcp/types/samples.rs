//! Makes values from the JSON Schemas of a revision: for each definition, enough values that each member and each
//! alternative is in one of them.

use std::path::Path;

use serde_json::{Map, Value, json};

/// How deep values are nested. Below, there are only required members.
const DEPTH: usize = 6;

/// The definitions of a revision.
pub(crate) struct Definitions(Map<String, Value>);

impl Definitions {
    pub(crate) fn of(revision: &str) -> Self {
        let path = format!("../../testdata/mcp/schema/{revision}.json");
        let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let schema: Value = serde_json::from_slice(&text).unwrap();
        Self(schema["$defs"].as_object().unwrap().clone())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Checks values of a definition.
    pub(crate) fn validator(&self, name: &str) -> jsonschema::Validator {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": format!("#/$defs/{name}"), "$defs": self.0,
        });
        jsonschema::validator_for(&schema).unwrap()
    }

    /// Values of a definition.
    pub(crate) fn samples(&self, name: &str) -> Vec<Value> {
        let validator = self.validator(name);
        let mut samples = self.of_definition(name, 0);
        for sample in &mut samples {
            remove_empty(sample);
            let fault = validator.validate(sample).err();
            assert!(fault.is_none(), "{name}: {sample}: {}", fault.unwrap());
        }
        samples
    }

    fn of_definition(&self, name: &str, depth: usize) -> Vec<Value> {
        match name {
            // It contains itself.
            "JSONValue" => vec![json!({ "a": [1, "b", { "c": true }] })],
            "JSONObject" => vec![json!({ "a": { "b": 1 } }), json!({})],
            _ => self.of_schema(&self.0[name], depth),
        }
    }

    fn of_schema(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let text = |key: &str| schema[key].as_str();
        if let Some(reference) = text("$ref") {
            return self.of_definition(reference.trim_start_matches("#/$defs/"), depth);
        }
        if let Some(value) = schema.get("const") {
            return vec![value.clone()];
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.clone();
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            return alternatives.iter().flat_map(|one| self.of_schema(one, depth)).collect();
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return vec![self.merged(parts, depth)];
        }
        match &schema["type"] {
            Value::String(kind) => self.of_type(kind, schema, depth),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                kinds.flat_map(|kind| self.of_type(kind, schema, depth)).collect()
            }
            // Any value.
            _ => vec![json!({ "any": [1.5, null] }), json!([1]), json!("text")],
        }
    }

    fn merged(&self, parts: &[Value], depth: usize) -> Value {
        let mut all = Map::new();
        for part in parts {
            let sample = self.of_schema(part, depth).swap_remove(0);
            all.extend(sample.as_object().unwrap().clone());
        }
        all.into()
    }

    fn of_type(&self, kind: &str, schema: &Value, depth: usize) -> Vec<Value> {
        match kind {
            "object" => self.objects(schema, depth),
            "array" => {
                let items = self.of_schema(&schema["items"], depth + 1);
                let limit = schema["maxItems"].as_u64().unwrap_or(100) as usize;
                // One item may be written without an Array.
                let twice = items.iter().take(1).chain(&items).take(limit).cloned().collect();
                vec![twice]
            }
            "string" => vec![json!(match schema["format"].as_str() {
                Some("byte") => "AA==",
                Some("uri") => "https://example.com/a",
                Some("uri-template") => "a:{b}",
                _ => "text",
            })],
            "integer" => vec![json!(schema["minimum"].as_i64().unwrap_or(7).max(1))],
            "number" => vec![json!(0.5)],
            "boolean" => vec![json!(true), json!(false)],
            _ => vec![Value::Null],
        }
    }

    /// An Object with all members, one with the required ones, and one for each other value of a member.
    fn objects(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let is_required = |name: &String| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
        };
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        if schema.get("properties").is_none() && !schema["additionalProperties"].is_object() {
            return vec![json!({ "own/key": { "a": [1.5, null] } })];
        }
        let (mut least, mut most, mut others) = (Map::new(), Map::new(), Vec::new());
        for (name, property) in properties {
            if depth >= DEPTH && !is_required(name) {
                continue;
            }
            let mut samples = self.of_schema(property, depth + 1).into_iter();
            let first = samples.next().unwrap();
            if is_required(name) {
                least.insert(name.clone(), first.clone());
            }
            most.insert(name.clone(), first);
            others.extend(samples.map(|sample| (name.clone(), sample)));
        }
        if let Some(Value::Object(additional)) = schema.get("additionalProperties")
            && properties.is_empty()
        {
            let samples = self.of_schema(&Value::Object(additional.clone()), depth + 1);
            let named = samples.into_iter().enumerate();
            most.extend(named.map(|(number, sample)| (format!("key{number}"), sample)));
        }
        let others = others.into_iter().map(|(name, sample)| {
            let mut other = most.clone();
            other.insert(name, sample);
            other.into()
        });
        let others: Vec<Value> = others.collect();
        [most.clone().into(), least.into()].into_iter().chain(others).collect()
    }
}

/// Empty metadata means the same as none, and so do the empty params of `roots/list`.
fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(remove_empty);
            let is_roots = members.get("method") == Some(&json!("roots/list"));
            let may_be_empty = |name: &str| name != "_meta" && (name != "params" || !is_roots);
            members.retain(|name, value| may_be_empty(name) || *value != json!({}));
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}
