//! What a dialect writes differently on purpose, in the words of 2.0.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A Response of Bitcoin Core's: `result`, `error` and `id`, of which one is null, and no `jsonrpc`.
/// Nothing, where there is nothing to change.
pub(super) fn from_bitcoin(message: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(message).ok()?;
    if text.trim_start().starts_with('[') {
        let entries: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        let entries: Vec<String> = entries
            .iter()
            .map(|one| response(one.get()).unwrap_or_else(|| one.get().to_owned()))
            .collect();
        return Some(format!("[{}]", entries.join(",")).into_bytes());
    }
    response(text).map(String::into_bytes)
}

fn response(text: &str) -> Option<String> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let is_null = |name: &str, members: &BTreeMap<String, &RawValue>| {
        members.get(name).is_some_and(|value| value.get() == "null")
    };
    if is_null("error", &members) && members.contains_key("result") {
        members.remove("error");
    } else if is_null("result", &members) && members.contains_key("error") {
        members.remove("result");
    }
    let version = (!members.contains_key("jsonrpc")).then(|| "\"jsonrpc\":\"2.0\"".to_owned());
    let members = members
        .iter()
        .map(|(name, value)| format!("{}:{}", serde_json::Value::from(&**name), value.get()));
    Some(format!("{{{}}}", version.into_iter().chain(members).collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_beside_the_other_is_left_out() {
        let words = |text: &str| String::from_utf8(from_bitcoin(text.as_bytes()).unwrap()).unwrap();
        let good = r#"{"jsonrpc":"2.0","id":1.50,"result":null}"#;
        assert_eq!(words(r#"{"result":null,"error":null,"id":1.50}"#), good);
        let failed = r#"[{"jsonrpc":"2.0","error":{"code":1},"id":1}]"#;
        assert_eq!(words(r#"[{"result":null,"error":{"code":1},"id":1}]"#), failed);
        assert_eq!(words(good), r#"{"id":1.50,"jsonrpc":"2.0","result":null}"#);
        assert_eq!(from_bitcoin(b"\xFF"), None);
    }
}
