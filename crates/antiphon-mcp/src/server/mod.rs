//! The server: what it offers, and how it treats its clients.
//!
//! `dispatch.rs` serves a request of either era, `handler.rs` a duplex connection, and the module `http` HTTP.

mod ask;
mod builder;
mod capability;
mod changes;
mod completion;
mod context;
mod dispatch;
mod era;
mod error;
mod forwarding;
mod handler;
mod initialize;
mod interest;
mod kept_handlers;
mod lifetime;
mod listen;
mod lists;
mod offers;
mod prompt;
mod questions;
mod registry;
mod reply;
mod request;
mod request_state;
mod resource;
mod resource_contents;
mod resource_template;
mod rounds;
mod schema;
mod session;
mod session_servers;
mod tasks;
mod tool;
mod tool_handler;
mod tool_result;
mod uri_template;
mod uri_variables;

use std::fmt;
use std::sync::Arc;

pub use ask::{Ask, Elicited};
pub use builder::{Rounds, ServerBuilder};
pub use context::RequestContext;
pub use error::{AskError, RequestError, ToolError};
pub use prompt::{IntoPromptResult, ServerPrompt};
pub use resource::ServerResource;
pub use resource_contents::IntoResourceContents;
pub use resource_template::{InvalidTemplate, ServerTemplate};
pub use session_servers::NewSession;
pub use tasks::TaskSettings;
pub use tool::{InvalidTool, ServerTool};
pub use tool_result::{IntoToolResult, Structured, ToolOutput};

pub(crate) use changes::{Change, ChangeFilter, ChangeListener, ChangeListeners};
pub(crate) use era::{check_modern, unsupported};
pub(crate) use forwarding::ResultMembers;
pub(crate) use lifetime::WeakServer;
pub(crate) use request::{RequestMeta, RequestParams, borrowed_text};
pub(crate) use request_state::random_id;
pub(crate) use session::{Agreement, NoLink, Session, SessionLink};
pub(crate) use tasks::{iso_8601, related};
pub(crate) use uri_template::percent_decoded;

use builder::Settings;
use kept_handlers::KeptHandlers;
use lifetime::{EndOnDrop, Lifetime};
use registry::Registry;
use request_state::StateSigner;
use tasks::TaskStore;

use crate::types::{Implementation, ServerCapabilities};

/// A server of the Model Context Protocol: tools, resources and prompts, for clients of every revision.
///
/// A server is a handle: its clones are the same server. Tools, resources and prompts can be added and removed while it
/// runs, and clients are notified. [`serve`](Self::serve) serves it on an endpoint; it is also an [`antiphon::Handler`].
///
/// When the last handle is dropped, the server ends its running tasks and the handlers that wait for their clients. A
/// connection and an HTTP service are handles too; the server of a [`RequestContext`] is not.
///
/// ```
/// use antiphon_mcp::{McpServer, RequestContext, ServerTool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Greeting {
///     name: String,
/// }
///
/// let server = McpServer::builder("greeter", "1.0.0")
///     .tool(ServerTool::new("greet", |it: Greeting, _cx: RequestContext| async move {
///         format!("hello {}", it.name)
///     }))
///     .build();
/// server.remove_tool("greet");
/// ```
#[derive(Clone)]
pub struct McpServer {
    state: Arc<ServerState>,
    /// `None` in a request, which does not keep the server alive.
    _handle: Option<Arc<EndOnDrop>>,
}

struct ServerState {
    implementation: Implementation,
    settings: Settings,
    /// The beginning of each modern result.
    result_prefix: String,
    tools: Registry<ServerTool>,
    resources: Registry<ServerResource>,
    templates: Registry<ServerTemplate>,
    prompts: Registry<ServerPrompt>,
    listeners: ChangeListeners,
    signer: StateSigner,
    kept: Arc<KeptHandlers>,
    tasks: Arc<TaskStore>,
    lifetime: Lifetime,
}

impl McpServer {
    /// Returns a builder of a server with this name and this version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(Implementation::new(name, version))
    }

    /// The name and the version of the server.
    pub fn implementation(&self) -> &Implementation {
        &self.state.implementation
    }

    /// Adds a tool, or replaces the one with its name. Clients are notified.
    pub fn add_tool(&self, tool: ServerTool) {
        let name = tool.name().to_owned();
        self.state.tools.insert(&name, tool);
        self.publish(&Change::Tools);
    }

    /// Removes a tool. Returns whether there was one. Clients are notified. Running calls continue.
    pub fn remove_tool(&self, name: &str) -> bool {
        let is_removed = self.state.tools.remove(name);
        if is_removed {
            self.publish(&Change::Tools);
        }
        is_removed
    }

    /// Adds a resource, or replaces the one with its URI. Clients are notified.
    pub fn add_resource(&self, resource: ServerResource) {
        let uri = resource.resource().uri.clone();
        self.state.resources.insert(&uri, resource);
        self.publish(&Change::Resources);
    }

    /// Removes a resource. Returns whether there was one. Clients are notified.
    pub fn remove_resource(&self, uri: &str) -> bool {
        let is_removed = self.state.resources.remove(uri);
        if is_removed {
            self.publish(&Change::Resources);
        }
        is_removed
    }

    /// Adds a resource template, or replaces the one with the same template. Clients are notified.
    pub fn add_template(&self, template: ServerTemplate) {
        let uri = template.template().uri_template.clone();
        self.state.templates.insert(&uri, template);
        self.publish(&Change::Resources);
    }

    /// Removes a resource template. Returns whether there was one. Clients are notified.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        let is_removed = self.state.templates.remove(uri_template);
        if is_removed {
            self.publish(&Change::Resources);
        }
        is_removed
    }

    /// Adds a prompt, or replaces the one with its name. Clients are notified.
    pub fn add_prompt(&self, prompt: ServerPrompt) {
        let name = prompt.prompt().name.clone();
        self.state.prompts.insert(&name, prompt);
        self.publish(&Change::Prompts);
    }

    /// Removes a prompt. Returns whether there was one. Clients are notified.
    pub fn remove_prompt(&self, name: &str) -> bool {
        let is_removed = self.state.prompts.remove(name);
        if is_removed {
            self.publish(&Change::Prompts);
        }
        is_removed
    }

    /// Notifies the clients that have subscribed to this resource of an update.
    pub fn resource_updated(&self, uri: &str) {
        self.publish(&Change::Resource(uri.into()));
    }

    /// Notifies the clients that the list of tools has changed. Adding or removing a tool does so already.
    pub fn tools_changed(&self) {
        self.publish(&Change::Tools);
    }

    /// Notifies the clients that the list of resources has changed. Adding or removing a resource does so already.
    pub fn resources_changed(&self) {
        self.publish(&Change::Resources);
    }

    /// Notifies the clients that the list of prompts has changed. Adding or removing a prompt does so already.
    pub fn prompts_changed(&self) {
        self.publish(&Change::Prompts);
    }

    fn publish(&self, change: &Change) {
        self.state.listeners.publish(change);
    }

    /// Ends the open streams of `subscriptions/listen`, each with its result, so that a shutdown does not wait for them.
    /// [`serve_until`](Self::serve_until) does so itself.
    pub fn stop_listening(&self) {
        self.state.lifetime.end_listening();
    }

    /// What the server supports, without tasks: the two eras declare them in different ways.
    pub fn capabilities(&self) -> ServerCapabilities {
        self.state.settings.capabilities(self)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.state.settings
    }

    pub(crate) fn result_prefix(&self) -> &str {
        &self.state.result_prefix
    }

    pub(crate) fn listeners(&self) -> &ChangeListeners {
        &self.state.listeners
    }

    /// The tool with this name.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ServerTool>> {
        self.state.tools.get(name)
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("implementation", &self.state.implementation)
            .finish_non_exhaustive()
    }
}
