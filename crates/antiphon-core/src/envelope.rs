//! One message as it stands in an Object: which members are there, and where.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use crate::decode::{Rules, invalid};
use crate::entries::{CallAt, Item};
use crate::error::{Code, ErrorObject};
use crate::escape::unescape;
use crate::id::{Id, whole};
use crate::json::RawJson;
use crate::message::{Entry, Intent, Invalid, Message, Notification, Outcome, Request, Response};
use crate::scan::{JsonKind, Scanner};
use crate::trace::TraceContext;

/// Where in a frame a member's value stands; a value is never empty, so an empty span is none.
///
/// One word, since it is written and read often: where it starts in the upper half, where it ends in
/// the lower one. So a frame may have [`Span::MAX`] bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Span(u64);

impl Span {
    /// The longest frame in which spans can be told.
    pub(crate) const MAX: usize = u32::MAX as usize;
    const NONE: Self = Self(0);

    #[inline(always)]
    fn new(start: usize, end: usize) -> Self {
        Self((start as u64) << 32 | end as u64)
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    fn range(self) -> Range<usize> {
        (self.0 >> 32) as usize..self.0 as u32 as usize
    }

    #[inline(always)]
    pub(crate) fn of(self, frame: &[u8]) -> &[u8] {
        &frame[self.range()]
    }

    #[inline(always)]
    pub(crate) fn kind(self, frame: &[u8]) -> JsonKind {
        JsonKind::of(frame.get(self.range().start))
    }

    #[inline(always)]
    pub(crate) fn json(self, frame: &Bytes) -> RawJson {
        RawJson::sliced(frame, self.range())
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

    /// The same for a name that may be written in any way, and for those that tell of a trace.
    fn named(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().chain(&TRACE).position(|known| known.as_bytes() == name)
    }
}

/// The members of one Object that were looked for.
struct Members<const N: usize> {
    spans: [Span; N],
    /// The first of the names that is there twice.
    duplicate: Option<usize>,
    /// Where a trace is told: `traceparent` and `tracestate`, the first of each.
    trace: [Span; 2],
}

impl<const N: usize> Members<N> {
    const NONE: Self = Self { spans: [Span::NONE; N], duplicate: None, trace: [Span::NONE; 2] };

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
                self.keep(name, Span::new(start, end));
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
        let Some(span) = self.spans.get_mut(name) else { return self.keep_trace(name, value) };
        let before = std::mem::replace(span, value);
        if !before.is_none() {
            self.duplicate = Some(self.duplicate.map_or(name, |other| other.min(name)));
        }
    }

    /// What tells of a trace stands behind the names that were looked for; of two, the first counts.
    #[cold]
    fn keep_trace(&mut self, name: usize, value: Span) {
        if let Some(span) = self.trace.get_mut(name - N)
            && span.is_none()
        {
            *span = value;
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

/// What tells of a trace. The names are too long for a word, so that looking for them costs the others
/// nothing.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// How most messages begin, behind the brace: this member need not be read.
const USUAL: &[u8; 16] = b"\"jsonrpc\":\"2.0\",";

/// A message as it stood in an Object.
pub(crate) struct Envelope<'a> {
    frame: &'a Bytes,
    members: Members<6>,
    /// The frame holds an escape, here or before.
    escaped: bool,
}

impl<'a> Envelope<'a> {
    pub(crate) fn of(frame: &'a Bytes) -> Self {
        Self { frame, members: Members::NONE, escaped: false }
    }

    /// Reads the Object, inside of this many brackets, whose opening brace is here; says where it ends.
    #[inline]
    pub(crate) fn read(
        &mut self,
        scanner: &mut Scanner<'_>,
        at: usize,
        depth: usize,
    ) -> Option<usize> {
        let mut at = scanner.enter(at, depth)?;
        if self.frame.get(at..).and_then(<[u8]>::first_chunk) == Some(USUAL) {
            at += USUAL.len();
            self.members.spans[JSONRPC] = Span::new(at - 6, at - 1);
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

    fn kind(&self, name: usize) -> JsonKind {
        self.span(name).kind(self.frame)
    }

    #[inline(always)]
    fn json(&self, name: usize) -> RawJson {
        self.span(name).json(self.frame)
    }

    /// The entry that it is.
    #[inline]
    pub(crate) fn to_entry(&self, rules: &Rules) -> Entry {
        if self.is_answer() {
            return self.to_response();
        }
        match self.call(rules) {
            Ok(call) if self.tells_of_trace() => Ok(self.traced(call)),
            Ok(call) => Ok(call.to_message(self.frame)),
            Err(fault) => invalid(self.readable_id(), &format_args!("{fault}")),
        }
    }

    /// The same for a batch: what is valid stays where it stands.
    #[inline(always)]
    pub(crate) fn to_item(&self, rules: &Rules) -> Item {
        if self.is_answer() {
            if let Ok(true) = self.holds_result() {
                return Item::Result { id: self.span(ID), result: self.span(RESULT) };
            }
        } else if let Ok(call) = self.call(rules)
            && !self.tells_of_trace()
        {
            return Item::Call(call);
        }
        Item::Other(Box::new(self.to_entry(rules)))
    }

    #[inline(always)]
    fn tells_of_trace(&self) -> bool {
        !self.members.trace[0].is_none()
    }

    /// The same call with where it stands in a trace.
    #[cold]
    fn traced(&self, call: CallAt) -> Message {
        let [parent, state] = self.members.trace;
        let told = TraceContext::at(parent, state, self.frame).map(Box::new);
        let mut message = call.to_message(self.frame);
        match &mut message {
            Message::Request(Request { trace, .. })
            | Message::Notification(Notification { trace, .. }) => *trace = told,
            Message::Response(_) => {}
        }
        message
    }

    fn is_answer(&self) -> bool {
        !self.has(METHOD) && (self.has(RESULT) || self.has(ERROR))
    }

    /// Where the parts of a Request or a Notification stand, or what disqualifies it.
    #[inline(always)]
    fn call(&self, rules: &Rules) -> Result<CallAt, EnvelopeError> {
        self.common_fault()?;
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
            JsonKind::Null if rules.null_params => params = Span::NONE,
            kind => return Err(EnvelopeError::Kind(PARAMS, kind)),
        }
        let (id, method, escaped) = (self.span(ID), self.span(METHOD), self.escaped);
        Ok(CallAt { id, method, params, escaped })
    }

    fn to_response(&self) -> Entry {
        let id = self.readable_id();
        match self.outcome() {
            Ok(outcome) => Ok(Message::Response(Response { id, outcome })),
            Err(fault) => {
                let error = ErrorObject::new(Code::INVALID_REQUEST.0, "Invalid Response")
                    .with_data(&format_args!("{fault}"));
                Err(Invalid { id, error, intent: Intent::Response })
            }
        }
    }

    /// Whether a Response holds a result, and no error; or what disqualifies it.
    fn holds_result(&self) -> Result<bool, EnvelopeError> {
        self.common_fault()?;
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

    /// The id to answer with: null where there is none, it is of a wrong type, or there are two.
    #[inline]
    fn readable_id(&self) -> Id {
        if !self.has(ID) || self.members.duplicate == Some(ID) {
            return Id::Null;
        }
        Id::at(self.span(ID), self.frame)
    }

    /// What disqualifies a Request and a Response alike.
    #[inline(always)]
    fn common_fault(&self) -> Result<(), EnvelopeError> {
        if let Some(name) = self.members.duplicate {
            return Err(EnvelopeError::Twice(name));
        }
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

    #[cold]
    fn is_escaped_version(&self, version: &[u8]) -> bool {
        self.kind(JSONRPC) == JsonKind::String && *unescape(version) == *b"2.0"
    }
}

/// What disqualifies an Object as a message.
enum EnvelopeError {
    Missing(usize),
    Twice(usize),
    Kind(usize, JsonKind),
    Version,
    ResultAndError,
    Error(String),
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |name: usize| ENVELOPE.names[name];
        let wanted = |name| match name {
            ID => "a String, a Number or Null",
            METHOD => "a String",
            _ => "an Array or an Object",
        };
        match self {
            Self::Missing(JSONRPC) => f.write_str("`jsonrpc` is missing; it must be \"2.0\""),
            Self::Missing(member) => write!(f, "`{}` is missing", name(*member)),
            Self::Twice(member) => write!(f, "`{}` is there twice", name(*member)),
            Self::Kind(member, kind) => {
                write!(f, "`{}` must be {}, found {kind}", name(*member), wanted(*member))
            }
            Self::Version => f.write_str("`jsonrpc` must be \"2.0\""),
            Self::ResultAndError => f.write_str("both `result` and `error` are there"),
            Self::Error(reason) => f.write_str(reason),
        }
    }
}

/// Reads the `error` member of a Response (section 5.1).
fn error_object(text: &Bytes) -> Result<ErrorObject, String> {
    if JsonKind::of(text.first()) != JsonKind::Object {
        return Err("`error` must be an Object".to_owned());
    }
    let mut scanner = Scanner::new(text, usize::MAX);
    let names = Names::new(["code", "message", "data"]);
    let mut members = Members::NONE;
    if scanner.empty(1).is_none() {
        members.read(&mut scanner, 1, 1, text, &names).ok_or("`error` is not JSON")?;
    }
    let Members { spans: [code, message, data], duplicate, .. } = members;
    if duplicate.is_some() {
        return Err("a member of `error` is there twice".to_owned());
    }
    let number = std::str::from_utf8(code.of(text)).unwrap_or_default();
    let code = whole(number).parse().map_err(|_| "`error.code` must be an integer")?;
    if message.is_none() || message.kind(text) != JsonKind::String {
        return Err("`error.message` must be a String".to_owned());
    }
    let message = String::from_utf8_lossy(&unescape(message.of(text))).into_owned();
    let data = (!data.is_none()).then(|| data.json(text));
    Ok(ErrorObject { data, ..ErrorObject::new(code, message) })
}
