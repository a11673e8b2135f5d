//! Elicitation: a server asks the user of the client, by a form or by a URL.

use antiphon::RawJson;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::elicitation_schema::ElicitationSchema;
use super::meta::Meta;
use super::object::from_object;
use super::tasks::TaskMetadata;
use super::tool::JsonObject;

/// The params of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitParams {
    /// Asks by a form.
    Form(ElicitFormParams),
    /// Asks by a URL that the user visits.
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// What the server wants to know, for the user.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
        }
    }
}

impl From<ElicitFormParams> for ElicitParams {
    fn from(form: ElicitFormParams) -> Self {
        Self::Form(form)
    }
}

impl From<ElicitUrlParams> for ElicitParams {
    fn from(url: ElicitUrlParams) -> Self {
        Self::Url(url)
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    /// Reads a form if there is no `mode`. The text is read twice, so that the fields of a form keep their order.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Mode {
            #[serde(default)]
            mode: Option<String>,
        }
        let json = RawJson::deserialize(deserializer)?;
        let read = |mode: Mode| match mode.mode.as_deref() {
            None | Some("form") => from_object(json.as_str()).map(Self::Form),
            Some("url") => from_object(json.as_str()).map(Self::Url),
            Some(other) => Err(Error::custom(format!(
                "unknown elicitation mode {other:?} (known are form and url)"
            ))),
        };
        from_object(json.as_str()).and_then(read).map_err(D::Error::custom)
    }
}

/// The mode `form`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormMode {
    /// The only value.
    #[default]
    Form,
}

/// The mode `url`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UrlMode {
    /// The only value.
    #[default]
    Url,
}

/// Asks the user by a form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitFormParams {
    /// The mode. An absent one means the same; 2025-06-18 has no modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// What the server wants to know, for the user.
    pub message: String,
    /// The fields of the form.
    pub requested_schema: ElicitationSchema,
    /// Asks for a task (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitFormParams {
    /// Asks for the fields of a form.
    pub fn new(message: impl Into<String>, requested_schema: ElicitationSchema) -> Self {
        Self { message: message.into(), requested_schema, ..Self::default() }
    }
}

setters! { ElicitFormParams { with_mode => mode: FormMode, with_task => task: TaskMetadata } }

/// Asks the user to visit a URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrlParams {
    /// The mode.
    #[serde(default)]
    pub mode: UrlMode,
    /// Why the user should visit the URL.
    pub message: String,
    /// The URL.
    pub url: String,
    /// The id that `notifications/elicitation/complete` refers to (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Asks for a task (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the request.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitUrlParams {
    /// Asks the user to visit a URL.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into(), ..Self::default() }
    }
}

setters! { ElicitUrlParams { with_elicitation_id => elicitation_id: String, with_task => task: TaskMetadata } }

/// The result of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitResult {
    /// What the user did.
    pub action: ElicitAction,
    /// The values of an accepted form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitResult {
    /// Creates the result of an action, without values.
    pub fn new(action: ElicitAction) -> Self {
        Self { action, content: None, meta: Meta::new(), extra: JsonObject::new() }
    }

    /// The user has submitted these values.
    pub fn accept(content: JsonObject) -> Self {
        Self { content: Some(content), ..Self::new(ElicitAction::Accept) }
    }

    /// The user has declined.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// The user has dismissed the question.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }

    /// Returns the submitted values as a type; `None` if the user has not accepted.
    ///
    /// # Errors
    /// Fails if the values do not have this type.
    pub fn accepted<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        if self.action != ElicitAction::Accept {
            return Ok(None);
        }
        let content = self.content.clone().unwrap_or_default();
        serde_json::from_value(Value::Object(content)).map(Some)
    }
}

/// What the user did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// Submitted the form, or agreed to visit the URL.
    Accept,
    /// Declined.
    Decline,
    /// Dismissed the question without a choice.
    Cancel,
}

/// The params of `notifications/elicitation/complete` (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The elicitation that is complete.
    pub elicitation_id: String,
    /// Metadata of the notification.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitationCompleteParams {
    /// Refers to an elicitation.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self { elicitation_id: elicitation_id.into(), meta: Meta::new() }
    }
}

meta_setters! { ElicitFormParams, ElicitUrlParams, ElicitResult, ElicitationCompleteParams }

/// The data of the error -32042 (2025-11-25): the user must visit URLs before the client repeats the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UrlElicitationRequired {
    /// The URLs.
    pub elicitations: Vec<ElicitUrlParams>,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl UrlElicitationRequired {
    /// Names the URLs.
    pub fn new(elicitations: Vec<ElicitUrlParams>) -> Self {
        Self { elicitations, extra: JsonObject::new() }
    }
}
