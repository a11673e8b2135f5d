//! The headers of modern requests: they repeat the body, so that proxies can route without it. A request whose headers
//! say something else is refused.

use std::borrow::Cow;

use antiphon::ErrorObject;
use antiphon::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::McpServer;
use crate::server::{RequestMeta, RequestParams};
use crate::types::error_codes::HEADER_MISMATCH;
use crate::types::methods;

pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Checks the headers of a modern request against its body.
///
/// # Errors
/// Fails with -32020 if a header is missing, malformed, or says something else than the body.
pub(super) fn check(
    headers: &HeaderMap,
    method: &str,
    params: &RequestParams<'_>,
    meta: &RequestMeta<'_>,
    server: &McpServer,
) -> Result<(), ErrorObject> {
    check_version(headers, meta)?;
    equal(headers, METHOD, method)?;
    if let Some(name) = name_of(method, params) {
        equal_encoded(headers, NAME, name)?;
    }
    match method {
        methods::CALL_TOOL => check_params(headers, params, server),
        _ => Ok(()),
    }
}

/// Checks the revision in the header. A body without one is refused later, with an error of its own.
fn check_version(headers: &HeaderMap, meta: &RequestMeta<'_>) -> Result<(), ErrorObject> {
    match &meta.protocol_version {
        Some(version) => equal(headers, PROTOCOL_VERSION.as_str(), version),
        None => Ok(()),
    }
}

/// The value that `Mcp-Name` repeats.
fn name_of<'a>(method: &str, params: &'a RequestParams<'_>) -> Option<&'a str> {
    match method {
        methods::CALL_TOOL | methods::GET_PROMPT => params.name.as_deref(),
        methods::READ_RESOURCE => params.uri.as_deref(),
        methods::GET_TASK | methods::UPDATE_TASK | methods::CANCEL_TASK => {
            params.task_id.as_deref()
        }
        _ => None,
    }
}

/// Checks the headers that repeat arguments of a tool.
fn check_params(
    headers: &HeaderMap,
    params: &RequestParams<'_>,
    server: &McpServer,
) -> Result<(), ErrorObject> {
    let tool = params.name.as_deref().and_then(|name| server.tool(name));
    let Some(tool) = tool.filter(|tool| !tool.param_headers().is_empty()) else { return Ok(()) };
    let arguments = params.arguments.map_or("{}", RawValue::get);
    // A tool refuses arguments that are not JSON, so nothing is compared with them.
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return Ok(()) };
    for param in tool.param_headers().iter() {
        let header = &*param.header;
        match (param.value(&arguments), headers.contains_key(header)) {
            (None, false) => {}
            (None, true) => return Err(mismatch(header, "the body has no such argument")),
            (Some(Value::String(text)), _) => equal_encoded(headers, header, text)?,
            (Some(Value::Number(number)), _) => {
                let given = decoded(header, one(headers, header)?)?;
                let is_equal = given.parse::<f64>().ok() == number.as_f64();
                if !is_equal && *given != number.to_string() {
                    return Err(mismatch(header, "it differs from the argument"));
                }
            }
            (Some(value), _) => equal_encoded(headers, header, &value.to_string())?,
        }
    }
    Ok(())
}

fn equal(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), ErrorObject> {
    match one(headers, name)? == expected {
        true => Ok(()),
        false => Err(mismatch(name, &format!("it differs from `{}` in the body", short(expected)))),
    }
}

fn equal_encoded(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), ErrorObject> {
    match decoded(name, one(headers, name)?)? == expected {
        true => Ok(()),
        false => Err(mismatch(name, &format!("it differs from `{}` in the body", short(expected)))),
    }
}

/// The only value of a header.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, ErrorObject> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| mismatch(name, "it has invalid characters"))?;
            Ok(text.trim_matches([' ', '\t']))
        }
        (None, _) => Err(mismatch(name, "it is missing")),
        (Some(_), Some(_)) => Err(mismatch(name, "it is given more than once")),
    }
}

/// Decodes a value that is written as `=?base64?..?=`.
fn decoded<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, ErrorObject> {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else { return Ok(Cow::Borrowed(value)) };
    let bytes = STANDARD.decode(encoded).map_err(|_| mismatch(name, "its base64 is invalid"))?;
    let text = String::from_utf8(bytes).map_err(|_| mismatch(name, "it is not UTF-8"))?;
    Ok(Cow::Owned(text))
}

fn mismatch(name: &str, reason: &str) -> ErrorObject {
    let name = canonical(name);
    ErrorObject::new(HEADER_MISMATCH, format!("Header mismatch: {name}: {reason}"))
}

/// The usual spelling of a header.
fn canonical(name: &str) -> Cow<'_, str> {
    match name {
        name if name == PROTOCOL_VERSION => Cow::Borrowed("MCP-Protocol-Version"),
        METHOD => Cow::Borrowed("Mcp-Method"),
        NAME => Cow::Borrowed("Mcp-Name"),
        other => Cow::Owned(other.replacen("mcp-param-", "Mcp-Param-", 1)),
    }
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_are_decoded() {
        let decode = |value: &'static str| decoded("h", value).map(Cow::into_owned).ok();
        assert_eq!(decode("us-west1").as_deref(), Some("us-west1"));
        assert_eq!(decode("=?base64?SGVsbG8=?=").as_deref(), Some("Hello"));
        assert_eq!(decode("=?base64?SGVsbG8?="), None, "the padding is missing");
        assert_eq!(decode("=?base64?SGVs!!!bG8=?="), None);
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
        assert_eq!(decode("=?base64?/w==?="), None, "not UTF-8");
    }
}
