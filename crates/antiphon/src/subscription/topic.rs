//! The topic of a subscription: its names on the wire, and its buffer.

use antiphon_core::{Params, RawJson};
use serde_json::value::RawValue;

/// The names of a subscription on the wire, and its buffer for items that are not consumed yet.
///
/// ```
/// use antiphon::{Overflow, Topic};
///
/// // subscribe_ticks, ticks, unsubscribe_ticks
/// let ticks = Topic::new("ticks").buffer(16).overflow(Overflow::DropOldest);
/// // Names that the peer uses.
/// let prices = Topic::with_names("price.watch", "price.changed", "price.unwatch");
/// // eth_subscribe("newHeads"), eth_subscription, eth_unsubscribe
/// let heads = Topic::ethereum("newHeads");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub(crate) subscribe: String,
    pub(crate) item: String,
    pub(crate) unsubscribe: String,
    /// The first param of `subscribe`, if several topics share one method.
    pub(crate) kind: Option<String>,
    pub(crate) buffer: usize,
    pub(crate) overflow: Overflow,
    /// Whether the subscriber is notified when the source ends.
    pub(crate) notifies_end: bool,
}

/// The reaction to a full buffer.
///
/// ```
/// use antiphon::{Overflow, Topic};
///
/// let prices = Topic::new("prices").buffer(16).overflow(Overflow::DropOldest);
/// # drop(prices);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The sender waits, and no item is lost while the connection is open. If a subscriber does not read its
    /// items, its connection stops reading, and the peer may close it after
    /// [`stall_timeout`](crate::Limits::stall_timeout). While the subscriber awaits a response on the same
    /// connection, items before that response are queued up to
    /// [`frame_bytes`](crate::Limits::frame_bytes); beyond that the subscription ends with
    /// [`TooSlow`](crate::SubscriptionError::TooSlow).
    #[default]
    Wait,
    /// Drops the oldest item. The next item carries the number of dropped items.
    DropOldest,
    /// Ends the subscription with an error.
    Close,
}

impl Topic {
    /// The default size of the buffer, in items.
    const BUFFER: usize = 256;

    /// The topic with this name: for `ticks`, the methods `subscribe_ticks` and `unsubscribe_ticks`, and
    /// the notification `ticks` for each item.
    pub fn new(name: &str) -> Self {
        Self::with_names(&format!("subscribe_{name}"), name, &format!("unsubscribe_{name}"))
    }

    /// A topic with these names: the method that subscribes, the notification that carries an item, and
    /// the method that unsubscribes.
    pub fn with_names(subscribe: &str, item: &str, unsubscribe: &str) -> Self {
        Self {
            subscribe: subscribe.to_owned(),
            item: item.to_owned(),
            unsubscribe: unsubscribe.to_owned(),
            kind: None,
            buffer: Self::BUFFER,
            overflow: Overflow::Wait,
            notifies_end: true,
        }
    }

    /// A topic of an Ethereum node: `eth_subscribe` with this first param, `eth_subscription`,
    /// `eth_unsubscribe`. As with Ethereum nodes, the subscriber is not notified when the source ends.
    pub fn ethereum(kind: &str) -> Self {
        let kind = Some(kind.to_owned());
        let notifies_end = false;
        Self {
            kind,
            notifies_end,
            ..Self::with_names("eth_subscribe", "eth_subscription", "eth_unsubscribe")
        }
    }

    /// Sets the size of the buffer in items, at least one. The default is 256. The bytes are limited
    /// too: on the serving side to a sixteenth of
    /// [`Limits::write_queue_bytes`](crate::Limits::write_queue_bytes), on the subscribing side to 1 MiB.
    /// One item always fits.
    #[must_use]
    pub fn buffer(mut self, items: usize) -> Self {
        self.buffer = items.max(1);
        self
    }

    /// Sets the reaction to a full buffer. The default is [`Overflow::Wait`].
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// This topic with a prefix before its three names.
    pub(crate) fn prefixed(&self, prefix: &str) -> Self {
        let with = |name: &str| format!("{prefix}{name}");
        let (subscribe, item) = (with(&self.subscribe), with(&self.item));
        Self { subscribe, item, unsubscribe: with(&self.unsubscribe), ..self.clone() }
    }

    /// The params of the subscribe call: the kind, if any, before the other params.
    pub(crate) fn params(&self, params: Option<Params>) -> Option<Params> {
        let Some(kind) = &self.kind else { return params };
        let rest = params.as_ref().map_or("[]", |params| params.as_json().as_str());
        let kind = serde_json::to_string(kind).unwrap_or_default();
        // Params by name become one more positional param: `["logs", {"address": ...}]`.
        let text = match rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(rest) if rest.trim().is_empty() => format!("[{kind}]"),
            Some(rest) => format!("[{kind},{rest}]"),
            None => format!("[{kind},{rest}]"),
        };
        Params::parse(&text).ok()
    }
}

/// Splits the params of a subscribe call into the kind, which is the first param, and the others.
pub(crate) fn split_kind(params: Option<&Params>) -> Option<(String, Params)> {
    let params = params?.as_json();
    let all: Vec<&RawValue> = serde_json::from_str(params.as_str()).ok()?;
    let (kind, rest) = all.split_first()?;
    let rest: Vec<&str> = rest.iter().map(|value| value.get()).collect();
    let rest = RawJson::parse(format!("[{}]", rest.join(","))).ok()?;
    Some((serde_json::from_str(kind.get()).ok()?, Params::from_json(rest).ok()?))
}

impl From<&str> for Topic {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<&Topic> for Topic {
    fn from(topic: &Topic) -> Self {
        topic.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_the_first_param_and_is_split_off_again() {
        let topic = Topic::ethereum("logs");
        for (params, sent, rest) in [
            (None, r#"["logs"]"#, "[]"),
            (Some("[]"), r#"["logs"]"#, "[]"),
            (Some("[1, 2]"), r#"["logs",1, 2]"#, "[1,2]"),
            (Some(r#"{"a":1}"#), r#"["logs",{"a":1}]"#, r#"[{"a":1}]"#),
        ] {
            let params = params.map(|params| Params::parse(params).unwrap());
            let with = topic.params(params).unwrap();
            assert_eq!(with.as_json().as_str(), sent);
            let (kind, others) = split_kind(Some(&with)).unwrap();
            assert_eq!((kind.as_str(), others.as_json().as_str()), ("logs", rest));
        }
        assert!(split_kind(None).is_none());
        assert!(split_kind(Some(&Params::parse("[1]").unwrap())).is_none());
        assert!(split_kind(Some(&Params::parse("{}").unwrap())).is_none());
    }
}
