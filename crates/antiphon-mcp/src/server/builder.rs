//! The settings of a server, and how it is built.

use std::sync::Arc;
use std::time::Duration;

use super::changes::ChangeListeners;
use super::forwarding::{OtherReader, OtherSubscriber, RootsListener};
use super::kept_handlers::KeptHandlers;
use super::lifetime::Lifetime;
use super::prompt::ServerPrompt;
use super::registry::Registry;
use super::reply;
use super::request_state::StateSigner;
use super::resource::ServerResource;
use super::resource_template::ServerTemplate;
use super::session_servers::SessionServers;
use super::tasks::{TaskSettings, TaskStore};
use super::tool::ServerTool;
use super::{McpServer, ServerState};
use crate::types::{
    CacheScope, Cacheable, Icon, Implementation, JsonObject, ListChangedCapability,
    ResourcesCapability, Revision, ServerCapabilities,
};

/// What happens to a handler of a modern request that asks the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rounds {
    /// The handler ends, and runs again from its start when the client repeats the request with the answers. The
    /// server keeps nothing, so any replica can serve the next round. The default.
    #[default]
    Replay,
    /// The server keeps the handler, and continues it. For handlers that cannot run twice. Only this process can serve
    /// the next round, and only once: a client that comes too late, or twice, gets the error -32602. If
    /// [`kept_handlers`](ServerBuilder::kept_handlers) wait already, a request that asks gets the error -32009.
    Keep,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) instructions: Option<String>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) page_size: usize,
    pub(crate) cache: Cacheable,
    pub(crate) ask_timeout: Duration,
    pub(crate) rounds: Rounds,
    pub(crate) max_rounds: u32,
    pub(crate) declared: ServerCapabilities,
    pub(crate) session_servers: Option<SessionServers>,
    pub(crate) read_other: Option<OtherReader>,
    pub(crate) subscribe_other: Option<OtherSubscriber>,
    pub(crate) roots_listener: Option<RootsListener>,
    pub(crate) tasks: TaskSettings,
}

/// Builds a [`McpServer`].
#[must_use = "call `build`"]
pub struct ServerBuilder {
    pub(super) implementation: Implementation,
    pub(super) settings: Settings,
    signer: Option<StateSigner>,
    state_lifetime: Duration,
    kept_handlers: usize,
    tools: Vec<ServerTool>,
    resources: Vec<ServerResource>,
    templates: Vec<ServerTemplate>,
    prompts: Vec<ServerPrompt>,
}

impl ServerBuilder {
    pub(super) fn new(implementation: Implementation) -> Self {
        Self {
            implementation,
            settings: Settings {
                instructions: None,
                revisions: Revision::ALL.iter().rev().copied().collect(),
                page_size: 1_000,
                cache: Cacheable::new(0, CacheScope::Private),
                ask_timeout: Duration::from_secs(300),
                rounds: Rounds::default(),
                max_rounds: 32,
                declared: ServerCapabilities::new(),
                session_servers: None,
                read_other: None,
                subscribe_other: None,
                roots_listener: None,
                tasks: TaskSettings::new(),
            },
            signer: None,
            state_lifetime: Duration::from_secs(600),
            kept_handlers: 1_000,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
        }
    }

    /// Sets the name of the server for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.implementation.title = Some(title.into());
        self
    }

    /// Sets what the server is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.implementation.description = Some(description.into());
        self
    }

    /// Sets the URL of the website of the server.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.implementation.website_url = Some(url.into());
        self
    }

    /// Adds an icon of the server.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.implementation.icons.get_or_insert_default().push(icon);
        self
    }

    /// Sets the instructions for models: how to use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.settings.instructions = Some(instructions.into());
        self
    }

    /// Adds a tool. Clients get the tools in the order of their addition.
    pub fn tool(mut self, tool: ServerTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: ServerResource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds a resource template.
    pub fn template(mut self, template: ServerTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, prompt: ServerPrompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// Declares the capability of tools even if there are none yet, for tools that are added later. Not needed if the
    /// server is built with tools.
    pub fn with_tools(mut self) -> Self {
        self.settings.declared.tools.get_or_insert_default();
        self
    }

    /// Declares the capability of resources even if there are none yet.
    pub fn with_resources(mut self) -> Self {
        self.settings.declared.resources.get_or_insert_default();
        self
    }

    /// Declares the capability of prompts even if there are none yet.
    pub fn with_prompts(mut self) -> Self {
        self.settings.declared.prompts.get_or_insert_default();
        self
    }

    /// Declares an extension with its settings. Its name has a prefix, such as `com.example/name`.
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.settings.declared = self.settings.declared.with_extension(name, settings);
        self
    }

    /// Sets the revisions that the server supports. The default is all of them.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        let mut revisions: Vec<_> = revisions.into_iter().collect();
        revisions.sort_unstable_by(|one, other| other.cmp(one));
        revisions.dedup();
        self.settings.revisions = revisions;
        self
    }

    /// Sets the number of entries on one page of a list. The default is 1,000, because some clients read only
    /// the first page.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.settings.page_size = entries;
        self
    }

    /// Sets how long clients may cache lists and resources, and whether they may share them. By default, they may not
    /// cache. A resource can have its own setting.
    pub fn cache(mut self, lifetime: Duration, scope: CacheScope) -> Self {
        let lifetime = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        self.settings.cache = Cacheable::new(lifetime, scope);
        self
    }

    /// Sets how long a legacy client may take to answer a question. The default is 5 minutes.
    pub fn ask_timeout(mut self, timeout: Duration) -> Self {
        self.settings.ask_timeout = timeout;
        self
    }

    /// Sets what happens to a handler of a modern request that asks the client.
    pub fn rounds(mut self, rounds: Rounds) -> Self {
        self.settings.rounds = rounds;
        self
    }

    /// Sets how many rounds of questions one modern request may have. The default is 32.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.settings.max_rounds = rounds;
        self
    }

    /// Sets how many handlers may wait for modern clients at the same time, with [`Rounds::Keep`]. The default is 1,000.
    pub fn kept_handlers(mut self, handlers: usize) -> Self {
        self.kept_handlers = handlers;
        self
    }

    /// Sets the key that signs the state of modern requests. Replicas of a server need the same key, of at least 32
    /// random bytes. Without one, each process has its own.
    pub fn state_key(mut self, key: &[u8]) -> Self {
        self.signer = Some(StateSigner::new(key, self.state_lifetime));
        self
    }

    /// Sets how long a modern client may take to answer a question. The default is 10 minutes.
    pub fn state_lifetime(mut self, lifetime: Duration) -> Self {
        self.state_lifetime = lifetime;
        self
    }

    /// Sets the limits of tasks, which [`ServerTool::task`] allows.
    pub fn tasks(mut self, tasks: TaskSettings) -> Self {
        self.settings.tasks = tasks;
        self
    }

    /// Builds the server.
    ///
    /// # Panics
    /// Panics if the system has no random numbers and no [`state_key`](Self::state_key) is set.
    pub fn build(self) -> McpServer {
        let random = || {
            StateSigner::random(self.state_lifetime)
                .expect("the system has random numbers; otherwise set a `state_key`")
        };
        let signer = self.signer.clone().unwrap_or_else(random);
        let (tools, resources) = (Registry::new("t"), Registry::new("r"));
        let (templates, prompts) = (Registry::new("m"), Registry::new("p"));
        let mut settings = self.settings;
        for tool in self.tools {
            settings.declared.tools.get_or_insert_default();
            let name = tool.name().to_owned();
            tools.insert(&name, tool);
        }
        for resource in self.resources {
            settings.declared.resources.get_or_insert_default();
            resources.insert(&resource.resource().uri.clone(), resource);
        }
        for template in self.templates {
            settings.declared.resources.get_or_insert_default();
            templates.insert(&template.template().uri_template.clone(), template);
        }
        for prompt in self.prompts {
            settings.declared.prompts.get_or_insert_default();
            prompts.insert(&prompt.prompt().name.clone(), prompt);
        }
        let lifetime = Lifetime::new();
        let _handle = Some(lifetime.handle());
        let state = ServerState {
            result_prefix: reply::result_prefix(&self.implementation),
            implementation: self.implementation,
            tasks: TaskStore::new(settings.tasks.clone()),
            settings,
            tools,
            resources,
            templates,
            prompts,
            listeners: ChangeListeners::default(),
            signer: signer.with_lifetime(self.state_lifetime),
            kept: KeptHandlers::new(self.kept_handlers),
            lifetime,
        };
        McpServer { state: Arc::new(state), _handle }
    }
}

impl Settings {
    /// What a server with these settings supports.
    pub(super) fn capabilities(&self, server: &McpServer) -> ServerCapabilities {
        let mut capabilities = self.declared.clone();
        let list_changed = ListChangedCapability::default().with_list_changed(true);
        if capabilities.tools.is_some() || !server.state.tools.is_empty() {
            capabilities.tools = Some(list_changed.clone());
        }
        if capabilities.prompts.is_some() || !server.state.prompts.is_empty() {
            capabilities.prompts = Some(list_changed);
        }
        let has_resources =
            !server.state.resources.is_empty() || !server.state.templates.is_empty();
        if capabilities.resources.is_some() || has_resources {
            let all = ResourcesCapability::default().with_list_changed(true).with_subscribe(true);
            capabilities.resources = Some(all);
        }
        if server.has_completions() {
            capabilities.completions.get_or_insert_default();
        }
        capabilities.logging.get_or_insert_default();
        capabilities
    }
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("implementation", &self.implementation)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
