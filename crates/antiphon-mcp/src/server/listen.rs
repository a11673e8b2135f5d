//! `subscriptions/listen`: the request that stays open and tells a modern client the changes of the server.
//!
//! The handler of the request is the subscription: it ends with the connection, with a cancellation, or with the server.

use std::sync::Arc;

use antiphon::{ErrorObject, Outcome, Params, RawJson};
use serde::Serialize;

use super::changes::{
    ChangeFilter, ChangeListener, MAX_SUBSCRIBED_BYTES, MAX_SUBSCRIBED_URIS, SubscriptionMeta,
    WaitingChanges,
};
use super::context::RequestContext;
use super::request::{decode_params, invalid_params};
use super::tasks;
use crate::http::HttpRequest;
use crate::types::{SubscriptionFilter, SubscriptionsListenParams, methods};

/// Serves `subscriptions/listen`.
pub(crate) async fn listen(cx: RequestContext, params: Option<Params>) -> Outcome {
    let params: SubscriptionsListenParams = decode_params(params.as_ref())?;
    let accepted = accepted(&cx, params.notifications)?;
    let filter = ChangeFilter::try_from(&accepted).map_err(|_| over_limit())?;
    let changes = Arc::new(WaitingChanges::new(filter));
    let listener: Arc<dyn ChangeListener> = changes.clone();
    cx.server().listeners().add(Arc::downgrade(&listener));
    tasks::tell_states(&cx, &changes, accepted.task_ids.as_deref());
    for uri in accepted.resource_subscriptions.iter().flatten() {
        cx.server().begin_interest(uri);
    }
    let id = subscription_id(&cx)?;
    let acknowledged = Acknowledged { meta: SubscriptionMeta::new(&id), notifications: &accepted };
    cx.notify(methods::SUBSCRIPTIONS_ACKNOWLEDGED, acknowledged).await?;
    let stopping = cx.server().state.lifetime.listening();
    tokio::select! {
        biased;
        () = stopping.cancelled() => {}
        error = tell(&cx, &changes, &id) => return Err(error),
    }
    // A stream of HTTP ends by itself. On a shared channel, the client is told first.
    if cx.rpc().extensions().get::<HttpRequest>().is_none() {
        let cancelled = Cancelled { meta: SubscriptionMeta::new(&id), request_id: &id };
        let _ = cx.notify(methods::CANCELLED, cancelled).await;
    }
    let server = cx.server();
    let meta = SubscriptionMeta::new(&id).of(server.implementation());
    RawJson::encode(&Ended { result_type: "complete", meta }).map_err(ErrorObject::internal)
}

#[derive(Serialize)]
struct Acknowledged<'a> {
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
    notifications: &'a SubscriptionFilter,
}

/// The notification that the server ends a subscription.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
    request_id: &'a RawJson,
}

/// The result at the end of a subscription.
#[derive(Serialize)]
struct Ended<'a> {
    #[serde(rename = "resultType")]
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
}

fn over_limit() -> ErrorObject {
    let reason = format!(
        "over the limit of {MAX_SUBSCRIBED_URIS} resources, whose URIs have {MAX_SUBSCRIBED_BYTES} bytes together"
    );
    invalid_params("notifications.resourceSubscriptions", &reason)
}

/// The part of a filter that the server can serve.
fn accepted(
    cx: &RequestContext,
    mut filter: SubscriptionFilter,
) -> Result<SubscriptionFilter, ErrorObject> {
    let capabilities = cx.server().capabilities();
    filter.task_ids = tasks::subscribed(cx, filter.task_ids.take())?;
    filter.tools_list_changed.take_if(|_| capabilities.tools.is_none());
    filter.prompts_list_changed.take_if(|_| capabilities.prompts.is_none());
    filter.resources_list_changed.take_if(|_| capabilities.resources.is_none());
    filter.resource_subscriptions.take_if(|_| capabilities.resources.is_none());
    Ok(filter)
}

/// The id of the request is the id of the subscription.
fn subscription_id(cx: &RequestContext) -> Result<RawJson, ErrorObject> {
    let id = cx.rpc().id().map(|id| RawJson::parse(id.as_str().to_owned()));
    match id {
        Some(Ok(id)) => Ok(id),
        _ => Err(ErrorObject::invalid_request()),
    }
}

/// Tells the client the changes until it is gone.
async fn tell(cx: &RequestContext, changes: &WaitingChanges, id: &RawJson) -> ErrorObject {
    loop {
        for change in changes.next().await {
            if let Err(error) = cx.notify(change.method(), change.params(Some(id))).await {
                return error.into();
            }
        }
    }
}
