//! Subscriptions as resources: the newest item is the content.
//!
//! The URI is `subscription:///METHOD`, or `subscription:///METHOD/KIND` where several topics share a method. A topic
//! with required params is a template with one part for each of them. Optional params are not given.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use antiphon::RawJson;
use antiphon::openrpc::Content;
use serde_json::{Map, Value};

use super::feed::{FeedRequest, Feeds};
use super::names;
use super::offer::Offer;
use super::topics::TopicSource;
use crate::types::{ReadResourceResult, ResourceContents};
use crate::{McpServer, RequestContext, RequestError, ServerResource, ServerTemplate};

const JSON: &str = "application/json";

/// The resource of a topic.
struct TopicResource {
    uri: String,
    name: String,
    description: String,
    /// The variables of the template, in the order of the required params.
    variables: Vec<String>,
}

/// Offers a topic.
pub(super) fn offer(topic: &TopicSource, feeds: &Feeds, offer: &mut Offer) {
    let resource = TopicResource::of(topic);
    match resource.variables.is_empty() {
        true => offer.resources.push(resource.fixed(topic, feeds.clone())),
        false => offer.templates.extend(resource.template(topic, feeds.clone())),
    }
}

impl TopicResource {
    fn of(topic: &TopicSource) -> Self {
        let mut uri = format!("subscription:///{}", encoded(&topic.subscribe));
        let mut name = topic.subscribe.clone();
        if let Some(kind) = &topic.kind {
            let _ = write!(uri, "/{}", encoded(kind));
            let _ = write!(name, " {kind}");
        }
        let mut variables = Vec::new();
        let mut taken = BTreeSet::new();
        for param in topic.params.iter().filter(|param| param.required) {
            let variable = names::unique(&names::mapped(&param.name).replace('-', "_"), &taken);
            let _ = write!(uri, "/{{{variable}}}");
            taken.insert(variable.clone());
            variables.push(variable);
        }
        let about = topic.description.clone().unwrap_or_else(|| name.clone());
        let description = format!("{about}\n\nThe newest item. Subscribe to get new ones.");
        Self { uri, name, description, variables }
    }

    fn fixed(self, topic: &TopicSource, feeds: Feeds) -> ServerResource {
        let request = FeedRequest {
            uri: self.uri.clone(),
            topic: topic.topic.clone(),
            params: params(topic, &self.variables, &BTreeMap::new()),
        };
        let (interest, wanted) = (feeds.clone(), request.clone());
        let resource = ServerResource::new(self.uri, self.name, move |cx: RequestContext| {
            read(feeds.clone(), request.clone(), cx)
        });
        resource
            .description(self.description)
            .mime_type(JSON)
            .on_subscribe(move |_, server| interest.keep_open(&wanted, server))
    }

    fn template(self, topic: &TopicSource, feeds: Feeds) -> Option<ServerTemplate> {
        let request = {
            let (source, variables) = (topic.clone(), self.variables);
            move |uri: &str, values: &BTreeMap<String, String>| FeedRequest {
                uri: uri.to_owned(),
                topic: source.topic.clone(),
                params: params(&source, &variables, values),
            }
        };
        let template = self.uri.clone();
        let (interest, wanted) = (feeds.clone(), request.clone());
        let reader = move |values: BTreeMap<String, String>, cx: RequestContext| {
            let uri = filled(&template, &values);
            read(feeds.clone(), request(&uri, &values), cx)
        };
        let name = self.name;
        let resource = ServerTemplate::new(self.uri, name.clone(), reader);
        let resource = resource
            .inspect_err(|error| tracing::error!(%error, name, "the subscription is not offered"))
            .ok()?;
        let described = resource.description(self.description).mime_type(JSON);
        let uris = described.clone();
        Some(described.on_subscribe(move |uri, server: &McpServer| {
            if let Some(values) = uris.matches(uri) {
                interest.keep_open(&wanted(uri, &values), server);
            }
        }))
    }
}

async fn read(
    feeds: Feeds,
    request: FeedRequest,
    cx: RequestContext,
) -> Result<ReadResourceResult, RequestError> {
    let uri = request.uri.clone();
    let item = feeds.newest(&request, cx.server()).await?;
    let contents = item.map(|item| ResourceContents::text(uri, item.as_str()));
    Ok(ReadResourceResult::new(contents.into_iter().collect()))
}

/// The params of the subscribe call.
fn params(
    topic: &TopicSource,
    variables: &[String],
    values: &BTreeMap<String, String>,
) -> Option<RawJson> {
    let required = topic.params.iter().filter(|param| param.required);
    let given = required.zip(variables).filter_map(|(param, variable)| {
        Some((param.name.clone(), value(param, values.get(variable)?)))
    });
    let encoded = if topic.is_by_name {
        let given: Map<_, _> = given.collect();
        (!given.is_empty()).then(|| RawJson::encode(&given))
    } else {
        let kind = topic.kind.iter().map(|kind| kind.as_str().into());
        let given: Vec<Value> = kind.chain(given.map(|(_, value)| value)).collect();
        (!given.is_empty()).then(|| RawJson::encode(&given))
    };
    encoded?.ok()
}

/// The value of a part of a URI: JSON, where the schema does not say that it is a text.
fn value(param: &Content, text: &str) -> Value {
    let is_text = param.schema.get("type").is_some_and(|kind| kind == "string");
    let json = || serde_json::from_str(text).ok();
    (!is_text).then(json).flatten().unwrap_or_else(|| text.into())
}

/// The URI of a template with these values.
fn filled(template: &str, values: &BTreeMap<String, String>) -> String {
    values.iter().fold(template.to_owned(), |uri, (name, value)| {
        uri.replace(&format!("{{{name}}}"), &encoded(value))
    })
}

/// Encodes a text as one part of a path.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
            }
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
