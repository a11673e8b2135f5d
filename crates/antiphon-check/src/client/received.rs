//! A received message: its calls, its Responses, and its faults.
//!
//! The parser is lenient and records every fault. A client with faulty requests still gets responses, so
//! that the other checks can run.

use crate::transcript::json::{DUPLICATED, Json, JsonValue};

/// A call of the client.
#[derive(Clone, Debug)]
pub(super) struct ReceivedCall {
    /// The id, as JSON.
    pub(super) id: String,
    /// The result of an ordinary response, as JSON.
    pub(super) result: String,
}

/// A message with at least one call.
#[derive(Clone, Debug)]
pub(super) struct ReceivedCalls {
    pub(super) calls: Vec<ReceivedCall>,
    pub(super) is_batch: bool,
    /// It is the first message with calls of its scenario.
    pub(super) is_first: bool,
}

/// The content of one message.
#[derive(Debug, Default)]
pub(super) struct ReceivedMessage {
    pub(super) received: Option<ReceivedCalls>,
    /// Responses to the server's Requests.
    pub(super) replies: Vec<Json>,
    /// Faults, by the check that they break.
    pub(super) faults: Vec<(&'static str, String)>,
}

impl ReceivedCall {
    /// Returns a response with this result.
    pub(super) fn with_result(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{}}}"#, self.id)
    }

    /// Returns a response with this error.
    pub(super) fn with_error(&self, error: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{}}}"#, self.id)
    }

    /// Returns the correct response.
    pub(super) fn ordinary(&self) -> String {
        self.with_result(&self.result)
    }

    /// Returns the call with another id.
    pub(super) fn with_id(&self, id: &str) -> Self {
        Self { id: id.to_owned(), result: self.result.clone() }
    }
}

impl ReceivedCalls {
    /// Returns the responses as one message: an Array for a batch.
    pub(super) fn respond(&self, answer: impl FnMut(&ReceivedCall) -> String) -> String {
        let answers: Vec<String> = self.calls.iter().map(answer).collect();
        if self.is_batch { format!("[{}]", answers.join(",")) } else { answers.concat() }
    }

    pub(super) fn ordinary(&self) -> String {
        self.respond(ReceivedCall::ordinary)
    }
}

impl ReceivedMessage {
    /// Parses a message. An ordinary response has `result`, or else the params of the call.
    pub(super) fn read(message: &[u8], result: Option<&str>) -> Self {
        let mut parsed = Self::default();
        match parse(message) {
            Ok(json) => parsed.message(&json, result),
            Err(reason) if reason.ends_with(DUPLICATED) => {
                parsed.fault("members-once", reason);
                parsed.leniently(message, result);
            }
            Err(reason) => parsed.fault("request-json", reason),
        }
        parsed
    }

    /// Reports whether the message could be parsed.
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
            self.fault("request-object", "an empty Array is not a batch");
        }
        let calls: Vec<ReceivedCall> =
            entries.iter().filter_map(|entry| self.entry(entry, result)).collect();
        if !calls.is_empty() {
            self.received = Some(ReceivedCalls { calls, is_batch, is_first: false });
        }
    }

    /// Parses a message with duplicate members: the last one counts, as in most parsers.
    fn leniently(&mut self, message: &[u8], result: Option<&str>) {
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(message) else { return };
        if let Ok(json) = Json::parse(&value.to_string()) {
            self.message(&json, result);
        }
    }

    /// Parses one entry of a batch, or the only message. Returns the call, if it is one.
    fn entry(&mut self, json: &Json, result: Option<&str>) -> Option<ReceivedCall> {
        let JsonValue::Object(members) = &json.value else {
            self.fault("request-object", format!("expected an Object, found {json}"));
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
                self.fault("request-members", format!("`{name}` is not a member of a Request"));
            }
        }
        let id = json.member("id")?;
        let params = json.member("params").map(Json::text);
        let result = result.or(params).unwrap_or("true");
        Some(ReceivedCall { id: id.text().to_owned(), result: result.to_owned() })
    }

    /// Checks a Request (section 4).
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
                    self.fault("reserved-names", format!("the client calls {method}"));
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

/// Reports whether the value has no fractional part: `1`, but also `1.0` and `1e3`.
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
    fn a_valid_message_has_no_fault() {
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
    fn a_response_has_the_id_and_the_params_of_its_call() {
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
