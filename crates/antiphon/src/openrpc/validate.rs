//! Params held against the schemas of their description, before a method is entered.
//!
//! Types alone let pass what a schema forbids: a range, a pattern, a length. It costs a tree of the
//! params, so it is done only where it is asked for.

use std::fmt::Write as _;
use std::sync::Arc;

use antiphon_core::{ErrorObject, Params};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::check::SchemaError;
use super::document::{Components, Content, Method};
use crate::params::invalid;
use crate::router::{Look, Router};

impl Router {
    /// Checks the params of every method that is described by now against their schemas. What does not
    /// fit is answered with -32602, and its `data` say where it is wrong and why.
    ///
    /// Fails where a schema of one's own is none. A type without a schema is anything, and not checked.
    ///
    /// Where one type takes all the params, as in a closure and by `#[params]`, they are held against its
    /// schema as a whole. A schema does not say in which order the fields of a struct stand, so such
    /// params must be given by name: an Array is refused where an Object would do.
    ///
    /// Within a param a schema is as strict as it is written: serde makes a struct of an Array there too,
    /// which a schema without `"type": "object"` lets pass.
    ///
    /// A schema knows no `#[serde(alias)]`: what is given by one is not checked. It is refused where the
    /// field is required, or the struct has `#[serde(deny_unknown_fields)]`.
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
        let (said, components) = self.described();
        let called: Vec<_> = self.descriptions.iter().map(|it| it.called.clone()).collect();
        for ((method, whole), called) in said.iter().zip(called) {
            let check = Check::new(method, whole.as_ref(), &components)?;
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
    taken: Taken,
    validator: Validator,
}

/// How the params are taken, and what they are checked as.
enum Taken {
    /// Each by an argument: as an Object of all of them.
    Apart(Vec<Param>),
    /// By one type: as they are.
    Whole { by_name: bool },
}

struct Param {
    name: String,
    required: bool,
}

impl Check {
    fn new(
        method: &Method,
        whole: Option<&Value>,
        components: &Components,
    ) -> Result<Self, SchemaError> {
        let (taken, schema) = match whole {
            Some(schema) => {
                let by_name = takes_names(schema, components, DEPTH);
                (Taken::Whole { by_name }, schema.clone())
            }
            None => apart(method),
        };
        // The components stand where the references look for them, and beside a reference nothing counts.
        let schema = json!({"allOf": [schema], "components": components});
        let options = jsonschema::options().with_draft(Draft::Draft7);
        let validator = options.build(&schema).map_err(|error| SchemaError {
            method: method.name.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self { taken, validator })
    }

    fn look(&self, params: Option<&Params>) -> Result<(), ErrorObject> {
        let given = params.map(|params| params.as_json().decode::<Value>()).transpose();
        let given = given.map_err(|error| invalid("", &error.to_string()))?;
        let given = given.unwrap_or_else(|| json!([]));
        match &self.taken {
            Taken::Apart(params) => {
                let by_position = given.is_array();
                let named = Value::Object(named(params, given));
                self.hold(&named, |location| path(location, by_position.then_some(params)))
            }
            Taken::Whole { by_name } if is_empty(&given) => self.hold_nothing(*by_name),
            Taken::Whole { by_name: true } if given.is_array() => {
                Err(invalid("", "give the params by name: their places are not described"))
            }
            Taken::Whole { .. } => self.hold(&given, |location| path(location, None)),
        }
    }

    /// Absent params, `[]` and `{}` mean the same, and the schema may know but one of them.
    fn hold_nothing(&self, by_name: bool) -> Result<(), ErrorObject> {
        let forms = [json!({}), json!([]), Value::Null];
        if forms.iter().any(|form| self.validator.is_valid(form)) {
            return Ok(());
        }
        let form = if by_name { &forms[0] } else { &forms[1] };
        self.hold(form, |location| path(location, None))
    }

    fn hold(&self, given: &Value, path: impl Fn(&Location) -> String) -> Result<(), ErrorObject> {
        // The value is the peer's, and is not sent back.
        let refused = |error: ValidationError<'_>| {
            invalid(&path(error.instance_path()), &error.masked().to_string())
        };
        self.validator.validate(given).map_err(refused)
    }
}

/// The params of a method whose arguments take one each, and the schema of all of them by name.
fn apart(method: &Method) -> (Taken, Value) {
    let param = |it: &Content| Param { name: it.name.clone(), required: it.required };
    let params = method.params.iter().map(param).collect();
    let schemas = method.params.iter().map(|it| (it.name.clone(), it.schema.clone()));
    (Taken::Apart(params), json!({"properties": schemas.collect::<Map<_, _>>()}))
}

/// How deep a schema is searched for an Object.
const DEPTH: usize = 8;

/// What a schema says of Objects only.
const OF_OBJECTS: [&str; 4] =
    ["properties", "additionalProperties", "patternProperties", "required"];

/// Whether a schema speaks of an Object, as one of several perhaps. serde makes a struct of an Array too,
/// by an order of fields that the schema does not tell.
fn takes_names(schema: &Value, components: &Components, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/components/schemas/");
        let found = name.and_then(|name| components.schemas.get(name));
        return found.is_none_or(|schema| takes_names(schema, components, depth));
    }
    let is_object = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
        Some(one) => one == "object",
        None => OF_OBJECTS.iter().any(|it| schema.get(it).is_some()),
    };
    let parts = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|it| schema.get(it)?.as_array());
    is_object || parts.flatten().any(|part| takes_names(part, components, depth))
}

fn is_empty(given: &Value) -> bool {
    match given {
        Value::Array(given) => given.is_empty(),
        Value::Object(given) => given.is_empty(),
        _ => false,
    }
}

/// The params by name, without those that are left out by a null.
fn named(params: &[Param], given: Value) -> Map<String, Value> {
    let mut named = match given {
        Value::Object(given) => given,
        Value::Array(given) => params.iter().map(|it| it.name.clone()).zip(given).collect(),
        _ => Map::new(),
    };
    for param in params.iter().filter(|param| !param.required) {
        if named.get(&param.name).is_some_and(Value::is_null) {
            named.remove(&param.name);
        }
    }
    named
}

/// Where it is wrong, as the caller has written it: with the places of params that came by position.
fn path(location: &Location, places: Option<&Vec<Param>>) -> String {
    let mut path = String::new();
    for (depth, segment) in location.iter().enumerate() {
        let _ = match (segment, places) {
            (LocationSegment::Property(name), Some(params)) if depth == 0 => {
                let place = params.iter().position(|param| *param.name == name);
                place.map_or(Ok(()), |place| write!(path, "[{place}]"))
            }
            (LocationSegment::Property(name), _) if path.is_empty() => write!(path, "{name}"),
            (LocationSegment::Property(name), _) => write!(path, ".{name}"),
            (LocationSegment::Index(place), _) => write!(path, "[{place}]"),
        };
    }
    path
}
