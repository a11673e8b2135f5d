//! Whether a call fits what a document says, asked before it is sent.

use antiphon_core::Params;
use serde_json::Value;

use super::check::{ParamsCheck, ParamsFault, SchemaError, is_repeated};
use super::document::{Content, Document, Method, ParamStructure};

impl Document {
    /// Holds a call against the document: that there is such a method, that no param is missing or too
    /// many, and that each is as its schema has it.
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
    /// let misfit = document.check_call("page", Some(&params(r#"{"limit": "ten"}"#)));
    /// assert!(matches!(misfit, Err(InvalidCallError::Params { path, .. }) if path == "limit"));
    /// # Ok::<(), antiphon::openrpc::DocumentError>(())
    /// ```
    pub fn check_call(
        &self,
        method: &str,
        params: Option<&Params>,
    ) -> Result<(), InvalidCallError> {
        let found =
            self.method(method).ok_or_else(|| InvalidCallError::Method(method.to_owned()))?;
        counted(found, params)?;
        let Some(params) = params else { return Ok(()) };
        Ok(ParamsCheck::new(found, &self.components)?.check(params)?)
    }
}

/// Why a call does not fit a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCallError {
    /// There is no such method.
    #[error("there is no method `{0}`")]
    Method(String),
    /// The params are others than the method takes.
    #[error("{}", worded(path, reason))]
    Params {
        /// Where they are wrong, as in `[0].name`; empty for all of them.
        path: String,
        /// What is wrong there.
        reason: String,
    },
    /// The document has a schema that is none.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

fn worded(path: &str, reason: &str) -> String {
    match path {
        "" => format!("the params do not fit: {reason}"),
        path => format!("the param at {path} does not fit: {reason}"),
    }
}

impl From<ParamsFault> for InvalidCallError {
    fn from(ParamsFault { path, reason }: ParamsFault) -> Self {
        Self::Params { path, reason }
    }
}

/// Whether as many are given as are taken, and in a way in which they are taken.
fn counted(method: &Method, params: Option<&Params>) -> Result<(), InvalidCallError> {
    let given = match params {
        Some(params) => params.as_json().decode::<Value>(),
        None => Ok(Value::Null),
    };
    match given.map_err(|error| fault("", error.to_string()))? {
        Value::Array(given) if !given.is_empty() => by_position(method, given.len()),
        Value::Object(given) if !given.is_empty() => {
            by_name(method, &given.keys().map(String::as_str).collect::<Vec<_>>())
        }
        _ => present(method, |_, _| false),
    }
}

fn by_position(method: &Method, given: usize) -> Result<(), InvalidCallError> {
    if method.param_structure == ParamStructure::ByName {
        return Err(fault("", "they are taken by name"));
    }
    let taken = method.params.len();
    if given > taken && !method.params.iter().any(is_repeated) {
        return Err(fault(&format!("[{taken}]"), "it is more than the method takes"));
    }
    present(method, |place, _| place < given)
}

fn by_name(method: &Method, given: &[&str]) -> Result<(), InvalidCallError> {
    if method.param_structure == ParamStructure::ByPosition {
        return Err(fault("", "they are taken by position"));
    }
    // Where any number is taken, names of any kind are.
    if method.params.iter().any(is_repeated) {
        return Ok(());
    }
    let unknown = given.iter().find(|name| !method.params.iter().any(|it| it.name == **name));
    match unknown {
        Some(unknown) => Err(fault(unknown, "the method takes no param of this name")),
        None => present(method, |_, param| given.contains(&&*param.name)),
    }
}

/// Whether every param that must be given is.
fn present(
    method: &Method,
    is_given: impl Fn(usize, &Content) -> bool,
) -> Result<(), InvalidCallError> {
    let mut required = method.params.iter().enumerate().filter(|(_, param)| param.required);
    match required.find(|(place, param)| !is_given(*place, param)) {
        Some((_, missing)) => Err(fault("", format!("`{}` is missing", missing.name))),
        None => Ok(()),
    }
}

fn fault(path: &str, reason: impl Into<String>) -> InvalidCallError {
    InvalidCallError::Params { path: path.to_owned(), reason: reason.into() }
}
