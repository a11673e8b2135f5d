//! The bridge: other MCP servers, offered as one, over every transport and in every revision.
//!
//! A bridge is a client of each upstream, and a server that offers their tools, resources and prompts. Each side has its
//! own revision: a legacy process on stdio can serve modern clients over HTTP, and the other way round. Progress, logs,
//! cancellations, questions and completions pass through. Results keep their bytes, except for their type and the name of
//! the server, which are those of the bridge.

mod connected_upstream;
mod elicitations;
mod forward;
mod names;
mod open_calls;
mod owners;
mod questions;
mod sync;
mod upstream;

use std::sync::Arc;

pub use names::{InvalidName, NameRules};
pub use upstream::{Connect, Upstream};

use crate::client::McpError;
use crate::server::{NewSession, RequestError, Rounds, ServerBuilder};
use crate::{McpServer, types};
use connected_upstream::ConnectedUpstream;
use owners::Owners;

/// Offers the tools, resources and prompts of other servers as one server.
///
/// ```no_run
/// use antiphon_mcp::bridge::{Bridge, Upstream};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let server = Bridge::new()
///         .upstream(Upstream::new("exec:npx -y @modelcontextprotocol/server-memory").prefix("memory_"))
///         .upstream(Upstream::new("https://tools.example/mcp").allow(["search*"]))
///         .build()
///         .await?;
///     server.serve("http://127.0.0.1:8651/mcp").await?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `build`"]
pub struct Bridge {
    name: String,
    version: String,
    upstreams: Vec<Upstream>,
    per_session: bool,
}

/// The reason why a bridge cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// An upstream could not be reached, or its lists could not be read.
    #[error("the upstream {upstream} is not usable")]
    Upstream {
        /// The endpoint of the upstream.
        upstream: String,
        /// The reason.
        source: Box<McpError>,
    },
    /// Two tools or two prompts would have the same name.
    #[error(
        "the {kind} `{name}` would be one of {first} and one of {second}: set a prefix for one of them, or rename it"
    )]
    SameName {
        /// `tool` or `prompt`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The endpoint of the first upstream.
        first: String,
        /// The endpoint of the second upstream.
        second: String,
    },
}

impl Default for Bridge {
    fn default() -> Self {
        Self {
            name: "antiphon-bridge".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            upstreams: Vec::new(),
            per_session: false,
        }
    }
}

impl Bridge {
    /// Creates a bridge without upstreams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name and the version that clients see. With one upstream, the default is its name and its version.
    pub fn implementation(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        (self.name, self.version) = (name.into(), version.into());
        self
    }

    /// Adds an upstream.
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// Connects to each upstream once more for each session of a legacy client, so that an `exec:` upstream has a process
    /// for each session. By default, all clients share the connections. Modern clients have no sessions, so they always
    /// share them.
    pub fn per_session(mut self, per_session: bool) -> Self {
        self.per_session = per_session;
        self
    }

    /// Connects to the upstreams and creates the server.
    ///
    /// # Errors
    /// Fails if an upstream cannot be reached, or if two upstreams have a tool or prompt of the same name.
    pub async fn build(self) -> Result<McpServer, BridgeError> {
        let builder = |bridge: &Self| bridge.builder();
        if !self.per_session {
            return Box::pin(self.connect(builder(&self))).await;
        }
        let shared = self.clone();
        let builder = builder(&self).for_each_session(move |session| {
            let bridge = shared.clone();
            async move { bridge.for_session(session).await }
        });
        Box::pin(self.connect(builder)).await
    }

    async fn for_session(self, session: NewSession) -> Result<McpServer, RequestError> {
        let client = Arc::new(session.initialize);
        let upstreams = self.upstreams.into_iter();
        let bridge = Self {
            upstreams: upstreams.map(|it| it.on_behalf_of(client.clone())).collect(),
            ..self
        };
        let builder = bridge.builder();
        Ok(Box::pin(bridge.connect(builder)).await?)
    }

    fn builder(&self) -> ServerBuilder {
        McpServer::builder(&self.name, &self.version).rounds(Rounds::Keep)
    }

    /// Connects to the upstreams, and fills a server with what they offer.
    async fn connect(&self, builder: ServerBuilder) -> Result<McpServer, BridgeError> {
        let numbered = self.upstreams.iter().cloned().enumerate();
        let connecting =
            numbered.map(|(number, upstream)| ConnectedUpstream::connect(number, upstream));
        let upstreams: Vec<Arc<ConnectedUpstream>> =
            futures_util::future::try_join_all(connecting).await?;
        let builder = self.pass_roots_on(self.describe(builder, &upstreams), &upstreams);
        let server = builder.build();
        let owners = Arc::new(Owners::default());
        let mut filled = Vec::new();
        for upstream in upstreams {
            filled.push(sync::Offer::fill(&server, upstream, &owners).await?);
        }
        for offer in filled {
            tokio::spawn(offer.follow(server.downgrade()));
        }
        Ok(server)
    }

    /// Tells the upstreams of a session when the roots of its client change. Clients that share upstreams have no common
    /// roots.
    fn pass_roots_on(
        &self,
        builder: ServerBuilder,
        upstreams: &[Arc<ConnectedUpstream>],
    ) -> ServerBuilder {
        let with_roots = self.upstreams.iter().any(Upstream::has_roots);
        if !with_roots {
            return builder;
        }
        let upstreams = upstreams.to_vec();
        builder.on_roots_changed(move |session| {
            let session = Arc::downgrade(session);
            let telling: Vec<_> = upstreams
                .iter()
                .cloned()
                .map(|upstream| {
                    let session = session.clone();
                    async move { upstream.roots_changed(session).await }
                })
                .collect();
            Box::pin(async move { drop(futures_util::future::join_all(telling).await) })
        })
    }

    /// Describes the server: the capabilities and instructions of all upstreams.
    fn describe(
        &self,
        mut builder: ServerBuilder,
        upstreams: &[Arc<ConnectedUpstream>],
    ) -> ServerBuilder {
        let mut instructions = Vec::new();
        for upstream in upstreams {
            let types::ServerCapabilities { tools, resources, prompts, .. } =
                upstream.capabilities();
            builder = if tools.is_some() { builder.with_tools() } else { builder };
            builder = if resources.is_some() { builder.with_resources() } else { builder };
            builder = if prompts.is_some() { builder.with_prompts() } else { builder };
            instructions.extend(upstream.instructions());
        }
        if let [only] = upstreams
            && let Some(info) = only.server_info()
        {
            builder = builder.identify(info);
        }
        let (readers, subscribed) = (upstreams.to_vec(), upstreams.to_vec());
        builder = builder
            .read_other(move |uri, cx| forward::read_other(readers.clone(), uri, cx))
            .subscribe_other(move |uri, server| {
                for upstream in &subscribed {
                    sync::follow_resource(upstream, uri, server);
                }
            });
        match instructions.is_empty() {
            true => builder,
            false => builder.instructions(instructions.join("\n\n")),
        }
    }
}
