//! The params of a request, as far as the protocol itself reads them.
//!
//! One pass over the params finds the members that decide what happens: the name of a tool, its arguments, the metadata.
//! Their values stay text until somebody needs them.

use std::borrow::Cow;

use antiphon::core::JsonKind;
use antiphon::{ErrorObject, Params, RawJson};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The members of params that some method of the protocol reads.
#[derive(Default, Deserialize)]
pub(crate) struct RequestParams<'a> {
    #[serde(borrow, rename = "_meta")]
    pub(crate) meta: Option<&'a RawValue>,
    /// The name of a tool or prompt.
    #[serde(borrow, default, deserialize_with = "borrowed_text")]
    pub(crate) name: Option<Cow<'a, str>>,
    /// The URI of a resource.
    #[serde(borrow, default, deserialize_with = "borrowed_text")]
    pub(crate) uri: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "borrowed_text")]
    pub(crate) cursor: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "inputResponses")]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "borrowed_text", rename = "requestState")]
    pub(crate) request_state: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "borrowed_text", rename = "taskId")]
    pub(crate) task_id: Option<Cow<'a, str>>,
    /// Asks for a task (2025-11-25).
    #[serde(borrow)]
    pub(crate) task: Option<&'a RawValue>,
}

/// Reads a text or null. A text without escapes is borrowed; serde alone would copy it, because it is optional.
pub(crate) fn borrowed_text<'de: 'a, 'a, D: Deserializer<'de>>(
    member: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'a>>::deserialize(member)?.map(|Text(text)| text))
}

impl<'a> RequestParams<'a> {
    /// Reads the params of a request. Absent params are empty ones.
    ///
    /// # Errors
    /// Fails with -32602 if the params are an Array, or if a member has the wrong type.
    pub(crate) fn read(params: Option<&'a Params>) -> Result<Self, ErrorObject> {
        let Some(params) = params else { return Ok(Self::default()) };
        // serde's derive would read an Array as a struct.
        if params.as_json().kind() != JsonKind::Object {
            return Err(invalid_params("", "params must be an Object"));
        }
        decode(params.as_json().as_str())
    }

    /// Reads params that are text, like [`read`](Self::read).
    pub(crate) fn of(params: Option<&'a RawValue>) -> Result<Self, ErrorObject> {
        match params.map(RawValue::get) {
            None => Ok(Self::default()),
            Some(text) if text.starts_with('{') => decode(text),
            Some(_) => Err(invalid_params("", "params must be an Object")),
        }
    }

    /// Returns the name of the tool or prompt.
    pub(crate) fn name(&self) -> Result<&str, ErrorObject> {
        self.name.as_deref().ok_or_else(|| missing("name"))
    }

    /// Returns the URI of the resource.
    pub(crate) fn uri(&self) -> Result<&str, ErrorObject> {
        self.uri.as_deref().ok_or_else(|| missing("uri"))
    }

    /// Returns the id of the task.
    pub(crate) fn task_id(&self) -> Result<&str, ErrorObject> {
        self.task_id.as_deref().ok_or_else(|| missing("taskId"))
    }
}

/// Decodes a value that a peer has sent. The error is -32602 with the path of the fault.
pub(crate) fn decode<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ErrorObject> {
    serde_json::from_str(text).map_err(|error| locate::<T>(text, &error))
}

/// Decodes the params of a method whose params are one struct.
pub(crate) fn decode_params<T: serde::de::DeserializeOwned>(
    params: Option<&Params>,
) -> Result<T, ErrorObject> {
    match params {
        Some(params) if params.as_json().kind() != JsonKind::Object => {
            Err(invalid_params("", "params must be an Object"))
        }
        Some(params) => decode(params.as_json().as_str()),
        None => decode("{}"),
    }
}

/// Decodes once more, slower, to find the path of the fault.
fn locate<'a, T: Deserialize<'a>>(text: &'a str, error: &serde_json::Error) -> ErrorObject {
    let (path, reason) = fault::<T>(text, error);
    invalid_params(&path, &reason)
}

/// Returns the path and the reason of a fault that `error` has reported.
pub(crate) fn fault<'a, T: Deserialize<'a>>(
    text: &'a str,
    error: &serde_json::Error,
) -> (String, String) {
    let source = &mut serde_json::Deserializer::from_str(text);
    let (path, reason) = match serde_path_to_error::deserialize::<_, T>(source) {
        Ok(_) => (String::new(), error.to_string()),
        Err(error) => (error.path().to_string(), error.inner().to_string()),
    };
    // The whole, or a place that is not known.
    let path = if [".", "?"].contains(&&*path) { String::new() } else { path };
    // The position in the text would mislead: the text is only a part of the message.
    let reason = reason.split(" at line ").next().unwrap_or_default();
    // Both may repeat what the peer has sent.
    (excerpt(&path), excerpt(reason))
}

fn excerpt(text: &str) -> String {
    const CHARS: usize = 300;
    text.chars().take(CHARS).collect()
}

fn missing(name: &str) -> ErrorObject {
    invalid_params("", &format!("missing param `{name}`"))
}

/// The error -32602 with the path of the fault and the reason, which is also the message.
pub(crate) fn invalid_params(path: &str, reason: &str) -> ErrorObject {
    #[derive(serde::Serialize)]
    struct FaultData<'a> {
        path: &'a str,
        reason: &'a str,
    }
    let message = match path {
        "" => format!("Invalid params: {reason}"),
        path => format!("Invalid params: {path}: {reason}"),
    };
    ErrorObject::new(antiphon::Code::INVALID_PARAMS.0, message)
        .with_data(&FaultData { path, reason })
}

/// The metadata of a request, as far as the protocol reads it.
#[derive(Default, Deserialize)]
pub(crate) struct RequestMeta<'a> {
    #[serde(borrow, rename = "progressToken")]
    pub(crate) progress_token: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "borrowed_text",
        rename = "io.modelcontextprotocol/protocolVersion"
    )]
    pub(crate) protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    pub(crate) log_level: Option<&'a RawValue>,
}

impl<'a> RequestMeta<'a> {
    /// Reads the metadata of params. Absent metadata is empty.
    pub(crate) fn read(params: &RequestParams<'a>) -> Result<Self, ErrorObject> {
        let Some(meta) = params.meta else { return Ok(Self::default()) };
        if !meta.get().starts_with('{') {
            return Err(invalid_params("_meta", "must be an Object"));
        }
        decode(meta.get())
    }

    /// Whether the request states its protocol version, which only modern clients do.
    pub(crate) fn is_modern(&self) -> bool {
        self.protocol_version.is_some()
    }

    /// Returns the progress token: a String or an integer, byte for byte.
    pub(crate) fn progress_token(&self) -> Option<RawJson> {
        let token = self.progress_token?.get();
        let is_number = token.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        (token.starts_with('"') || is_number).then(|| RawJson::parse(token.to_owned()).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        Params::parse(text).unwrap()
    }

    #[test]
    fn the_members_are_found_and_stay_text() {
        let params = params(
            r#"{"name":"a\/b","arguments":{"n":1.50},"_meta":{"progressToken":7,"x":1},"more":[]}"#,
        );
        let read = RequestParams::read(Some(&params)).unwrap();
        assert_eq!(read.name().unwrap(), "a/b");
        assert_eq!(read.arguments.unwrap().get(), r#"{"n":1.50}"#);
        let meta = RequestMeta::read(&read).unwrap();
        assert!(!meta.is_modern());
        assert_eq!(meta.progress_token().unwrap().as_str(), "7");
        assert!(read.uri().unwrap_err().message.contains("missing param `uri`"));
    }

    #[test]
    fn the_error_names_the_place() {
        let params = params(r#"{"name":7}"#);
        let error = RequestParams::read(Some(&params)).err().unwrap();
        assert_eq!(error.code, antiphon::Code::INVALID_PARAMS);
        assert!(error.message.starts_with("Invalid params: name: invalid type"), "{error}");
    }

    #[test]
    fn an_array_is_not_read_as_members() {
        let params = params(r#"[null,"a"]"#);
        assert!(RequestParams::read(Some(&params)).is_err());
        assert!(decode_params::<RequestMetaOwned>(Some(&params)).is_err());
    }

    #[derive(Debug, Deserialize)]
    struct RequestMetaOwned {}

    #[test]
    fn a_token_is_a_string_or_a_number() {
        for (token, is_accepted) in
            [("\"a\"", true), ("-1", true), ("null", false), ("{}", false), ("true", false)]
        {
            let params = params(&format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#));
            let read = RequestParams::read(Some(&params)).unwrap();
            let meta = RequestMeta::read(&read).unwrap();
            assert_eq!(meta.progress_token().is_some(), is_accepted, "{token}");
        }
    }
}
