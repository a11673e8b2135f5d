//! What does the client ask in this message, and what is an answer to it?
//!
//! It reads as leniently as it can and writes down every fault: a client whose requests are not in
//! order is answered all the same, so that the rest of it can be judged.

use crate::transcript::json::{Json, JsonValue};

/// A call, as far as it could be read.
#[derive(Clone, Debug)]
pub(super) struct ReceivedCall {
    /// The text of its id.
    pub(super) id: String,
    /// The text of what an ordinary answer has as its result.
    pub(super) result: String,
}

/// A message with at least one call.
#[derive(Clone, Debug)]
pub(super) struct ReceivedCalls {
    pub(super) calls: Vec<ReceivedCall>,
    pub(super) is_batch: bool,
    /// Whether no call came before it in its scenario.
    pub(super) is_first: bool,
}

/// Everything that one message holds.
#[derive(Debug, Default)]
pub(super) struct ReceivedMessage {
    pub(super) received: Option<ReceivedCalls>,
    /// Responses to what the server asked.
    pub(super) replies: Vec<Json>,
    /// Which check a fault breaks, and how.
    pub(super) faults: Vec<(&'static str, String)>,
}

impl ReceivedCall {
    /// An answer whose result is this text.
    pub(super) fn with_result(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{}}}"#, self.id)
    }

    /// An answer whose error is this text.
    pub(super) fn with_error(&self, error: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{}}}"#, self.id)
    }

    /// What a server without faults would say.
    pub(super) fn ordinary(&self) -> String {
        self.with_result(&self.result)
    }

    /// The same answer, as if it were for another call: an id of this text.
    pub(super) fn under(&self, id: &str) -> Self {
        Self { id: id.to_owned(), result: self.result.clone() }
    }
}

impl ReceivedCalls {
    /// The answers as one message: an Array to a batch.
    pub(super) fn answered(&self, answer: impl FnMut(&ReceivedCall) -> String) -> String {
        let answers: Vec<String> = self.calls.iter().map(answer).collect();
        if self.is_batch { format!("[{}]", answers.join(",")) } else { answers.concat() }
    }

    pub(super) fn ordinary(&self) -> String {
        self.answered(ReceivedCall::ordinary)
    }
}

impl ReceivedMessage {
    /// Reads a message; an ordinary answer gives `result`, or else the call's own params.
    pub(super) fn read(message: &[u8], result: Option<&str>) -> Self {
        let mut parsed = Self::default();
        match parse(message) {
            Ok(json) => parsed.message(&json, result),
            Err(reason) if reason.contains("twice") => {
                parsed.fault("members-once", reason);
                parsed.leniently(message, result);
            }
            Err(reason) => parsed.fault("request-json", reason),
        }
        parsed
    }

    /// Whether it could be made out what it holds.
    pub(super) fn is_readable(&self) -> bool {
        let is_broken =
            |(check, _): &(&str, String)| ["request-json", "request-object"].contains(check);
        self.received.is_some() || !self.replies.is_empty() || !self.faults.iter().any(is_broken)
    }

    fn fault(&mut self, check: &'static str, reason: impl Into<String>) {
        self.faults.push((check, reason.into()));
    }

    fn message(&mut self, json: &Json, result: Option<&str>) {
        let (entries, is_batch) = match &json.value {
            JsonValue::Array(entries) => (entries.as_slice(), true),
            _ => (std::slice::from_ref(json), false),
        };
        if entries.is_empty() {
            self.fault("request-object", "an empty Array is no batch");
        }
        let calls: Vec<ReceivedCall> =
            entries.iter().filter_map(|entry| self.entry(entry, result)).collect();
        if !calls.is_empty() {
            self.received = Some(ReceivedCalls { calls, is_batch, is_first: false });
        }
    }

    /// A member twice: the last one counts, as in most readers.
    fn leniently(&mut self, message: &[u8], result: Option<&str>) {
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(message) else { return };
        if let Ok(json) = Json::parse(&value.to_string()) {
            self.message(&json, result);
        }
    }

    /// Reads one message of a batch, or the only one; gives the call that it is.
    fn entry(&mut self, json: &Json, result: Option<&str>) -> Option<ReceivedCall> {
        let JsonValue::Object(members) = &json.value else {
            self.fault("request-object", format!("a message is an Object, and this is {json}"));
            return None;
        };
        let is_reply = |name: &str| name == "result" || name == "error";
        if json.member("method").is_none() && members.iter().any(|(name, _)| is_reply(&name)) {
            self.replies.push(json.clone());
            return None;
        }
        self.request(json);
        for (name, _) in members.iter() {
            if !["jsonrpc", "method", "params", "id"].contains(&&*name) {
                self.fault("request-members", format!("`{name}` is no member of a Request"));
            }
        }
        let id = json.member("id")?;
        let params = json.member("params").map(Json::text);
        let result = result.or(params).unwrap_or("true");
        Some(ReceivedCall { id: id.text().to_owned(), result: result.to_owned() })
    }

    /// Section 4.
    fn request(&mut self, json: &Json) {
        match json.member("jsonrpc") {
            None => self.fault("request-jsonrpc", "`jsonrpc` is missing"),
            Some(version) if is_text(version, "2.0") => {}
            Some(version) => self.fault(
                "request-jsonrpc",
                format!("at `jsonrpc`: expected \"2.0\", found {version}"),
            ),
        }
        match json.member("method").map(|method| (&method.value, method)) {
            None => self.fault("request-method", "`method` is missing"),
            Some((JsonValue::String(_), method)) => {
                let name = method.lossy();
                if name.starts_with("rpc.") && name != "rpc.discover" {
                    self.fault("reserved-names", format!("it calls {method}"));
                }
            }
            Some((_, method)) => self
                .fault("request-method", format!("at `method`: expected a String, found {method}")),
        }
        if let Some(params) = json.member("params")
            && !matches!(params.value, JsonValue::Array(_) | JsonValue::Object(_))
        {
            self.fault(
                "request-params",
                format!("at `params`: expected an Array or an Object, found {params}"),
            );
        }
        if let Some(id) = json.member("id") {
            self.id(id);
        }
    }

    fn id(&mut self, id: &Json) {
        match &id.value {
            JsonValue::String(_) => {}
            JsonValue::Number if is_whole(id.text()) => {}
            JsonValue::Number => self.fault("id-fraction", format!("the id {id} has a fraction")),
            JsonValue::Null => self.fault("id-null", "the id of a call is null"),
            _ => self
                .fault("request-id", format!("at `id`: expected a String or a Number, found {id}")),
        }
    }
}

fn parse(message: &[u8]) -> Result<Json, String> {
    let text = std::str::from_utf8(message).map_err(|error| format!("not UTF-8: {error}"))?;
    Json::parse(text)
}

pub(super) fn is_text(json: &Json, text: &str) -> bool {
    json.is_text(text)
}

/// `1`, and `1.0` and `1e3` too: the value has no fractional part.
fn is_whole(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        return true;
    }
    number.parse::<f64>().is_ok_and(|value| value.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(message: &str) -> Vec<&'static str> {
        let parsed = ReceivedMessage::read(message.as_bytes(), None);
        parsed.faults.into_iter().map(|(check, _)| check).collect()
    }

    #[test]
    fn what_is_in_order_has_no_fault() {
        for message in [
            r#"{"jsonrpc":"2.0","method":"a","id":1}"#,
            r#"{"jsonrpc":"2.0","method":"a","params":{},"id":"x"}"#,
            r#"{"jsonrpc":"2.0","method":"a","params":[]}"#,
            r#"[{"jsonrpc":"2.0","method":"a","id":1.0}]"#,
            r#"{"jsonrpc":"2.0","result":1,"id":1}"#,
        ] {
            assert!(faults(message).is_empty(), "{message}");
        }
    }

    #[test]
    fn a_fault_breaks_the_check_that_names_it() {
        for (message, check) in [
            ("{", "request-json"),
            ("\u{feff}{}", "request-json"),
            ("[]", "request-object"),
            ("[1]", "request-object"),
            ("7", "request-object"),
            (r#"{"method":"a"}"#, "request-jsonrpc"),
            (r#"{"jsonrpc":2.0,"method":"a"}"#, "request-jsonrpc"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "request-method"),
            (r#"{"jsonrpc":"2.0","method":1}"#, "request-method"),
            (r#"{"jsonrpc":"2.0","method":"rpc.a"}"#, "reserved-names"),
            (r#"{"jsonrpc":"2.0","method":"a","params":null}"#, "request-params"),
            (r#"{"jsonrpc":"2.0","method":"a","id":null}"#, "id-null"),
            (r#"{"jsonrpc":"2.0","method":"a","id":1.5}"#, "id-fraction"),
            (r#"{"jsonrpc":"2.0","method":"a","id":[1]}"#, "request-id"),
            (r#"{"jsonrpc":"2.0","method":"a","x":1}"#, "request-members"),
            (r#"{"jsonrpc":"2.0","method":"a","id":1,"id":1}"#, "members-once"),
        ] {
            assert_eq!(faults(message), [check], "{message}");
        }
        assert_eq!(ReceivedMessage::read(b"\"\xff\"", None).faults[0].0, "request-json");
    }

    #[test]
    fn a_call_is_answered_with_its_id_and_its_params() {
        let one = ReceivedMessage::read(
            br#"{"method":"a","params":[1.50],"id":18446744073709551616}"#,
            None,
        );
        let expected = r#"{"jsonrpc":"2.0","result":[1.50],"id":18446744073709551616}"#;
        assert_eq!(one.received.unwrap().ordinary(), expected);
        let batch =
            ReceivedMessage::read(br#"[{"method":"a","id":"x"},{"method":"b"}]"#, Some("7"));
        let expected = r#"[{"jsonrpc":"2.0","result":7,"id":"x"}]"#;
        assert_eq!(batch.received.unwrap().ordinary(), expected);
        let twice = ReceivedMessage::read(br#"{"method":"a","id":1,"id":2}"#, None);
        assert_eq!(twice.received.unwrap().calls[0].id, "2");
        assert!(ReceivedMessage::read(br#"[{"method":"a"}]"#, None).received.is_none());
    }
}
