//! Checks the values of params against the schemas of one method.
//!
//! The number of params is not checked here: schemas do not describe it.

use std::fmt::Write as _;

use antiphon_core::Params;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::document::{Components, Content, Method};

/// Checks the params of one method.
pub(crate) struct ParamsCheck {
    params: Vec<CheckedParam>,
    /// Validates all params by name.
    validator: Validator,
}

pub(crate) struct CheckedParam {
    name: String,
    required: bool,
    /// Whether it takes all positional params from its index on.
    repeated: bool,
}

/// The path of an invalid value, and the reason.
#[derive(Debug)]
pub(crate) struct ParamsFault {
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// Whether one param describes any number of params.
pub(crate) fn is_repeated(param: &Content) -> bool {
    param.rest.get("x-repeated") == Some(&Value::Bool(true))
}

impl ParamsCheck {
    pub(crate) fn new(method: &Method, components: &Components) -> Result<Self, SchemaError> {
        let params: Vec<_> = method
            .params
            .iter()
            .map(|param| CheckedParam {
                name: param.name.clone(),
                required: param.required,
                repeated: is_repeated(param),
            })
            .collect();
        let schemas = method.params.iter().zip(&params).map(|(content, param)| {
            let one = content.schema.clone();
            let schema = if param.repeated { json!({"type": "array", "items": one}) } else { one };
            (param.name.clone(), schema)
        });
        let schema = json!({"properties": schemas.collect::<Map<_, _>>()});
        let validator = validator(method, &schema, components)?;
        Ok(Self { params, validator })
    }

    pub(crate) fn check(&self, params: &Params) -> Result<(), ParamsFault> {
        let given = to_value(params)?;
        let positional: &[CheckedParam] = if given.is_array() { &self.params } else { &[] };
        let named = Value::Object(self.by_name(given));
        validate(&self.validator, &named, |location| path(location, positional))
    }

    /// The params by name, without optional params that are `null`.
    fn by_name(&self, given: Value) -> Map<String, Value> {
        let mut named = match given {
            Value::Object(given) => given,
            Value::Array(given) => self.by_position(given),
            _ => Map::new(),
        };
        for param in self.params.iter().filter(|param| !param.required) {
            if named.get(&param.name).is_some_and(Value::is_null) {
                named.remove(&param.name);
            }
        }
        named
    }

    /// Positional params by name. A repeated param takes all remaining values.
    fn by_position(&self, given: Vec<Value>) -> Map<String, Value> {
        let mut given = given.into_iter();
        let mut named = Map::new();
        for param in &self.params {
            let value = match param.repeated {
                true => Some(Value::Array(given.by_ref().collect())),
                false => given.next(),
            };
            named.extend(value.map(|value| (param.name.clone(), value)));
        }
        named
    }
}

/// Creates the validator of a schema. The components are placed at the path that references use. `allOf`
/// wraps the schema, because draft 7 ignores all keywords next to a reference.
pub(crate) fn validator(
    method: &Method,
    schema: &Value,
    components: &Components,
) -> Result<Validator, SchemaError> {
    let schema = json!({"allOf": [schema], "components": components});
    let options = jsonschema::options().with_draft(Draft::Draft7);
    let failed = |error: ValidationError<'_>| error.to_string();
    let method = || method.name.clone();
    options.build(&schema).map_err(|error| SchemaError { method: method(), reason: failed(error) })
}

/// The params as a JSON tree.
pub(crate) fn to_value(params: &Params) -> Result<Value, ParamsFault> {
    let given = params.as_json().decode();
    given.map_err(|error| ParamsFault { path: String::new(), reason: error.to_string() })
}

pub(crate) fn validate(
    validator: &Validator,
    given: &Value,
    path: impl Fn(&Location) -> String,
) -> Result<(), ParamsFault> {
    // The message must not repeat the value, which comes from the peer.
    validator.validate(given).map_err(|error| ParamsFault {
        path: path(error.instance_path()),
        reason: error.masked().to_string(),
    })
}

/// The path of an invalid value as the caller wrote it: with indices for positional params.
pub(crate) fn path(location: &Location, positional: &[CheckedParam]) -> String {
    let mut path = String::new();
    // The index at which a repeated param begins.
    let mut offset = 0;
    for (depth, segment) in location.iter().enumerate() {
        match segment {
            LocationSegment::Property(name) if depth == 0 && !positional.is_empty() => {
                let index = positional.iter().position(|param| *param.name == name);
                let index = index.unwrap_or_default();
                if positional.get(index).is_some_and(|param| param.repeated) {
                    offset = index;
                } else {
                    let _ = write!(path, "[{index}]");
                }
            }
            LocationSegment::Property(name) if path.is_empty() => path.push_str(&name),
            LocationSegment::Property(name) => {
                let _ = write!(path, ".{name}");
            }
            LocationSegment::Index(index) => {
                let _ = write!(path, "[{}]", index + offset);
                offset = 0;
            }
        }
    }
    path
}

/// The error of an invalid schema.
#[derive(Debug, thiserror::Error)]
#[error("the schema of `{method}` is invalid: {reason}")]
pub struct SchemaError {
    method: String,
    reason: String,
}
