//! Input that a server needs before it can answer a request (2026-07-28).
//!
//! The server returns an [`InputRequiredResult`]. The client repeats the request with the answers and with the
//! unchanged state.

use std::collections::BTreeMap;

use antiphon::RawJson;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::elicitation::{ElicitParams, ElicitResult};
use super::meta::Meta;
use super::methods;
use super::object::from_object;
use super::request::{RequestParams, ResultType};
use super::roots::ListRootsResult;
use super::sampling::{CreateMessageParams, CreateMessageResult};
use super::tool::JsonObject;

/// The requests of a server to its client, by names that the server chooses.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// The answers of a client, by the names of the requests.
pub type InputResponses = BTreeMap<String, InputResponse>;

/// A request of a server to its client.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InputRequest {
    /// `elicitation/create`.
    Elicit(ElicitParams),
    /// `sampling/createMessage`.
    CreateMessage(Box<CreateMessageParams>),
    /// `roots/list`.
    ListRoots(RequestParams),
    /// A method that this crate does not know.
    Other {
        /// The method.
        method: String,
        /// The params.
        params: Option<RawJson>,
    },
}

impl InputRequest {
    /// Asks the user.
    pub fn elicit(params: impl Into<ElicitParams>) -> Self {
        Self::Elicit(params.into())
    }

    /// Asks the model.
    pub fn create_message(params: CreateMessageParams) -> Self {
        Self::CreateMessage(Box::new(params))
    }

    /// Asks for the roots.
    pub fn list_roots() -> Self {
        Self::ListRoots(RequestParams::new())
    }

    /// The method of the request.
    pub fn method(&self) -> &str {
        match self {
            Self::Elicit(_) => methods::ELICIT,
            Self::CreateMessage(_) => methods::CREATE_MESSAGE,
            Self::ListRoots(_) => methods::LIST_ROOTS,
            Self::Other { method, .. } => method,
        }
    }
}

#[derive(Serialize)]
struct Written<'a, T> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a T>,
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let method = self.method();
        match self {
            Self::Elicit(params) => Written { method, params: Some(params) }.serialize(serializer),
            Self::CreateMessage(params) => {
                Written { method, params: Some(params) }.serialize(serializer)
            }
            Self::ListRoots(params) => {
                let params = (!params.meta.is_empty()).then_some(params);
                Written { method, params }.serialize(serializer)
            }
            Self::Other { params, .. } => {
                Written { method, params: params.as_ref() }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Read {
            method: String,
            #[serde(default)]
            params: Option<RawJson>,
        }
        let Read { method, params } = Read::deserialize(deserializer)?;
        request_of(method, params).map_err(D::Error::custom)
    }
}

fn request_of(method: String, params: Option<RawJson>) -> Result<InputRequest, serde_json::Error> {
    let text = params.as_ref().map_or("{}", RawJson::as_str);
    Ok(match &*method {
        methods::ELICIT => InputRequest::Elicit(serde_json::from_str(text)?),
        methods::CREATE_MESSAGE => InputRequest::CreateMessage(Box::new(from_object(text)?)),
        methods::LIST_ROOTS => InputRequest::ListRoots(from_object(text)?),
        _ => InputRequest::Other { method, params },
    })
}

/// The answer to one request: its result. Only the server knows its type, from the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponse(pub JsonObject);

impl InputResponse {
    /// Creates an answer. A value that is not an Object becomes an empty one.
    pub fn new(result: &impl Serialize) -> Self {
        match serde_json::to_value(result) {
            Ok(Value::Object(members)) => Self(members),
            _ => Self::default(),
        }
    }

    /// Reads the answer as the result of the request, such as [`ElicitResult`].
    ///
    /// # Errors
    /// Fails if the answer does not have this type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.0.clone()))
    }
}

impl From<ElicitResult> for InputResponse {
    fn from(result: ElicitResult) -> Self {
        Self::new(&result)
    }
}

impl From<CreateMessageResult> for InputResponse {
    fn from(result: CreateMessageResult) -> Self {
        Self::new(&result)
    }
}

impl From<ListRootsResult> for InputResponse {
    fn from(result: ListRootsResult) -> Self {
        Self::new(&result)
    }
}

/// A result that asks for input. At least one of the two members is present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The kind of result: `InputRequired`.
    pub result_type: ResultType,
    /// The requests to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The state of the server. The client sends it back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata of the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Other members.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Default for InputRequiredResult {
    fn default() -> Self {
        Self {
            result_type: ResultType::InputRequired,
            input_requests: None,
            request_state: None,
            meta: Meta::new(),
            extra: JsonObject::new(),
        }
    }
}

impl InputRequiredResult {
    /// Creates a result without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request.
    #[must_use]
    pub fn with_request(mut self, name: impl Into<String>, request: InputRequest) -> Self {
        self.input_requests.get_or_insert_default().insert(name.into(), request);
        self
    }
}

setters! { InputRequiredResult {
    with_input_requests => input_requests: InputRequests,
    with_request_state => request_state: String,
} }
meta_setters! { InputRequiredResult }
