//! Encodes results in the form of the client's revision.
//!
//! A modern result has a type, and names the server. The text of both is the same for each result, so it is put in front
//! of the members that the handler has made.

use antiphon::{ErrorObject, Outcome, RawJson};
use serde::Serialize;
use serde_json::Value;

use super::context::RequestContext;
use super::forwarding::ResultMembers;
use crate::types::{
    CallToolResult, CompleteResult, DiscoverResult, EmptyResult, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Meta,
    ReadResourceResult, ResultType,
};

/// A result of the protocol.
pub(crate) trait ProtocolResult: Serialize {
    /// The metadata of the result and its type.
    fn parts(&mut self) -> (&mut Meta, &mut Option<ResultType>);
}

macro_rules! protocol_results {
    ($($result:ident),* $(,)?) => {
        $(
            impl ProtocolResult for $result {
                fn parts(&mut self) -> (&mut Meta, &mut Option<ResultType>) {
                    (&mut self.meta, &mut self.result_type)
                }
            }
        )*
    };
}

protocol_results! {
    CallToolResult, CompleteResult, DiscoverResult, EmptyResult, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    ReadResourceResult,
}

/// Encodes a result for the client of this request.
pub(crate) fn complete(cx: &RequestContext, mut result: impl ProtocolResult) -> Outcome {
    let is_modern = cx.era().is_modern();
    let prefix = cx.server().result_prefix();
    let (meta, result_type) = result.parts();
    if !is_modern {
        *result_type = None;
        return RawJson::encode(&result).map_err(ErrorObject::internal);
    }
    if meta.is_empty() && result_type.is_none() {
        return encode_after(prefix, &result);
    }
    result_type.get_or_insert_default();
    let info = cx.server().implementation();
    if !meta.0.contains_key(crate::types::meta::SERVER_INFO) {
        meta.set_server_info(info);
    }
    RawJson::encode(&result).map_err(ErrorObject::internal)
}

/// Encodes a value for the client of this request. A modern one gets the type and the name of the server in front.
pub(crate) fn complete_value(cx: &RequestContext, members: &impl Serialize) -> Outcome {
    match cx.era().is_modern() {
        true => encode_after(cx.server().result_prefix(), members),
        false => RawJson::encode(members).map_err(ErrorObject::internal),
    }
}

/// Encodes the result of another server for the client of this request. Its type and the name of its server are replaced.
pub(crate) fn complete_members(cx: &RequestContext, mut members: ResultMembers) -> Outcome {
    let is_modern = cx.era().is_modern();
    members.remove("resultType");
    let meta = members.remove("_meta").and_then(|meta| meta.decode::<ResultMembers>().ok());
    let mut meta = meta.unwrap_or_default();
    meta.remove(crate::types::meta::SERVER_INFO);
    let structured = members.get("structuredContent");
    if structured.is_some_and(|value| !may_be_structured(cx, value)) {
        members.remove("structuredContent");
    }
    if is_modern && meta.is_empty() {
        return encode_after(cx.server().result_prefix(), &members);
    }
    if is_modern {
        let info = encode(cx.server().implementation())?;
        meta.insert(crate::types::meta::SERVER_INFO.to_owned(), info);
        members.insert("resultType".to_owned(), encode("complete")?);
    }
    if !meta.is_empty() {
        members.insert("_meta".to_owned(), encode(&meta)?);
    }
    encode(&members)
}

fn encode<T: Serialize + ?Sized>(value: &T) -> Outcome {
    RawJson::encode(value).map_err(ErrorObject::internal)
}

/// Like [`complete_value`], with another type than `complete`. Only modern results have one.
pub(crate) fn complete_value_as(
    cx: &RequestContext,
    result_type: &str,
    members: &impl Serialize,
) -> Outcome {
    let prefix = cx.server().result_prefix().replacen("complete", result_type, 1);
    encode_after(&prefix, members)
}

/// The text in front of the members of a modern result, without a comma at its end.
pub(crate) fn result_prefix(implementation: &impl Serialize) -> String {
    let info = serde_json::to_string(implementation).unwrap_or_else(|_| "{}".to_owned());
    let name = crate::types::meta::SERVER_INFO;
    format!(r#"{{"resultType":"complete","_meta":{{"{name}":{info}}}"#)
}

/// Encodes an Object with these members in front of its own.
fn encode_after(prefix: &str, members: &impl Serialize) -> Outcome {
    let mut text = Vec::with_capacity(prefix.len() + 256);
    text.extend_from_slice(prefix.as_bytes());
    let at = text.len();
    serde_json::to_writer(&mut text, members).map_err(ErrorObject::internal)?;
    match text.get(at..) {
        Some(b"{}") => text.truncate(at + 1),
        Some([b'{', ..]) => {}
        _ => return Err(ErrorObject::internal("a result is not an Object")),
    }
    // The brace of the members becomes a comma, or the end.
    text[at] = if text.len() == at + 1 { b'}' } else { b',' };
    RawJson::parse(text).map_err(ErrorObject::internal)
}

/// A structured result of a tool: the value, and its JSON as text for clients that do not read structured results.
///
/// The value is encoded once, not converted to a tree.
pub(crate) struct StructuredResult(pub(crate) RawJson);

impl Serialize for StructuredResult {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        #[derive(Serialize)]
        struct Text<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        let mut members = serializer.serialize_map(Some(2))?;
        members.serialize_entry("content", &[Text { r#type: "text", text: self.0.as_str() }])?;
        members.serialize_entry("structuredContent", &self.0)?;
        members.end()
    }
}

/// Whether a structured result may be sent in the revision of the client: before 2026-07-28, it must be an Object.
pub(crate) fn may_be_structured(cx: &RequestContext, value: &RawJson) -> bool {
    cx.era().is_modern() || value.as_str().starts_with('{')
}

/// The text of a structured value that may not be sent as such.
pub(crate) fn as_text(value: &RawJson) -> CallToolResult {
    match value.decode::<Value>() {
        Ok(Value::String(text)) => CallToolResult::text(text),
        _ => CallToolResult::text(value.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_prefix_comes_before_the_members() {
        let prefix = result_prefix(&json!({ "name": "s" }));
        for (members, expected) in [(json!({}), "}"), (json!({ "a": 1 }), r#","a":1}"#)] {
            let encoded = encode_after(&prefix, &members).unwrap();
            assert_eq!(encoded.as_str(), format!("{prefix}{expected}"));
        }
        assert!(encode_after(&prefix, &json!([])).is_err());
        assert!(encode_after(&prefix, &json!("a")).is_err());
    }

    #[test]
    fn a_structured_result_has_its_text() {
        let value = RawJson::parse(r#"{"n":1.50}"#).unwrap();
        let text = serde_json::to_string(&StructuredResult(value)).unwrap();
        assert_eq!(
            text,
            r#"{"content":[{"type":"text","text":"{\"n\":1.50}"}],"structuredContent":{"n":1.50}}"#
        );
    }
}
