//! The prefix that a client puts before the names of its methods and topics.

use std::borrow::Cow;
use std::sync::Arc;

use antiphon_core::Method;

use crate::subscription::Topic;

/// A prefix of names; most clients have none.
#[derive(Clone, Default)]
pub(crate) struct NamePrefix(Option<Arc<str>>);

impl NamePrefix {
    /// A prefix inside this one.
    pub(crate) fn nested(&self, prefix: &str) -> Self {
        Self(Some(self.name(prefix).into()))
    }

    #[inline]
    pub(crate) fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match &self.0 {
            None => Cow::Borrowed(name),
            Some(prefix) => Cow::Owned(format!("{prefix}{name}")),
        }
    }

    pub(crate) fn method(&self, method: Method) -> Method {
        match &self.0 {
            None => method,
            Some(_) => Method::new(&self.name(method.as_str())),
        }
    }

    pub(crate) fn topic(&self, topic: Topic) -> Topic {
        match &self.0 {
            None => topic,
            Some(prefix) => topic.prefixed(prefix),
        }
    }
}
