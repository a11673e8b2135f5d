//! Resolves the references of a document where OpenRPC allows a reference in place of an object.
//!
//! References inside schemas are not resolved, because a schema may refer to itself.

use serde_json::Value;

use super::DocumentError;

/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 8;

/// Resolves the references; the error names a reference that cannot be resolved.
pub(super) fn resolve_all(document: &mut Value) -> Result<(), DocumentError> {
    let root = document.clone();
    for method in list(document, "methods") {
        resolve(method, &root)?;
        for part in ["params", "errors", "tags", "links", "examples"] {
            list(method, part).try_for_each(|part| resolve(part, &root))?;
        }
        if let Some(result) = method.get_mut("result") {
            resolve(result, &root)?;
        }
    }
    Ok(())
}

fn list<'a>(parent: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    parent.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn resolve(value: &mut Value, root: &Value) -> Result<(), DocumentError> {
    let mut first = None;
    for _ in 0..=MAX_CHAIN {
        let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Ok(()) };
        let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)).cloned();
        let Some(found) = found else { return Err(DocumentError::Reference(reference.to_owned())) };
        first.get_or_insert_with(|| reference.to_owned());
        *value = found;
    }
    Err(DocumentError::ReferenceChain(first.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A document whose only method is at the end of this many references.
    fn chain(length: usize) -> Value {
        let mut links = serde_json::Map::new();
        for link in 1..length {
            let next = format!("#/links/{}", link + 1);
            links.insert(link.to_string(), json!({ "$ref": next }));
        }
        links.insert(length.to_string(), json!({"name": "ping"}));
        json!({"methods": [{"$ref": "#/links/1"}], "links": links})
    }

    #[test]
    fn a_chain_is_resolved_up_to_its_maximum_length() {
        for length in [1, MAX_CHAIN] {
            let mut document = chain(length);
            resolve_all(&mut document).unwrap();
            assert_eq!(document["methods"][0]["name"], "ping", "{length}");
        }
        let too_long = resolve_all(&mut chain(MAX_CHAIN + 2)).unwrap_err().to_string();
        assert!(too_long.contains("`#/links/1`"), "{too_long}");
        let mut circle = json!({"methods": [{"$ref": "#/methods/0"}]});
        assert!(matches!(resolve_all(&mut circle), Err(DocumentError::ReferenceChain(_))));
    }
}
