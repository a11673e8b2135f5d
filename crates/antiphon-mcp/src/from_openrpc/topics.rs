//! The subscriptions that a document describes.
//!
//! OpenRPC has none. A subscribe method of this library has the member `x-subscription`: one topic, or a list of kinds
//! that share the method. The documents of Ethereum nodes describe `eth_subscribe` as a method: its kinds are known.

use antiphon::Topic;
use antiphon::openrpc::{Content, Document, Method, ParamStructure};
use serde_json::{Value, json};

use super::description::prose;

/// The subscriptions of a document.
pub(super) struct Topics(Vec<TopicSource>);

/// A topic, and how it is subscribed to.
#[derive(Clone)]
pub(super) struct TopicSource {
    pub(super) topic: Topic,
    pub(super) subscribe: String,
    unsubscribe: String,
    /// The first param, if several topics share a method.
    pub(super) kind: Option<String>,
    pub(super) params: Vec<Content>,
    pub(super) is_by_name: bool,
    pub(super) description: Option<String>,
}

impl Topics {
    pub(super) fn of(document: &Document) -> Self {
        Self(document.methods.iter().flat_map(of_method).collect())
    }

    /// Whether a method subscribes or unsubscribes.
    pub(super) fn is_about(&self, method: &str) -> bool {
        self.0.iter().any(|topic| topic.subscribe == method || topic.unsubscribe == method)
    }

    /// The topics of a subscribe method.
    pub(super) fn opened_by<'a>(
        &'a self,
        method: &'a str,
    ) -> impl Iterator<Item = &'a TopicSource> {
        self.0.iter().filter(move |topic| topic.subscribe == method)
    }
}

fn of_method(method: &Method) -> Vec<TopicSource> {
    match method.rest.get("x-subscription") {
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(|member| of_member(method, member)).collect()
        }
        Some(member) => of_member(method, member).into_iter().collect(),
        None if method.name == "eth_subscribe" => ethereum(method),
        None => Vec::new(),
    }
}

fn of_member(method: &Method, member: &Value) -> Option<TopicSource> {
    let text = |name: &str| member.get(name).and_then(Value::as_str);
    let (item, unsubscribe) = (text("item")?, text("unsubscribe")?);
    let kind = text("kind").map(str::to_owned);
    let params = match &kind {
        None => method.params.clone(),
        // The params of the method itself are the kind and all others.
        Some(_) => member
            .get("params")
            .and_then(|params| serde_json::from_value(params.clone()).ok())
            .unwrap_or_default(),
    };
    Some(TopicSource {
        topic: Topic::with_names(&method.name, item, unsubscribe),
        subscribe: method.name.clone(),
        unsubscribe: unsubscribe.to_owned(),
        is_by_name: kind.is_none() && method.param_structure == ParamStructure::ByName,
        kind,
        params,
        description: text("summary").map(str::to_owned).or_else(|| prose(method)),
    })
}

fn ethereum(method: &Method) -> Vec<TopicSource> {
    let kinds = [
        ("newHeads", "The header of the newest block."),
        ("logs", "The newest log of any contract."),
        ("newPendingTransactions", "The hash of the newest pending transaction."),
    ];
    let topic = |(kind, description): (&str, &str)| {
        let member = json!({
            "item": "eth_subscription", "unsubscribe": "eth_unsubscribe",
            "kind": kind, "summary": description,
        });
        of_member(method, &member)
    };
    kinds.into_iter().filter_map(topic).collect()
}
