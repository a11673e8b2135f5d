//! Whether a client has declared a capability.

use serde_json::{Map, Value};

use crate::types::ClientCapabilities;

/// Whether `declared` has everything that `required` has. An empty Object requires only that the member is there.
pub(crate) fn declares(declared: &ClientCapabilities, required: &ClientCapabilities) -> bool {
    // Forms were the only mode before 2025-11-25, so an empty declaration means them.
    if let Some(modes) = &required.elicitation
        && ((modes.form.is_some() && !declared.elicits_forms())
            || (modes.url.is_some() && !declared.elicits_urls())
            || declared.elicitation.is_none())
    {
        return false;
    }
    let rest = |capabilities: &ClientCapabilities| {
        let mut members = members(capabilities);
        members.remove("elicitation");
        members
    };
    contains(&rest(declared), &rest(required))
}

fn members(capabilities: &ClientCapabilities) -> Map<String, Value> {
    match serde_json::to_value(capabilities) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn contains(declared: &Map<String, Value>, required: &Map<String, Value>) -> bool {
    required.iter().all(|(name, required)| match (declared.get(name), required) {
        (Some(Value::Object(declared)), Value::Object(required)) => contains(declared, required),
        (Some(declared), required) => declared == required,
        (None, _) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(text: &str) -> ClientCapabilities {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_empty_elicitation_means_forms() {
        let form = capabilities(r#"{"elicitation":{"form":{}}}"#);
        let url = capabilities(r#"{"elicitation":{"url":{}}}"#);
        let empty = capabilities(r#"{"elicitation":{}}"#);
        assert!(declares(&empty, &form) && declares(&form, &empty));
        assert!(!declares(&empty, &url) && !declares(&url, &form));
        assert!(!declares(&capabilities("{}"), &empty));
    }

    #[test]
    fn members_are_compared_at_every_depth() {
        let declared = capabilities(r#"{"sampling":{"tools":{}},"extensions":{"a/b":{"x":1}}}"#);
        for (required, is_declared) in [
            ("{}", true),
            (r#"{"sampling":{}}"#, true),
            (r#"{"sampling":{"tools":{}}}"#, true),
            (r#"{"sampling":{"context":{}}}"#, false),
            (r#"{"roots":{}}"#, false),
            (r#"{"extensions":{"a/b":{}}}"#, true),
            (r#"{"extensions":{"a/c":{}}}"#, false),
        ] {
            assert_eq!(declares(&declared, &capabilities(required)), is_declared, "{required}");
        }
    }
}
