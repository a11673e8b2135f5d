//! Tools: functions of a server that a model may call.

use antiphon::RawJson;
use antiphon::core::JsonKind;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::content::ContentBlock;
use super::implementation::Icon;
use super::input_required::InputResponses;
use super::meta::Meta;
use super::pagination::{Cacheable, Cursor};
use super::request::ResultType;
use super::tasks::TaskMetadata;

/// A JSON Object, such as a JSON Schema.
pub type JsonObject = Map<String, Value>;

/// The description of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments. Its `type` is `object`.
    pub input_schema: JsonObject,
    /// The JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonObject>,
    /// Hints about the behavior of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How the tool runs (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Icons of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata of the tool.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Tool {
    /// Describes a tool with a schema of its arguments.
    pub fn new(name: impl Into<String>, input_schema: JsonObject) -> Self {
        Self { name: name.into(), input_schema, ..Self::default() }
    }

    /// The name for people: `title`, or the title of the annotations, or the name.
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref()?.title.as_deref();
        self.title.as_deref().or_else(annotated).unwrap_or(&self.name)
    }
}

setters! { Tool {
    with_title => title: String,
    with_description => description: String,
    with_output_schema => output_schema: JsonObject,
    with_annotations => annotations: ToolAnnotations,
    with_execution => execution: ToolExecution,
    with_icons => icons: Vec<Icon>,
} }

/// Hints about the behavior of a tool. A client does not rely on the hints of a server that it does not trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with the outside world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Creates annotations without hints.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ToolAnnotations {
    with_title => title: String,
    with_read_only_hint => read_only_hint: bool,
    with_destructive_hint => destructive_hint: bool,
    with_idempotent_hint => idempotent_hint: bool,
    with_open_world_hint => open_world_hint: bool,
} }

/// How a tool runs (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether a call may become a task. An absent one means `Forbidden`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

setters! { ToolExecution { with_task_support => task_support: TaskSupport } }

/// Whether a call of a tool may become a task (2025-11-25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// If the client asks for it.
    Optional,
    /// Always.
    Required,
}

/// The params of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParams {
    /// The tool.
    pub name: String,
    /// The arguments, an Object as it was received. Only a tool parses it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object_text")]
    pub arguments: Option<RawJson>,
    /// The answers to the input requests of the previous result (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the previous result, unchanged (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Asks for a task (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CallToolParams {
    /// Calls a tool without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters! { CallToolParams {
    with_arguments => arguments: RawJson,
    with_input_responses => input_responses: InputResponses,
    with_request_state => request_state: String,
    with_task => task: TaskMetadata,
} }

/// Reads an Object as text. Null counts as absent.
fn object_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    let json = RawJson::deserialize(deserializer)?;
    match json.kind() {
        JsonKind::Object => Ok(Some(json)),
        JsonKind::Null => Ok(None),
        kind => Err(D::Error::custom(format!("`arguments` must be an Object, not {kind:?}"))),
    }
}

/// The result of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The result for the model.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The result for programs. `Some(Value::Null)` is the result null, which 2026-07-28 allows.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed. The content then says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
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

impl CallToolResult {
    /// Creates a result with this content.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self { content, ..Self::default() }
    }

    /// Creates a result with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// Creates the result of a failed tool, with the reason as text.
    pub fn error(reason: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(reason) }
    }

    /// Creates a structured result, and its JSON as text for clients that do not read structured results.
    pub fn structured(value: Value) -> Self {
        let text = value.to_string();
        Self { structured_content: Some(value), ..Self::text(text) }
    }

    /// Whether the tool failed.
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }

    /// The text of all text blocks, one per line.
    pub fn joined_text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(ContentBlock::as_text).collect();
        texts.join("\n")
    }
}

setters! { CallToolResult {
    with_structured_content => structured_content: Value,
    with_is_error => is_error: bool,
    with_result_type => result_type: ResultType,
} }

/// Reads a member that is present, so that null is distinguishable from an absent member.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The result of `tools/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// The next page; `None` on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// How long the page may be cached.
    #[serde(flatten)]
    pub cache: Cacheable,
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

impl ListToolsResult {
    /// Creates a page.
    pub fn new(tools: Vec<Tool>) -> Self {
        Self { tools, ..Self::default() }
    }
}

setters! { ListToolsResult { with_next_cursor => next_cursor: Cursor, with_result_type => result_type: ResultType } }
meta_setters! { Tool, CallToolParams, CallToolResult, ListToolsResult }
