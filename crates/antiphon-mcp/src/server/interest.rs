//! The subscriptions of clients to resources, for resources that watch their source only while there are subscribers.
//!
//! A resource is notified of each new subscriber. It polls for the last one to leave, because clients can disappear
//! without unsubscribing.

use std::sync::Arc;

use super::McpServer;
use super::changes::Change;
use super::resource::ServerResource;
use super::resource_template::ServerTemplate;

/// Takes note that a client has subscribed to the resource with this URI.
pub(super) type OnSubscribe = Arc<dyn Fn(&str, &McpServer) + Send + Sync>;

impl McpServer {
    /// Whether any client has subscribed to the resource with this URI.
    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.listeners().any_wants(&Change::Resource(uri.into()))
    }

    /// Tells a resource that a client has subscribed to it.
    pub(super) fn begin_interest(&self, uri: &str) {
        let on_subscribe = match self.state.resources.get(uri) {
            Some(resource) => resource.on_subscribe.clone(),
            None => self
                .state
                .templates
                .find(|template| template.matches(uri).map(|_| template.on_subscribe.clone()))
                .map_or_else(
                    || self.settings().subscribe_other.clone().map(|other| other.0),
                    |(_, on_subscribe)| on_subscribe,
                ),
        };
        if let Some(on_subscribe) = on_subscribe {
            on_subscribe(uri, self);
        }
    }
}

impl ServerResource {
    /// Calls a function each time that a client subscribes to the resource. It must not block. Use it to start watching the
    /// source of the resource, and stop when [`McpServer::is_subscribed`] returns false.
    ///
    /// ```
    /// use antiphon_mcp::{McpServer, RequestContext, RequestError, ServerResource};
    ///
    /// let clock = ServerResource::new("clock://now", "now", |_cx: RequestContext| async {
    ///     Ok::<_, RequestError>(format!("{:?}", std::time::SystemTime::now()))
    /// })
    /// .on_subscribe(|uri, server| {
    ///     let (uri, server) = (uri.to_owned(), server.clone());
    ///     tokio::spawn(async move {
    ///         while server.is_subscribed(&uri) {
    ///             tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ///             server.resource_updated(&uri);
    ///         }
    ///     });
    /// });
    /// # drop(clock);
    /// ```
    #[must_use]
    pub fn on_subscribe(
        mut self,
        react: impl Fn(&str, &McpServer) + Send + Sync + 'static,
    ) -> Self {
        self.on_subscribe = Some(Arc::new(react));
        self
    }
}

impl ServerTemplate {
    /// Calls a function each time that a client subscribes to a resource of this template. See
    /// [`ServerResource::on_subscribe`].
    #[must_use]
    pub fn on_subscribe(
        mut self,
        react: impl Fn(&str, &McpServer) + Send + Sync + 'static,
    ) -> Self {
        self.on_subscribe = Some(Arc::new(react));
        self
    }
}
