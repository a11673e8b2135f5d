//! Params held against the schemas of their description, before a method is entered.
//!
//! Types alone let pass what a schema forbids: a range, a pattern, a length. It costs a tree of the
//! params, so it is done only where it is asked for.

use std::sync::Arc;

use antiphon_core::{ErrorObject, Params};
use jsonschema::Validator;
use serde_json::{Value, json};

use super::{ParamsGuard, Router};
use crate::openrpc::check::{self, ParamsFault};
use crate::openrpc::{Components, Method, SchemaError};
use crate::params::invalid;

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
            let check = MethodCheck::new(method, whole.as_ref(), &components)?;
            let look: ParamsGuard = Arc::new(move |params| check.check(params));
            let kind = called.topic().and_then(|topic| topic.kind.as_deref());
            self.guard(called.name(), kind, look.clone());
            called.aliases().iter().for_each(|name| self.guard(name, None, look.clone()));
        }
        Ok(self)
    }
}

/// The check of one method.
enum MethodCheck {
    /// Each param is taken by an argument.
    Apart(check::ParamsCheck),
    /// One type takes them all: they are held against its schema as they are.
    Whole { by_name: bool, validator: Validator },
}

impl MethodCheck {
    fn new(
        method: &Method,
        whole: Option<&Value>,
        components: &Components,
    ) -> Result<Self, SchemaError> {
        let Some(schema) = whole else {
            return check::ParamsCheck::new(method, components).map(Self::Apart);
        };
        let by_name = takes_names(schema, components, DEPTH);
        let validator = check::validator(method, schema, components)?;
        Ok(Self::Whole { by_name, validator })
    }

    fn check(&self, params: Option<&Params>) -> Result<(), ErrorObject> {
        let fits = match (self, params) {
            (Self::Apart(_), None) => Ok(()),
            (Self::Apart(check), Some(params)) => check.check(params),
            (Self::Whole { by_name, validator }, None) => hold_nothing(validator, *by_name),
            (Self::Whole { by_name, validator }, Some(params)) => {
                check::given(params).and_then(|given| hold_whole(validator, *by_name, &given))
            }
        };
        fits.map_err(|fault| invalid(&fault.path, &fault.reason))
    }
}

fn hold_whole(validator: &Validator, by_name: bool, given: &Value) -> Result<(), ParamsFault> {
    if is_empty(given) {
        return hold_nothing(validator, by_name);
    }
    if by_name && given.is_array() {
        let reason = "give the params by name: their places are not described".to_owned();
        return Err(ParamsFault { path: String::new(), reason });
    }
    check::hold(validator, given, |location| check::path(location, &[]))
}

/// Absent params, `[]` and `{}` mean the same, and the schema may know but one of them.
fn hold_nothing(validator: &Validator, by_name: bool) -> Result<(), ParamsFault> {
    let forms = [json!({}), json!([]), Value::Null];
    if forms.iter().any(|form| validator.is_valid(form)) {
        return Ok(());
    }
    let form = if by_name { &forms[0] } else { &forms[1] };
    check::hold(validator, form, |location| check::path(location, &[]))
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
