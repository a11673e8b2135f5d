//! Sampling: a server asks the model of the client for a completion.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::content::{
    AudioContent, ContentBlock, ImageContent, Role, TextContent, block_type, from_map,
};
use super::meta::Meta;
use super::number;
use super::tasks::TaskMetadata;
use super::tool::{JsonObject, Tool, present};

/// The params of `sampling/createMessage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// The conversation.
    pub messages: Vec<SamplingMessage>,
    /// Which model the server prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt that the server wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The context that the client adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The temperature of the model.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub temperature: Option<f64>,
    /// The most tokens of the completion.
    #[serde(deserialize_with = "number::required_count")]
    pub max_tokens: u64,
    /// Texts that end the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Settings for the provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether the model calls tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Asks for a task (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CreateMessageParams {
    /// Asks for a completion.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

setters! { CreateMessageParams {
    with_model_preferences => model_preferences: ModelPreferences,
    with_system_prompt => system_prompt: String,
    with_include_context => include_context: IncludeContext,
    with_temperature => temperature: f64,
    with_stop_sequences => stop_sequences: Vec<String>,
    with_metadata => metadata: JsonObject,
    with_tools => tools: Vec<Tool>,
    with_tool_choice => tool_choice: ToolChoice,
    with_task => task: TaskMetadata,
} }

/// The context of servers that a client adds to a completion. Deprecated, except `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IncludeContext {
    /// No context.
    #[default]
    None,
    /// Context of this server.
    ThisServer,
    /// Context of all servers.
    AllServers,
}

/// Whether the model calls tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolChoice {
    /// The mode; an absent one means `Auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

setters! { ToolChoice { with_mode => mode: ToolChoiceMode } }

impl From<ToolChoiceMode> for ToolChoice {
    fn from(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode) }
    }
}

/// Whether the model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoiceMode {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call a tool.
    Required,
    /// The model must not call a tool.
    None,
}

/// Which model the server prefers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names of models, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How important a low cost is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub cost_priority: Option<f64>,
    /// How important speed is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub speed_priority: Option<f64>,
    /// How important intelligence is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub intelligence_priority: Option<f64>,
}

impl ModelPreferences {
    /// Creates preferences without any.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { ModelPreferences {
    with_hints => hints: Vec<ModelHint>,
    with_cost_priority => cost_priority: f64,
    with_speed_priority => speed_priority: f64,
    with_intelligence_priority => intelligence_priority: f64,
} }

/// The name of a model, or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelHint {
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// Names a model.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()) }
    }
}

/// A message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said. A single block is written without an Array, as revisions before 2025-11-25 require.
    #[serde(serialize_with = "one_or_many", deserialize_with = "many")]
    pub content: Vec<SamplingContent>,
    /// Metadata of the message.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SamplingMessage {
    /// Creates a message with one block.
    pub fn new(role: Role, content: impl Into<SamplingContent>) -> Self {
        Self { role, content: vec![content.into()], meta: Meta::new() }
    }

    /// Creates a message of the user.
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the model.
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// Who speaks: the model.
    pub role: Role,
    /// What the model says. A single block is written without an Array.
    #[serde(serialize_with = "one_or_many", deserialize_with = "many")]
    pub content: Vec<SamplingContent>,
    /// The name of the model.
    pub model: String,
    /// Why the completion ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CreateMessageResult {
    /// Creates a completion with one block.
    pub fn new(model: impl Into<String>, content: impl Into<SamplingContent>) -> Self {
        Self {
            role: Role::Assistant,
            content: vec![content.into()],
            model: model.into(),
            stop_reason: None,
            meta: Meta::new(),
            extra: JsonObject::new(),
        }
    }
}

setters! { CreateMessageResult { with_stop_reason => stop_reason: String } }
meta_setters! {
    CreateMessageParams, SamplingMessage, CreateMessageResult, ToolUseContent, ToolResultContent,
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingContent {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio.
    Audio(AudioContent),
    /// The model calls a tool.
    ToolUse(ToolUseContent),
    /// The result of a tool.
    ToolResult(ToolResultContent),
    /// A block of a type that this crate does not know, with its `type`.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl SamplingContent {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for SamplingContent {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ToolUseContent> for SamplingContent {
    fn from(call: ToolUseContent) -> Self {
        Self::ToolUse(call)
    }
}

impl From<ToolResultContent> for SamplingContent {
    fn from(result: ToolResultContent) -> Self {
        Self::ToolResult(result)
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        content_of(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn content_of(members: Map<String, Value>) -> Result<SamplingContent, serde_json::Error> {
    Ok(match block_type(&members)? {
        "text" => SamplingContent::Text(from_map(members)?),
        "image" => SamplingContent::Image(from_map(members)?),
        "audio" => SamplingContent::Audio(from_map(members)?),
        "tool_use" => SamplingContent::ToolUse(from_map(members)?),
        "tool_result" => SamplingContent::ToolResult(from_map(members)?),
        _ => SamplingContent::Other(members),
    })
}

fn one_or_many<S: Serializer>(
    content: &[SamplingContent],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match content {
        [single] => single.serialize(serializer),
        several => several.serialize(serializer),
    }
}

fn many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SamplingContent>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Array(blocks) => {
            blocks.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()
        }
        single => serde_json::from_value(single).map(|block| vec![block]),
    }
    .map_err(D::Error::custom)
}

/// A call of a tool by the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUseContent {
    /// The id of the call. The result refers to it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: JsonObject,
    /// Metadata of the block.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ToolUseContent {
    /// Calls a tool.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: JsonObject) -> Self {
        Self { id: id.into(), name: name.into(), input, meta: Meta::new() }
    }
}

/// The result of a tool that the model has called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The id of the call.
    pub tool_use_id: String,
    /// The result for the model.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The result for programs. `Some(Value::Null)` is the result null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata of the block.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ToolResultContent {
    /// Creates the result of a call.
    pub fn new(tool_use_id: impl Into<String>, content: Vec<ContentBlock>) -> Self {
        Self { tool_use_id: tool_use_id.into(), content, ..Self::default() }
    }
}

setters! { ToolResultContent { with_structured_content => structured_content: Value, with_is_error => is_error: bool } }
