//! How far a schema expands at one place of a value.
//!
//! References let a small schema stand for a huge one: a chain of them overflows the stack, and forty definitions that
//! each name the last one four times take ages. Both abort or block the process, and no timeout helps. So the number and
//! the nesting of the schemas that apply to one place are limited before a schema is compiled.
//!
//! Only the schemas that apply to the same place count: `properties` and `items` go on to another place, and the depth of
//! a value is limited.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::server::percent_decoded;

/// The most schemas that apply to one place.
const MAX_APPLIED: usize = 20_000;
/// The deepest nesting of schemas that apply to one place.
const MAX_NESTING: usize = 16;
/// The most references that are no pointers into the schema.
const MAX_UNRESOLVED: usize = 32;

/// The schemas that apply to the place of a schema, with itself.
#[derive(Clone, Copy)]
struct Expansion {
    applied: usize,
    nesting: usize,
}

/// The expansions of a schema.
struct Expansions<'a> {
    root: &'a Value,
    /// By the address of a schema. `None` while it is being expanded.
    known: HashMap<*const Value, Option<Expansion>>,
    unresolved: usize,
}

/// Checks the expansion of every schema in a schema.
pub(crate) fn check(root: &Value) -> Result<(), String> {
    let mut expansions = Expansions { root, known: HashMap::new(), unresolved: 0 };
    expansions.check_all(root)
}

impl<'a> Expansions<'a> {
    fn check_all(&mut self, value: &'a Value) -> Result<(), String> {
        match value {
            Value::Object(members) => {
                self.expand(value, 0)?;
                members.values().try_for_each(|member| self.check_all(member))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.check_all(item)),
            _ => Ok(()),
        }
    }

    fn expand(&mut self, schema: &'a Value, depth: usize) -> Result<Expansion, String> {
        let none = Expansion { applied: 0, nesting: 0 };
        let Value::Object(members) = schema else { return Ok(none) };
        match self.known.get(&std::ptr::from_ref(schema)) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err("a schema refers to itself at the same place".to_owned()),
            None => {}
        }
        if depth >= MAX_NESTING {
            return Err(too_deep());
        }
        self.known.insert(schema, None);
        let mut all = Expansion { applied: 1, nesting: 1 };
        for part in self.parts(members)? {
            let part = self.expand(part, depth + 1)?;
            all.applied = all.applied.saturating_add(part.applied);
            all.nesting = all.nesting.max(part.nesting + 1);
        }
        if members.keys().any(|name| name.starts_with("unevaluated")) {
            // The validator looks at the parts twice.
            all.applied = all.applied.saturating_mul(2);
        }
        if all.nesting > MAX_NESTING {
            return Err(too_deep());
        }
        if all.applied > MAX_APPLIED {
            return Err(format!("more than {MAX_APPLIED} schemas apply to one value"));
        }
        self.known.insert(schema, Some(all));
        Ok(all)
    }

    /// The schemas that apply to the same place.
    fn parts(&mut self, schema: &'a Map<String, Value>) -> Result<Vec<&'a Value>, String> {
        let mut parts = Vec::new();
        for (name, value) in schema {
            match (name.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    parts.extend(self.target(target)?);
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => parts.extend(all),
                ("not" | "if" | "then" | "else", value) => parts.push(value),
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    parts.extend(all.values());
                }
                _ => {}
            }
        }
        Ok(parts)
    }

    /// The schema that a reference names. References by `$id` or `$anchor` are not followed, so few are allowed.
    fn target(&mut self, reference: &str) -> Result<Option<&'a Value>, String> {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(&percent_decoded(pointer)?));
        if target.is_none() {
            self.unresolved += 1;
            if self.unresolved > MAX_UNRESOLVED {
                return Err(format!("more than {MAX_UNRESOLVED} references are no pointers"));
            }
        }
        Ok(target)
    }
}

fn too_deep() -> String {
    format!("schemas for one value are nested more than {MAX_NESTING} deep")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Validator;

    /// Definitions that each refer to the last one.
    fn chain(length: usize, step: impl Fn(Value) -> Value) -> Value {
        let mut definitions = Map::new();
        let mut last = json!({ "type": "string" });
        for n in 0..length {
            let name = format!("d{n}");
            definitions.insert(name.clone(), last);
            last = step(json!({ "$ref": format!("#/$defs/{name}") }));
        }
        last["$defs"] = Value::Object(definitions);
        last
    }

    fn refusal(schema: &Value) -> String {
        Validator::new(schema).err().unwrap_or_default()
    }

    #[test]
    fn a_schema_that_would_overflow_the_stack_is_refused() {
        let all = |it| json!({ "allOf": [it] });
        assert!(refusal(&chain(6000, |it| it)).contains("deep"));
        assert!(refusal(&chain(4000, all)).contains("deep"));
        assert!(refusal(&json!({ "allOf": [{ "$ref": "#" }] })).contains("refers to itself"));
        let anchors: Map<_, _> = (0..6000)
            .map(|n| {
                let next = json!({ "$anchor": format!("a{n}"), "$ref": format!("#a{}", n + 1) });
                (n.to_string(), next)
            })
            .collect();
        assert!(refusal(&json!({ "$ref": "#a0", "$defs": anchors })).contains("no pointers"));
    }

    #[test]
    fn the_deepest_accepted_schema_fits_on_the_stack() {
        // All definitions apply at each level of the value.
        let mut schema = chain(MAX_NESTING - 1, |it| it);
        let first = format!("#/$defs/d{}", MAX_NESTING - 2);
        schema["$defs"]["d0"] = json!({ "properties": { "x": { "$ref": first } } });
        let value = (0..128).fold(json!({}), |value, _| json!({ "x": value }));
        let validator = Validator::new(&schema).unwrap();
        assert!(validator.check(&value).is_ok());
        assert_eq!(validator.faults(&value).count(), 0);
    }

    #[test]
    fn a_schema_that_grows_with_each_reference_is_refused() {
        let eight = |it: Value| json!({ "allOf": vec![it; 8] });
        assert!(Validator::new(&chain(3, eight)).is_ok());
        assert!(refusal(&chain(7, eight)).contains("apply to one value"));
    }

    #[test]
    fn recursive_schemas_are_accepted() {
        let tree = json!({
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "anyOf": [
                        { "type": "string" },
                        { "type": "array", "items": { "$ref": "#/$defs/node" } },
                        { "properties": { "l": { "$ref": "#/$defs/node" }, "not": { "$ref": "#" } } },
                    ],
                },
            },
        });
        let validator = Validator::new(&tree).unwrap();
        assert!(validator.check(&json!([["a"], { "l": "b" }])).is_ok());
        assert!(validator.check(&json!(1)).is_ok());
    }
}
