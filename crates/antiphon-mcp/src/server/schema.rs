//! The JSON Schemas of the types of tools and forms.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::types::{ElicitationSchema, JsonObject};

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
}
