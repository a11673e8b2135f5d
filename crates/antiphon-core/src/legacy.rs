//! Classification of one JSON Object where a decoder reads JSON-RPC 1.0 beside 2.0.
//!
//! [`envelope`](crate::envelope) tries the rules of 2.0 first. This module sees only the Objects that break
//! them, so a message of 2.0 pays nothing for the other versions.
//!
//! Invariant: the response to a message has the version of that message. The id carries the version, because
//! the id is what travels from a request to its response. A message whose version cannot be read counts as
//! 1.0, as in Bitcoin nodes.

use crate::decode::Rules;
use crate::envelope::{ERROR, Envelope, EnvelopeError, ID, JSONRPC, RESULT};
use crate::error::ErrorObject;
use crate::escape::unescape;
use crate::id::{Id, OtherId};
use crate::json::RawJson;
use crate::message::{Entry, Intent, Invalid, Message, Notification, Outcome, Request};
use crate::scan::JsonKind;
use crate::version::{Version, Versions};

impl Envelope<'_> {
    /// Builds the entry of an Object that is not a valid call of 2.0; `None` if the rules of 2.0 apply to it.
    #[cold]
    pub(crate) fn to_legacy_entry(&self, rules: &Rules, in_batch: bool) -> Option<Entry> {
        let stated = self.version();
        let version = *stated.as_ref().unwrap_or(&Version::V1);
        match (rules.versions, version) {
            (Versions::V2, _) | (Versions::V1AndV2, Version::V2) => return None,
            (Versions::V1AndV2, Version::V1) | (Versions::Bitcoin, _) => {}
        }
        let is_notification = self.is_legacy_notification(version, rules.versions);
        let checked = stated.and_then(|_| self.check_duplicates());
        let call = match checked.and_then(|()| self.check_call(rules)) {
            Ok(call) => call,
            Err(reason) => {
                let error = ErrorObject::invalid_request().with_data(&format_args!("{reason}"));
                // Bitcoin nodes leave an invalid notification out of the reply to a batch.
                let is_silent = in_batch && is_notification && version == Version::V2;
                let intent = if is_silent { Intent::Notification } else { Intent::Request };
                return Some(Err(Invalid { id: self.invalid_id(version), error, intent }));
            }
        };
        let (method, params) = (call.method(self.frame), call.params(self.frame));
        let trace = self.trace();
        Some(Ok(if is_notification {
            Message::Notification(Notification { method, params, trace })
        } else {
            Message::Request(Request { id: self.legacy_id(version), method, params, trace })
        }))
    }

    /// The version that the message states, or the reason why it states none.
    fn version(&self) -> Result<Version, EnvelopeError> {
        match self.kind(JSONRPC) {
            _ if !self.has(JSONRPC) => Ok(Version::V1),
            JsonKind::Null => Ok(Version::V1),
            JsonKind::String => match &*unescape(self.span(JSONRPC).of(self.frame)) {
                b"1.0" => Ok(Version::V1),
                b"2.0" => Ok(Version::V2),
                _ => Err(EnvelopeError::UnknownVersion),
            },
            kind => Err(EnvelopeError::Kind(JSONRPC, kind)),
        }
    }

    fn is_legacy_notification(&self, version: Version, versions: Versions) -> bool {
        match (version, versions) {
            (Version::V2, _) => !self.has(ID),
            (Version::V1, Versions::Bitcoin) => false,
            (Version::V1, _) => self.kind_or_null(ID) == JsonKind::Null,
        }
    }

    /// The kind of a member; Null if it is absent.
    fn kind_or_null(&self, name: usize) -> JsonKind {
        if self.has(name) { self.kind(name) } else { JsonKind::Null }
    }

    /// The id of a request. One that 2.0 allows, in a message of 2.0, is a plain id.
    fn legacy_id(&self, version: Version) -> Id {
        let id = self.has(ID).then(|| self.json(ID));
        match (version, id) {
            (Version::V2, Some(id)) => {
                Id::from_json(id.clone()).unwrap_or_else(|| OtherId::id(version, Some(id)))
            }
            (_, id) => OtherId::id(version, id),
        }
    }

    /// The id in the error response to an invalid message: null if it occurs twice.
    fn invalid_id(&self, version: Version) -> Id {
        match self.check_duplicates() {
            Err(EnvelopeError::Twice(ID)) => OtherId::id(version, Some(RawJson::NULL)),
            _ => self.legacy_id(version),
        }
    }

    /// The outcome of a response that breaks the rules of 2.0. A member that is null counts as absent beside
    /// the other one.
    #[cold]
    pub(crate) fn legacy_outcome(&self) -> Result<Outcome, EnvelopeError> {
        self.version()?;
        self.check_duplicates()?;
        match (self.kind_or_null(RESULT), self.kind_or_null(ERROR)) {
            (_, JsonKind::Null) if self.has(RESULT) => Ok(Ok(self.json(RESULT))),
            (_, JsonKind::Null) => Err(EnvelopeError::Missing(RESULT)),
            (JsonKind::Null, _) => Ok(Err(legacy_error(self.json(ERROR)))),
            _ => Err(EnvelopeError::ResultAndError),
        }
    }
}

/// The code of an error that has none.
const UNKNOWN: i64 = -32000;

/// An error of 1.0, which may be any JSON value. Without a code and a message, the value becomes `data`.
fn legacy_error(error: RawJson) -> ErrorObject {
    ErrorObject::from_json(error.clone()).unwrap_or_else(|| {
        let text: Option<String> = error.decode().ok();
        let message = text.unwrap_or_else(|| "an error without a code and a message".to_owned());
        ErrorObject { data: Some(error), ..ErrorObject::new(UNKNOWN, message) }
    })
}
