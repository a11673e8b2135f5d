//! The form of one message: a request, a notification or a response of JSON-RPC 2.0 as MCP restricts it.

use crate::transcript::json::{Json, JsonValue};

/// Describes a null id of a request or a result. An error whose request could not be read may have one.
pub(super) fn id_fault(json: &Json) -> Option<&'static str> {
    let is_null = json.member("id").is_some_and(|id| matches!(id.value, JsonValue::Null));
    match is_null {
        true if json.member("method").is_some() => Some("a request has a null id"),
        true if json.member("result").is_some() => Some("a result has a null id"),
        _ => None,
    }
}

/// Describes the first fault of a message that is not an Array and has not both a result and an error.
pub(super) fn envelope_fault(json: &Json) -> Option<String> {
    if !matches!(json.value, JsonValue::Object(_)) {
        return Some(format!("a message is {}, not an Object", json.kind()));
    }
    if !json.member("jsonrpc").is_some_and(|version| version.is_text("2.0")) {
        return Some("a message has no `\"jsonrpc\":\"2.0\"`".to_owned());
    }
    let id = json.member("id");
    let is_valid =
        |id: &Json| id.is_string() || id.is_integer() || matches!(id.value, JsonValue::Null);
    if let Some(id) = id.filter(|id| !is_valid(id)) {
        return Some(format!("the id of a message is {id}, neither a String nor an integer"));
    }
    let is_object = |json: &Json| matches!(json.value, JsonValue::Object(_));
    let parts = ["method", "result", "error"].map(|name| json.member(name));
    match parts {
        [Some(method), None, None] if !method.is_string() => {
            Some("the method of a message is not a String".to_owned())
        }
        [Some(_), None, None] => match json.member("params") {
            Some(params) if !is_object(params) => {
                Some(format!("the params of a message are {}, not an Object", params.kind()))
            }
            _ => None,
        },
        [None, Some(_), None] if id.is_none() => Some("a result has no id".to_owned()),
        [None, Some(result), None] if !is_object(result) => {
            Some(format!("a result is {}, not an Object", result.kind()))
        }
        [None, Some(_), None] => None,
        [None, None, Some(error)] => {
            let has_code = error.member("code").is_some_and(Json::is_integer);
            let has_message = error.member("message").is_some_and(Json::is_string);
            let fault = "an error has no integer `code` and String `message`";
            (!has_code || !has_message).then(|| fault.to_owned())
        }
        _ => Some("a message is neither a request, a notification nor a response".to_owned()),
    }
}
