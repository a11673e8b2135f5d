//! `_meta`: metadata of params, results and items.
//!
//! The accessors read the members that the protocol defines. A member of another type counts as absent. Every other
//! member passes through unchanged.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::capabilities::ClientCapabilities;
use super::implementation::Implementation;
use super::logging::LoggingLevel;
use super::token::{ProgressToken, RequestId};

/// The member with the progress token of a request.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The member with the revision of a request (2026-07-28).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member with the name of the client (2026-07-28).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The member with the capabilities of the client for one request (2026-07-28).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member with the level of the log messages that the client wants for one request (2026-07-28).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The member of a result with the name of the server (2026-07-28).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The member of a notification with the id of its `subscriptions/listen` request (2026-07-28).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The member with the task of a message (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The member `_meta`. An empty one is not written.
///
/// ```
/// use antiphon_mcp::types::{Meta, ProgressToken};
///
/// let mut meta = Meta::new();
/// meta.set_progress_token(&ProgressToken::from("download"));
/// assert_eq!(meta.progress_token(), Some(ProgressToken::from("download")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Meta(pub Map<String, Value>);

impl Meta {
    /// Creates an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a member as a type; `None` if it is absent or has another type.
    pub fn member<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(self.0.get(key)?).ok()
    }

    /// Sets a member. A value that JSON cannot express is not set.
    pub fn set(&mut self, key: &str, value: impl Serialize) {
        if let Ok(value) = serde_json::to_value(value) {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// Sets a member.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Serialize) -> Self {
        self.set(key, value);
        self
    }

    /// The progress token.
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.member(PROGRESS_TOKEN)
    }

    /// Sets the progress token.
    pub fn set_progress_token(&mut self, token: &ProgressToken) {
        self.set(PROGRESS_TOKEN, token);
    }

    /// The revision as it was sent, known or not.
    pub fn protocol_version(&self) -> Option<&str> {
        self.0.get(PROTOCOL_VERSION)?.as_str()
    }

    /// Sets the revision.
    pub fn set_protocol_version(&mut self, version: &str) {
        self.set(PROTOCOL_VERSION, version);
    }

    /// The name of the client.
    pub fn client_info(&self) -> Option<Implementation> {
        self.member(CLIENT_INFO)
    }

    /// Sets the name of the client.
    pub fn set_client_info(&mut self, info: &Implementation) {
        self.set(CLIENT_INFO, info);
    }

    /// The capabilities of the client.
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        self.member(CLIENT_CAPABILITIES)
    }

    /// Sets the capabilities of the client.
    pub fn set_client_capabilities(&mut self, capabilities: &ClientCapabilities) {
        self.set(CLIENT_CAPABILITIES, capabilities);
    }

    /// The level of log messages that the client wants.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        self.member(LOG_LEVEL)
    }

    /// Sets the level of log messages that the client wants.
    pub fn set_log_level(&mut self, level: LoggingLevel) {
        self.set(LOG_LEVEL, level);
    }

    /// The name of the server.
    pub fn server_info(&self) -> Option<Implementation> {
        self.member(SERVER_INFO)
    }

    /// Sets the name of the server.
    pub fn set_server_info(&mut self, info: &Implementation) {
        self.set(SERVER_INFO, info);
    }

    /// The id of the `subscriptions/listen` request.
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.member(SUBSCRIPTION_ID)
    }

    /// Sets the id of the `subscriptions/listen` request.
    pub fn set_subscription_id(&mut self, id: &RequestId) {
        self.set(SUBSCRIPTION_ID, id);
    }

    /// The id of the task that the message belongs to.
    pub fn related_task(&self) -> Option<&str> {
        self.0.get(RELATED_TASK)?.get("taskId")?.as_str()
    }

    /// Sets the id of the task that the message belongs to.
    pub fn set_related_task(&mut self, task_id: &str) {
        self.set(RELATED_TASK, serde_json::json!({ "taskId": task_id }));
    }
}

impl From<Map<String, Value>> for Meta {
    fn from(members: Map<String, Value>) -> Self {
        Self(members)
    }
}

impl<'de> Deserialize<'de> for Meta {
    /// Reads an Object. Null counts as empty, because some peers write it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::deserialize(deserializer)?.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_another_type_counts_as_absent() {
        let meta: Meta = serde_json::from_value(serde_json::json!({
            "progressToken": [], "io.modelcontextprotocol/logLevel": "loud",
            "io.modelcontextprotocol/protocolVersion": "1900-01-01", "com.example/mine": [1],
        }))
        .unwrap();
        assert_eq!(meta.progress_token(), None);
        assert_eq!(meta.log_level(), None);
        assert_eq!(meta.protocol_version(), Some("1900-01-01"));
        assert_eq!(meta.member::<Vec<u8>>("com.example/mine"), Some(vec![1]));
    }

    #[test]
    fn members_are_read_as_they_were_set() {
        let mut meta = Meta::new().with("own", 1);
        meta.set_related_task("t1");
        meta.set_subscription_id(&RequestId::from(7_u64));
        meta.set_log_level(LoggingLevel::Warning);
        meta.set_client_info(&Implementation::new("c", "1"));
        assert_eq!(meta.related_task(), Some("t1"));
        assert_eq!(meta.subscription_id(), Some(RequestId::from(7_u64)));
        assert_eq!(meta.log_level(), Some(LoggingLevel::Warning));
        assert_eq!(meta.client_info(), Some(Implementation::new("c", "1")));
    }
}
