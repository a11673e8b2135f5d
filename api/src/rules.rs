//! The rules of the public documentation.
//!
//! 1. A type that a user constructs has an example, on the type or on a constructor. Errors need none.
//! 2. Every type of this crate in a public signature is public itself. A private trait is allowed: it seals.
//! 3. An enum can get another variant, and an error another field, without a breaking change. `exhaustive`
//!    lists the exceptions.

use crate::crate_docs::CrateDocs;
use crate::exhaustive;
use rustdoc_types::{Function, Id, Impl, Item, ItemEnum, ItemKind, StructKind, Visibility};
use serde_json::Value;
use std::collections::BTreeSet;

pub fn check(docs: &CrateDocs) -> Vec<String> {
    let mut problems: Vec<String> = docs
        .public
        .iter()
        .filter_map(|(&id, path)| docs.item(id).map(|item| (item, path)))
        .flat_map(|(item, path)| {
            let examples = missing_example(docs, item, path).into_iter();
            examples.chain(private_types(docs, item, path)).chain(is_exhaustive(docs, item, path))
        })
        .collect();
    problems.sort();
    problems.dedup();
    problems
}

fn missing_example(docs: &CrateDocs, item: &Item, path: &str) -> Option<String> {
    let constructors = constructors(docs, item);
    let constructed = !constructors.is_empty()
        || implements(docs, item, "Default")
        || has_public_fields(docs, item)
        || is_choice(docs, item);
    let constructed = constructed && !implements(docs, item, "Error");
    let documented = has_example(item) || constructors.iter().any(|it| has_example(it));
    (constructed && !documented).then(|| {
        format!("{path}: no example: add a code block to its documentation or to a constructor's")
    })
}

fn has_example(item: &Item) -> bool {
    item.docs.as_deref().is_some_and(|docs| docs.contains("```"))
}

/// The public functions without `self` that return the type.
fn constructors<'a>(docs: &'a CrateDocs, item: &Item) -> Vec<&'a Item> {
    let inherent = docs.implementations(item).into_iter().filter(|it| it.trait_.is_none());
    let items = inherent.flat_map(|it| &it.items).filter_map(|&id| docs.item(id));
    items
        .filter(|it| matches!(it.visibility, Visibility::Public))
        .filter(
            |it| matches!(&it.inner, ItemEnum::Function(function) if returns(function, item.id)),
        )
        .collect()
}

fn returns(function: &Function, id: Id) -> bool {
    let takes_self = function.sig.inputs.first().is_some_and(|(name, _)| name == "self");
    let output = serde_json::to_value(&function.sig.output).unwrap_or_default();
    !takes_self
        && (paths_in(&output).contains(&id) || output.to_string().contains(r#""generic":"Self""#))
}

/// A struct literal is possible: every field is public, and more cannot follow.
fn has_public_fields(docs: &CrateDocs, item: &Item) -> bool {
    let ItemEnum::Struct(it) = &item.inner else { return false };
    let closed = matches!(it.kind, StructKind::Plain { has_stripped_fields: true, .. })
        || matches!(&it.kind, StructKind::Tuple(fields) if fields.contains(&None));
    !closed && !is_non_exhaustive(item) && !docs.fields(item).is_empty()
}

/// An enum that a public method of some type takes as an argument.
fn is_choice(docs: &CrateDocs, item: &Item) -> bool {
    matches!(item.inner, ItemEnum::Enum(_))
        && docs.public.keys().filter_map(|&id| docs.item(id)).any(|it| takes(docs, it, item.id))
}

fn takes(docs: &CrateDocs, item: &Item, argument: Id) -> bool {
    let inherent = docs.implementations(item).into_iter().filter(|it| it.trait_.is_none());
    let methods = inherent.flat_map(|it| &it.items).filter_map(|&id| docs.item(id));
    methods.filter(|it| matches!(it.visibility, Visibility::Public)).any(|it| {
        let ItemEnum::Function(function) = &it.inner else { return false };
        let inputs = function.sig.inputs.iter().filter(|(name, _)| name != "self");
        let inputs: Vec<_> = inputs.map(|(_, input)| input).collect();
        paths_in(&serde_json::to_value(inputs).unwrap_or_default()).contains(&argument)
    })
}

fn implements(docs: &CrateDocs, item: &Item, name: &str) -> bool {
    docs.implementations(item)
        .into_iter()
        .filter_map(|it| it.trait_.as_ref())
        .any(|it| it.path.rsplit("::").next() == Some(name))
}

fn is_non_exhaustive(item: &Item) -> bool {
    item.attrs.iter().any(|it| matches!(it, rustdoc_types::Attribute::NonExhaustive))
}

fn is_exhaustive(docs: &CrateDocs, item: &Item, path: &str) -> Option<String> {
    let grows = is_non_exhaustive(item);
    let is_checked = match item.inner {
        ItemEnum::Enum(_) => true,
        ItemEnum::Struct(_) => has_public_fields(docs, item) && implements(docs, item, "Error"),
        _ => false,
    };
    let problem = match (is_checked, grows, exhaustive::is_listed(path)) {
        (true, true, true) => "it is `#[non_exhaustive]`: remove it from api/src/exhaustive.rs",
        (true, false, false) => {
            "a new variant or field would break users: add `#[non_exhaustive]`, or list it in api/src/exhaustive.rs"
        }
        _ => return None,
    };
    Some(format!("{path}: {problem}"))
}

fn private_types(docs: &CrateDocs, item: &Item, path: &str) -> Vec<String> {
    let signatures = signatures(docs, item);
    let types: BTreeSet<Id> = signatures.iter().flat_map(paths_in).collect();
    let private =
        types.into_iter().filter(|id| is_own_type(docs, *id) && !docs.public.contains_key(id));
    private
        .map(|id| {
            docs.json.paths.get(&id).map_or_else(|| id.0.to_string(), |it| it.path.join("::"))
        })
        .map(|name| {
            format!(
                "{path}: `{name}` in its public signature is private: export it or hide the item"
            )
        })
        .collect()
}

/// Whether the id is a type of this crate.
fn is_own_type(docs: &CrateDocs, id: Id) -> bool {
    docs.json.paths.get(&id).is_some_and(|it| it.crate_id == 0 && it.kind != ItemKind::Trait)
}

/// The item without its documentation, with its public fields, methods and implementations.
fn signatures(docs: &CrateDocs, item: &Item) -> Vec<Value> {
    let mut parts: Vec<&Item> = docs.fields(item);
    if let ItemEnum::Trait(it) = &item.inner {
        parts.extend(it.items.iter().filter_map(|&id| docs.item(id)));
    }
    let mut values = match &item.inner {
        ItemEnum::Module(_) => Vec::new(),
        inner => vec![serde_json::to_value(inner).unwrap_or_default()],
    };
    for it in docs
        .implementations(item)
        .into_iter()
        .filter(|it| it.blanket_impl.is_none() && !it.is_synthetic)
    {
        values.push(header(it));
        parts.extend(it.items.iter().filter_map(|&id| docs.item(id)));
    }
    values.extend(parts.into_iter().map(|it| serde_json::to_value(&it.inner).unwrap_or_default()));
    values
}

/// The generics, the trait and the type of an implementation.
fn header(it: &Impl) -> Value {
    serde_json::to_value((&it.generics, &it.trait_, &it.for_)).unwrap_or_default()
}

/// The ids of all types and traits that a signature names.
fn paths_in(value: &Value) -> Vec<Id> {
    match value {
        Value::Array(values) => values.iter().flat_map(paths_in).collect(),
        Value::Object(members) => {
            let id = members.get("path").and(members.get("id")).and_then(Value::as_u64);
            let own = id.and_then(|id| u32::try_from(id).ok()).map(Id);
            own.into_iter().chain(members.values().flat_map(paths_in)).collect()
        }
        _ => Vec::new(),
    }
}
