//! The parts of an OpenRPC document, ours and other people's.
//!
//! What is not named here is kept as it came, in `rest`.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::references;

/// A whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// The version of the specification that it follows.
    pub openrpc: String,
    /// What it is about.
    pub info: Info,
    /// The methods that can be called.
    pub methods: Vec<Method>,
    /// What several of them share.
    #[serde(default, skip_serializing_if = "Components::is_empty")]
    pub components: Components,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What a service is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Info {
    /// Its name.
    pub title: String,
    /// Its version; not that of the specification.
    pub version: String,
    /// More about it, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// One method, or one notification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Method {
    /// Its name on the wire.
    pub name: String,
    /// What it does, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What it does, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it takes, in order.
    #[serde(default)]
    pub params: Vec<Content>,
    /// How it takes them.
    #[serde(default, skip_serializing_if = "ParamStructure::is_either")]
    pub param_structure: ParamStructure,
    /// What it gives back; without it, it is a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Content>,
    /// How it may fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Failure>,
    /// Whether it is on its way out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A param or a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Content {
    /// Its name: of a param, the one on the wire.
    pub name: String,
    /// What it is, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What it is, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be given.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// What it looks like, as JSON Schema.
    pub schema: Value,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How a method takes its params.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParamStructure {
    /// As an Object.
    ByName,
    /// As an Array.
    ByPosition,
    /// Either way.
    #[default]
    Either,
}

/// An error that a method may answer with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// Which one.
    pub code: i64,
    /// One short sentence.
    pub message: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What several methods share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Components {
    /// Schemas by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub schemas: Map<String, Value>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Document {
    /// Reads a document of anybody's. References to its own components are followed, but for those
    /// inside schemas.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let mut value: Value = serde_json::from_str(text).map_err(DocumentError::Json)?;
        references::follow(&mut value).map_err(DocumentError::Reference)?;
        serde_json::from_value(value).map_err(DocumentError::Shape)
    }

    /// The method of this name, or else the one that answers to it too.
    pub fn method(&self, name: &str) -> Option<&Method> {
        let named = self.methods.iter().find(|method| method.name == name);
        named.or_else(|| self.methods.iter().find(|method| method.aliases().any(|it| it == name)))
    }

    /// The text of the document, made to be read.
    pub fn to_text(&self) -> String {
        // A document is names, texts and JSON values, all of which serialize.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Writes the document to a file.
    pub fn write_to(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.to_text() + "\n")
    }
}

impl Method {
    /// Other names that it answers to, where the document says so by `x-aliases`.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        let aliases = self.rest.get("x-aliases").and_then(Value::as_array);
        aliases.into_iter().flatten().filter_map(Value::as_str)
    }
}

impl Info {
    /// A title and a version are all that is needed.
    pub fn new(title: impl Into<String>, version: impl Into<String>) -> Self {
        let (title, version) = (title.into(), version.into());
        Self { title, version, description: None, rest: Map::new() }
    }

    /// Says more about the service, in Markdown.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }
}

impl Content {
    /// A param or result of which the name and the schema are known.
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
    /// A code and what it means.
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
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_either(&self) -> bool {
        *self == Self::Either
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Why a text is no document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is not JSON.
    #[error("the document is not JSON")]
    Json(#[source] serde_json::Error),
    /// It refers to something that is not in it.
    #[error("the document refers to `{0}`, which is not in it")]
    Reference(String),
    /// It is JSON, and not OpenRPC.
    #[error("the document is not OpenRPC")]
    Shape(#[source] serde_json::Error),
}
