//! Checks of values against JSON Schemas.
//!
//! The default dialect is 2020-12, and older ones are known by their `$schema`. A schema may come from a peer, so it is
//! bounded: its size, depth and expansion are limited, it loads nothing from the network or from files, and its patterns run in
//! linear time.

use std::fmt;

use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions};
use serde_json::Value;

use crate::schema_expansion;

/// The most values of a schema.
const MAX_VALUES: usize = 20_000;
/// The most bytes of text in a schema.
const MAX_TEXT: usize = 512 * 1024;
/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 128;
/// The largest compiled pattern, in bytes.
const MAX_PATTERN: usize = 1 << 20;
/// The longest reason of a fault, in characters.
const MAX_REASON: usize = 500;

/// A compiled schema.
pub(crate) struct Validator(jsonschema::Validator);

/// The place and the reason why a value is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaFault {
    /// The place of the value, such as `filters[0].age`; empty for the whole.
    pub(crate) path: String,
    pub(crate) reason: String,
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.reason),
            path => write!(f, "{path}: {}", self.reason),
        }
    }
}

impl Validator {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Fails if the schema is not valid, is too large, or refers to another document.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        Bounds { values: MAX_VALUES, text: MAX_TEXT }.take(schema, MAX_DEPTH)?;
        schema_expansion::check(schema)?;
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        let options = jsonschema::options().offline().with_pattern_options(patterns);
        let options = match schema.get("$schema") {
            Some(_) => options,
            None => options.with_draft(Draft::Draft202012),
        };
        options.build(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Checks a value. The error is the first fault.
    pub(crate) fn check(&self, value: &Value) -> Result<(), SchemaFault> {
        self.0.validate(value).map_err(|error| SchemaFault::of(&error))
    }

    /// Returns the faults of a value.
    pub(crate) fn faults<'a>(&'a self, value: &'a Value) -> impl Iterator<Item = SchemaFault> + 'a {
        self.0.iter_errors(value).map(|error| SchemaFault::of(&error))
    }
}

impl SchemaFault {
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        Self {
            path: place(error.instance_path()),
            reason: error.to_string().chars().take(MAX_REASON).collect(),
        }
    }
}

/// A place as errors of serde name it.
fn place(path: &Location) -> String {
    let mut place = String::new();
    for segment in path {
        match segment {
            LocationSegment::Index(index) => place.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) if place.is_empty() => place.push_str(&name),
            LocationSegment::Property(name) => {
                place.push('.');
                place.push_str(&name);
            }
        }
    }
    place
}

/// What is left of the size of a schema.
struct Bounds {
    values: usize,
    text: usize,
}

impl Bounds {
    fn take(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        let too_many = || format!("the schema has more than {MAX_VALUES} values");
        self.values = self.values.checked_sub(1).ok_or_else(too_many)?;
        let too_deep = || format!("the schema is nested more than {MAX_DEPTH} deep");
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        match value {
            Value::String(text) => self.take_text(text),
            Value::Array(items) => items.iter().try_for_each(|item| self.take(item, depth)),
            Value::Object(members) => members.iter().try_for_each(|(name, member)| {
                self.take_text(name)?;
                self.take(member, depth)
            }),
            _ => Ok(()),
        }
    }

    fn take_text(&mut self, text: &str) -> Result<(), String> {
        let too_large = || format!("the schema has more than {MAX_TEXT} bytes of text");
        self.text = self.text.checked_sub(text.len()).ok_or_else(too_large)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_has_its_place() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let validator = Validator::new(&schema).unwrap();
        assert_eq!(validator.check(&json!({"a": 1})), Ok(()));
        let fault = validator.check(&json!({"a": "x"})).unwrap_err();
        assert_eq!(fault.path, "a");
        assert!(fault.to_string().starts_with("a: "), "{fault}");
        let whole = validator.check(&json!(["x".repeat(1000)])).unwrap_err();
        assert_eq!((whole.path.as_str(), whole.reason.len()), ("", MAX_REASON));
        assert_eq!(validator.faults(&json!({"a": []})).count(), 1);
        let ages =
            json!({"properties": {"a/b": {"items": {"properties": {"age": {"maximum": 9}}}}}});
        let validator = Validator::new(&ages).unwrap();
        let fault = validator.check(&json!({"a/b": [{"age": 1}, {"age": 10}]})).unwrap_err();
        assert_eq!(fault.path, "a/b[1].age");
    }

    #[test]
    fn the_default_dialect_is_2020_12() {
        let validator = Validator::new(&json!({"prefixItems": [{"type": "string"}]})).unwrap();
        assert!(validator.check(&json!([1])).is_err());
        let old = "http://json-schema.org/draft-07/schema#";
        let schema = json!({"$schema": old, "prefixItems": [{"type": "string"}]});
        assert!(Validator::new(&schema).unwrap().check(&json!([1])).is_ok());
    }

    #[test]
    fn a_schema_loads_nothing_and_is_limited() {
        let mut deep = json!({});
        for _ in 0..MAX_DEPTH {
            deep = json!({ "not": deep });
        }
        for (schema, reason) in [
            (json!({"$ref": "http://127.0.0.1:1/schema.json"}), "127.0.0.1"),
            (json!({"$ref": "file:///etc/hostname"}), "hostname"),
            (json!({"description": "x".repeat(MAX_TEXT)}), "bytes of text"),
            (json!({"enum": vec![0; MAX_VALUES]}), "values"),
            (deep, "deep"),
            (json!({"pattern": "(a{1000}){1000}"}), "pattern"),
            // It needs backtracking.
            (json!({"pattern": "(a+)\\1"}), "pattern"),
        ] {
            let error = Validator::new(&schema).err().unwrap_or_default();
            assert!(error.contains(reason) || error.contains("regex"), "{reason}: {error}");
        }
    }
}
