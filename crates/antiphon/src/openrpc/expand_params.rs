//! Expands the schema of a params type into a list of params.

use serde_json::{Map, Value, json};

use super::document::{Content, ParamStructure};

/// Returns the params, and the form in which they are given.
pub(super) fn expand(name: &str, schema: &Value) -> (Vec<Content>, ParamStructure) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        // A schema does not keep the order of fields.
        return (named(properties, schema), ParamStructure::ByName);
    }
    if let Some(items) = schema.get("items").and_then(Value::as_array) {
        return (ordered(items), ParamStructure::ByPosition);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("null") => (Vec::new(), ParamStructure::Either),
        Some("array") => {
            let item = schema.get("items").cloned().unwrap_or(Value::Bool(true));
            (vec![rest(name, item)], ParamStructure::ByPosition)
        }
        Some("object") => (Vec::new(), ParamStructure::ByName),
        _ => (vec![rest(name, Value::Bool(true))], ParamStructure::Either),
    }
}

fn named(properties: &Map<String, Value>, schema: &Value) -> Vec<Content> {
    let required = |name: &String| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|other| other == name))
    };
    let content = |(name, schema): (&String, &Value)| Content {
        required: required(name),
        description: schema.get("description").and_then(Value::as_str).map(str::to_owned),
        ..Content::new(name, schema.clone())
    };
    properties.iter().map(content).collect()
}

fn ordered(items: &[Value]) -> Vec<Content> {
    let content = |(place, schema): (usize, &Value)| Content {
        required: true,
        ..Content::new(format!("param{}", place + 1), schema.clone())
    };
    items.iter().enumerate().map(content).collect()
}

/// Describes a list of any length as one param with `x-repeated`, because OpenRPC cannot describe such a
/// list.
fn rest(name: &str, schema: Value) -> Content {
    let rest = Map::from_iter([("x-repeated".to_owned(), json!(true))]);
    Content { rest, ..Content::new(name, schema) }
}
