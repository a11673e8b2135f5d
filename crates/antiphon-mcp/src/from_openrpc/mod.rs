#![doc = include_str!("../../docs/from_openrpc.md")]

mod arguments;
mod call;
mod contract;
mod description;
mod error;
mod feed;
mod input;
mod names;
mod offer;
mod output;
mod progress;
mod read_only;
mod schemas;
mod subscriptions;
mod topics;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use antiphon::Client;
use antiphon::openrpc::Document;

use crate::tool_names::Patterns;
use crate::{McpServer, ServerBuilder};

pub use error::FromOpenRpcError;

use feed::FeedSettings;

/// The tools and resources that serve the methods and subscriptions of a JSON-RPC service. See the
/// [module](crate::from_openrpc).
#[must_use = "call `build_into` or `add_to`"]
pub struct ToolsFromOpenRpc {
    document: Document,
    client: Client,
    allowed: Option<Patterns>,
    denied: Patterns,
    read_only: Patterns,
    guesses_read_only: bool,
    renamed: BTreeMap<String, String>,
    prefix: String,
    has_output_schemas: bool,
    timeout: Option<Duration>,
    has_subscriptions: bool,
    feeds: FeedSettings,
}

impl ToolsFromOpenRpc {
    /// Starts with all methods of the document. The client calls the service: a [`Client`], a [`Peer`](antiphon::Peer),
    /// or any [`Caller`](antiphon::Caller).
    pub fn new(document: Document, client: impl Into<Client>) -> Self {
        Self {
            document,
            client: client.into(),
            allowed: None,
            denied: Patterns::default(),
            read_only: Patterns::default(),
            guesses_read_only: false,
            renamed: BTreeMap::new(),
            prefix: String::new(),
            has_output_schemas: true,
            timeout: None,
            has_subscriptions: true,
            feeds: FeedSettings::default(),
        }
    }

    /// Offers only methods that match one of these patterns. In a pattern, `*` stands for any characters: `math.*`.
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.allowed.get_or_insert_default().extend(patterns);
        self
    }

    /// Does not offer methods that match one of these patterns, even if they are allowed.
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.denied.extend(patterns);
        self
    }

    /// Marks the tools of methods that match one of these patterns as read-only. Clients may then call them without
    /// asking their user. A method with `"x-read-only": true` in the document is read-only without a pattern.
    pub fn read_only<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.read_only.extend(patterns);
        self
    }

    /// Sets whether tools are marked as read-only because of the names of their methods. The default is false.
    ///
    /// The first word counts, after the namespace: `getBalance`, `list_users`, `eth_getBalance`, `accounts.find`. The
    /// words are get, list, find, search, describe, count, query, read, is, has and estimate.
    pub fn guess_read_only(mut self, guess: bool) -> Self {
        self.guesses_read_only = guess;
        self
    }

    /// Gives the tool of a method this name, without the prefix.
    pub fn rename(mut self, method: impl Into<String>, tool: impl Into<String>) -> Self {
        self.renamed.insert(method.into(), tool.into());
        self
    }

    /// Puts a prefix before the names of the tools, for a server that also has others.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets whether tools declare the schemas of their results. The default is true: a result that does not match the
    /// document is then a tool error, because clients refuse such results. Turn it off for a document that is
    /// inaccurate.
    pub fn output_schemas(mut self, declare: bool) -> Self {
        self.has_output_schemas = declare;
        self
    }

    /// Sets the timeout of each call to the service. The default is the timeout of the client.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets whether subscriptions become resources. The default is true. HTTP has no subscriptions.
    pub fn subscriptions(mut self, offer: bool) -> Self {
        self.has_subscriptions = offer;
        self
    }

    /// Sets the largest number of open subscriptions. The default is 64.
    pub fn max_subscriptions(mut self, subscriptions: usize) -> Self {
        self.feeds.max_open = subscriptions;
        self
    }

    /// Sets how long a subscription stays open without a reader and without a subscriber. The default is 30 seconds.
    pub fn subscription_idle(mut self, idle: Duration) -> Self {
        self.feeds.idle = idle;
        self
    }

    /// Sets how long the first read of a subscription waits for an item. The default is 5 seconds. Without an item, the
    /// resource has no content.
    pub fn first_item_timeout(mut self, timeout: Duration) -> Self {
        self.feeds.first_item = timeout;
        self
    }

    /// Sets the shortest time between two notifications of one resource. The default is 100 milliseconds. Items in
    /// between are skipped, except for the newest.
    pub fn update_interval(mut self, interval: Duration) -> Self {
        self.feeds.update_interval = interval;
        self
    }

    /// Adds the tools and resources to a server that is being built.
    ///
    /// # Errors
    /// Fails if nothing is offered, or if the schemas of a method are not valid.
    pub fn build_into(self, mut builder: ServerBuilder) -> Result<ServerBuilder, FromOpenRpcError> {
        let offer = self.offer()?;
        for tool in offer.tools {
            builder = builder.tool(tool);
        }
        for resource in offer.resources {
            builder = builder.resource(resource);
        }
        for template in offer.templates {
            builder = builder.template(template);
        }
        Ok(builder)
    }

    /// Adds the tools and resources to a server that may already run.
    ///
    /// # Errors
    /// Fails if nothing is offered, or if the schemas of a method are not valid.
    pub fn add_to(self, server: &McpServer) -> Result<(), FromOpenRpcError> {
        let offer = self.offer()?;
        offer.tools.into_iter().for_each(|tool| server.add_tool(tool));
        offer.resources.into_iter().for_each(|resource| server.add_resource(resource));
        offer.templates.into_iter().for_each(|template| server.add_template(template));
        Ok(())
    }
}

impl fmt::Debug for ToolsFromOpenRpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolsFromOpenRpc")
            .field("service", &self.document.info.title)
            .field("allowed", &self.allowed)
            .field("denied", &self.denied)
            .finish_non_exhaustive()
    }
}
