//! Bytes to messages, in one pass.
//!
//! Decoding never fails: what is no message becomes an [`Invalid`] with the error that its sender
//! should see. Nothing is tried twice and nothing is derived, since a derived struct would take an
//! Array for an Object and an absent `id` for a null one.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Code, ErrorObject};
use crate::escape::unescape;
use crate::id::{Id, whole};
use crate::json::RawJson;
use crate::message::{
    Entry, Intent, Invalid, Message, Method, Notification, Outcome, Params, Payload, Request,
    Response,
};
use crate::scan::{Fault, Kind, Scanner};

/// How much a payload may hold, and where it may bend the specification.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The deepest nesting of Arrays and Objects.
    pub depth: usize,
    /// The most entries of a batch.
    pub batch_entries: usize,
    /// The same for a batch of answers, which is as long as we have asked for.
    pub batch_answers: usize,
    /// Reads `"params": null` as absent, as some clients write it.
    pub null_params: bool,
}

impl Default for Rules {
    fn default() -> Self {
        crate::Limits::default().rules()
    }
}

/// Decodes one frame.
///
/// ```
/// use antiphon_core::{Message, Payload, decode};
///
/// let frame = br#"{"jsonrpc": "2.0", "method": "sum", "params": [1, 2], "id": 1.50}"#;
/// let Payload::One(Ok(Message::Request(request))) = decode(&frame[..].into(), &Default::default())
/// else { panic!("it is a Request") };
/// assert_eq!(request.id.as_str(), "1.50");
/// ```
pub fn decode(frame: &Bytes, rules: &Rules) -> Payload {
    payload(frame, rules).unwrap_or_else(|fault| {
        let error = ErrorObject::parse_error().with_data(&format_args!("{fault}"));
        Payload::One(Err(Invalid { id: Id::Null, error, intent: Intent::Request }))
    })
}

fn payload(frame: &Bytes, rules: &Rules) -> Result<Payload, Fault> {
    let mut scanner = Scanner::new(frame, rules.depth)?;
    scanner.whitespace();
    let payload = match scanner.peek() {
        Some(b'[') => batch(&mut scanner, frame, rules)?,
        _ => Payload::One(entry(&mut scanner, frame, rules)?),
    };
    scanner.end()?;
    Ok(payload)
}

fn batch(scanner: &mut Scanner<'_>, frame: &Bytes, rules: &Rules) -> Result<Payload, Fault> {
    scanner.enter(false)?;
    scanner.whitespace();
    let mut entries = Vec::new();
    if scanner.eat(b']') {
        scanner.leave();
        return Ok(Payload::One(invalid(Id::Null, "a batch may not be empty")));
    }
    loop {
        let limit = match entries.first() {
            Some(Ok(Message::Response(_))) => rules.batch_answers,
            _ => rules.batch_entries,
        };
        if entries.len() < limit {
            entries.push(entry(scanner, frame, rules)?);
        } else {
            // The rest is still checked: a text that is no JSON is a Parse error, however long.
            return skip_rest(scanner, limit);
        }
        scanner.whitespace();
        if scanner.eat(b']') {
            scanner.leave();
            return Ok(Payload::Batch(entries));
        }
        if !scanner.eat(b',') {
            return scanner.fault("expected ',' or ']'");
        }
    }
}

fn skip_rest(scanner: &mut Scanner<'_>, limit: usize) -> Result<Payload, Fault> {
    loop {
        scanner.value()?;
        scanner.whitespace();
        if scanner.eat(b']') {
            scanner.leave();
            let error = ErrorObject::batch_too_large(limit);
            let invalid = Invalid { id: Id::Null, error, intent: Intent::Request };
            return Ok(Payload::One(Err(invalid)));
        }
        if !scanner.eat(b',') {
            return scanner.fault("expected ',' or ']'");
        }
    }
}

fn entry(scanner: &mut Scanner<'_>, frame: &Bytes, rules: &Rules) -> Result<Entry, Fault> {
    scanner.whitespace();
    if scanner.peek() == Some(b'{') {
        return Ok(Envelope::read(scanner, frame)?.into_entry(rules));
    }
    let value = scanner.value()?;
    let kind = Kind::of(frame.get(value.start));
    Ok(invalid(Id::Null, &format_args!("a message must be an Object, found {kind}")))
}

fn invalid(id: Id, reason: &(impl serde::Serialize + ?Sized)) -> Entry {
    let error = ErrorObject::invalid_request().with_data(reason);
    Err(Invalid { id, error, intent: Intent::Request })
}

/// The members that JSON-RPC knows, as they stood in one Object.
#[derive(Default)]
struct Envelope {
    jsonrpc: Option<RawJson>,
    method: Option<RawJson>,
    params: Option<RawJson>,
    id: Option<RawJson>,
    result: Option<RawJson>,
    error: Option<RawJson>,
    duplicate: Option<&'static str>,
}

impl Envelope {
    fn read(scanner: &mut Scanner<'_>, frame: &Bytes) -> Result<Self, Fault> {
        let mut envelope = Self::default();
        members(scanner, frame, |name, value| envelope.keep(name, value))?;
        Ok(envelope)
    }

    /// Unknown members are ignored; of a known one there may be one (RFC 8259 leaves it open, and a
    /// proxy that reads the first would disagree with a server that reads the last).
    fn keep(&mut self, name: &[u8], value: RawJson) {
        let (name, slot) = match name {
            b"jsonrpc" => ("jsonrpc", &mut self.jsonrpc),
            b"method" => ("method", &mut self.method),
            b"params" => ("params", &mut self.params),
            b"id" => ("id", &mut self.id),
            b"result" => ("result", &mut self.result),
            b"error" => ("error", &mut self.error),
            _ => return,
        };
        // Two ids are remembered above all: neither of them may be answered with.
        if slot.replace(value).is_some() && self.duplicate != Some("id") {
            self.duplicate = Some(name);
        }
    }

    fn into_entry(self, rules: &Rules) -> Entry {
        if self.method.is_none() && (self.result.is_some() || self.error.is_some()) {
            self.into_response()
        } else {
            self.into_request(rules)
        }
    }

    fn into_request(self, rules: &Rules) -> Entry {
        let id = self.readable_id();
        let is_notification = self.id.is_none();
        match self.into_call(rules) {
            Err(reason) => invalid(id, &reason),
            Ok((method, params)) if is_notification => {
                Ok(Message::Notification(Notification { method, params }))
            }
            Ok((method, params)) => Ok(Message::Request(Request { id, method, params })),
        }
    }

    fn into_call(self, rules: &Rules) -> Result<(Method, Option<Params>), String> {
        self.common_fault()?;
        let method = self.method.ok_or("`method` is missing")?;
        let kind = method.kind();
        let method = Method::from_json(method)
            .ok_or_else(|| format!("`method` must be a String, found {kind}"))?;
        let params = self.params.filter(|value| !rules.null_params || value.kind() != Kind::Null);
        let params = params.map(|value| {
            let kind = value.kind();
            Params::from_json(value)
                .map_err(|_| format!("`params` must be an Array or an Object, found {kind}"))
        });
        Ok((method, params.transpose()?))
    }

    fn into_response(self) -> Entry {
        let id = self.readable_id();
        match self.into_outcome() {
            Ok(outcome) => Ok(Message::Response(Response { id, outcome })),
            Err(reason) => {
                let error = ErrorObject::new(Code::INVALID_REQUEST.0, "Invalid Response");
                Err(Invalid { id, error: error.with_data(&reason), intent: Intent::Response })
            }
        }
    }

    fn into_outcome(self) -> Result<Outcome, String> {
        self.common_fault()?;
        if self.id.is_none() {
            return Err("`id` is missing".to_owned());
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err("both `result` and `error` are there".to_owned()),
            (Some(result), None) => Ok(Ok(result)),
            (None, error) => error_object(error).map(Err),
        }
    }

    /// The id to answer with: null where there is none, it is of a wrong type, or there are two.
    fn readable_id(&self) -> Id {
        if self.duplicate == Some("id") {
            return Id::Null;
        }
        self.id.clone().and_then(Id::from_json).unwrap_or(Id::Null)
    }

    /// What disqualifies a Request and a Response alike.
    fn common_fault(&self) -> Result<(), String> {
        if let Some(name) = self.duplicate {
            return Err(format!("`{name}` is there twice"));
        }
        let version = self.jsonrpc.as_ref().ok_or("`jsonrpc` is missing; it must be \"2.0\"")?;
        if version.kind() != Kind::String || *unescape(version.as_bytes()) != *b"2.0" {
            return Err("`jsonrpc` must be \"2.0\"".to_owned());
        }
        match self.id.as_ref().map(RawJson::kind) {
            Some(kind @ (Kind::Boolean | Kind::Array | Kind::Object)) => {
                Err(format!("`id` must be a String, a Number or Null, found {kind}"))
            }
            _ => Ok(()),
        }
    }
}

/// Reads the `error` member of a Response (section 5.1).
fn error_object(error: Option<RawJson>) -> Result<ErrorObject, String> {
    let text = error.filter(|error| error.kind() == Kind::Object);
    let text = text.ok_or("`error` must be an Object")?;
    let (mut code, mut message, mut data) = (None, None, None);
    let mut twice = false;
    let bytes = text.into_bytes();
    let mut scanner = Scanner::new(&bytes, usize::MAX).map_err(|fault| fault.to_string())?;
    members(&mut scanner, &bytes, |name, value| {
        let slot = match name {
            b"code" => &mut code,
            b"message" => &mut message,
            b"data" => &mut data,
            _ => return,
        };
        twice |= slot.replace(value).is_some();
    })
    .map_err(|fault| fault.to_string())?;
    if twice {
        return Err("a member of `error` is there twice".to_owned());
    }
    let code = code
        .and_then(|code| whole(code.as_str()).parse().ok())
        .ok_or("`error.code` must be an integer")?;
    let message = message
        .filter(|message| message.kind() == Kind::String)
        .ok_or("`error.message` must be a String")?;
    let message = String::from_utf8_lossy(&unescape(message.as_bytes())).into_owned();
    Ok(ErrorObject { data, ..ErrorObject::new(code, message) })
}

/// Passes one Object whose opening brace is next, and shows each member, its name unescaped.
fn members(
    scanner: &mut Scanner<'_>,
    frame: &Bytes,
    mut each: impl FnMut(&[u8], RawJson),
) -> Result<(), Fault> {
    let slice = |range: Range<usize>| RawJson::checked(frame.slice(range));
    scanner.enter(true)?;
    scanner.whitespace();
    if scanner.eat(b'}') {
        scanner.leave();
        return Ok(());
    }
    loop {
        scanner.whitespace();
        let name = scanner.key()?;
        let value = scanner.value()?;
        each(&unescape(&frame[name]), slice(value));
        scanner.whitespace();
        if scanner.eat(b'}') {
            scanner.leave();
            return Ok(());
        }
        if !scanner.eat(b',') {
            return scanner.fault("expected ',' or '}'");
        }
    }
}
