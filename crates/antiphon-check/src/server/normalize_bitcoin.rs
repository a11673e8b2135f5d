//! Normalizes the responses of Bitcoin Core to JSON-RPC 2.0.

use crate::transcript::json::{Json, JsonValue};

/// Converts the Responses of a message to the form of 2.0: removes a null `result` or `error`, adds `jsonrpc`, and adds a
/// null id to an error without one. Returns `None` for a text that is not JSON or has a duplicate member: the case then
/// compares the text unchanged.
pub(super) fn from_bitcoin(message: &[u8]) -> Option<Vec<u8>> {
    let json = Json::parse(std::str::from_utf8(message).ok()?).ok()?;
    let JsonValue::Array(entries) = &json.value else {
        return response(&json).map(String::into_bytes);
    };
    let entries: Vec<String> =
        entries.iter().map(|one| response(one).unwrap_or_else(|| one.text().to_owned())).collect();
    Some(format!("[{}]", entries.join(",")).into_bytes())
}

fn response(json: &Json) -> Option<String> {
    let JsonValue::Object(members) = &json.value else { return None };
    let is_null = |name| json.member(name).is_some_and(|one| matches!(one.value, JsonValue::Null));
    let has = |name| json.member(name).is_some();
    let is_kept = |name: &Json| {
        !(name.is_text("error") && is_null("error") && has("result"))
            && !(name.is_text("result") && is_null("result") && has("error") && !is_null("error"))
    };
    let version = (!has("jsonrpc")).then(|| "\"jsonrpc\":\"2.0\"".to_owned());
    let kept = members.written().filter(|(name, _)| is_kept(name));
    let kept = kept.map(|(name, one)| format!("{}:{}", name.text(), one.text()));
    // The error response to a message without an id has no id.
    let id = (has("error") && !is_null("error") && !has("id")).then(|| "\"id\":null".to_owned());
    Some(format!("{{{}}}", version.into_iter().chain(kept).chain(id).collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_member_is_removed() {
        let words = |text: &str| String::from_utf8(from_bitcoin(text.as_bytes()).unwrap()).unwrap();
        let good = r#"{"jsonrpc":"2.0","result":null,"id":1.50}"#;
        assert_eq!(words(r#"{"result":null,"error":null,"id":1.50}"#), good);
        let failed = r#"[{"jsonrpc":"2.0","error":{"code":1},"id":1}]"#;
        assert_eq!(words(r#"[{"result":null,"error":{"code":1},"id":1}]"#), failed);
        assert_eq!(words(good), good);
        let without_id = r#"{"jsonrpc":"2.0","error":{"code":1},"id":null}"#;
        assert_eq!(words(r#"{"result":null,"error":{"code":1}}"#), without_id);
        let result = r#"{"jsonrpc":"2.0","result":1}"#;
        assert_eq!(words(r#"{"result":1,"error":null}"#), result);
        assert_eq!(from_bitcoin(b"\xFF"), None);
    }

    #[test]
    fn a_duplicate_member_is_not_hidden() {
        for text in [
            r#"{"result":1,"error":null,"id":1,"id":1}"#,
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","result":1,"id":1}"#,
            r#"[{"result":1,"error":null,"id":1},{"result":1,"\u0069d":2,"id":2}]"#,
            r#"{"result":{"a":1,"a":2},"error":null,"id":1}"#,
        ] {
            assert_eq!(from_bitcoin(text.as_bytes()), None, "{text}");
        }
    }
}
