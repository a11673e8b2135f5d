//! Bytes to messages, in one pass.
//!
//! Decoding never fails: what is no message becomes an [`Invalid`] with the error that its sender
//! should see. Nothing is tried twice and nothing is derived, since a derived struct would take an
//! Array for an Object and an absent `id` for a null one.

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
    let mut scanner = match Scanner::new(frame, rules.depth) {
        Ok(scanner) => scanner,
        Err(fault) => return no_json(fault),
    };
    payload(&mut scanner, frame, rules).unwrap_or_else(|| no_json(scanner.why()))
}

fn no_json(fault: Fault) -> Payload {
    let error = ErrorObject::parse_error().with_data(&format_args!("{fault}"));
    Payload::One(Err(Invalid { id: Id::Null, error, intent: Intent::Request }))
}

fn payload(scanner: &mut Scanner<'_>, frame: &Bytes, rules: &Rules) -> Option<Payload> {
    let start = scanner.space(0);
    let (payload, end) = match scanner.peek(start) {
        Some(b'[') => batch(scanner, start, frame, rules)?,
        _ => {
            let (entry, end) = entry(scanner, start, 0, frame, rules)?;
            (Payload::One(entry), end)
        }
    };
    scanner.end(end)?;
    Some(payload)
}

fn batch(
    scanner: &mut Scanner<'_>,
    start: usize,
    frame: &Bytes,
    rules: &Rules,
) -> Option<(Payload, usize)> {
    let at = scanner.enter(start, 0)?;
    let mut at = scanner.space(at);
    if scanner.peek(at) == Some(b']') {
        return Some((Payload::One(invalid(Id::Null, "a batch may not be empty")), at + 1));
    }
    let mut entries = Vec::new();
    loop {
        let limit = match entries.first() {
            Some(Ok(Message::Response(_))) => rules.batch_answers,
            _ => rules.batch_entries,
        };
        if entries.len() >= limit {
            // The rest is still checked: a text that is no JSON is a Parse error, however long.
            return skip_rest(scanner, at, limit);
        }
        let (entry, end) = entry(scanner, at, 1, frame, rules)?;
        entries.push(entry);
        at = scanner.space(end);
        if scanner.peek(at) == Some(b']') {
            return Some((Payload::Batch(entries), at + 1));
        }
        at = scanner.expect(at, b',', "expected ',' or ']'")?;
        at = scanner.space(at);
    }
}

fn skip_rest(scanner: &mut Scanner<'_>, mut at: usize, limit: usize) -> Option<(Payload, usize)> {
    loop {
        at = scanner.value(at, 1)?;
        at = scanner.space(at);
        if scanner.peek(at) == Some(b']') {
            let error = ErrorObject::batch_too_large(limit);
            let invalid = Invalid { id: Id::Null, error, intent: Intent::Request };
            return Some((Payload::One(Err(invalid)), at + 1));
        }
        at = scanner.expect(at, b',', "expected ',' or ']'")?;
        at = scanner.space(at);
    }
}

/// Reads what starts here, inside of this many brackets, and says where it ends.
fn entry(
    scanner: &mut Scanner<'_>,
    at: usize,
    depth: usize,
    frame: &Bytes,
    rules: &Rules,
) -> Option<(Entry, usize)> {
    if scanner.peek(at) == Some(b'{') {
        let (envelope, end) = Envelope::read(scanner, at, depth, frame)?;
        return Some((envelope.into_entry(rules), end));
    }
    let end = scanner.value(at, depth)?;
    let kind = Kind::of(frame.get(at));
    Some((invalid(Id::Null, &format_args!("a message must be an Object, found {kind}")), end))
}

fn invalid(id: Id, reason: &(impl serde::Serialize + ?Sized)) -> Entry {
    let error = ErrorObject::invalid_request().with_data(reason);
    Err(Invalid { id, error, intent: Intent::Request })
}

/// Where in a frame a member's value stands; a value is never empty, so an empty span is none.
#[derive(Clone, Copy, Default)]
struct Span {
    start: usize,
    end: usize,
    /// It is a String that holds an escape.
    escaped: bool,
}

impl Span {
    fn is_none(self) -> bool {
        self.end == 0
    }

    fn of(self, frame: &[u8]) -> &[u8] {
        &frame[self.start..self.end]
    }

    fn kind(self, frame: &[u8]) -> Kind {
        Kind::of(frame.get(self.start))
    }

    fn json(self, frame: &Bytes) -> RawJson {
        RawJson::sliced(frame, self.start..self.end)
    }
}

/// Names of members to look for: each at most seven bytes long, so that a name and the quote behind
/// it fit in a word.
struct Names<const N: usize> {
    names: [&'static str; N],
    /// Each as the low bytes of a word, and which bytes these are.
    words: [(u64, u64); N],
}

impl<const N: usize> Names<N> {
    const fn new(names: [&'static str; N]) -> Self {
        let mut words = [(0, 0); N];
        let mut n = 0;
        while n < N {
            let (name, mut at) = (names[n].as_bytes(), 0);
            while at <= name.len() {
                let byte = if at < name.len() { name[at] } else { b'"' };
                words[n].0 |= (byte as u64) << (8 * at);
                words[n].1 |= 0xFF << (8 * at);
                at += 1;
            }
            n += 1;
        }
        Self { names, words }
    }

    /// Which name stands here, in quotes and without an escape, and where it ends.
    #[inline(always)]
    fn known(&self, quoted: &[u8]) -> Option<(usize, usize)> {
        let word = u64::from_le_bytes(*quoted.get(1..)?.first_chunk()?);
        let known = (0..N).find(|&n| word & self.words[n].1 == self.words[n].0)?;
        (quoted[0] == b'"').then(|| (known, self.names[known].len() + 2))
    }

    fn named(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|known| known.as_bytes() == name)
    }
}

/// The members of one Object that were looked for.
struct Members<const N: usize> {
    spans: [Span; N],
    /// The first of the names that is there twice.
    duplicate: Option<usize>,
}

impl<const N: usize> Members<N> {
    /// Reads an Object, inside of this many brackets, whose opening brace is here; says where it ends.
    ///
    /// Unknown members are ignored. Of a known one there may be one (RFC 8259 leaves it open, and a
    /// proxy that reads the first would disagree with a server that reads the last).
    #[inline(always)]
    fn read(
        scanner: &mut Scanner<'_>,
        at: usize,
        depth: usize,
        frame: &[u8],
        names: &Names<N>,
    ) -> Option<(Self, usize)> {
        let mut members = Self { spans: [Span::default(); N], duplicate: None };
        let at = scanner.enter(at, depth)?;
        let mut at = scanner.space(at);
        if scanner.peek(at) == Some(b'}') {
            return Some((members, at + 1));
        }
        loop {
            let (name, end) = match names.known(&frame[at..]) {
                Some((name, len)) => (Some(name), at + len),
                None => {
                    let end = scanner.name(at)?;
                    (names.named(&unescape(&frame[at..end])), end)
                }
            };
            let start = scanner.colon(end)?;
            scanner.take_escaped();
            let end = scanner.value(start, depth + 1)?;
            if let Some(name) = name {
                members.keep(name, Span { start, end, escaped: scanner.take_escaped() });
            }
            at = scanner.space(end);
            if scanner.peek(at) == Some(b'}') {
                return Some((members, at + 1));
            }
            at = scanner.expect(at, b',', "expected ',' or '}'")?;
            at = scanner.space(at);
        }
    }

    #[inline]
    fn keep(&mut self, name: usize, value: Span) {
        let before = std::mem::replace(&mut self.spans[name], value);
        if !before.is_none() {
            self.duplicate = Some(self.duplicate.map_or(name, |other| other.min(name)));
        }
    }
}

/// What JSON-RPC knows. Two ids are reported above all: neither of them may be answered with.
const ENVELOPE: Names<6> = Names::new(["id", "jsonrpc", "method", "params", "result", "error"]);
const ID: usize = 0;

/// A message as it stood in an Object.
struct Envelope<'a> {
    frame: &'a Bytes,
    id: Span,
    jsonrpc: Span,
    method: Span,
    params: Span,
    result: Span,
    error: Span,
    duplicate: Option<usize>,
}

impl<'a> Envelope<'a> {
    /// Reads the Object, inside of this many brackets, whose opening brace is here.
    fn read(
        scanner: &mut Scanner<'_>,
        at: usize,
        depth: usize,
        frame: &'a Bytes,
    ) -> Option<(Self, usize)> {
        let (members, end) = Members::read(scanner, at, depth, frame, &ENVELOPE)?;
        let Members { spans: [id, jsonrpc, method, params, result, error], duplicate } = members;
        Some((Self { frame, id, jsonrpc, method, params, result, error, duplicate }, end))
    }

    fn into_entry(self, rules: &Rules) -> Entry {
        if self.method.is_none() && !(self.result.is_none() && self.error.is_none()) {
            self.into_response()
        } else {
            self.into_request(rules)
        }
    }

    fn into_request(self, rules: &Rules) -> Entry {
        let id = self.readable_id();
        match self.call(rules) {
            Err(reason) => invalid(id, &reason),
            Ok((method, params)) if self.id.is_none() => {
                Ok(Message::Notification(Notification { method, params }))
            }
            Ok((method, params)) => Ok(Message::Request(Request { id, method, params })),
        }
    }

    fn call(&self, rules: &Rules) -> Result<(Method, Option<Params>), String> {
        self.common_fault()?;
        if self.method.is_none() {
            return Err("`method` is missing".to_owned());
        }
        let kind = self.method.kind(self.frame);
        if kind != Kind::String {
            return Err(format!("`method` must be a String, found {kind}"));
        }
        let method = Method::of_string(self.method.json(self.frame), self.method.escaped);
        Ok((method, self.params(rules)?))
    }

    fn params(&self, rules: &Rules) -> Result<Option<Params>, String> {
        if self.params.is_none() {
            return Ok(None);
        }
        match self.params.kind(self.frame) {
            Kind::Array | Kind::Object => {
                Ok(Some(Params::of_structured(self.params.json(self.frame))))
            }
            Kind::Null if rules.null_params => Ok(None),
            kind => Err(format!("`params` must be an Array or an Object, found {kind}")),
        }
    }

    fn into_response(self) -> Entry {
        let id = self.readable_id();
        match self.outcome() {
            Ok(outcome) => Ok(Message::Response(Response { id, outcome })),
            Err(reason) => {
                let error = ErrorObject::new(Code::INVALID_REQUEST.0, "Invalid Response");
                Err(Invalid { id, error: error.with_data(&reason), intent: Intent::Response })
            }
        }
    }

    fn outcome(&self) -> Result<Outcome, String> {
        self.common_fault()?;
        if self.id.is_none() {
            return Err("`id` is missing".to_owned());
        }
        match (self.result.is_none(), self.error.is_none()) {
            (false, false) => Err("both `result` and `error` are there".to_owned()),
            (false, true) => Ok(Ok(self.result.json(self.frame))),
            (true, _) => error_object(&self.frame.slice(self.error.start..self.error.end)).map(Err),
        }
    }

    /// The id to answer with: null where there is none, it is of a wrong type, or there are two.
    fn readable_id(&self) -> Id {
        if self.id.is_none() || self.duplicate == Some(ID) {
            return Id::Null;
        }
        Id::from_json(self.id.json(self.frame)).unwrap_or(Id::Null)
    }

    /// What disqualifies a Request and a Response alike.
    fn common_fault(&self) -> Result<(), String> {
        if let Some(name) = self.duplicate {
            return Err(format!("`{}` is there twice", ENVELOPE.names[name]));
        }
        if self.jsonrpc.is_none() {
            return Err("`jsonrpc` is missing; it must be \"2.0\"".to_owned());
        }
        let version = self.jsonrpc.of(self.frame);
        if version != b"\"2.0\"" && !(self.jsonrpc.escaped && *unescape(version) == *b"2.0") {
            return Err("`jsonrpc` must be \"2.0\"".to_owned());
        }
        if self.id.is_none() {
            return Ok(());
        }
        match self.id.kind(self.frame) {
            kind @ (Kind::Boolean | Kind::Array | Kind::Object) => {
                Err(format!("`id` must be a String, a Number or Null, found {kind}"))
            }
            Kind::Null | Kind::Number | Kind::String => Ok(()),
        }
    }
}

/// Reads the `error` member of a Response (section 5.1).
fn error_object(text: &Bytes) -> Result<ErrorObject, String> {
    if Kind::of(text.first()) != Kind::Object {
        return Err("`error` must be an Object".to_owned());
    }
    let mut scanner = Scanner::new(text, usize::MAX).map_err(|fault| fault.to_string())?;
    let names = Names::new(["code", "message", "data"]);
    let (members, _) =
        Members::read(&mut scanner, 0, 0, text, &names).ok_or("`error` is not JSON")?;
    let Members { spans: [code, message, data], duplicate } = members;
    if duplicate.is_some() {
        return Err("a member of `error` is there twice".to_owned());
    }
    let number = std::str::from_utf8(code.of(text)).unwrap_or_default();
    let code = whole(number).parse().map_err(|_| "`error.code` must be an integer")?;
    if message.is_none() || message.kind(text) != Kind::String {
        return Err("`error.message` must be a String".to_owned());
    }
    let message = String::from_utf8_lossy(&unescape(message.of(text))).into_owned();
    let data = (!data.is_none()).then(|| data.json(text));
    Ok(ErrorObject { data, ..ErrorObject::new(code, message) })
}
