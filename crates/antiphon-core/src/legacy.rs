//! Classification of one JSON Object if a decoder accepts JSON-RPC 1.0 as well as 2.0.
//!
//! [`envelope`](crate::envelope) tries the rules of 2.0 first. This module sees only Objects that break those rules,
//! so support for 1.0 does not slow down 2.0 messages.
//!
//! Invariant: a response has the version of its request. The version is part of the id, because the id is copied from
//! the request to the response. A message whose version cannot be read counts as 1.0, as in Bitcoin nodes.

use std::collections::HashMap;

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
    /// Returns the entry of an Object that is not a valid 2.0 call. `None` for an Object to which the rules of 2.0 apply.
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
                // Bitcoin nodes do not respond to an invalid notification in a batch.
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

    /// Returns the version of the message, or the reason why it has no valid one.
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

    /// Returns the kind of a member; Null if it is absent.
    fn kind_or_null(&self, name: usize) -> JsonKind {
        if self.has(name) { self.kind(name) } else { JsonKind::Null }
    }

    /// Returns the id of a request. In a 2.0 message, an id that 2.0 allows stays a plain [`Id`]; any other id becomes an
    /// [`OtherId`].
    fn legacy_id(&self, version: Version) -> Id {
        let id = self.has(ID).then(|| self.json(ID));
        match (version, id) {
            (Version::V2, Some(id)) => {
                Id::from_json(id.clone()).unwrap_or_else(|| OtherId::id(version, Some(id)))
            }
            (_, id) => OtherId::id(version, id),
        }
    }

    /// Returns the id for the error response to an invalid message: null if `id` occurs twice.
    fn invalid_id(&self, version: Version) -> Id {
        match self.check_duplicates() {
            Err(EnvelopeError::Twice(ID)) => OtherId::id(version, Some(RawJson::NULL)),
            _ => self.legacy_id(version),
        }
    }

    /// Returns the outcome of a response that breaks the rules of 2.0. If both `result` and `error` are present, the one
    /// that is null counts as absent.
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

/// The code for an error without a code.
const UNKNOWN: i64 = -32000;

/// Converts a 1.0 error, which may be any JSON value. A value that is not an Object with `code` and `message` becomes
/// the `data`. Its code is kept if it has one.
fn legacy_error(error: RawJson) -> ErrorObject {
    ErrorObject::from_json(error.clone()).unwrap_or_else(|| {
        // A derived struct would accept an Array.
        let members: Option<HashMap<String, RawJson>> = error.decode().ok();
        let code = members.and_then(|members| members.get("code")?.decode().ok());
        let text: Option<String> = error.decode().ok();
        let message = text.unwrap_or_else(|| "an error without a message".to_owned());
        ErrorObject { data: Some(error), ..ErrorObject::new(code.unwrap_or(UNKNOWN), message) }
    })
}
