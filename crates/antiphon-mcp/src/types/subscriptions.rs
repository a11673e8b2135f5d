//! Subscriptions to the notifications of a server (2026-07-28).

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use super::request::ResultType;
use super::token::RequestId;
use super::tool::JsonObject;

/// The notifications that a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// `notifications/tools/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// `notifications/prompts/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// `notifications/resources/list_changed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// `notifications/resources/updated` of these URIs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// `notifications/tasks` of these tasks (the extension `io.modelcontextprotocol/tasks`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// Creates a filter for no notifications.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a filter for the changes of all lists.
    pub fn list_changes() -> Self {
        Self::new()
            .with_tools_list_changed(true)
            .with_prompts_list_changed(true)
            .with_resources_list_changed(true)
    }

    /// Whether the filter selects nothing.
    pub fn is_empty(&self) -> bool {
        let lists =
            [self.tools_list_changed, self.prompts_list_changed, self.resources_list_changed];
        let ids = [&self.resource_subscriptions, &self.task_ids];
        !lists.contains(&Some(true)) && ids.iter().all(|ids| ids.as_ref().is_none_or(Vec::is_empty))
    }
}

setters! { SubscriptionFilter {
    with_tools_list_changed => tools_list_changed: bool,
    with_prompts_list_changed => prompts_list_changed: bool,
    with_resources_list_changed => resources_list_changed: bool,
    with_resource_subscriptions => resource_subscriptions: Vec<String>,
    with_task_ids => task_ids: Vec<String>,
} }

/// The params of `subscriptions/listen`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionsListenParams {
    /// The notifications that the client wants.
    pub notifications: SubscriptionFilter,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SubscriptionsListenParams {
    /// Asks for notifications.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: Meta::new() }
    }
}

/// The params of `notifications/subscriptions/acknowledged`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionsAcknowledgedParams {
    /// The notifications that the server will send.
    pub notifications: SubscriptionFilter,
    /// Metadata of the notification, with the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SubscriptionsAcknowledgedParams {
    /// Confirms a subscription.
    pub fn new(subscription: &RequestId, notifications: SubscriptionFilter) -> Self {
        let mut meta = Meta::new();
        meta.set_subscription_id(subscription);
        Self { notifications, meta }
    }
}

/// The result of `subscriptions/listen`: the server has ended the subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionsListenResult {
    /// The kind of result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata of the result, with the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscriptionsListenResult {
    /// Ends a subscription.
    pub fn new(subscription: &RequestId) -> Self {
        let mut meta = Meta::new();
        meta.set_subscription_id(subscription);
        Self { result_type: Some(ResultType::Complete), meta, ..Self::default() }
    }
}

meta_setters! {
    SubscriptionsListenParams, SubscriptionsAcknowledgedParams, SubscriptionsListenResult,
}
