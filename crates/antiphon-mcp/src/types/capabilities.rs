//! What clients and servers support.
//!
//! A present capability is supported, even if it is empty. Absent members are not supported.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The settings of extensions, by their names, such as `io.modelcontextprotocol/tasks`.
pub type Extensions = Map<String, Value>;

type Settings = Map<String, Value>;

/// What a client supports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Capabilities outside of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Map<String, Value>>,
    /// The client lists roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// The client asks a model for completions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// The client asks its user for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// The client runs tasks (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ClientTasks>,
    /// Extensions and their settings (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
}

setters! { ClientCapabilities {
    with_experimental => experimental: Map<String, Value>,
    with_roots => roots: RootsCapability,
    with_sampling => sampling: SamplingCapability,
    with_elicitation => elicitation: ElicitationCapability,
    with_tasks => tasks: ClientTasks,
    with_extensions => extensions: Extensions,
} }

impl ClientCapabilities {
    /// Creates capabilities without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an extension with its settings.
    #[must_use]
    pub fn with_extension(mut self, name: impl Into<String>, settings: Map<String, Value>) -> Self {
        let extensions = self.extensions.get_or_insert_default();
        extensions.insert(name.into(), Value::Object(settings));
        self
    }

    /// Whether the client has this extension.
    pub fn has_extension(&self, name: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(name))
    }

    /// Whether the client shows forms. An `elicitation` without modes means forms.
    pub fn elicits_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Whether the client opens URLs for its user.
    pub fn elicits_urls(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }
}

/// The capability `roots`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// The client announces changes of its roots. Only in legacy revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters! { RootsCapability { with_list_changed => list_changed: bool } }

/// The capability `sampling`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// The client includes context of servers. Deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Settings>,
    /// The client lets the model call tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Settings>,
}

setters! { SamplingCapability { with_context => context: Settings, with_tools => tools: Settings } }

/// The capability `elicitation`. Without a mode it means forms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// The client shows forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Settings>,
    /// The client opens URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Settings>,
}

setters! { ElicitationCapability { with_form => form: Settings, with_url => url: Settings } }

/// The capability `tasks` of a client (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientTasks {
    /// The client lists its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Settings>,
    /// The client cancels its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Settings>,
    /// The requests that may become tasks, such as `{"sampling": {"createMessage": {}}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Settings>,
}

setters! { ClientTasks {
    with_list => list: Settings,
    with_cancel => cancel: Settings,
    with_requests => requests: Settings,
} }

/// What a server supports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Capabilities outside of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Map<String, Value>>,
    /// The server sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Settings>,
    /// The server completes arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<Settings>,
    /// The server has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListChangedCapability>,
    /// The server has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// The server has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListChangedCapability>,
    /// The server runs tasks (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ServerTasks>,
    /// Extensions and their settings (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
}

setters! { ServerCapabilities {
    with_experimental => experimental: Map<String, Value>,
    with_logging => logging: Settings,
    with_completions => completions: Settings,
    with_prompts => prompts: ListChangedCapability,
    with_resources => resources: ResourcesCapability,
    with_tools => tools: ListChangedCapability,
    with_tasks => tasks: ServerTasks,
    with_extensions => extensions: Extensions,
} }

impl ServerCapabilities {
    /// Creates capabilities without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an extension with its settings.
    #[must_use]
    pub fn with_extension(mut self, name: impl Into<String>, settings: Map<String, Value>) -> Self {
        let extensions = self.extensions.get_or_insert_default();
        extensions.insert(name.into(), Value::Object(settings));
        self
    }

    /// Whether the server has this extension.
    pub fn has_extension(&self, name: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(name))
    }
}

/// The capability `tools` or `prompts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListChangedCapability {
    /// The server announces changes of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters! { ListChangedCapability { with_list_changed => list_changed: bool } }

/// The capability `resources`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// The server announces changes of single resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// The server announces changes of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters! { ResourcesCapability { with_subscribe => subscribe: bool, with_list_changed => list_changed: bool } }

/// The capability `tasks` of a server (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerTasks {
    /// The server lists its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Settings>,
    /// The server cancels its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Settings>,
    /// The requests that may become tasks, such as `{"tools": {"call": {}}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Settings>,
}

setters! { ServerTasks {
    with_list => list: Settings,
    with_cancel => cancel: Settings,
    with_requests => requests: Settings,
} }
