//! A small JSON-RPC 2.0 server that passes every case. With a [`Fault`], it is a mutant with that fault
//! alone.
//!
//! It shares no code with the library or the checker. All three agree only on the specification.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

use super::fault::Fault;

type Members<'a> = BTreeMap<String, &'a RawValue>;
type Error = (i32, &'static str);

const PARSE_ERROR: Error = (-32700, "Parse error");
const INVALID_REQUEST: Error = (-32600, "Invalid Request");
const METHOD_NOT_FOUND: Error = (-32601, "Method not found");
const INVALID_PARAMS: Error = (-32602, "Invalid params");

/// The duration of a call whose response takes the id of a later one.
const UNDER_WAY: Duration = Duration::from_millis(200);
/// The number of correct responses of a server that fails only later.
const A_WHILE: usize = 60;
/// The depth limit of a recursive parser.
const STACK: usize = 10_000;

/// The effect of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Connection,
    Server,
}

/// The server behind every wire.
pub(crate) struct Reference {
    fault: Option<Fault>,
    /// The last id, for a fault that keeps only one.
    last_id: Mutex<String>,
    /// The number of received messages.
    heard: AtomicUsize,
}

/// A well-formed Request or Notification.
struct Call {
    method: String,
    params: Option<String>,
    id: Option<String>,
}

impl Reference {
    pub(crate) fn new(fault: Option<Fault>) -> Self {
        Self { fault, last_id: Mutex::default(), heard: AtomicUsize::new(0) }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Returns the responses to a message.
    pub(crate) fn answers(&self, message: &[u8]) -> Result<Vec<String>, End> {
        if self.has(Fault::DepthKills) && depth(message) > STACK {
            return Err(End::Server);
        }
        let is_late = self.heard.fetch_add(1, Ordering::Relaxed) >= A_WHILE;
        while self.has(Fault::HangsAfterAWhile) && is_late {
            thread::park();
        }
        let text = match std::str::from_utf8(message) {
            Ok(text) => Some(text.to_owned()),
            Err(_) if self.has(Fault::BadTextIsRepaired) => {
                Some(String::from_utf8_lossy(message).into_owned())
            }
            Err(_) => None,
        };
        let value = text.as_deref().and_then(|text| self.parsed(text));
        if value.is_none() && self.has(Fault::BadJsonClosesConnection) {
            return Err(End::Connection);
        }
        let answer = match value {
            None => Some(self.parse_error()),
            Some(value) => self.answer(value),
        };
        Ok(answer.map_or_else(Vec::new, |answer| self.spoken(answer)))
    }

    fn parsed<'t>(&self, text: &'t str) -> Option<&'t RawValue> {
        if self.has(Fault::TextBehindIsIgnored) {
            return serde_json::Deserializer::from_str(text).into_iter().next()?.ok();
        }
        serde_json::from_str(text).ok()
    }

    fn answer(&self, value: &RawValue) -> Option<String> {
        let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
            return self.single(value.get());
        };
        if self.has(Fault::ArrayIsRequest)
            && let Some(answer) = self.by_position(&entries)
        {
            return Some(answer);
        }
        self.batch(&entries)
    }

    fn batch(&self, entries: &[&RawValue]) -> Option<String> {
        if entries.is_empty() {
            let empty = self.has(Fault::EmptyBatchGivesEmptyArray);
            return Some(if empty { "[]".into() } else { self.error("null", INVALID_REQUEST) });
        }
        let is_invalid = |entry: &&RawValue| self.call(entry.get()).is_err();
        if self.has(Fault::BatchIsLostByOneEntry) && entries.iter().any(is_invalid) {
            return Some(self.error("null", INVALID_REQUEST));
        }
        let mut seen = BTreeSet::new();
        let mut is_first = |entry: &RawValue| match self.call(entry.get()) {
            Ok(Call { id: Some(id), .. }) => seen.insert(id),
            _ => true,
        };
        let answers: Vec<String> = entries
            .iter()
            .filter(|entry| !self.has(Fault::BatchIsKeyedById) || is_first(entry))
            .filter_map(|entry| self.entry(entry.get()))
            .collect();
        match &answers[..] {
            [] => self.has(Fault::SilentBatchGivesEmptyArray).then(|| "[]".to_owned()),
            [one] if self.has(Fault::BatchOfOneIsUnwrapped) && entries.len() == 1 => {
                Some(one.clone())
            }
            _ => Some(format!("[{}]", answers.join(","))),
        }
    }

    fn entry(&self, text: &str) -> Option<String> {
        if self.has(Fault::ArrayIsRequest)
            && let Ok(members) = serde_json::from_str::<Vec<&RawValue>>(text)
            && let Some(answer) = self.by_position(&members)
        {
            return Some(answer);
        }
        self.single(text)
    }

    fn single(&self, text: &str) -> Option<String> {
        match self.call(text) {
            Ok(call) => self.called(&call),
            Err(_) if self.has(Fault::InvalidRequestIsIgnored) => None,
            Err(id) => Some(self.error(&id, INVALID_REQUEST)),
        }
    }

    /// A Request as derived decoders read it from an Array.
    fn by_position(&self, members: &[&RawValue]) -> Option<String> {
        let [version, method, params, id] = members else { return None };
        let text =
            format!(r#"{{"jsonrpc":{version},"method":{method},"params":{params},"id":{id}}}"#);
        self.call(&text).ok().and_then(|call| self.called(&call))
    }

    /// Parses a call. `Err` is the id of the Invalid Request response.
    fn call(&self, text: &str) -> Result<Call, String> {
        let members: Members<'_> = serde_json::from_str(text).map_err(|_| "null".to_owned())?;
        let member = |name: &str| members.get(name).map(|value| value.get());
        let id = self.id(member("id"))?;
        let invalid = || id.clone().unwrap_or_else(|| "null".to_owned());
        let version = member("jsonrpc").and_then(string);
        if version.as_deref() != Some("2.0") && !self.has(Fault::VersionIsNotChecked) {
            return Err(invalid());
        }
        let method = member("method").and_then(string).ok_or_else(invalid)?;
        let params = member("params").map(str::to_owned);
        let is_structured = params.as_ref().is_none_or(|params| params.starts_with(['[', '{']));
        if !is_structured {
            return Err(invalid());
        }
        Ok(Call { method, params, id })
    }

    /// Returns the id, if it is valid.
    fn id(&self, text: Option<&str>) -> Result<Option<String>, String> {
        let Some(text) = text else { return Ok(None) };
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if text.starts_with(['[', '{', 't', 'f']) && !self.has(Fault::AnyIdIsTaken) {
            return Err("null".to_owned());
        }
        let is_none = match self.fault {
            Some(Fault::NullIdIsNone) => text == "null",
            Some(Fault::FalseIdIsNone) => matches!(text, "0" | "\"\""),
            Some(Fault::IdsAreSigned) => is_number && text.parse::<i64>().is_err(),
            Some(Fault::IdsAreUnsigned) => is_number && text.parse::<u64>().is_err(),
            _ => false,
        };
        if is_none {
            return Ok(None);
        }
        let digits = text.trim_matches('"');
        Ok(Some(match self.fault {
            Some(Fault::IdsAreDoubles) if is_number => double(text),
            Some(Fault::DigitsBecomeNumbers) if digits.parse::<u32>().is_ok() => digits.to_owned(),
            _ => text.to_owned(),
        }))
    }

    fn called(&self, call: &Call) -> Option<String> {
        let outcome = self.run(&call.method, call.params.as_deref());
        let answer = |id: &str| match &outcome {
            Ok(result) => self.result(id, result),
            Err(error) => self.error(id, *error),
        };
        match &call.id {
            Some(id) if self.has(Fault::IdOfTheConnection) && call.method == "echo" => {
                self.last_id.lock().unwrap().clone_from(id);
                thread::sleep(UNDER_WAY);
                Some(answer(&self.last_id.lock().unwrap()))
            }
            Some(id) => Some(answer(id)),
            None if self.has(Fault::NotificationsAreAnswered) => Some(answer("null")),
            None if self.has(Fault::NotificationErrorsAreReported) && outcome.is_err() => {
                Some(answer("null"))
            }
            None => None,
        }
    }

    /// The methods of the specification's examples, and `echo`.
    fn run(&self, method: &str, params: Option<&str>) -> Result<String, Error> {
        let lower = method.to_lowercase();
        let method = match self.fault {
            Some(Fault::MethodCaseIsIgnored) => &lower,
            Some(Fault::MethodIsTrimmed) => method.trim(),
            _ => method,
        };
        let outcome = match method {
            "subtract" => subtract(params.unwrap_or("[]")).map(|n| n.to_string()),
            "sum" => numbers(params).map(|all| all.iter().sum::<i64>().to_string()),
            "notify_sum" => numbers(params).map(|_| "null".to_owned()),
            "get_data" => Some(r#"["hello",5]"#.to_owned()),
            "update" | "notify_hello" => Some("null".to_owned()),
            "echo" => Some(params.unwrap_or("null").to_owned()),
            _ if self.has(Fault::UnknownMethodIsInvalidRequest) => return Err(INVALID_REQUEST),
            _ => return Err(METHOD_NOT_FOUND),
        };
        let strict = !self.has(Fault::WrongParamsAreInvalidRequest);
        outcome.ok_or(if strict { INVALID_PARAMS } else { INVALID_REQUEST })
    }

    fn result(&self, id: &str, result: &str) -> String {
        let version = self.version();
        match self.fault {
            Some(Fault::NullResultIsLeftOut) if result == "null" => {
                format!(r#"{{{version}"id":{id}}}"#)
            }
            Some(Fault::NullErrorBesideResult) => {
                format!(r#"{{{version}"result":{result},"error":null,"id":{id}}}"#)
            }
            _ => format!(r#"{{{version}"result":{result},"id":{id}}}"#),
        }
    }

    fn error(&self, id: &str, (code, message): Error) -> String {
        let version = self.version();
        let error = match self.fault {
            Some(Fault::CodeIsString) => format!(r#"{{"code":"{code}","message":"{message}"}}"#),
            Some(Fault::ErrorHasNoMessage) => format!(r#"{{"code":{code}}}"#),
            Some(Fault::ErrorIsText) => format!(r#""{message}""#),
            _ => format!(r#"{{"code":{code},"message":"{message}"}}"#),
        };
        let beside = if self.has(Fault::NullResultBesideError) { r#""result":null,"# } else { "" };
        format!(r#"{{{version}{beside}"error":{error},"id":{id}}}"#)
    }

    fn parse_error(&self) -> String {
        match self.fault {
            Some(Fault::ParseErrorIsInvalidRequest) => self.error("null", INVALID_REQUEST),
            Some(Fault::ParseErrorHasNoId) => {
                self.error("null", PARSE_ERROR).replace(r#","id":null"#, "")
            }
            _ => self.error("null", PARSE_ERROR),
        }
    }

    fn version(&self) -> &'static str {
        if self.has(Fault::NoVersionInAnswer) { "" } else { r#""jsonrpc":"2.0","# }
    }

    /// Returns a response as it is sent.
    fn spoken(&self, answer: String) -> Vec<String> {
        match self.fault {
            Some(Fault::AnswersTwice) => vec![answer.clone(), answer],
            Some(Fault::StrayText) => vec![answer, "OK".to_owned()],
            Some(Fault::AnswerIsArray) if answer.starts_with('{') => vec![format!("[{answer}]")],
            _ => vec![answer],
        }
    }
}

/// Returns the text of a JSON String.
fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

fn numbers(params: Option<&str>) -> Option<Vec<i64>> {
    serde_json::from_str(params.unwrap_or("[]")).ok()
}

fn subtract(params: &str) -> Option<i64> {
    if let Ok([minuend, subtrahend]) = serde_json::from_str::<[i64; 2]>(params) {
        return Some(minuend - subtrahend);
    }
    let named: BTreeMap<String, i64> = serde_json::from_str(params).ok()?;
    if named.len() > 2 {
        return None;
    }
    Some(named.get("minuend")? - named.get("subtrahend")?)
}

/// Returns a Number as a server with doubles writes it.
fn double(text: &str) -> String {
    let number: f64 = text.parse().unwrap_or(f64::INFINITY);
    if number.is_finite() { number.to_string() } else { "null".to_owned() }
}

fn depth(message: &[u8]) -> usize {
    message.iter().filter(|byte| matches!(byte, b'[' | b'{')).count()
}
