//! The members of an Object, found by name.

use std::borrow::Cow;

use super::Json;

/// The members of an Object, with unique names.
pub(crate) struct JsonMembers {
    /// Names and values in their written order.
    list: Vec<(Json, Json)>,
    /// Indexes of `list`, sorted by name: a server may send too many members for a linear search per
    /// name.
    sorted: Vec<usize>,
}

/// The end of the error for a duplicate member, by which callers recognise it.
pub(crate) const DUPLICATED: &str = "appears twice";

impl JsonMembers {
    pub(super) fn new(list: Vec<(Json, Json)>) -> Result<Self, String> {
        let mut sorted: Vec<usize> = (0..list.len()).collect();
        sorted.sort_unstable_by(|one, two| list[*one].0.words().cmp(list[*two].0.words()));
        let twice = sorted.windows(2).find(|pair| list[pair[0]].0.is_same(&list[pair[1]].0));
        if let Some(pair) = twice {
            return Err(format!("the member {:?} {DUPLICATED}", list[pair[0]].0.lossy()));
        }
        Ok(Self { list, sorted })
    }

    /// Returns the members in their written order, names as [`Json::lossy`].
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, &Json)> {
        self.list.iter().map(|(name, json)| (name.lossy(), json))
    }

    /// Like [`Self::iter`], with the names as they were written, in quotes.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&Json, &Json)> {
        self.list.iter().map(|(name, json)| (name, json))
    }

    /// Returns the value whose name equals this name of another Object.
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
