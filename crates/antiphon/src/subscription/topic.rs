//! What a subscription is called on the wire, and how much of it may wait.

use antiphon_core::{Params, RawJson};
use serde_json::value::RawValue;

/// The names of a subscription on the wire, and what happens when its items are not taken fast enough.
///
/// ```
/// use antiphon::{Overflow, Topic};
///
/// // subscribe_ticks, ticks, unsubscribe_ticks
/// let ticks = Topic::of("ticks").buffer(16).overflow(Overflow::DropOldest);
/// // As the other side calls them.
/// let prices = Topic::new("price.watch", "price.changed", "price.unwatch");
/// // eth_subscribe("newHeads"), eth_subscription, eth_unsubscribe
/// let heads = Topic::ethereum("newHeads");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub(crate) subscribe: String,
    pub(crate) item: String,
    pub(crate) unsubscribe: String,
    /// What the first param of `subscribe` says, where many topics share one method.
    pub(crate) kind: Option<String>,
    pub(crate) buffer: usize,
    pub(crate) overflow: Overflow,
    /// Whether the other side is told that the source has ended.
    pub(crate) says_end: bool,
}

/// What happens to an item that there is no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// It waits, and whoever makes items with it: none is lost while the connection lives. Where a side
    /// that follows does not take its items, the connection reads no further, and the other side may end
    /// it after its [`stall_timeout`](crate::Limits::stall_timeout). While a call waits for its answer, the
    /// items before it are held, up to [`frame_bytes`](crate::Limits::frame_bytes); past that the
    /// subscription ends with [`TooSlow`](crate::SubscriptionError::TooSlow).
    #[default]
    Wait,
    /// The oldest goes; the next one that is taken says how many went.
    DropOldest,
    /// The subscription ends, with an error that says so.
    Close,
}

impl Topic {
    /// Items that wait, where nothing is said.
    const BUFFER: usize = 256;

    /// The topic of this name: `subscribe_ticks` begins it, `ticks` brings an item, `unsubscribe_ticks`
    /// ends it.
    pub fn of(name: &str) -> Self {
        Self::new(&format!("subscribe_{name}"), name, &format!("unsubscribe_{name}"))
    }

    /// A topic by the names of its three messages: the method that begins it, the notification that
    /// brings an item, the method that ends it.
    pub fn new(subscribe: &str, item: &str, unsubscribe: &str) -> Self {
        Self {
            subscribe: subscribe.to_owned(),
            item: item.to_owned(),
            unsubscribe: unsubscribe.to_owned(),
            kind: None,
            buffer: Self::BUFFER,
            overflow: Overflow::Wait,
            says_end: true,
        }
    }

    /// A topic of an Ethereum node: `eth_subscribe` with this first param, `eth_subscription`,
    /// `eth_unsubscribe`. A source that ends says nothing there, as no node does.
    pub fn ethereum(kind: &str) -> Self {
        let kind = Some(kind.to_owned());
        let says_end = false;
        Self { kind, says_end, ..Self::new("eth_subscribe", "eth_subscription", "eth_unsubscribe") }
    }

    /// Lets so many items wait, at least one; without it, 256. Their bytes are bounded too: where
    /// they are sent, by a sixteenth of [`Limits::write_queue_bytes`](crate::Limits::write_queue_bytes);
    /// where they are taken, by 1 MiB. One item always fits.
    #[must_use]
    pub fn buffer(mut self, items: usize) -> Self {
        self.buffer = items.max(1);
        self
    }

    /// Says what happens when there is no room.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// The same under a prefix.
    pub(crate) fn prefixed(&self, prefix: &str) -> Self {
        let with = |name: &str| format!("{prefix}{name}");
        let (subscribe, item) = (with(&self.subscribe), with(&self.item));
        Self { subscribe, item, unsubscribe: with(&self.unsubscribe), ..self.clone() }
    }

    /// What is sent to begin it: the kind, where there is one, before the other params.
    pub(crate) fn params(&self, params: Option<Params>) -> Option<Params> {
        let Some(kind) = &self.kind else { return params };
        let rest = params.as_ref().map_or("[]", |params| params.as_json().as_str());
        let kind = serde_json::to_string(kind).unwrap_or_default();
        // Named params are one param more: `["logs", {"address": ...}]`.
        let text = match rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(rest) if rest.trim().is_empty() => format!("[{kind}]"),
            Some(rest) => format!("[{kind},{rest}]"),
            None => format!("[{kind},{rest}]"),
        };
        Params::parse(&text).ok()
    }
}

/// The kind that the first of these params names, and the others.
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
        Self::of(name)
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
    fn a_kind_goes_before_the_other_params_and_comes_off_again() {
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
