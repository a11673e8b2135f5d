//! Params held against the schemas of their description, before a method is entered.
//!
//! Types alone let pass what a schema forbids: a range, a pattern, a length. It costs a tree of the
//! params, so it is done only where it is asked for.

use std::fmt::Write as _;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Params};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use super::document::{Components, Method};
use crate::params::invalid;
use crate::router::{Look, Router};

impl Router {
    /// Checks the params of every method that is described by now against their schemas. What does not
    /// fit is answered with -32602, and its `data` say where it is wrong and why.
    ///
    /// Fails where a schema of one's own is none.
    ///
    /// ```
    /// use antiphon::openrpc::Description;
    /// use antiphon::{Context, Responder, Router, schemars::JsonSchema};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Page { #[schemars(range(max = 100))] limit: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new()
    ///     .method("page", |p: Page, _cx: Context| async move { Ok(p.limit) })
    ///     .describe("page", Description::method::<Page, u32>())
    ///     .check_params()?;
    /// let request = r#"{"jsonrpc":"2.0","method":"page","params":{"limit":1000},"id":1}"#;
    /// let answer = Responder::new(router).answer(request).await.unwrap();
    /// assert!(std::str::from_utf8(&answer)?.contains(r#""path":"limit""#));
    /// # Ok(()) }
    /// ```
    pub fn check_params(mut self) -> Result<Self, SchemaError> {
        let (methods, components) = self.described();
        let called: Vec<_> = self.descriptions.iter().map(|it| it.called.clone()).collect();
        for (method, called) in methods.iter().zip(called) {
            let check = Check::new(method, &components)?;
            let look: Look = Arc::new(move |params| check.look(params));
            let kind = called.topic().and_then(|topic| topic.kind.as_deref());
            self.guard(called.name(), kind, look.clone());
            called.aliases().iter().for_each(|name| self.guard(name, None, look.clone()));
        }
        Ok(self)
    }
}

/// The check of one method.
struct Check {
    params: Vec<Param>,
    /// Of all params by name.
    validator: Validator,
}

struct Param {
    name: String,
    required: bool,
    /// It stands for all that is given by position.
    repeated: bool,
}

impl Check {
    fn new(method: &Method, components: &Components) -> Result<Self, SchemaError> {
        let params: Vec<_> = method
            .params
            .iter()
            .map(|param| Param {
                name: param.name.clone(),
                required: param.required,
                repeated: param.rest.contains_key("x-repeated"),
            })
            .collect();
        let schemas = method.params.iter().zip(&params).map(|(content, param)| {
            let one = content.schema.clone();
            let schema = if param.repeated { json!({"type": "array", "items": one}) } else { one };
            (param.name.clone(), schema)
        });
        // The components stand where the references look for them.
        let schema = json!({
            "properties": schemas.collect::<Map<_, _>>(),
            "components": components,
        });
        let options = jsonschema::options().with_draft(Draft::Draft7);
        let validator = options.build(&schema).map_err(|error| SchemaError {
            method: method.name.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self { params, validator })
    }

    fn look(&self, params: Option<&Params>) -> Result<(), ErrorObject> {
        let Some(params) = params else { return Ok(()) };
        let given = params.as_json().decode::<Value>();
        let given = given.map_err(|error| invalid("", &error.to_string()))?;
        let by_position = given.is_array();
        let named = Value::Object(self.named(given));
        match self.validator.validate(&named) {
            Ok(()) => Ok(()),
            // The value is the peer's, and is not sent back.
            Err(error) => {
                let path = self.path(error.instance_path(), by_position);
                Err(invalid(&path, &error.masked().to_string()))
            }
        }
    }

    /// The params by name, without those that are left out by a null.
    fn named(&self, given: Value) -> Map<String, Value> {
        let mut named = match given {
            Value::Object(given) => given,
            Value::Array(given) if self.params.iter().any(|param| param.repeated) => {
                let name = self.params.first().map(|param| param.name.clone());
                name.into_iter().map(|name| (name, Value::Array(given.clone()))).collect()
            }
            Value::Array(given) => {
                let names = self.params.iter().map(|param| param.name.clone());
                names.zip(given).collect()
            }
            _ => Map::new(),
        };
        for param in self.params.iter().filter(|param| !param.required) {
            if named.get(&param.name).is_some_and(Value::is_null) {
                named.remove(&param.name);
            }
        }
        named
    }

    /// Where it is wrong, as the caller has written it.
    fn path(&self, location: &Location, by_position: bool) -> String {
        let mut path = String::new();
        for (depth, segment) in location.iter().enumerate() {
            match segment {
                LocationSegment::Property(name) if depth == 0 && by_position => {
                    let place = self.params.iter().position(|param| *param.name == name);
                    let repeated = self.params.iter().any(|param| param.repeated);
                    if let (Some(place), false) = (place, repeated) {
                        let _ = write!(path, "[{place}]");
                    }
                }
                LocationSegment::Property(name) if path.is_empty() => path.push_str(&name),
                LocationSegment::Property(name) => {
                    let _ = write!(path, ".{name}");
                }
                LocationSegment::Index(place) => {
                    let _ = write!(path, "[{place}]");
                }
            }
        }
        path
    }
}

/// A schema that cannot be checked against.
#[derive(Debug, thiserror::Error)]
#[error("the schema of `{method}` is none: {reason}")]
pub struct SchemaError {
    method: String,
    reason: String,
}
