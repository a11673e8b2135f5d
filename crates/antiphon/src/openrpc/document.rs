//! The parts of an OpenRPC document, generated or parsed.
//!
//! Members without a field here are kept unchanged, in `rest`.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::references;

/// An OpenRPC document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// The version of the OpenRPC specification.
    pub openrpc: String,
    /// The title and version of the service.
    pub info: Info,
    /// The methods of the service.
    pub methods: Vec<Method>,
    /// The components that the methods share.
    #[serde(default, skip_serializing_if = "Components::is_empty")]
    pub components: Components,
    /// All other members.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The title, version and description of a service.
///
/// ```
/// use antiphon::openrpc::Info;
///
/// let info = Info::new("Math", "1.0.0").description("Arithmetic with integers.");
/// assert_eq!(info.title, "Math");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Info {
    /// The title of the service.
    pub title: String,
    /// The version of the service, not of the specification.
    pub version: String,
    /// A description, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// All other members.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A method or a notification.
///
/// [`Description::with`](super::Description::with) changes the method of a description:
///
/// ```
/// use antiphon::openrpc::{Description, Method};
///
/// let description = Description::method::<(i64, i64), i64>().with(|method: &mut Method| {
///     method.summary = Some("Subtracts.".to_owned());
///     method.deprecated = true;
/// });
/// # drop(description);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Method {
    /// The name on the wire.
    pub name: String,
    /// A summary in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// A description, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The params, in order.
    #[serde(default)]
    pub params: Vec<Content>,
    /// Whether params are given by name, by position, or either way.
    #[serde(default, skip_serializing_if = "ParamStructure::is_either")]
    pub param_structure: ParamStructure,
    /// The result; a notification has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Content>,
    /// The errors that the method can return.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Failure>,
    /// Whether the method is deprecated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// All other members.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A param or a result.
///
/// ```
/// use antiphon::openrpc::Content;
/// use serde_json::json;
///
/// let minuend = Content::new("minuend", json!({"type": "integer"}));
/// assert!(minuend.summary.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Content {
    /// The name; for a param, its name on the wire.
    pub name: String,
    /// A summary in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// A description, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is required.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Its JSON Schema.
    pub schema: Value,
    /// All other members.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The form in which a method accepts params.
///
/// ```
/// use antiphon::openrpc::ParamStructure;
///
/// assert_eq!(ParamStructure::default(), ParamStructure::Either);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ParamStructure {
    /// By name, as an Object.
    ByName,
    /// By position, as an Array.
    ByPosition,
    /// By name or by position.
    #[default]
    Either,
}

/// An error that a method can return.
///
/// ```
/// use antiphon::openrpc::{Description, Failure};
///
/// let description = Description::method::<(i64, i64), i64>()
///     .with(|method| method.errors.push(Failure::new(-32050, "the result is out of range")));
/// # drop(description);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The error code.
    pub code: i64,
    /// The message, one short sentence.
    pub message: String,
    /// Additional data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// The components that several methods share.
///
/// ```
/// use antiphon::openrpc::Components;
///
/// let mut components = Components::default();
/// components.schemas.insert("Name".to_owned(), serde_json::json!({"type": "string"}));
/// assert_eq!(components.schemas.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Components {
    /// Schemas by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub schemas: Map<String, Value>,
    /// All other members.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Document {
    /// Parses a document. References to its own components are resolved, except inside schemas.
    ///
    /// # Errors
    /// Fails if the text is not JSON, if a reference cannot be resolved, or if the JSON is not an OpenRPC
    /// document.
    ///
    /// ```
    /// use antiphon::openrpc::Document;
    ///
    /// let text = r#"{"openrpc": "1.3.2", "info": {"title": "Clock", "version": "1.0.0"}, "methods": []}"#;
    /// let document = Document::parse(text)?;
    /// assert_eq!(document.info.title, "Clock");
    /// # Ok::<(), antiphon::openrpc::DocumentError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let mut value: Value = serde_json::from_str(text).map_err(DocumentError::Json)?;
        references::resolve_all(&mut value)?;
        // The error names the place: a document may have hundreds of methods.
        serde_path_to_error::deserialize(value)
            .map_err(|error| DocumentError::Shape(serde::de::Error::custom(error)))
    }

    /// Returns the method with this name or, if there is none, with this alias.
    pub fn method(&self, name: &str) -> Option<&Method> {
        let named = self.methods.iter().find(|method| method.name == name);
        named.or_else(|| self.methods.iter().find(|method| method.aliases().any(|it| it == name)))
    }

    /// The document as indented JSON.
    pub fn to_text(&self) -> String {
        // A document consists of strings and JSON values, which always serialize.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Writes the document to a file. This blocks: on a runtime, call it before serving, or in
    /// [`spawn_blocking`](tokio::task::spawn_blocking).
    ///
    /// # Errors
    /// Fails with the error of the file system.
    pub fn write_to(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.to_text() + "\n")
    }
}

impl Method {
    /// The aliases of the method, from the member `x-aliases` of the document.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        let aliases = self.rest.get("x-aliases").and_then(Value::as_array);
        aliases.into_iter().flatten().filter_map(Value::as_str)
    }
}

impl Info {
    /// Creates the info of a service from its title and version.
    pub fn new(title: impl Into<String>, version: impl Into<String>) -> Self {
        let (title, version) = (title.into(), version.into());
        Self { title, version, description: None, rest: Map::new() }
    }

    /// Sets the description of the service, in Markdown.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }
}

impl Content {
    /// Creates a param or a result from its name and schema. A param is optional until `required` is set.
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            summary: None,
            description: None,
            required: false,
            schema,
            rest: Map::new(),
        }
    }
}

impl Failure {
    /// Creates an error from its code and message.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl Components {
    fn is_empty(&self) -> bool {
        self.schemas.is_empty() && self.rest.is_empty()
    }
}

impl ParamStructure {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_either(&self) -> bool {
        *self == Self::Either
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The error of a text that is not an OpenRPC document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text is not JSON.
    #[error("the document is not JSON")]
    Json(#[source] serde_json::Error),
    /// A reference has no target.
    #[error("the document refers to `{0}`, which is not in it")]
    Reference(String),
    /// A reference leads to more than eight others, or to itself.
    #[error(
        "the reference `{0}` leads to itself or to more than 8 others; let it refer to the component directly"
    )]
    ReferenceChain(String),
    /// The text is JSON but not an OpenRPC document.
    #[error("the document is not OpenRPC")]
    Shape(#[source] serde_json::Error),
}
