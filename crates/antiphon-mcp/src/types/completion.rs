//! Completion of arguments of prompts and of resource templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use super::number;
use super::request::ResultType;
use super::tool::JsonObject;

/// The params of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteParams {
    /// The prompt or resource template.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// The argument to complete.
    pub argument: CompleteArgument,
    /// Arguments that are already known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CompleteParams {
    /// Asks for the values of an argument that start like `value`.
    pub fn new(reference: Reference, name: impl Into<String>, value: impl Into<String>) -> Self {
        let argument = CompleteArgument { name: name.into(), value: value.into() };
        Self { reference, argument, context: None, meta: Meta::new() }
    }

    /// Sets the arguments that are already known.
    #[must_use]
    pub fn with_context(mut self, arguments: BTreeMap<String, String>) -> Self {
        self.context = Some(CompleteContext { arguments: Some(arguments) });
        self
    }
}

meta_setters! { CompleteParams, CompleteResult }

/// The prompt or resource template that has the argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The name for programs.
        name: String,
        /// The name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A resource or a resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The URI or its template.
        uri: String,
    },
}

impl Reference {
    /// Refers to a prompt.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt { name: name.into(), title: None }
    }

    /// Refers to a resource template.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

/// An argument and the start of its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteArgument {
    /// The name of the argument.
    pub name: String,
    /// The start of the value.
    pub value: String,
}

/// Arguments that are already known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteContext {
    /// The values by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The values.
    pub completion: Completion,
    /// The kind of result; absent in legacy revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CompleteResult {
    /// Creates a result.
    pub fn new(completion: Completion) -> Self {
        Self { completion, ..Self::default() }
    }
}

setters! { CompleteResult { with_result_type => result_type: ResultType } }

/// Values that an argument may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The values, at most [`Self::MAX_VALUES`].
    pub values: Vec<String>,
    /// How many values there are.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::opt_count"
    )]
    pub total: Option<u64>,
    /// Whether there are more values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The most values that one result may have.
    pub const MAX_VALUES: usize = 100;

    /// Keeps the first [`MAX_VALUES`](Self::MAX_VALUES) values, and sets `total` and `has_more` if there are more.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut values: Vec<String> = values.into_iter().map(Into::into).collect();
        let count = values.len();
        if count <= Self::MAX_VALUES {
            return Self { values, ..Self::default() };
        }
        values.truncate(Self::MAX_VALUES);
        Self { values, total: Some(count as u64), has_more: Some(true) }
    }
}

setters! { Completion { with_total => total: u64, with_has_more => has_more: bool } }
