//! Keeps what the bridge offers equal to what its upstreams offer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};

use super::BridgeError;
use super::connected_upstream::{ConnectedUpstream, Connection};
use super::forward;
use super::owners::{Kind, Owners};
use crate::McpServer;
use crate::client::{McpClient, McpError, ServerNotification, Subscription};
use crate::server::WeakServer;
use crate::types::{Prompt, Resource, ResourceTemplate, SubscriptionFilter, Tool};

/// The pause before an upstream is asked for its changes again.
const PAUSE: Duration = Duration::from_secs(5);

/// How often the bridge looks whether a client still wants to know the updates of a resource.
const INTEREST_CHECK: Duration = Duration::from_secs(1);

/// What an upstream offers at a bridge.
pub(super) struct Offer {
    upstream: Arc<ConnectedUpstream>,
    owners: Arc<Owners>,
    /// What clients get, by names at the bridge.
    known: BTreeMap<(Kind, String), Entry>,
    /// The connection that the lists were read from.
    connection: u64,
}

/// A description, as the upstream has sent it.
#[derive(Clone, PartialEq)]
enum Entry {
    Tool(Box<Tool>),
    Prompt(Box<Prompt>),
    Resource(Box<Resource>),
    Template(Box<ResourceTemplate>),
}

impl Entry {
    fn kind(&self) -> Kind {
        match self {
            Self::Tool(_) => Kind::Tool,
            Self::Prompt(_) => Kind::Prompt,
            Self::Resource(_) => Kind::Resource,
            Self::Template(_) => Kind::Template,
        }
    }

    /// Its name at the upstream.
    fn original(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::Prompt(prompt) => &prompt.name,
            Self::Resource(resource) => &resource.uri,
            Self::Template(template) => &template.uri_template,
        }
    }

    fn add_to(self, server: &McpServer, upstream: &Arc<ConnectedUpstream>, name: String) {
        match self {
            Self::Tool(tool) => server.add_tool(forward::tool(upstream, *tool, name)),
            Self::Prompt(prompt) => server.add_prompt(forward::prompt(upstream, *prompt, name)),
            Self::Resource(it) => server.add_resource(forward::resource(upstream, *it)),
            Self::Template(it) => server.add_template(forward::template(upstream, *it)),
        }
    }
}

/// Removes an entry from a server.
fn remove_from(server: &McpServer, kind: Kind, name: &str) {
    match kind {
        Kind::Tool => server.remove_tool(name),
        Kind::Prompt => server.remove_prompt(name),
        Kind::Resource => server.remove_resource(name),
        Kind::Template => server.remove_template(name),
    };
}

impl Offer {
    /// Fills a server with everything that an upstream offers.
    ///
    /// # Errors
    /// Fails if the lists cannot be read, or if a name is taken.
    pub(super) async fn fill(
        server: &McpServer,
        upstream: Arc<ConnectedUpstream>,
        owners: &Arc<Owners>,
    ) -> Result<Self, BridgeError> {
        let read = async {
            let Connection { number, client } = upstream.connection().await?;
            Ok((number, read(&upstream, &client).await?))
        };
        let (connection, entries) = read.await.map_err(|source| upstream.unusable(source))?;
        let (owners, known) = (owners.clone(), BTreeMap::new());
        let mut offer = Self { upstream, owners, known, connection };
        match offer.update(server, entries).into_iter().next() {
            Some(clash) => Err(clash),
            None => Ok(offer),
        }
    }

    /// Offers these entries, and no others. Returns those tools and prompts whose names are taken, which are left out.
    fn update(&mut self, server: &McpServer, entries: Vec<(String, Entry)>) -> Vec<BridgeError> {
        let mut clashes = Vec::new();
        let mut gone = std::mem::take(&mut self.known);
        for (name, entry) in entries {
            let key = (entry.kind(), name);
            let before = gone.remove(&key);
            if let Err(first) =
                self.owners.claim(entry.kind(), &key.1, &self.upstream, entry.original())
            {
                clashes.extend(self.clash(&entry, &key.1, first));
                continue;
            }
            if before.as_ref() != Some(&entry) && !self.known.contains_key(&key) {
                entry.clone().add_to(server, &self.upstream, key.1.clone());
            }
            self.known.entry(key).or_insert(entry);
        }
        for (kind, name) in gone.into_keys() {
            remove_from(server, kind, &name);
            self.owners.release(kind, &name);
        }
        clashes
    }

    /// The error of a name that is taken. Two upstreams may have the same resource: the first one is read.
    fn clash(&self, entry: &Entry, name: &str, first: String) -> Option<BridgeError> {
        let (kind, second) = (entry.kind(), self.upstream.endpoint().to_owned());
        tracing::warn!(
            kind = kind.as_str(),
            name,
            first,
            second,
            "a name that is taken is left out"
        );
        let (kind, name) = (kind.as_str(), name.to_owned());
        matches!(entry, Entry::Tool(_) | Entry::Prompt(_)).then_some(BridgeError::SameName {
            kind,
            name,
            first,
            second,
        })
    }

    /// Follows the changes of the upstream until the server is dropped.
    pub(super) async fn follow(mut self, server: WeakServer) {
        tokio::select! {
            () = server.dropped() => {}
            () = self.follow_connections(&server) => {}
        }
    }

    async fn follow_connections(&mut self, server: &WeakServer) {
        loop {
            let Some(connection) = self.upstream.open_connection().await else {
                // The next call connects again.
                self.upstream.connected_after(self.connection).await;
                continue;
            };
            let number = connection.number;
            let outcome = self.follow_connection(server, connection).await;
            if let Err(error) = &outcome {
                let upstream = self.upstream.endpoint();
                tracing::debug!(%error, upstream, "an upstream tells no changes");
            }
            match outcome {
                // It will not tell changes on this connection.
                Err(McpError::Rpc(_) | McpError::Unsupported(_)) => {
                    self.upstream.connected_after(number).await;
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn follow_connection(
        &mut self,
        server: &WeakServer,
        Connection { number, client }: Connection,
    ) -> Result<(), McpError> {
        if number != self.connection {
            if !self.refresh(server, &client).await {
                // It may succeed later.
                return Ok(());
            }
            self.connection = number;
        }
        let filter = SubscriptionFilter::list_changes();
        let mut changes = self.upstream.within(client.listen(filter)).await?;
        while let Some(change) = changes.next().await {
            if matches!(change?, ServerNotification::ResourceUpdated { .. }) {
                continue;
            }
            skip_waiting(&mut changes);
            self.refresh(server, &client).await;
        }
        Ok(())
    }

    /// Reads the lists of the upstream again. Returns false if they cannot be read: then the old ones stay.
    async fn refresh(&mut self, server: &WeakServer, client: &McpClient) -> bool {
        match read(&self.upstream, client).await {
            Ok(entries) => {
                server.upgrade().inspect(|server| drop(self.update(server, entries)));
                true
            }
            Err(error) => {
                let upstream = self.upstream.endpoint();
                tracing::warn!(%error, upstream, "the lists of an upstream cannot be read");
                false
            }
        }
    }
}

/// Skips the changes that have arrived already: the lists are read once for all of them.
fn skip_waiting(changes: &mut Subscription) {
    while let Some(Some(Ok(_))) = changes.next().now_or_never() {}
}

/// Reads the lists of an upstream, with the names at the bridge.
async fn read(
    upstream: &ConnectedUpstream,
    client: &McpClient,
) -> Result<Vec<(String, Entry)>, McpError> {
    let capabilities = client.server_capabilities();
    let mut entries = Vec::new();
    if capabilities.tools.is_some() {
        for tool in upstream.within(client.list_tools()).await? {
            let name = upstream.names().valid(&tool.name);
            entries.extend(name.map(|name| (name, Entry::Tool(Box::new(tool)))));
        }
    }
    if capabilities.prompts.is_some() {
        for prompt in upstream.within(client.list_prompts()).await? {
            let name = upstream.names().valid(&prompt.name);
            entries.extend(name.map(|name| (name, Entry::Prompt(Box::new(prompt)))));
        }
    }
    if capabilities.resources.is_some() {
        for resource in upstream.within(client.list_resources()).await? {
            entries.push((resource.uri.clone(), Entry::Resource(Box::new(resource))));
        }
        let templates = match upstream.within(client.list_resource_templates()).await {
            // Servers of old revisions may have no templates.
            Err(McpError::Rpc(_)) => Vec::new(),
            templates => templates?,
        };
        for template in templates {
            entries.push((template.uri_template.clone(), Entry::Template(Box::new(template))));
        }
    }
    Ok(entries)
}

/// Tells the updates of a resource as long as a client wants to know them.
pub(super) fn follow_resource(upstream: &Arc<ConnectedUpstream>, uri: &str, server: &McpServer) {
    let can_subscribe = upstream.capabilities().resources.and_then(|it| it.subscribe);
    if can_subscribe != Some(true) || !upstream.begin_following(uri) {
        return;
    }
    let (upstream, uri, server) = (upstream.clone(), uri.to_owned(), server.downgrade());
    tokio::spawn(async move {
        tokio::select! {
            () = server.dropped() => {}
            () = follow_updates(&upstream, &uri, &server) => {}
        }
    });
}

async fn follow_updates(upstream: &ConnectedUpstream, uri: &str, server: &WeakServer) {
    let is_wanted = || server.upgrade().is_some_and(|server| server.is_subscribed(uri));
    loop {
        let outcome = tell_updates(upstream, uri, server).await;
        let is_refused = matches!(outcome, Err(McpError::Rpc(_) | McpError::Unsupported(_)));
        if let Err(error) = outcome {
            tracing::debug!(%error, uri, "an upstream tells no updates of a resource");
        }
        if upstream.end_following(uri, || !is_refused && is_wanted()) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tells the updates of a resource until nobody wants to know them, or until the connection is lost.
async fn tell_updates(
    upstream: &ConnectedUpstream,
    uri: &str,
    server: &WeakServer,
) -> Result<(), McpError> {
    let client = upstream.connection().await?.client;
    let filter = SubscriptionFilter::new().with_resource_subscriptions(vec![uri.to_owned()]);
    let mut updates = upstream.within(client.listen(filter)).await?;
    loop {
        let update = tokio::time::timeout(INTEREST_CHECK, updates.next()).await;
        let Some(server) = server.upgrade() else { return Ok(()) };
        match update {
            Ok(Some(Ok(ServerNotification::ResourceUpdated { uri: updated }))) => {
                if is_within(&updated, uri) {
                    server.resource_updated(uri);
                }
            }
            // Updates may be lost.
            Ok(Some(Ok(ServerNotification::Lagged(_) | ServerNotification::Resumed))) => {
                server.resource_updated(uri);
            }
            Ok(Some(update)) => drop(update?),
            Ok(None) => return Ok(()),
            Err(_elapsed) => {}
        }
        if !server.is_subscribed(uri) {
            return Ok(());
        }
    }
}

/// Whether a resource is another one or a part of it. An upstream may name a part of what was subscribed to; the clients
/// of the bridge get the URI that they know.
fn is_within(uri: &str, whole: &str) -> bool {
    let Some(rest) = uri.strip_prefix(whole) else { return false };
    rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#'])
}
