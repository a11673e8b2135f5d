//! Validates params against the schemas of their description before a method runs.
//!
//! A schema can forbid what a type allows: a range, a pattern, a length. Validation needs a JSON tree of
//! the params, so it is off by default.

use std::sync::Arc;

use antiphon_core::{ErrorObject, Params};
use jsonschema::Validator;
use serde_json::{Value, json};

use super::{ParamsGuard, Router};
use crate::openrpc::check::{self, ParamsFault};
use crate::openrpc::{Components, Method, SchemaError};
use crate::params::invalid;

impl Router {
    /// Validates the params of every method described so far against its schemas. Invalid params get the
    /// error -32602, whose `data` holds the path and the reason.
    ///
    /// A type without a schema is not checked.
    ///
    /// If one type takes all params (a closure, or `#[params]`), they are validated against its schema as a
    /// whole. If that schema allows an Object, params by position are rejected, because a schema has no
    /// field order.
    ///
    /// A schema is exactly as strict as written: without `"type": "object"` it accepts an Array, from which
    /// serde also reads a struct.
    ///
    /// A schema does not contain `#[serde(alias)]`: a value given under an alias is not checked. It is
    /// rejected if the field is required or the struct has `#[serde(deny_unknown_fields)]`.
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
    ///
    /// # Errors
    /// Fails if a schema is invalid.
    pub fn check_params(mut self) -> Result<Self, SchemaError> {
        let (said, components) = self.described();
        let called: Vec<_> = self.descriptions.iter().map(|it| it.called.clone()).collect();
        for ((method, whole), called) in said.iter().zip(called) {
            let check = MethodCheck::new(method, whole.as_ref(), &components)?;
            let look: ParamsGuard = Arc::new(move |params| check.check(params));
            let kind = called.topic().and_then(|topic| topic.kind.as_deref());
            self.guard(called.name(), kind, look.clone());
            called.aliases().iter().for_each(|name| self.guard(name, None, look.clone()));
        }
        Ok(self)
    }
}

/// Validates the params of one method.
enum MethodCheck {
    /// Each param belongs to one argument.
    PerParam(check::ParamsCheck),
    /// One type takes all params: they are validated against its schema as a whole.
    Whole { by_name: bool, validator: Validator },
}

impl MethodCheck {
    fn new(
        method: &Method,
        whole: Option<&Value>,
        components: &Components,
    ) -> Result<Self, SchemaError> {
        let Some(schema) = whole else {
            return check::ParamsCheck::new(method, components).map(Self::PerParam);
        };
        let by_name = accepts_object(schema, components, DEPTH);
        let validator = check::validator(method, schema, components)?;
        Ok(Self::Whole { by_name, validator })
    }

    fn check(&self, params: Option<&Params>) -> Result<(), ErrorObject> {
        let checked = match (self, params) {
            (Self::PerParam(_), None) => Ok(()),
            (Self::PerParam(check), Some(params)) => check.check(params),
            (Self::Whole { by_name, validator }, None) => validate_empty(validator, *by_name),
            (Self::Whole { by_name, validator }, Some(params)) => check::to_value(params)
                .and_then(|given| validate_whole(validator, *by_name, &given)),
        };
        checked.map_err(|fault| invalid(&fault.path, &fault.reason))
    }
}

fn validate_whole(validator: &Validator, by_name: bool, given: &Value) -> Result<(), ParamsFault> {
    if is_empty(given) {
        return validate_empty(validator, by_name);
    }
    if by_name && given.is_array() {
        let reason = "give the params by name: their order is not described".to_owned();
        return Err(ParamsFault { path: String::new(), reason });
    }
    check::validate(validator, given, |location| check::path(location, &[]))
}

/// Absent params, `[]` and `{}` mean the same, but the schema may allow only one of them.
fn validate_empty(validator: &Validator, by_name: bool) -> Result<(), ParamsFault> {
    let forms = [json!({}), json!([]), Value::Null];
    if forms.iter().any(|form| validator.is_valid(form)) {
        return Ok(());
    }
    let form = if by_name { &forms[0] } else { &forms[1] };
    check::validate(validator, form, |location| check::path(location, &[]))
}

/// The maximum depth of the search for an Object in a schema.
const DEPTH: usize = 8;

/// The keywords of a schema that only apply to Objects.
const OBJECT_KEYWORDS: [&str; 4] =
    ["properties", "additionalProperties", "patternProperties", "required"];

/// Whether a schema allows an Object, perhaps among other types. serde also reads a struct from an Array,
/// whose order of fields the schema does not contain.
fn accepts_object(schema: &Value, components: &Components, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/components/schemas/");
        let found = name.and_then(|name| components.schemas.get(name));
        return found.is_none_or(|schema| accepts_object(schema, components, depth));
    }
    let is_object = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
        Some(one) => one == "object",
        None => OBJECT_KEYWORDS.iter().any(|it| schema.get(it).is_some()),
    };
    let parts = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|it| schema.get(it)?.as_array());
    is_object || parts.flatten().any(|part| accepts_object(part, components, depth))
}

fn is_empty(given: &Value) -> bool {
    match given {
        Value::Array(given) => given.is_empty(),
        Value::Object(given) => given.is_empty(),
        _ => false,
    }
}
