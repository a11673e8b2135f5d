//! JSON Schemas of tools.
//!
//! A schema comes from a server, so it is bounded: it has a limited size, it loads nothing from the network or from
//! files, and its patterns run in linear time.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::types::JsonObject;

/// The largest schema, in bytes of JSON.
const MAX_SCHEMA: usize = 512 * 1024;
/// The largest compiled pattern, in bytes.
const MAX_PATTERN: usize = 1 << 20;
/// The number of errors in a message.
const MAX_ERRORS: usize = 3;

/// A compiled schema.
pub(super) struct Schema(Validator);

impl Schema {
    /// Compiles a schema. Without `$schema` it has the draft 2020-12.
    pub(super) fn compile(schema: &JsonObject) -> Result<Self, String> {
        let schema = Value::Object(schema.clone());
        if schema.to_string().len() > MAX_SCHEMA {
            return Err(format!("the schema is larger than {MAX_SCHEMA} bytes"));
        }
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        let options = jsonschema::options().offline().with_pattern_options(patterns);
        let options = match schema.get("$schema") {
            Some(_) => options,
            None => options.with_draft(Draft::Draft202012),
        };
        options.build(&schema).map(Self).map_err(|error| error.to_string())
    }

    /// Checks a value. The error names the first mismatches.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        let mut errors = self.0.iter_errors(value).take(MAX_ERRORS).peekable();
        if errors.peek().is_none() {
            return Ok(());
        }
        let described = errors.map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "/".to_owned() } else { place };
            format!("{error} at {place}")
        });
        Err(described.collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compile(schema: &Value) -> Result<Schema, String> {
        Schema::compile(schema.as_object().unwrap())
    }

    #[test]
    fn a_mismatch_is_named_with_its_place() {
        let schema = compile(&json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        let schema = schema.unwrap();
        assert_eq!(schema.check(&json!({"a": 1})), Ok(()));
        let error = schema.check(&json!({"a": "x"})).unwrap_err();
        assert!(error.contains("at /a"), "{error}");
    }

    #[test]
    fn the_default_draft_is_2020_12() {
        let schema = compile(&json!({"prefixItems": [{"type": "string"}]})).unwrap();
        assert!(schema.check(&json!([1])).is_err());
        let old = "http://json-schema.org/draft-07/schema#";
        let schema =
            compile(&json!({"$schema": old, "prefixItems": [{"type": "string"}]})).unwrap();
        assert!(schema.check(&json!([1])).is_ok());
    }

    #[test]
    fn a_schema_loads_nothing_and_is_limited() {
        assert!(compile(&json!({"$ref": "http://127.0.0.1:1/schema.json"})).is_err());
        assert!(compile(&json!({"$ref": "file:///etc/hostname"})).is_err());
        let long = "x".repeat(MAX_SCHEMA);
        assert!(compile(&json!({"description": long})).is_err());
        assert!(compile(&json!({"pattern": "(a{1000}){1000}"})).is_err());
    }
}
