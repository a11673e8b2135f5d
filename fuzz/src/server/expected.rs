//! The expected responses of a server.
//!
//! Responses to several messages arrive in any order, and two calls may have one id. So responses are
//! counted by their ids, and the content of each is checked against the calls with these ids.

use std::collections::HashMap;

use antiphon::Limits;
use antiphon_core::Rules;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::{Reading, Said};

/// The ids of one response with their bytes, and whether it is an Array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shape {
    ids: Vec<String>,
    batch: bool,
}

/// The allowed responses of one call.
#[derive(Clone, Debug)]
struct Owed {
    result: May,
    codes: Vec<i64>,
}

/// The allowed results.
#[derive(Clone, Debug)]
enum May {
    Never,
    Be(String),
    BeAny,
}

/// The responses that are still due.
pub(super) struct Expected {
    owed: HashMap<Shape, Due>,
    open: usize,
}

#[derive(Default)]
struct Due {
    count: usize,
    calls: Vec<Vec<Owed>>,
}

impl Expected {
    pub(super) fn new() -> Self {
        Self { owed: HashMap::new(), open: 0 }
    }

    /// Whether no response is due.
    pub(super) fn is_met(&self) -> bool {
        self.open == 0
    }

    pub(super) fn list(&self) -> Vec<String> {
        let due = self.owed.iter().filter(|(_, due)| due.count > 0);
        due.map(|(shape, due)| format!("{} of {:?}", due.count, shape.ids)).collect()
    }

    /// Adds a sent message, and returns whether it must be answered.
    pub(super) fn sent(&mut self, message: &[u8], rules: &Rules, busy: &[i64]) -> bool {
        let reading = Reading::of(message, rules);
        let batch = matches!(reading, Reading::Batch(_));
        let owed: Vec<_> = match reading {
            Reading::NoJson => vec![("null".to_owned(), Owed::error(-32700))],
            Reading::TooMany => vec![("null".to_owned(), Owed::error(-32010))],
            said => said.entries().into_iter().filter_map(|said| owed(&said)).collect(),
        };
        if owed.is_empty() {
            return false;
        }
        let (ids, mut calls): (Vec<_>, Vec<_>) = owed.into_iter().unzip();
        calls.iter_mut().for_each(|call| call.codes.extend(busy));
        let due = self.owed.entry(Shape { ids, batch }).or_default();
        due.count += 1;
        due.calls.push(calls);
        self.open += 1;
        true
    }

    /// Removes a response, which must be one of those that are due.
    pub(super) fn came(&mut self, answer: &[u8]) {
        let text = std::str::from_utf8(answer).expect("an answer is UTF-8");
        let batch = text.starts_with('[');
        let answers: Vec<Answer<'_>> = if batch {
            serde_json::from_str(text).expect("an Array of Responses")
        } else {
            vec![serde_json::from_str(text).expect("a Response")]
        };
        answers.iter().for_each(Answer::assert_well_formed);
        let ids = answers.iter().map(|answer| answer.id.get().to_owned()).collect();
        let due = self.owed.get_mut(&Shape { ids, batch });
        let due = due.unwrap_or_else(|| panic!("nobody has asked for {text}"));
        assert!(due.count > 0, "one more answer than requests: {text}");
        due.count -= 1;
        self.open -= 1;
        let fits =
            |calls: &Vec<Owed>| calls.iter().zip(&answers).all(|(owed, answer)| owed.fits(answer));
        assert!(due.calls.iter().any(fits), "not the answer to any of {:?}: {text}", due.calls);
    }
}

/// The expected response to an entry; none for Notifications and Responses.
fn owed(said: &Said<'_>) -> Option<(String, Owed)> {
    match said {
        Said::InvalidRequest { id } => Some(((*id).to_owned(), Owed::error(-32600))),
        Said::Request { id, method, params } => {
            Some(((*id).to_owned(), Owed::call(method, *params)))
        }
        Said::Notification { .. }
        | Said::Result { .. }
        | Said::Error { .. }
        | Said::InvalidResponse { .. } => None,
    }
}

impl Owed {
    fn error(code: i64) -> Self {
        Self { result: May::Never, codes: vec![code] }
    }

    fn result(text: &str) -> Self {
        Self { result: May::Be(text.to_owned()), codes: Vec::new() }
    }

    fn call(method: &str, params: Option<&str>) -> Self {
        match method {
            "echo" => Self::result(params.unwrap_or("null")),
            "fail" => Self::error(7),
            "panic" | "sleep_and_panic" => Self::error(-32603),
            "sleep" => Self::result("\"slow\""),
            "update" => Self::result("null"),
            "notify_sum" => Self { codes: vec![-32602], ..Self::result("null") },
            "subtract" => Self { result: May::BeAny, codes: vec![-32602, 1] },
            "sum" => Self { result: May::BeAny, codes: vec![-32602] },
            _ => Self::error(-32601),
        }
    }

    fn fits(&self, answer: &Answer<'_>) -> bool {
        match (answer.result, &answer.error) {
            (Some(result), _) => match &self.result {
                May::Never => false,
                May::Be(text) => text == result.get(),
                May::BeAny => result.get().parse::<i64>().is_ok(),
            },
            (None, Some(error)) => self.codes.contains(&error.code),
            (None, None) => false,
        }
    }
}

/// Codes that are allowed for any call under these limits: server busy, and response too large.
pub(super) fn refusals(limits: &Limits, cancels: bool) -> Vec<i64> {
    let usual = Limits::default();
    let mut codes = Vec::new();
    if limits.in_flight < usual.in_flight {
        codes.push(-32009);
    }
    if limits.response_bytes < usual.response_bytes {
        codes.push(-32008);
    }
    if cancels {
        codes.push(-32800);
    }
    codes
}

/// A Response (section 5) without other members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<Failure<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure<'a> {
    code: i64,
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Distinguishes a null member from an absent one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Answer<'_> {
    fn assert_well_formed(&self) {
        assert_eq!(self.jsonrpc, "2.0");
        assert!(self.result.is_some() != self.error.is_some(), "one of result and error");
        let told = self.error.as_ref().is_none_or(|error| {
            !error.message.is_empty() && error.data.is_none_or(|data| !data.get().is_empty())
        });
        assert!(told, "an error says what it is");
    }
}
