//! Which upstream each name and each URI at the bridge belongs to. The first one that offers it has it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::connected_upstream::ConnectedUpstream;

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }
}

/// The owners of all names of a bridge.
#[derive(Default)]
pub(super) struct Owners(Mutex<BTreeMap<(Kind, String), Owner>>);

struct Owner {
    upstream: usize,
    endpoint: String,
    /// Its name at the upstream.
    original: String,
}

impl Owners {
    /// Takes a name for an upstream, which calls it `original`.
    ///
    /// # Errors
    /// Fails with the endpoint of the owner if the name is taken.
    pub(super) fn claim(
        &self,
        kind: Kind,
        name: &str,
        upstream: &ConnectedUpstream,
        original: &str,
    ) -> Result<(), String> {
        let mut owners = self.owners();
        let key = (kind, name.to_owned());
        if let Some(owner) = owners.get(&key) {
            let is_same = owner.upstream == upstream.number() && owner.original == original;
            return if is_same { Ok(()) } else { Err(owner.endpoint.clone()) };
        }
        let owner = Owner {
            upstream: upstream.number(),
            endpoint: upstream.endpoint().to_owned(),
            original: original.to_owned(),
        };
        owners.insert(key, owner);
        Ok(())
    }

    /// Gives a name back.
    pub(super) fn release(&self, kind: Kind, name: &str) {
        self.owners().remove(&(kind, name.to_owned()));
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<(Kind, String), Owner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
