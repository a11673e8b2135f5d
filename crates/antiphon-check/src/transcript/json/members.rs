//! Which member of an Object has this name?

use std::borrow::Cow;

use super::Json;

/// The members of an Object. No name is there twice.
pub(crate) struct JsonMembers {
    /// Name and value, as they were written one after the other.
    list: Vec<(Json, Json)>,
    /// The places in `list` by name: a server may send more members than can be passed over for
    /// every name.
    sorted: Vec<usize>,
}

impl JsonMembers {
    pub(super) fn new(list: Vec<(Json, Json)>) -> Result<Self, String> {
        let mut sorted: Vec<usize> = (0..list.len()).collect();
        sorted.sort_unstable_by(|one, two| list[*one].0.words().cmp(list[*two].0.words()));
        let twice = sorted.windows(2).find(|pair| list[pair[0]].0.is_same(&list[pair[1]].0));
        if let Some(pair) = twice {
            return Err(format!("the member {:?} is there twice", list[pair[0]].0.lossy()));
        }
        Ok(Self { list, sorted })
    }

    /// In the order in which they were written. Names are shown as [`Json::lossy`] does.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, &Json)> {
        self.list.iter().map(|(name, json)| (name.lossy(), json))
    }

    /// The same with the names as they were written, quotes and all.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&Json, &Json)> {
        self.list.iter().map(|(name, json)| (name, json))
    }

    /// The value of the same name in another Object.
    pub(crate) fn like(&self, name: &Json) -> Option<&Json> {
        self.named(name.words())
    }

    pub(super) fn named(&self, name: &[u8]) -> Option<&Json> {
        let found = self.sorted.binary_search_by(|at| self.list[*at].0.words().cmp(name)).ok()?;
        Some(&self.list[self.sorted[found]].1)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.list.len() == other.list.len()
            && self.by_name().zip(other.by_name()).all(|((name, one), (other_name, two))| {
                name.is_same(other_name) && one.is_same(two)
            })
    }

    fn by_name(&self) -> impl Iterator<Item = &(Json, Json)> {
        self.sorted.iter().map(|at| &self.list[*at])
    }
}
