//! Checks a call against a document before the call is sent.

use antiphon_core::Params;
use serde_json::Value;

use super::check::{ParamsCheck, ParamsFault, SchemaError, is_repeated};
use super::document::{Content, Document, Method, ParamStructure};

impl Document {
    /// Checks a call against the document: the method must exist, no param may be missing or unknown, and
    /// each param must match its schema.
    ///
    /// ```
    /// use antiphon::openrpc::{Document, InvalidCallError};
    /// use antiphon::{Params, RawJson};
    ///
    /// let text = r#"{"openrpc": "1.4.1", "info": {"title": "Pages", "version": "1"}, "methods": [
    ///     {"name": "page", "params": [{"name": "limit", "schema": {"type": "integer"}}]}
    /// ]}"#;
    /// let document = Document::parse(text)?;
    /// let params = |text: &'static str| Params::from_json(RawJson::parse(text).unwrap()).unwrap();
    /// assert!(document.check_call("page", Some(&params("[10]"))).is_ok());
    /// let checked = document.check_call("page", Some(&params(r#"{"limit": "ten"}"#)));
    /// assert!(matches!(checked, Err(InvalidCallError::Params { path, .. }) if path == "limit"));
    /// # Ok::<(), antiphon::openrpc::DocumentError>(())
    /// ```
    pub fn check_call(
        &self,
        method: &str,
        params: Option<&Params>,
    ) -> Result<(), InvalidCallError> {
        let found =
            self.method(method).ok_or_else(|| InvalidCallError::Method(method.to_owned()))?;
        check_count(found, params)?;
        let Some(params) = params else { return Ok(()) };
        Ok(ParamsCheck::new(found, &self.components)?.check(params)?)
    }
}

/// The error of a call that does not match a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCallError {
    /// The document has no such method.
    #[error("there is no method `{0}`")]
    Method(String),
    /// The params do not match the method.
    #[error("{}", params_message(path, reason))]
    Params {
        /// The path of the invalid value, such as `[0].name`; empty for the params as a whole.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The document contains an invalid schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

fn params_message(path: &str, reason: &str) -> String {
    match path {
        "" => format!("invalid params: {reason}"),
        path => format!("invalid param at {path}: {reason}"),
    }
}

impl From<ParamsFault> for InvalidCallError {
    fn from(ParamsFault { path, reason }: ParamsFault) -> Self {
        Self::Params { path, reason }
    }
}

/// Checks the number of the params and whether they are given in an accepted form.
fn check_count(method: &Method, params: Option<&Params>) -> Result<(), InvalidCallError> {
    let given = match params {
        Some(params) => params.as_json().decode::<Value>(),
        None => Ok(Value::Null),
    };
    match given.map_err(|error| invalid("", error.to_string()))? {
        Value::Array(given) if !given.is_empty() => check_by_position(method, given.len()),
        Value::Object(given) if !given.is_empty() => {
            check_by_name(method, &given.keys().map(String::as_str).collect::<Vec<_>>())
        }
        _ => check_required(method, |_, _| false),
    }
}

fn check_by_position(method: &Method, given: usize) -> Result<(), InvalidCallError> {
    if method.param_structure == ParamStructure::ByName {
        return Err(invalid("", "the method takes params by name"));
    }
    let taken = method.params.len();
    if given > taken && !method.params.iter().any(is_repeated) {
        return Err(invalid(&format!("[{taken}]"), "the method takes no more params"));
    }
    check_required(method, |index, _| index < given)
}

fn check_by_name(method: &Method, given: &[&str]) -> Result<(), InvalidCallError> {
    if method.param_structure == ParamStructure::ByPosition {
        return Err(invalid("", "the method takes params by position"));
    }
    // A repeated param accepts any name.
    if method.params.iter().any(is_repeated) {
        return Ok(());
    }
    let unknown = given.iter().find(|name| !method.params.iter().any(|it| it.name == **name));
    match unknown {
        Some(unknown) => Err(invalid(unknown, "the method has no param with this name")),
        None => check_required(method, |_, param| given.contains(&&*param.name)),
    }
}

/// Checks that every required param is given.
fn check_required(
    method: &Method,
    is_given: impl Fn(usize, &Content) -> bool,
) -> Result<(), InvalidCallError> {
    let mut required = method.params.iter().enumerate().filter(|(_, param)| param.required);
    match required.find(|(index, param)| !is_given(*index, param)) {
        Some((_, missing)) => Err(invalid("", format!("`{}` is missing", missing.name))),
        None => Ok(()),
    }
}

fn invalid(path: &str, reason: impl Into<String>) -> InvalidCallError {
    InvalidCallError::Params { path: path.to_owned(), reason: reason.into() }
}
