//! Cancellation of a request.

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use super::token::RequestId;

/// The params of `notifications/cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The request. It may be absent in 2025-11-25, where tasks are cancelled by `tasks/cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Why the request was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CancelledParams {
    /// Cancels a request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: Some(request_id.into()), ..Self::default() }
    }
}

setters! { CancelledParams { with_reason => reason: String } }
meta_setters! { CancelledParams }
