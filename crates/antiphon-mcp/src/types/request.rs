//! The params and results that several methods share.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::meta::Meta;

/// The params of a request without its own members, such as `ping` and `server/discover`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestParams {
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

/// The params of a notification without its own members, such as `notifications/tools/list_changed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotificationParams {
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

/// A result without its own members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyResult {
    /// The kind of result; absent in legacy revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

setters! { EmptyResult { with_result_type => result_type: ResultType } }
meta_setters! { RequestParams, NotificationParams, EmptyResult }

impl RequestParams {
    /// Creates empty params.
    pub fn new() -> Self {
        Self::default()
    }
}

impl NotificationParams {
    /// Creates empty params.
    pub fn new() -> Self {
        Self::default()
    }
}

impl EmptyResult {
    /// Creates an empty result.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The member `resultType` of a result (2026-07-28). An absent one means `Complete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResultType {
    /// The final result.
    #[default]
    Complete,
    /// The server needs input first: an `InputRequiredResult`.
    InputRequired,
    /// The server has created a task (the extension `io.modelcontextprotocol/tasks`).
    Task,
    /// A type of another extension.
    #[serde(untagged)]
    Other(String),
}
