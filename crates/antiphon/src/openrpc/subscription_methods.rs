//! Subscriptions in a document. OpenRPC itself has no subscriptions.
//!
//! The subscribe method has the member `x-subscription`: the notification that carries an item, the
//! schema of the item, and the unsubscribe method, which is described too. If topics of several kinds
//! share one method, `x-subscription` is a list.

use serde_json::{Map, Value, json};

use super::document::{Content, Method, ParamStructure};
use crate::subscription::Topic;

pub(super) const MEMBER: &str = "x-subscription";

/// Adds the names of a topic to the description of its items.
pub(super) fn name(method: &mut Method, topic: &Topic) {
    let known = method.rest.remove(MEMBER);
    let mut member = known.and_then(|known| known.as_object().cloned()).unwrap_or_default();
    member.insert("item".to_owned(), json!(topic.item));
    member.insert("unsubscribe".to_owned(), json!(topic.unsubscribe));
    if let Some(kind) = &topic.kind {
        member.insert("kind".to_owned(), json!(kind));
    }
    method.rest.insert(MEMBER.to_owned(), Value::Object(member));
    method.result = Some(Content { required: true, ..Content::new("subscription", json!(true)) });
}

/// Merges methods with the same name, and adds the unsubscribe methods.
pub(crate) fn merge_methods(methods: Vec<Method>) -> Vec<Method> {
    let mut merged: Vec<Method> = Vec::with_capacity(methods.len());
    for method in methods {
        let member =
            method.rest.get(MEMBER).and_then(Value::as_object).cloned().unwrap_or_default();
        match member.get("kind").and_then(Value::as_str) {
            None => merged.push(method),
            Some(kind) => add_kind(&mut merged, kind, member.clone(), method),
        }
        if let Some(name) = member.get("unsubscribe").and_then(Value::as_str)
            && !merged.iter().any(|other| other.name == name)
        {
            merged.push(unsubscribe(name));
        }
    }
    merged
}

/// Adds a kind to the subscribe method that all kinds share.
fn add_kind(merged: &mut Vec<Method>, kind: &str, mut member: Map<String, Value>, method: Method) {
    member.insert("params".to_owned(), json!(method.params));
    member.insert("summary".to_owned(), json!(method.summary));
    let name = method.name.clone();
    let index = merged.iter().position(|other| other.name == name).unwrap_or_else(|| {
        merged.push(shared_by_kinds(method));
        merged.len() - 1
    });
    let shared = &mut merged[index];
    let kinds = shared.params.first_mut().and_then(|param| param.schema.get_mut("enum"));
    if let Some(kinds) = kinds.and_then(Value::as_array_mut) {
        kinds.push(json!(kind));
    }
    if let Some(list) = shared.rest.get_mut(MEMBER).and_then(Value::as_array_mut) {
        list.push(Value::Object(member));
    }
}

/// A subscribe method for several kinds, still without kinds.
fn shared_by_kinds(method: Method) -> Method {
    let kind = Content { required: true, ..Content::new("kind", json!({"enum": []})) };
    let rest = Map::from_iter([("x-repeated".to_owned(), json!(true))]);
    let others = Content { rest, ..Content::new("params", json!(true)) };
    Method {
        params: vec![kind, others],
        param_structure: ParamStructure::ByPosition,
        summary: None,
        description: None,
        errors: Vec::new(),
        rest: Map::from_iter([(MEMBER.to_owned(), json!([]))]),
        ..method
    }
}

fn unsubscribe(name: &str) -> Method {
    let which = Content { required: true, ..Content::new("subscription", json!(true)) };
    let ended = Content { required: true, ..Content::new("ended", json!({"type": "boolean"})) };
    Method {
        name: name.to_owned(),
        summary: Some("Ends a subscription.".to_owned()),
        params: vec![which],
        result: Some(ended),
        ..Method::default()
    }
}
