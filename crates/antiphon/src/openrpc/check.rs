//! Whether the values of params are as the schemas of one method have them.
//!
//! Whether there are too few or too many is no matter of schemas, and is not asked here.

use std::fmt::Write as _;

use antiphon_core::Params;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::document::{Components, Content, Method};

/// The check of one method.
pub(crate) struct ParamsCheck {
    params: Vec<CheckedParam>,
    /// Of all params by name.
    validator: Validator,
}

pub(crate) struct CheckedParam {
    name: String,
    required: bool,
    /// It stands for all that is given by position from here on.
    repeated: bool,
}

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct ParamsFault {
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// Whether a param stands for any number of them.
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
        let given = given(params)?;
        let places: &[CheckedParam] = if given.is_array() { &self.params } else { &[] };
        let named = Value::Object(self.named(given));
        hold(&self.validator, &named, |location| path(location, places))
    }

    /// The params by name, without those that are left out by a null.
    fn named(&self, given: Value) -> Map<String, Value> {
        let mut named = match given {
            Value::Object(given) => given,
            Value::Array(given) => self.placed(given),
            _ => Map::new(),
        };
        for param in self.params.iter().filter(|param| !param.required) {
            if named.get(&param.name).is_some_and(Value::is_null) {
                named.remove(&param.name);
            }
        }
        named
    }

    /// What is given by position, by name: a repeated one takes all that is left.
    fn placed(&self, given: Vec<Value>) -> Map<String, Value> {
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

/// What a schema allows. The components stand where its references look for them, and beside a reference
/// nothing counts.
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

/// The params as a tree.
pub(crate) fn given(params: &Params) -> Result<Value, ParamsFault> {
    let given = params.as_json().decode();
    given.map_err(|error| ParamsFault { path: String::new(), reason: error.to_string() })
}

pub(crate) fn hold(
    validator: &Validator,
    given: &Value,
    path: impl Fn(&Location) -> String,
) -> Result<(), ParamsFault> {
    // The value is the peer's, and is not sent back.
    validator.validate(given).map_err(|error| ParamsFault {
        path: path(error.instance_path()),
        reason: error.masked().to_string(),
    })
}

/// Where it is wrong, as the caller has written it: with the places of params that came by position.
pub(crate) fn path(location: &Location, places: &[CheckedParam]) -> String {
    let mut path = String::new();
    // Where the list begins that a repeated param stands for.
    let mut begin = 0;
    for (depth, segment) in location.iter().enumerate() {
        match segment {
            LocationSegment::Property(name) if depth == 0 && !places.is_empty() => {
                let place = places.iter().position(|param| *param.name == name);
                let place = place.unwrap_or_default();
                if places.get(place).is_some_and(|param| param.repeated) {
                    begin = place;
                } else {
                    let _ = write!(path, "[{place}]");
                }
            }
            LocationSegment::Property(name) if path.is_empty() => path.push_str(&name),
            LocationSegment::Property(name) => {
                let _ = write!(path, ".{name}");
            }
            LocationSegment::Index(place) => {
                let _ = write!(path, "[{}]", place + begin);
                begin = 0;
            }
        }
    }
    path
}

/// A schema that cannot be checked against.
#[derive(Debug, thiserror::Error)]
#[error("the schema of `{method}` is none: {reason}")]
pub struct SchemaError {
    method: String,
    reason: String,
}
