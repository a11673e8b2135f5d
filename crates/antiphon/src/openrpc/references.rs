//! Resolves the references of a document where OpenRPC allows a reference in place of an object.
//!
//! References inside schemas are not resolved, because a schema may refer to itself.

use serde_json::Value;

/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 8;

/// Resolves the references; the error names a reference without a target.
pub(super) fn resolve_all(document: &mut Value) -> Result<(), String> {
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

fn resolve(value: &mut Value, root: &Value) -> Result<(), String> {
    for _ in 0..MAX_CHAIN {
        let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Ok(()) };
        let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        *value = found.cloned().ok_or_else(|| reference.to_owned())?;
    }
    Err(value.get("$ref").map(Value::to_string).unwrap_or_default())
}
