//! The input schema of a tool, from the params of its method.

use std::collections::BTreeSet;

use antiphon::RawJson;
use antiphon::openrpc::{Content, Method, ParamStructure};
use serde_json::{Map, Value, json};

use super::arguments::{MethodParams, Param, Style};
use super::names;
use super::schemas::Schemas;
use crate::types::JsonObject;

/// The arguments of a tool: their schema, and how they become params.
pub(super) struct Input {
    pub(super) schema: JsonObject,
    pub(super) params: MethodParams,
}

/// The name of a param, and what is wrong with its schema.
pub(super) struct Fault {
    pub(super) place: String,
    pub(super) reason: String,
}

impl Input {
    pub(super) fn of<'d>(method: &'d Method, schemas: &mut Schemas<'d>) -> Result<Self, Fault> {
        let params = params(method);
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (content, param) in method.params.iter().zip(&params.params) {
            let converted = schemas.convert(&content.schema);
            let converted = converted.map_err(|reason| fault(&content.name, reason))?;
            properties.insert(param.argument.clone(), property(content, param, converted));
            if content.required {
                required.push(param.argument.clone());
            }
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        if params.style != Style::AnyNames {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        Ok(Self { schema, params })
    }

    /// Adds the schemas that the params refer to.
    pub(super) fn with_definitions(mut self, schemas: &mut Schemas<'_>) -> Result<Self, Fault> {
        let definitions = schemas.definitions().map_err(|reason| fault("", reason))?;
        if !definitions.is_empty() {
            self.schema.insert("$defs".to_owned(), definitions.into());
        }
        Ok(self)
    }
}

fn fault(param: &str, reason: String) -> Fault {
    let place = match param {
        "" => "the params".to_owned(),
        param => format!("the param `{param}`"),
    };
    Fault { place, reason }
}

fn params(method: &Method) -> MethodParams {
    let style = match method.param_structure {
        ParamStructure::ByName if method.params.is_empty() => Style::AnyNames,
        ParamStructure::ByName => Style::ByName,
        // Most services that do not say it take positions, and those that take both take positions too.
        _ => Style::ByPosition,
    };
    let mut taken = BTreeSet::new();
    let params = method.params.iter().map(|content| {
        let argument = argument_name(&content.name, &taken);
        taken.insert(argument.clone());
        let default =
            content.schema.get("default").and_then(|default| RawJson::encode(default).ok());
        Param {
            argument,
            name: content.name.clone(),
            default: default.unwrap_or(RawJson::NULL),
            is_repeated: is_repeated(content) && style == Style::ByPosition,
        }
    });
    MethodParams { params: params.collect(), style }
}

/// Models accept only plain names of arguments.
fn argument_name(param: &str, taken: &BTreeSet<String>) -> String {
    const MAX_LENGTH: usize = 64;
    let mut name = names::mapped(param);
    name.truncate(MAX_LENGTH);
    names::unique(&name, taken)
}

/// Whether one param stands for any number of params.
pub(super) fn is_repeated(param: &Content) -> bool {
    param.rest.get("x-repeated") == Some(&Value::Bool(true))
}

fn property(content: &Content, param: &Param, schema: Value) -> Value {
    let schema = match param.is_repeated {
        true => json!({ "type": "array", "items": schema }),
        false => schema,
    };
    let Value::Object(mut schema) = schema else { return schema };
    let description = content.description.as_ref().or(content.summary.as_ref());
    if let Some(description) = description {
        schema.entry("description").or_insert_with(|| description.as_str().into());
    }
    if param.argument != param.name {
        schema.entry("title").or_insert_with(|| param.name.as_str().into());
    }
    schema.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(method: Value) -> Input {
        let method: Method = serde_json::from_value(method).unwrap();
        let root = json!({ "components": { "schemas": { "Id": { "type": "integer" } } } });
        let mut schemas = Schemas::new(&root);
        let built = Input::of(&method, &mut schemas).map_err(|fault| fault.reason).unwrap();
        built.with_definitions(&mut schemas).map_err(|fault| fault.reason).unwrap()
    }

    #[test]
    fn params_become_properties() {
        let input = input(json!({ "name": "m", "params": [
            { "name": "Block hash", "required": true, "summary": "which",
              "schema": { "$ref": "#/components/schemas/Id" } },
            { "name": "Block-hash", "schema": { "type": "string", "default": "x" } },
            { "name": "Block+hash", "schema": true, "x-repeated": true },
        ] }));
        assert_eq!(
            Value::from(input.schema),
            json!({
                "type": "object",
                "properties": {
                    "Block_hash": { "$ref": "#/$defs/Id", "description": "which", "title": "Block hash" },
                    "Block-hash": { "type": "string", "default": "x" },
                    "Block_hash_2": { "type": "array", "items": {}, "title": "Block+hash" },
                },
                "required": ["Block_hash"],
                "additionalProperties": false,
                "$defs": { "Id": { "type": "integer" } },
            })
        );
        assert_eq!(input.params.style, Style::ByPosition);
        assert_eq!(input.params.params[1].default.as_str(), "\"x\"");
    }

    #[test]
    fn unknown_names_are_passed_on() {
        let input = input(json!({ "name": "m", "params": [], "paramStructure": "by-name" }));
        assert_eq!(Value::from(input.schema), json!({ "type": "object", "properties": {} }));
    }
}
