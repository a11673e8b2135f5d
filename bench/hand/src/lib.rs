//! JSON-RPC as a competent engineer writes it by hand: derived envelopes and borrowed raw values.
//!
//! A baseline for the libraries. It does what such services usually do: a batch with one invalid
//! entry is rejected as a whole, and there are no limits.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One message as it was received.
pub enum Payload<'a> {
    One(Request<'a>),
    Batch(Vec<Request<'a>>),
}

#[derive(Deserialize)]
pub struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

#[derive(Serialize)]
pub struct Response<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Outcome<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
    id: Option<&'a RawValue>,
    /// The delay before the reply is sent.
    #[serde(skip)]
    pub pause: Option<Duration>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome<'a> {
    Text(&'static str),
    Number(i64),
    Same(&'a RawValue),
}

#[derive(Serialize)]
struct ErrorObject {
    code: i32,
    message: &'static str,
}

const PARSE_ERROR: ErrorObject = ErrorObject { code: -32700, message: "Parse error" };
const INVALID_REQUEST: ErrorObject = ErrorObject { code: -32600, message: "Invalid Request" };
const NOT_FOUND: ErrorObject = ErrorObject { code: -32601, message: "Method not found" };
const INVALID_PARAMS: ErrorObject = ErrorObject { code: -32602, message: "Invalid params" };

/// Decodes one message.
pub fn parse(message: &[u8]) -> serde_json::Result<Payload<'_>> {
    match message.trim_ascii_start().first() {
        Some(b'[') => serde_json::from_slice(message).map(Payload::Batch),
        _ => serde_json::from_slice(message).map(Payload::One),
    }
}

impl<'a> Request<'a> {
    /// Serves the message; returns `None` for a Notification.
    pub fn serve(&self) -> Option<Response<'a>> {
        let id = Some(self.id?);
        let mut pause = None;
        let (result, error) = match self.call(&mut pause) {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Some(Response { jsonrpc: "2.0", result, error, id, pause })
    }

    fn call(&self, pause: &mut Option<Duration>) -> Result<Outcome<'a>, ErrorObject> {
        if self.jsonrpc != "2.0" {
            return Err(INVALID_REQUEST);
        }
        match &*self.method {
            "say_hello" => Ok(Outcome::Text("hello")),
            "add" => self.params().map(|(a, b): (i64, i64)| Outcome::Number(a + b)),
            "echo" => self.params.map(Outcome::Same).ok_or(INVALID_PARAMS),
            "sleep" => self.params().map(|(ms,): (u32,)| {
                *pause = Some(Duration::from_millis(ms.into()));
                Outcome::Number(ms.into())
            }),
            _ => Err(NOT_FOUND),
        }
    }

    fn params<P: Deserialize<'a>>(&self) -> Result<P, ErrorObject> {
        let params = self.params.ok_or(INVALID_PARAMS)?;
        serde_json::from_str(params.get()).map_err(|_| INVALID_PARAMS)
    }
}

/// The response to text that is not JSON.
pub fn parse_error() -> Response<'static> {
    Response { jsonrpc: "2.0", result: None, error: Some(PARSE_ERROR), id: None, pause: None }
}

/// Serves one message and appends its response; nothing waits.
pub fn answer(message: &[u8], out: &mut Vec<u8>) {
    let written = match parse(message) {
        Ok(Payload::One(request)) => {
            request.serve().map(|reply| serde_json::to_writer(out, &reply))
        }
        Ok(Payload::Batch(batch)) => {
            let replies: Vec<_> = batch.iter().filter_map(Request::serve).collect();
            (!replies.is_empty()).then(|| serde_json::to_writer(out, &replies))
        }
        Err(_) => Some(serde_json::to_writer(out, &parse_error())),
    };
    written.transpose().expect("memory takes what is written");
}
