//! Progress of a request.

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use super::number;
use super::token::ProgressToken;

/// The params of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token of the request.
    pub progress_token: ProgressToken,
    /// The progress so far. It increases with each notification.
    #[serde(with = "number::float")]
    pub progress: f64,
    /// The progress at the end, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "number::opt_float")]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ProgressParams {
    /// Reports progress.
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        let progress_token = progress_token.into();
        Self { progress_token, progress, total: None, message: None, meta: Meta::new() }
    }
}

setters! { ProgressParams { with_total => total: f64, with_message => message: String } }
meta_setters! { ProgressParams }
