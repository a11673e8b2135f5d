//! The notifications of a legacy server, which every client gets. Only resources have subscriptions.

use std::sync::{Arc, Mutex};

use antiphon::{BoxFuture, CancellationToken, RawJson};

use super::{EndOnDrop, Subscription, received};
use crate::client::call::CallOptions;
use crate::client::core::Core;
use crate::client::error::McpError;
use crate::client::inbox::{ServerNotification, locked};
use crate::types::{SubscribeParams, SubscriptionFilter, UnsubscribeParams, methods};

pub(super) async fn listen(
    core: &Arc<Core>,
    filter: SubscriptionFilter,
) -> Result<Subscription, McpError> {
    // Before the subscription, so that no notification is missed.
    let receiver = core.inbox.events.subscribe();
    let acknowledged = core.legacy_filter(&filter);
    let uris = acknowledged.resource_subscriptions.clone().unwrap_or_default();
    let mut end =
        EndOnDrop { stop: CancellationToken::new(), legacy: Some((core.clone(), Vec::new())) };
    for uri in uris {
        core.retain(&uri).await?;
        if let Some((_, held)) = &mut end.legacy {
            held.push(uri);
        }
    }
    let failure = Arc::new(Mutex::new(None));
    let all = received(receiver, failure.clone(), kept_open(core, &end.stop, failure));
    let wanted = acknowledged.clone();
    let selected = futures_util::StreamExt::filter(all, move |item| {
        let selected = item.as_ref().map_or(true, |event| selects(&wanted, event));
        std::future::ready(selected)
    });
    Ok(Subscription { acknowledged, events: Box::pin(selected), _end: end })
}

/// Opens a lost connection again as long as the subscription lives. Completes when that fails, or the client is closed.
///
/// It is a task: the connection of all calls must not depend on who polls the subscription.
fn kept_open(
    core: &Arc<Core>,
    stop: &CancellationToken,
    failure: Arc<Mutex<Option<McpError>>>,
) -> BoxFuture<'static, ()> {
    let (core, stop) = (core.clone(), stop.clone());
    let ended = CancellationToken::new();
    let guard = ended.clone().drop_guard();
    tokio::spawn(async move {
        let _guard = guard;
        tokio::select! {
            () = stop.cancelled() => {}
            outcome = core.keep_open() => *locked(&failure) = outcome.err(),
        }
    });
    Box::pin(async move { ended.cancelled().await })
}

/// Whether a filter selects a notification.
fn selects(filter: &SubscriptionFilter, event: &ServerNotification) -> bool {
    match event {
        ServerNotification::ToolsChanged => filter.tools_list_changed == Some(true),
        ServerNotification::PromptsChanged => filter.prompts_list_changed == Some(true),
        ServerNotification::ResourcesChanged => filter.resources_list_changed == Some(true),
        // The server may name a resource below the one that was subscribed to.
        ServerNotification::ResourceUpdated { uri } => {
            let uris = filter.resource_subscriptions.as_deref().unwrap_or_default();
            uris.iter().any(|subscribed| uri.starts_with(subscribed.as_str()))
        }
        ServerNotification::Lagged(_) | ServerNotification::Resumed => true,
        _ => false,
    }
}

impl Core {
    /// The part of a filter that a legacy server supports.
    fn legacy_filter(&self, filter: &SubscriptionFilter) -> SubscriptionFilter {
        let server = &self.state().capabilities;
        let lists = |capability: Option<bool>, wanted: Option<bool>| {
            (capability == Some(true)).then_some(wanted).flatten()
        };
        let resources = server.resources.as_ref();
        let mut supported = SubscriptionFilter::new();
        supported.tools_list_changed =
            lists(server.tools.as_ref().and_then(|it| it.list_changed), filter.tools_list_changed);
        supported.prompts_list_changed = lists(
            server.prompts.as_ref().and_then(|it| it.list_changed),
            filter.prompts_list_changed,
        );
        supported.resources_list_changed =
            lists(resources.and_then(|it| it.list_changed), filter.resources_list_changed);
        if resources.is_some_and(|it| it.subscribe == Some(true)) {
            supported.resource_subscriptions = filter.resource_subscriptions.clone();
        }
        supported
    }

    /// Subscribes to a resource of a legacy server, unless another subscription has done so.
    async fn retain(&self, uri: &str) -> Result<(), McpError> {
        *locked(&self.subscribed_uris).entry(uri.to_owned()).or_default() += 1;
        let subscribed = self.legacy(methods::SUBSCRIBE, &SubscribeParams::new(uri)).await;
        if subscribed.is_err() {
            self.drop_uri(uri);
        }
        subscribed
    }

    /// Unsubscribes from resources that no other subscription uses.
    pub(super) async fn release(&self, uris: &[String]) {
        for uri in uris {
            if !self.drop_uri(uri) {
                continue;
            }
            let params = UnsubscribeParams::new(uri.clone());
            if let Err(error) = self.legacy(methods::UNSUBSCRIBE, &params).await {
                tracing::debug!(%error, uri, "cannot unsubscribe");
            }
        }
    }

    /// Counts one user of a resource less. Returns whether it was the last.
    fn drop_uri(&self, uri: &str) -> bool {
        let mut subscribed = locked(&self.subscribed_uris);
        let Some(count) = subscribed.get_mut(uri) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        subscribed.remove(uri);
        true
    }

    async fn legacy(&self, method: &str, params: &impl serde::Serialize) -> Result<(), McpError> {
        let encode = |source| McpError::Encode { method: method.to_owned(), source };
        let params = RawJson::encode(params).map_err(encode)?;
        self.request(method, params, &CallOptions::default()).await.map(drop)
    }
}
