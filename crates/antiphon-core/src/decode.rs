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
    let start = scanner.space(0);
    if scanner.peek(start) != Some(b'{') {
        return other(&mut scanner, start, frame, rules).unwrap_or_else(|| no_json(scanner.why()));
    }
    // The usual payload: it is made where it is to be, once nothing can go wrong.
    let mut envelope = Envelope::of(frame);
    let read = envelope.read(&mut scanner, start, 0).and_then(|end| scanner.end(end));
    match read {
        Some(_) => Payload::One(envelope.to_entry(rules)),
        None => no_json(scanner.why()),
    }
}

fn no_json(fault: Fault) -> Payload {
    let error = ErrorObject::parse_error().with_data(&format_args!("{fault}"));
    Payload::One(Err(Invalid { id: Id::Null, error, intent: Intent::Request }))
}

/// Decodes what starts here and is no single Object.
fn other(scanner: &mut Scanner<'_>, start: usize, frame: &Bytes, rules: &Rules) -> Option<Payload> {
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
        if entries.is_empty() {
            // Entries are much alike: room for as many as the first would fit in what is there.
            entries.reserve((frame.len() / (end - at)).min(limit));
        }
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
        let mut envelope = Envelope::of(frame);
        let end = envelope.read(scanner, at, depth)?;
        return Some((envelope.to_entry(rules), end));
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

    #[inline(always)]
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
        let [quote, word @ ..] = quoted.first_chunk::<9>()?;
        let word = u64::from_le_bytes(*word);
        let known = (0..N).find(|&n| word & self.words[n].1 == self.words[n].0)?;
        (*quote == b'"').then(|| (known, self.names[known].len() + 2))
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
    const NONE: Self = Self { spans: [Span { start: 0, end: 0 }; N], duplicate: None };

    /// Reads on from the name of a member, inside of this many brackets; says where the Object ends.
    ///
    /// Unknown members are ignored. Of a known one there may be one (RFC 8259 leaves it open, and a
    /// proxy that reads the first would disagree with a server that reads the last).
    #[inline(always)]
    fn read(
        &mut self,
        scanner: &mut Scanner<'_>,
        at: usize,
        depth: usize,
        frame: &[u8],
        names: &Names<N>,
    ) -> Option<usize> {
        let mut at = scanner.space(at);
        loop {
            let (name, end) = match names.known(&frame[at..]) {
                Some((name, len)) => (Some(name), at + len),
                None => {
                    let end = scanner.name(at)?;
                    (names.named(&unescape(&frame[at..end])), end)
                }
            };
            let start = scanner.colon(end)?;
            let end = scanner.value(start, depth)?;
            if let Some(name) = name {
                self.keep(name, Span { start, end });
            }
            at = scanner.space(end);
            if scanner.peek(at) == Some(b'}') {
                return Some(at + 1);
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
const JSONRPC: usize = 1;
const METHOD: usize = 2;
const PARAMS: usize = 3;
const RESULT: usize = 4;
const ERROR: usize = 5;

/// How most messages begin, behind the brace: this member need not be read.
const USUAL: &[u8; 16] = b"\"jsonrpc\":\"2.0\",";

/// A message as it stood in an Object.
struct Envelope<'a> {
    frame: &'a Bytes,
    members: Members<6>,
    /// The frame holds an escape, here or before.
    escaped: bool,
}

impl<'a> Envelope<'a> {
    fn of(frame: &'a Bytes) -> Self {
        Self { frame, members: Members::NONE, escaped: false }
    }

    /// Reads the Object, inside of this many brackets, whose opening brace is here; says where it ends.
    #[inline]
    fn read(&mut self, scanner: &mut Scanner<'_>, at: usize, depth: usize) -> Option<usize> {
        let mut at = scanner.enter(at, depth)?;
        if self.frame.get(at..).and_then(<[u8]>::first_chunk) == Some(USUAL) {
            at += USUAL.len();
            self.members.spans[JSONRPC] = Span { start: at - 6, end: at - 1 };
        } else if let Some(end) = scanner.empty(at) {
            return Some(end);
        }
        let end = self.members.read(scanner, at, depth + 1, self.frame, &ENVELOPE)?;
        self.escaped = scanner.escaped();
        Some(end)
    }

    fn span(&self, name: usize) -> Span {
        self.members.spans[name]
    }

    fn has(&self, name: usize) -> bool {
        !self.span(name).is_none()
    }

    fn kind(&self, name: usize) -> Kind {
        self.span(name).kind(self.frame)
    }

    #[inline(always)]
    fn json(&self, name: usize) -> RawJson {
        self.span(name).json(self.frame)
    }

    #[inline]
    fn to_entry(&self, rules: &Rules) -> Entry {
        if !self.has(METHOD) && (self.has(RESULT) || self.has(ERROR)) {
            self.to_response()
        } else {
            self.to_request(rules)
        }
    }

    #[inline]
    fn to_request(&self, rules: &Rules) -> Entry {
        if let Err(reason) = self.call_fault(rules) {
            return invalid(self.readable_id(), &reason);
        }
        let method = Method::of_string(self.json(METHOD), self.escaped);
        let params = match self.kind(PARAMS) {
            Kind::Array | Kind::Object if self.has(PARAMS) => {
                Some(Params::of_structured(self.json(PARAMS)))
            }
            _ => None,
        };
        Ok(if self.has(ID) {
            Message::Request(Request { id: self.readable_id(), method, params })
        } else {
            Message::Notification(Notification { method, params })
        })
    }

    /// What disqualifies a Request or a Notification.
    #[inline]
    fn call_fault(&self, rules: &Rules) -> Result<(), String> {
        self.common_fault()?;
        if !self.has(METHOD) {
            return Err("`method` is missing".to_owned());
        }
        match self.kind(METHOD) {
            Kind::String => {}
            kind => return Err(format!("`method` must be a String, found {kind}")),
        }
        match self.kind(PARAMS) {
            Kind::Array | Kind::Object => Ok(()),
            _ if !self.has(PARAMS) => Ok(()),
            Kind::Null if rules.null_params => Ok(()),
            kind => Err(format!("`params` must be an Array or an Object, found {kind}")),
        }
    }

    fn to_response(&self) -> Entry {
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
        if !self.has(ID) {
            return Err("`id` is missing".to_owned());
        }
        match (self.has(RESULT), self.has(ERROR)) {
            (true, true) => Err("both `result` and `error` are there".to_owned()),
            (true, false) => Ok(Ok(self.json(RESULT))),
            (false, _) => {
                let Span { start, end } = self.span(ERROR);
                error_object(&self.frame.slice(start..end)).map(Err)
            }
        }
    }

    /// The id to answer with: null where there is none, it is of a wrong type, or there are two.
    #[inline]
    fn readable_id(&self) -> Id {
        if !self.has(ID) || self.members.duplicate == Some(ID) {
            return Id::Null;
        }
        Id::of_kind(self.kind(ID), self.json(ID)).unwrap_or(Id::Null)
    }

    /// What disqualifies a Request and a Response alike.
    #[inline]
    fn common_fault(&self) -> Result<(), String> {
        if let Some(name) = self.members.duplicate {
            return Err(format!("`{}` is there twice", ENVELOPE.names[name]));
        }
        if !self.has(JSONRPC) {
            return Err("`jsonrpc` is missing; it must be \"2.0\"".to_owned());
        }
        let version = self.span(JSONRPC).of(self.frame);
        if version != b"\"2.0\"" && !self.is_escaped_version(version) {
            return Err("`jsonrpc` must be \"2.0\"".to_owned());
        }
        match self.kind(ID) {
            kind @ (Kind::Boolean | Kind::Array | Kind::Object) if self.has(ID) => {
                Err(format!("`id` must be a String, a Number or Null, found {kind}"))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn is_escaped_version(&self, version: &[u8]) -> bool {
        self.kind(JSONRPC) == Kind::String && *unescape(version) == *b"2.0"
    }
}

/// Reads the `error` member of a Response (section 5.1).
fn error_object(text: &Bytes) -> Result<ErrorObject, String> {
    if Kind::of(text.first()) != Kind::Object {
        return Err("`error` must be an Object".to_owned());
    }
    let mut scanner = Scanner::new(text, usize::MAX).map_err(|fault| fault.to_string())?;
    let names = Names::new(["code", "message", "data"]);
    let mut members = Members::NONE;
    if scanner.empty(1).is_none() {
        members.read(&mut scanner, 1, 1, text, &names).ok_or("`error` is not JSON")?;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &'static str) -> Entry {
        match decode(&text.into(), &Rules::default()) {
            Payload::One(entry) => entry,
            Payload::Batch(_) => panic!("no batch: {text}"),
        }
    }

    #[test]
    fn the_usual_start_is_read_like_any_other() {
        let calls = [
            r#"{"jsonrpc":"2.0","method":"m","id":1}"#,
            r#"{"jsonrpc":"2.0", "method":"m","id":1}"#,
            r#"{ "jsonrpc":"2.0","method":"m","id":1}"#,
            r#"{"method":"m","id":1,"jsonrpc":"2.\u0030"}"#,
        ];
        let [usual, others @ ..] = calls.map(entry);
        assert!(matches!(usual, Ok(Message::Request(_))));
        others.iter().for_each(|other| assert_eq!(*other, usual));
    }

    #[test]
    fn the_usual_start_excuses_nothing() {
        let code = |text| entry(text).unwrap_err().error.code;
        for text in
            [r#"{"jsonrpc":"2.0",}"#, r#"{"jsonrpc":"2.0","#, r#"{"jsonrpc":"2.0",,"id":1}"#]
        {
            assert_eq!(code(text), Code::PARSE_ERROR, "{text}");
        }
        let twice = r#"{"jsonrpc":"2.0","method":"m","jsonrpc":"2.0"}"#;
        assert_eq!(code(twice), Code::INVALID_REQUEST);
        let no_string = r#"{"jsonrpc":12.01,"method":"m"}"#;
        assert_eq!(code(no_string), Code::INVALID_REQUEST);
    }
}
