//! Subscriptions in a document, for which OpenRPC has no word.
//!
//! The method that begins one carries `x-subscription`: the notification that brings an item, what the
//! item looks like, and the method that ends it, which is described too. Where topics of many kinds
//! share one method, `x-subscription` is a list of them.

use serde_json::{Map, Value, json};

use super::document::{Content, Method, ParamStructure};
use crate::subscription::Topic;

pub(super) const MEMBER: &str = "x-subscription";

/// Adds what a topic is called to what is known of its items.
pub(super) fn name(method: &mut Method, topic: &Topic) {
    let known = method.rest.remove(MEMBER);
    let mut said = known.and_then(|known| known.as_object().cloned()).unwrap_or_default();
    said.insert("item".to_owned(), json!(topic.item));
    said.insert("unsubscribe".to_owned(), json!(topic.unsubscribe));
    if let Some(kind) = &topic.kind {
        said.insert("kind".to_owned(), json!(kind));
    }
    method.rest.insert(MEMBER.to_owned(), Value::Object(said));
    method.result = Some(Content { required: true, ..Content::new("subscription", json!(true)) });
}

/// The methods with each name once, and with those that end subscriptions.
pub(crate) fn gathered(methods: Vec<Method>) -> Vec<Method> {
    let mut gathered: Vec<Method> = Vec::with_capacity(methods.len());
    for method in methods {
        let said = method.rest.get(MEMBER).and_then(Value::as_object).cloned().unwrap_or_default();
        match said.get("kind").and_then(Value::as_str) {
            None => gathered.push(method),
            Some(kind) => add_kind(&mut gathered, kind, said.clone(), method),
        }
        if let Some(name) = said.get("unsubscribe").and_then(Value::as_str)
            && !gathered.iter().any(|other| other.name == name)
        {
            gathered.push(unsubscribe(name));
        }
    }
    gathered
}

/// Adds a kind to the method that begins all of them.
fn add_kind(gathered: &mut Vec<Method>, kind: &str, mut said: Map<String, Value>, method: Method) {
    said.insert("params".to_owned(), json!(method.params));
    said.insert("summary".to_owned(), json!(method.summary));
    let name = method.name.clone();
    let place = gathered.iter().position(|other| other.name == name).unwrap_or_else(|| {
        gathered.push(of_kinds(method));
        gathered.len() - 1
    });
    let shared = &mut gathered[place];
    let kinds = shared.params.first_mut().and_then(|param| param.schema.get_mut("enum"));
    if let Some(kinds) = kinds.and_then(Value::as_array_mut) {
        kinds.push(json!(kind));
    }
    if let Some(list) = shared.rest.get_mut(MEMBER).and_then(Value::as_array_mut) {
        list.push(Value::Object(said));
    }
}

/// A method that begins subscriptions of kinds, none of which it has yet.
fn of_kinds(method: Method) -> Method {
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
