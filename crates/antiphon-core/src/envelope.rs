//! Classification of one JSON Object as a Request, a Notification, a Response, or an invalid message.
//!
//! This module does not scan bytes itself, and does not copy a value before the message is known to be
//! valid.
//!
//! Invariant: an Object with `result` or `error` and without `method` is a Response, valid or not, and
//! is never answered. Everything else that is invalid is answered with an error.

use std::fmt;

use bytes::Bytes;

use crate::batch::{ScannedCall, ScannedEntry};
use crate::decode::{Rules, invalid};
use crate::error::{Code, ErrorObject};
use crate::escape::unescape;
use crate::id::{Id, trim_zero_fraction};
use crate::json::RawJson;
use crate::members::{KnownMembers, MemberNames, ValueSpan};
use crate::message::{Entry, Intent, Invalid, Message, Notification, Outcome, Request, Response};
use crate::scan::{JsonKind, Scanner};
use crate::trace_context::TraceContext;
use crate::version::Versions;

/// The members of JSON-RPC. If several members occur twice, the first one in this list is reported. `id` is first,
/// because the error for a message with two ids has a null id.
const ENVELOPE: MemberNames<6> =
    MemberNames::new(["id", "jsonrpc", "method", "params", "result", "error"]);
pub(crate) const ID: usize = 0;
pub(crate) const JSONRPC: usize = 1;
pub(crate) const METHOD: usize = 2;
const PARAMS: usize = 3;
pub(crate) const RESULT: usize = 4;
pub(crate) const ERROR: usize = 5;

/// The bytes that follow the opening brace in most messages. They are recognised without a scan.
const COMMON_PREFIX: &[u8; 16] = b"\"jsonrpc\":\"2.0\",";

/// The members of one message.
pub(crate) struct Envelope<'a> {
    pub(crate) frame: &'a Bytes,
    members: KnownMembers<6>,
    /// The frame has an escape in this Object or before it.
    escaped: bool,
}

impl<'a> Envelope<'a> {
    pub(crate) fn of(frame: &'a Bytes) -> Self {
        Self { frame, members: KnownMembers::NONE, escaped: false }
    }

    /// Reads the Object whose opening brace is at `at`, and returns its end. `depth` counts the open
    /// brackets around it.
    #[inline]
    pub(crate) fn read(
        &mut self,
        scanner: &mut Scanner<'_>,
        at: usize,
        depth: usize,
    ) -> Option<usize> {
        let mut at = scanner.enter(at, depth)?;
        if self.frame.get(at..).and_then(<[u8]>::first_chunk) == Some(COMMON_PREFIX) {
            at += COMMON_PREFIX.len();
            self.members.spans[JSONRPC] = ValueSpan::new(at - 6, at - 1);
        } else if let Some(end) = scanner.empty(at) {
            return Some(end);
        }
        let end = self.members.read(scanner, at, depth + 1, self.frame, &ENVELOPE)?;
        self.escaped = scanner.escaped();
        Some(end)
    }

    pub(crate) fn span(&self, name: usize) -> ValueSpan {
        self.members.spans[name]
    }

    pub(crate) fn has(&self, name: usize) -> bool {
        !self.span(name).is_none()
    }

    pub(crate) fn kind(&self, name: usize) -> JsonKind {
        self.span(name).kind(self.frame)
    }

    #[inline(always)]
    pub(crate) fn json(&self, name: usize) -> RawJson {
        self.span(name).json(self.frame)
    }

    /// Returns the message, or the error for it.
    #[inline]
    pub(crate) fn to_entry(&self, rules: &Rules) -> Entry {
        self.to_entry_of(rules, false)
    }

    #[inline(always)]
    fn to_entry_of(&self, rules: &Rules, in_batch: bool) -> Entry {
        if self.is_response() {
            return self.to_response(rules);
        }
        match self.call(rules) {
            Ok(call) if self.has_trace() => Ok(self.traced(call)),
            Ok(call) => Ok(call.to_message(self.frame)),
            Err(reason) => self.to_other_call(reason, rules, in_batch),
        }
    }

    /// Builds the entry of a call that breaks a rule of 2.0. It takes the reason by value, because a reference would
    /// force every call to store it in memory.
    #[cold]
    #[inline(never)]
    #[expect(clippy::needless_pass_by_value)]
    fn to_other_call(&self, reason: EnvelopeError, rules: &Rules, in_batch: bool) -> Entry {
        let legacy = self.to_legacy_entry(rules, in_batch);
        legacy.unwrap_or_else(|| invalid(self.readable_id(), &format_args!("{reason}")))
    }

    /// Like `to_entry`, for a batch: keeps only the spans of a valid call or result.
    #[inline(always)]
    pub(crate) fn to_scanned_entry(&self, rules: &Rules) -> ScannedEntry {
        if self.is_response() {
            if let Ok(true) = self.holds_result() {
                return ScannedEntry::Result { id: self.span(ID), result: self.span(RESULT) };
            }
        } else if let Ok(call) = self.call(rules)
            && !self.has_trace()
        {
            return ScannedEntry::Call(call);
        }
        self.to_other_entry(rules)
    }

    #[cold]
    #[inline(never)]
    fn to_other_entry(&self, rules: &Rules) -> ScannedEntry {
        ScannedEntry::Other(Box::new(self.to_entry_of(rules, true)))
    }

    #[inline(always)]
    fn has_trace(&self) -> bool {
        !self.members.trace[0].is_none()
    }

    /// Builds the call with its trace context.
    #[cold]
    fn traced(&self, call: ScannedCall) -> Message {
        let context = self.trace();
        let mut message = call.to_message(self.frame);
        match &mut message {
            Message::Request(Request { trace, .. })
            | Message::Notification(Notification { trace, .. }) => *trace = context,
            Message::Response(_) => {}
        }
        message
    }

    pub(crate) fn trace(&self) -> Option<Box<TraceContext>> {
        let [parent, state] = self.members.trace;
        TraceContext::at(parent, state, self.frame).map(Box::new)
    }

    fn is_response(&self) -> bool {
        !self.has(METHOD) && (self.has(RESULT) || self.has(ERROR))
    }

    /// The spans of a Request or a Notification, or the reason why it is not valid.
    #[inline(always)]
    fn call(&self, rules: &Rules) -> Result<ScannedCall, EnvelopeError> {
        self.check_common()?;
        self.check_call(rules)
    }

    /// Checks the members that only a call has.
    #[inline(always)]
    pub(crate) fn check_call(&self, rules: &Rules) -> Result<ScannedCall, EnvelopeError> {
        if !self.has(METHOD) {
            return Err(EnvelopeError::Missing(METHOD));
        }
        match self.kind(METHOD) {
            JsonKind::String => {}
            kind => return Err(EnvelopeError::Kind(METHOD, kind)),
        }
        let mut params = self.span(PARAMS);
        match self.kind(PARAMS) {
            JsonKind::Array | JsonKind::Object => {}
            _ if params.is_none() => {}
            JsonKind::Null if rules.null_params => params = ValueSpan::NONE,
            kind => return Err(EnvelopeError::Kind(PARAMS, kind)),
        }
        let (id, method, escaped) = (self.span(ID), self.span(METHOD), self.escaped);
        Ok(ScannedCall { id, method, params, escaped })
    }

    #[inline(always)]
    fn to_response(&self, rules: &Rules) -> Entry {
        match self.outcome() {
            Ok(outcome) => Ok(Message::Response(Response { id: self.readable_id(), outcome })),
            Err(reason) => self.to_other_response(reason, rules),
        }
    }

    /// Builds the entry of a Response that breaks a rule of 2.0.
    #[cold]
    #[inline(never)]
    fn to_other_response(&self, reason: EnvelopeError, rules: &Rules) -> Entry {
        let id = self.readable_id();
        let outcome = match rules.versions {
            Versions::V2 => Err(reason),
            Versions::V1AndV2 | Versions::Bitcoin => self.legacy_outcome(),
        };
        let outcome = outcome.map_err(|reason| {
            let error = ErrorObject::new(Code::INVALID_REQUEST.0, "Invalid Response");
            let error = error.with_data(&format_args!("{reason}"));
            Invalid { id: id.clone(), error, intent: Intent::Response }
        })?;
        Ok(Message::Response(Response { id, outcome }))
    }

    /// Whether a Response is a result and not an error, or the reason why it is not valid.
    fn holds_result(&self) -> Result<bool, EnvelopeError> {
        self.check_common()?;
        if !self.has(ID) {
            return Err(EnvelopeError::Missing(ID));
        }
        match (self.has(RESULT), self.has(ERROR)) {
            (true, true) => Err(EnvelopeError::ResultAndError),
            (is_result, _) => Ok(is_result),
        }
    }

    fn outcome(&self) -> Result<Outcome, EnvelopeError> {
        if self.holds_result()? {
            return Ok(Ok(self.json(RESULT)));
        }
        let error = error_object(&self.frame.slice(self.span(ERROR).range()));
        error.map(Err).map_err(EnvelopeError::Error)
    }

    /// The id for an error response: null if the id is absent, has a wrong type, or occurs twice.
    #[inline]
    fn readable_id(&self) -> Id {
        if !self.has(ID) || self.members.duplicate == Some(ID) {
            return Id::Null;
        }
        Id::at(self.span(ID), self.frame)
    }

    /// Checks the rules that calls and Responses share: duplicates, version, type of the id.
    #[inline(always)]
    fn check_common(&self) -> Result<(), EnvelopeError> {
        self.check_duplicates()?;
        if !self.has(JSONRPC) {
            return Err(EnvelopeError::Missing(JSONRPC));
        }
        let version = self.span(JSONRPC).of(self.frame);
        if version != b"\"2.0\"" && !self.is_escaped_version(version) {
            return Err(EnvelopeError::Version);
        }
        match self.kind(ID) {
            kind @ (JsonKind::Boolean | JsonKind::Array | JsonKind::Object) if self.has(ID) => {
                Err(EnvelopeError::Kind(ID, kind))
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    pub(crate) fn check_duplicates(&self) -> Result<(), EnvelopeError> {
        self.members.duplicate.map_or(Ok(()), |name| Err(EnvelopeError::Twice(name)))
    }

    #[cold]
    fn is_escaped_version(&self, version: &[u8]) -> bool {
        self.kind(JSONRPC) == JsonKind::String && *unescape(version) == *b"2.0"
    }
}

/// The reason why an Object is not a valid message.
pub(crate) enum EnvelopeError {
    Missing(usize),
    Twice(usize),
    Kind(usize, JsonKind),
    /// `jsonrpc` is not "2.0", and no other version is accepted.
    Version,
    /// `jsonrpc` is neither "1.0" nor "2.0".
    UnknownVersion,
    ResultAndError,
    Error(String),
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |name: usize| ENVELOPE.names[name];
        let wanted = |name| match name {
            ID => "a String, a Number or Null",
            METHOD | JSONRPC => "a String",
            _ => "an Array or an Object",
        };
        match self {
            Self::Missing(JSONRPC) => f.write_str("`jsonrpc` is missing; it must be \"2.0\""),
            Self::Missing(member) => write!(f, "`{}` is missing", name(*member)),
            Self::Twice(member) => write!(f, "`{}` occurs twice", name(*member)),
            Self::Kind(member, kind) => {
                write!(f, "`{}` must be {}, found {kind}", name(*member), wanted(*member))
            }
            Self::Version => f.write_str("`jsonrpc` must be \"2.0\""),
            Self::UnknownVersion => f.write_str("`jsonrpc` must be \"1.0\" or \"2.0\""),
            Self::ResultAndError => f.write_str("`result` and `error` must not occur together"),
            Self::Error(reason) => f.write_str(reason),
        }
    }
}

impl ErrorObject {
    /// Reads an error from a JSON value, as from the `error` member of a Response; `None` if it is not an
    /// error object.
    ///
    /// ```
    /// use antiphon_core::{ErrorObject, RawJson};
    ///
    /// let error = RawJson::parse(r#"{"code": 7, "message": "out of tea", "data": 1.50}"#)?;
    /// let error = ErrorObject::from_json(error).ok_or("not an error object")?;
    /// assert_eq!(error.data.unwrap().as_str(), "1.50");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_json(value: RawJson) -> Option<Self> {
        error_object(&value.into_bytes()).ok()
    }
}

/// Reads the `error` member of a Response (section 5.1).
fn error_object(text: &Bytes) -> Result<ErrorObject, String> {
    if JsonKind::of(text.first()) != JsonKind::Object {
        return Err("`error` must be an Object".to_owned());
    }
    let mut scanner = Scanner::new(text, usize::MAX);
    let names = MemberNames::new(["code", "message", "data"]);
    let mut members = KnownMembers::NONE;
    if scanner.empty(1).is_none() {
        members.read(&mut scanner, 1, 1, text, &names).ok_or("`error` is not JSON")?;
    }
    let KnownMembers { spans: [code, message, data], duplicate, .. } = members;
    if duplicate.is_some() {
        return Err("a member of `error` occurs twice".to_owned());
    }
    let number = std::str::from_utf8(code.of(text)).unwrap_or_default();
    let code = trim_zero_fraction(number).parse().map_err(|_| "`error.code` must be an integer")?;
    if message.is_none() || message.kind(text) != JsonKind::String {
        return Err("`error.message` must be a String".to_owned());
    }
    let message = String::from_utf8_lossy(&unescape(message.of(text))).into_owned();
    let data = (!data.is_none()).then(|| data.json(text));
    Ok(ErrorObject { data, ..ErrorObject::new(code, message) })
}
