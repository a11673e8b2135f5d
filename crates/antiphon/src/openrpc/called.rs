//! What a description is about.

use crate::subscription::Topic;

/// A method by its name, or a subscription by its topic.
#[derive(Clone, Debug)]
pub struct Called(Form);

#[derive(Clone, Debug)]
enum Form {
    /// The method's name, and then others that it answers to.
    Names(Vec<String>),
    Topic(Box<Topic>),
}

impl Called {
    /// The method's own name: of a subscription, the one that begins it.
    pub(crate) fn name(&self) -> &str {
        match &self.0 {
            Form::Names(names) => names.first().map_or("", |name| name),
            Form::Topic(topic) => &topic.subscribe,
        }
    }

    /// The other names that it answers to.
    pub(crate) fn aliases(&self) -> &[String] {
        match &self.0 {
            Form::Names(names) => names.get(1..).unwrap_or_default(),
            Form::Topic(_) => &[],
        }
    }

    pub(crate) fn topic(&self) -> Option<&Topic> {
        match &self.0 {
            Form::Names(_) => None,
            Form::Topic(topic) => Some(topic),
        }
    }

    /// Whether it is about the same: topics of different kinds share their methods.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let kind = |called: &Self| called.topic().and_then(|topic| topic.kind.clone());
        self.name() == other.name() && kind(self) == kind(other)
    }

    /// The same under a prefix.
    pub(crate) fn prefixed(&self, prefix: &str) -> Self {
        Self(match &self.0 {
            Form::Names(names) => {
                Form::Names(names.iter().map(|name| format!("{prefix}{name}")).collect())
            }
            Form::Topic(topic) => Form::Topic(Box::new(topic.prefixed(prefix))),
        })
    }
}

impl From<&str> for Called {
    fn from(name: &str) -> Self {
        Self::from(&[name][..])
    }
}

impl From<&[&str]> for Called {
    fn from(names: &[&str]) -> Self {
        Self(Form::Names(names.iter().map(|name| (*name).to_owned()).collect()))
    }
}

impl From<Topic> for Called {
    fn from(topic: Topic) -> Self {
        Self(Form::Topic(Box::new(topic)))
    }
}
