//! Moves schemas out of an OpenRPC document, so that each stands alone.
//!
//! OpenRPC has JSON Schema draft 7, and its references point into the document. A tool has the draft 2020-12, and its
//! references point to its own `$defs`. References may form circles. A reference to another document is never fetched: it
//! allows any value.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::names;
use crate::types::JsonObject;

/// The largest number of values in the schemas of one tool.
const MAX_VALUES: usize = 20_000;

/// The schemas of one tool.
pub(super) struct Schemas<'d> {
    /// The document.
    root: &'d Value,
    /// The names of referenced schemas, by the address of the schema.
    names: HashMap<*const Value, String>,
    taken: BTreeSet<String>,
    /// Schemas that are referenced and not converted yet.
    queue: VecDeque<(String, Place<'d>)>,
    values: usize,
}

/// A schema, and the schema that its references may also start from.
#[derive(Clone, Copy)]
struct Place<'d> {
    schema: &'d Value,
    base: &'d Value,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(root: &'d Value) -> Self {
        Self {
            root,
            names: HashMap::new(),
            taken: BTreeSet::new(),
            queue: VecDeque::new(),
            values: 0,
        }
    }

    /// The number of values in the schemas so far.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    /// Converts a schema.
    ///
    /// # Errors
    /// Fails if a reference has no target, or if the schemas are too large.
    pub(super) fn convert(&mut self, schema: &'d Value) -> Result<Value, String> {
        self.schema(Place { schema, base: schema })
    }

    /// Converts the schema of an Object, whose members cannot be behind a reference. `None` if it also allows other
    /// values.
    pub(super) fn convert_object(
        &mut self,
        schema: &'d Value,
    ) -> Result<Option<JsonObject>, String> {
        const MAX_CHAIN: usize = 8;
        let mut place = Place { schema, base: schema };
        for _ in 0..MAX_CHAIN {
            let Some(reference) = place.schema.get("$ref").and_then(Value::as_str) else { break };
            let Some(found) = self.find(reference, place.base)? else { return Ok(None) };
            place = found;
        }
        if place.schema.get("type") != Some(&json!("object")) {
            return Ok(None);
        }
        match self.schema(place)? {
            Value::Object(converted) => Ok(Some(converted)),
            _ => Ok(None),
        }
    }

    /// Converts the schemas that the others refer to, for the member `$defs`.
    pub(super) fn definitions(&mut self) -> Result<JsonObject, String> {
        let mut definitions = Map::new();
        while let Some((name, place)) = self.queue.pop_front() {
            let converted = self.schema(place)?;
            definitions.insert(name, converted);
        }
        Ok(definitions)
    }

    fn schema(&mut self, place: Place<'d>) -> Result<Value, String> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(format!("it and what it refers to have more than {MAX_VALUES} values"));
        }
        let members = match place.schema {
            Value::Object(members) => members,
            // Some clients know schemas only as Objects.
            Value::Bool(true) => return Ok(json!({})),
            Value::Bool(false) => return Ok(json!({ "not": {} })),
            other => return Err(format!("a schema is an Object, not {}", excerpt(other))),
        };
        let mut converted = Map::new();
        for (name, value) in members {
            self.member(&mut converted, name, value, place)?;
        }
        Ok(converted.into())
    }

    fn member(
        &mut self,
        out: &mut JsonObject,
        name: &str,
        value: &'d Value,
        place: Place<'d>,
    ) -> Result<(), String> {
        let within = |schema| Place { schema, base: place.base };
        let converted = match (name, value) {
            ("$ref", Value::String(reference)) => return self.reference(out, reference, place),
            // References are absolute within the tool, so it needs no names of documents and no other definitions.
            ("$schema" | "$id" | "$anchor" | "$comment" | "definitions" | "$defs", _) => {
                return Ok(());
            }
            ("items", Value::Array(items)) => {
                let items = self.list(items, place)?;
                out.insert("prefixItems".to_owned(), items.into());
                return Ok(());
            }
            // Only beside a list of items, whose place `prefixItems` has taken.
            ("additionalItems", _) => {
                if place.schema.get("items").is_some_and(Value::is_array) {
                    let rest = self.schema(within(value))?;
                    out.insert("items".to_owned(), rest);
                }
                return Ok(());
            }
            ("dependencies", Value::Object(members)) => {
                return self.dependencies(out, members, place);
            }
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(members)) => {
                let mut schemas = Map::new();
                for (name, schema) in members {
                    schemas.insert(name.clone(), self.schema(within(schema))?);
                }
                schemas.into()
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                self.list(schemas, place)?.into()
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                schema,
            ) => self.schema(within(schema))?,
            (_, value) => {
                self.values += count(value);
                value.clone()
            }
        };
        out.insert(name.to_owned(), converted);
        Ok(())
    }

    fn list(&mut self, schemas: &'d [Value], place: Place<'d>) -> Result<Vec<Value>, String> {
        let convert = |schema| self.schema(Place { schema, base: place.base });
        schemas.iter().map(convert).collect()
    }

    fn dependencies(
        &mut self,
        out: &mut JsonObject,
        members: &'d JsonObject,
        place: Place<'d>,
    ) -> Result<(), String> {
        for (name, dependency) in members {
            let (keyword, value) = match dependency {
                Value::Array(_) => ("dependentRequired", dependency.clone()),
                schema => ("dependentSchemas", self.schema(Place { schema, base: place.base })?),
            };
            let entry = out.entry(keyword).or_insert_with(|| json!({}));
            if let Some(entry) = entry.as_object_mut() {
                entry.insert(name.clone(), value);
            }
        }
        Ok(())
    }

    fn reference(
        &mut self,
        out: &mut JsonObject,
        reference: &str,
        place: Place<'d>,
    ) -> Result<(), String> {
        let Some(found) = self.find(reference, place.base)? else {
            tracing::warn!(
                reference,
                "a schema refers to another document, so any value is allowed"
            );
            return Ok(());
        };
        let name = self.define(reference, found);
        out.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
        Ok(())
    }

    /// The schema that a reference points to: in the document, or in the schema that contains the reference. `None` for
    /// another document.
    fn find(&self, reference: &str, base: &'d Value) -> Result<Option<Place<'d>>, String> {
        let Some(pointer) = reference.strip_prefix('#') else { return Ok(None) };
        let in_document = self.root.pointer(pointer).filter(|_| !pointer.is_empty());
        if let Some(schema) = in_document {
            return Ok(Some(Place { schema, base: schema }));
        }
        match base.pointer(pointer) {
            Some(schema) => Ok(Some(Place { schema, base })),
            None => Err(format!("it refers to `{reference}`, which is not in the document")),
        }
    }

    /// The name of a referenced schema in `$defs`.
    fn define(&mut self, reference: &str, place: Place<'d>) -> String {
        let address: *const Value = place.schema;
        if let Some(name) = self.names.get(&address) {
            return name.clone();
        }
        let last = reference.rsplit(['/', '#']).next().unwrap_or_default();
        let name = names::unique(&names::mapped(last), &self.taken);
        self.taken.insert(name.clone());
        self.names.insert(address, name.clone());
        self.queue.push_back((name.clone(), place));
        name
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_stands_alone() {
        let root = json!({ "components": { "schemas": {
            "Node": {
                "$id": "node",
                "properties": { "next": { "$ref": "#/components/schemas/Node" }, "$ref": true },
                "definitions": { "unused": {} },
                "default": { "$ref": "kept" },
            },
            "Pair": { "items": [{ "type": "string" }, true], "additionalItems": false },
        } } });
        let schema = json!({ "oneOf": [
            { "$ref": "#/components/schemas/Node", "description": "the first" },
            { "$ref": "#/components/schemas/Pair" },
            { "$ref": "#/definitions/Own" },
        ], "definitions": { "Own": { "type": "integer" } } });
        let mut schemas = Schemas::new(&root);
        let converted = schemas.convert(&schema).unwrap();
        assert_eq!(
            converted,
            json!({ "oneOf": [
            { "$ref": "#/$defs/Node", "description": "the first" },
            { "$ref": "#/$defs/Pair" },
            { "$ref": "#/$defs/Own" },
        ] })
        );
        assert_eq!(
            Value::from(schemas.definitions().unwrap()),
            json!({
                "Node": {
                    "properties": { "next": { "$ref": "#/$defs/Node" }, "$ref": {} },
                    "default": { "$ref": "kept" },
                },
                "Pair": { "prefixItems": [{ "type": "string" }, {}], "items": { "not": {} } },
                "Own": { "type": "integer" },
            })
        );
    }

    #[test]
    fn an_object_behind_references_is_found() {
        let root =
            json!({ "a": { "$ref": "#/b" }, "b": { "type": "object" }, "c": { "$ref": "#/c" } });
        let convert = |schema: &Value| {
            Schemas::new(&root).convert_object(schema).map(|found| found.map(Value::from))
        };
        assert_eq!(convert(&json!({ "$ref": "#/a" })).unwrap(), Some(json!({ "type": "object" })));
        assert_eq!(convert(&json!({ "type": ["object", "null"] })).unwrap(), None);
        assert_eq!(convert(&json!({ "$ref": "#/c" })).unwrap(), None);
        assert_eq!(convert(&json!({ "$ref": "http://127.0.0.1:1/" })).unwrap(), None);
        assert!(convert(&json!({ "$ref": "#/d" })).unwrap_err().contains("`#/d`"));
    }

    #[test]
    fn long_chains_and_large_schemas_are_bounded() {
        let mut components = Map::new();
        for number in 0..MAX_VALUES {
            let next = format!("#/{}", number + 1);
            components.insert(number.to_string(), json!({ "not": { "$ref": next } }));
        }
        components.insert(MAX_VALUES.to_string(), json!({}));
        let root = Value::Object(components);
        let schema = json!({ "$ref": "#/0" });
        let mut schemas = Schemas::new(&root);
        schemas.convert(&schema).unwrap();
        assert!(schemas.definitions().unwrap_err().contains("20000 values"));
    }
}
