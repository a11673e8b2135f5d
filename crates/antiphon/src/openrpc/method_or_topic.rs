//! The subject of a description: a method or a topic.

use crate::subscription::Topic;

/// A method by its name, or a subscription by its topic.
///
/// A name or a [`Topic`] converts into it; see [`Router::describe`](crate::Router::describe).
#[derive(Clone, Debug)]
pub struct MethodOrTopic(MethodOrTopicKind);

#[derive(Clone, Debug)]
enum MethodOrTopicKind {
    /// The name of the method, then its aliases.
    Names(Vec<String>),
    Topic(Box<Topic>),
}

impl MethodOrTopic {
    /// The name of the method; for a subscription, of its subscribe method.
    pub(crate) fn name(&self) -> &str {
        match &self.0 {
            MethodOrTopicKind::Names(names) => names.first().map_or("", |name| name),
            MethodOrTopicKind::Topic(topic) => &topic.subscribe,
        }
    }

    /// The aliases of the method.
    pub(crate) fn aliases(&self) -> &[String] {
        match &self.0 {
            MethodOrTopicKind::Names(names) => names.get(1..).unwrap_or_default(),
            MethodOrTopicKind::Topic(_) => &[],
        }
    }

    pub(crate) fn topic(&self) -> Option<&Topic> {
        match &self.0 {
            MethodOrTopicKind::Names(_) => None,
            MethodOrTopicKind::Topic(topic) => Some(topic),
        }
    }

    /// Whether both are the same method or topic. Topics of different kinds share their methods.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let kind = |called: &Self| called.topic().and_then(|topic| topic.kind.clone());
        self.name() == other.name() && kind(self) == kind(other)
    }

    /// This method or topic with a prefix before its names.
    pub(crate) fn prefixed(&self, prefix: &str) -> Self {
        Self(match &self.0 {
            MethodOrTopicKind::Names(names) => MethodOrTopicKind::Names(
                names.iter().map(|name| format!("{prefix}{name}")).collect(),
            ),
            MethodOrTopicKind::Topic(topic) => {
                MethodOrTopicKind::Topic(Box::new(topic.prefixed(prefix)))
            }
        })
    }
}

impl From<&str> for MethodOrTopic {
    fn from(name: &str) -> Self {
        Self::from(&[name][..])
    }
}

impl From<&[&str]> for MethodOrTopic {
    fn from(names: &[&str]) -> Self {
        Self(MethodOrTopicKind::Names(names.iter().map(|name| (*name).to_owned()).collect()))
    }
}

impl From<Topic> for MethodOrTopic {
    fn from(topic: Topic) -> Self {
        Self(MethodOrTopicKind::Topic(Box::new(topic)))
    }
}
