//! JSON Schemas: of the types of tools and forms, and checks of values against them.
//!
//! The default dialect is 2020-12, and the older ones are known by their `$schema`. A `$ref` to another document is never
//! fetched. The size of a schema is limited.

use std::fmt;

use jsonschema::paths::LocationSegment;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::types::{ElicitationSchema, JsonObject};

/// The largest number of values in a schema, and its largest depth.
const MAX_VALUES: usize = 20_000;
const MAX_DEPTH: usize = 128;

/// Returns the schema of the arguments of a tool: always an Object.
pub(crate) fn arguments<T: JsonSchema>() -> JsonObject {
    let mut schema = of::<T>(SchemaSettings::draft2020_12());
    // `()` has the schema `null`: a tool without arguments.
    if schema.get("type") != Some(&Value::from("object")) {
        if schema.get("type") == Some(&Value::from("null")) {
            schema.clear();
        }
        schema.insert("type".to_owned(), "object".into());
    }
    schema
}

/// Returns the schema of the result of a tool.
pub(crate) fn output<T: JsonSchema>() -> JsonObject {
    of::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn of<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let schema = settings.into_generator().into_root_schema_for::<T>();
    match Value::from(schema) {
        Value::Object(mut schema) => {
            // The default of the protocol, so each tool would only repeat it. The name of the Rust type says nothing.
            schema.remove("$schema");
            schema.remove("title");
            schema
        }
        _ => Map::new(),
    }
}

/// Returns the schema of a form with the fields of a type.
pub(crate) fn form<T: JsonSchema>() -> Result<ElicitationSchema, serde_json::Error> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = of::<T>(settings);
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.values_mut().for_each(simplify);
    }
    serde_json::from_value(Value::Object(schema))
}

/// Removes what forms do not know: the null of an optional field, and formats of numbers.
fn simplify(field: &mut Value) {
    let Value::Object(field) = field else { return };
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            field.insert("type".to_owned(), only);
        }
    }
    let is_number = field.get("type").is_some_and(|kind| kind == "integer" || kind == "number");
    if is_number {
        field.remove("format");
    }
    if field.get("default") == Some(&Value::Null) {
        field.remove("default");
    }
}

/// Checks values against a schema.
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
        let mut values = 0;
        if !is_bounded(schema, MAX_DEPTH, &mut values) {
            return Err(format!(
                "the schema has more than {MAX_VALUES} values or is nested more than {MAX_DEPTH} deep"
            ));
        }
        let mut options = jsonschema::options();
        if schema.get("$schema").is_none() {
            options = options.with_draft(jsonschema::Draft::Draft202012);
        }
        options.build(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Checks a value. The error is the first fault.
    pub(crate) fn check(&self, value: &Value) -> Result<(), SchemaFault> {
        self.0.validate(value).map_err(|error| SchemaFault {
            path: place(error.instance_path()),
            reason: error.to_string().chars().take(500).collect(),
        })
    }
}

/// A place as errors of serde name it.
fn place(path: &jsonschema::paths::Location) -> String {
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

fn is_bounded(schema: &Value, depth: usize, values: &mut usize) -> bool {
    *values += 1;
    let Some(depth) = depth.checked_sub(1) else { return false };
    *values <= MAX_VALUES
        && match schema {
            Value::Array(items) => items.iter().all(|item| is_bounded(item, depth, values)),
            Value::Object(members) => {
                members.values().all(|member| is_bounded(member, depth, values))
            }
            _ => true,
        }
}

/// Whether a schema forbids what its Rust type allows, so that values must be checked before they are decoded.
pub(crate) fn restricts_more_than_types(schema: &JsonObject) -> bool {
    const RESTRICTIONS: &[&str] = &[
        "minLength",
        "maxLength",
        "pattern",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "maximum",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minProperties",
        "maxProperties",
        "patternProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "if",
        "not",
        "allOf",
        "oneOf",
        "$schema",
        "unevaluatedProperties",
    ];
    schema.iter().any(|(name, value)| {
        RESTRICTIONS.contains(&name.as_str())
            || (name == "minimum" && value.as_f64().is_some_and(|minimum| minimum != 0.0))
            || restricts_within(value)
    })
}

fn restricts_within(value: &Value) -> bool {
    match value {
        Value::Object(members) => restricts_more_than_types(members),
        Value::Array(items) => items.iter().any(restricts_within),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Order {
        /// What to order.
        item: String,
        #[schemars(range(min = 1, max = 9))]
        count: Option<u8>,
    }

    #[test]
    fn arguments_are_always_an_object() {
        assert_eq!(Value::from(arguments::<()>()), json!({ "type": "object" }));
        let schema = Value::from(arguments::<Order>());
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["item"]["description"], "What to order.");
        assert!(restricts_more_than_types(schema.as_object().unwrap()));
    }

    #[test]
    fn a_form_has_plain_fields() {
        let form = serde_json::to_value(form::<Order>().unwrap()).unwrap();
        assert_eq!(form["properties"]["count"]["type"], "integer", "{form}");
        assert_eq!(form["required"], json!(["item"]));
    }

    #[test]
    fn a_fault_has_its_place() {
        let validator = Validator::new(&Value::from(arguments::<Order>())).unwrap();
        let fault = validator.check(&json!({ "item": "tea", "count": 10 })).unwrap_err();
        assert_eq!(fault.path, "count");
        assert!(validator.check(&json!({ "item": "tea" })).is_ok());
        let ages = json!({ "properties": { "a/b": { "items": { "required": ["age"],
            "properties": { "age": { "maximum": 9 } } } } } });
        let validator = Validator::new(&ages).unwrap();
        let fault = validator.check(&json!({ "a/b": [{ "age": 1 }, { "age": 10 }] })).unwrap_err();
        assert_eq!(fault.path, "a/b[1].age");
    }

    #[test]
    fn other_documents_and_huge_schemas_are_refused() {
        let remote = json!({ "$ref": "http://127.0.0.1:1/schema.json" });
        assert!(Validator::new(&remote).is_err());
        let mut deep = json!({});
        for _ in 0..1000 {
            deep = json!({ "not": deep });
        }
        assert!(Validator::new(&deep).is_err());
    }
}
