//! The tools, prompts or resources of a server: entries with a name, in the order of their addition, page by page.
//!
//! A cursor names the last entry of a page, not a position. So a client that reads pages while entries come and go
//! sees every entry that stays exactly once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// Entries that can change while the server runs.
pub(crate) struct Registry<T> {
    /// The first characters of its cursors, so that a cursor of another list is refused.
    kind: &'static str,
    entries: RwLock<Entries<T>>,
}

struct Entries<T> {
    by_number: BTreeMap<u64, Arc<T>>,
    numbers: HashMap<String, u64>,
    next: u64,
}

/// One page of a list.
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<Arc<T>>,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
}

impl<T> Registry<T> {
    pub(crate) fn new(kind: &'static str) -> Self {
        let entries = Entries { by_number: BTreeMap::new(), numbers: HashMap::new(), next: 1 };
        Self { kind, entries: RwLock::new(entries) }
    }

    /// Adds an entry, or replaces the one with this name, which keeps its place.
    pub(crate) fn insert(&self, name: &str, entry: T) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let number = match entries.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = entries.next;
                entries.next += 1;
                entries.numbers.insert(name.to_owned(), number);
                number
            }
        };
        entries.by_number.insert(number, Arc::new(entry));
    }

    /// Removes an entry. Returns whether there was one.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let number = entries.numbers.remove(name);
        number.is_some_and(|number| entries.by_number.remove(&number).is_some())
    }

    /// Returns the entry with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<T>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.by_number.get(entries.numbers.get(name)?).cloned()
    }

    /// Returns the first entry that `matches` accepts, with what it returned.
    pub(crate) fn find<R>(&self, matches: impl Fn(&T) -> Option<R>) -> Option<(Arc<T>, R)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.by_number.values().find_map(|entry| Some((entry.clone(), matches(entry)?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.by_number.is_empty()
    }

    /// Returns the page that follows a cursor, or the first one; `None` if the cursor is not one of this list.
    pub(crate) fn page(&self, cursor: Option<&str>, size: usize) -> Option<Page<T>> {
        let after = match cursor {
            None => 0,
            Some(cursor) => u64::from_str_radix(cursor.strip_prefix(self.kind)?, 36).ok()?,
        };
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if after >= entries.next {
            return None;
        }
        let mut rest = entries.by_number.range(after + 1..);
        let page: Vec<_> = rest.by_ref().take(size.max(1)).collect();
        let last = page.last().map_or(0, |(number, _)| **number);
        let next = rest.next().map(|_| format!("{}{}", self.kind, in_base_36(last)));
        Some(Page { entries: page.into_iter().map(|(_, entry)| entry.clone()).collect(), next })
    }
}

fn in_base_36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(page: &Page<&'static str>) -> Vec<&'static str> {
        page.entries.iter().map(|entry| **entry).collect()
    }

    #[test]
    fn pages_stay_right_while_entries_come_and_go() {
        let registry = Registry::new("t");
        for name in ["a", "b", "c", "d", "e"] {
            registry.insert(name, name);
        }
        let first = registry.page(None, 2).unwrap();
        assert_eq!(names(&first), ["a", "b"]);
        registry.remove("b");
        registry.remove("a");
        registry.insert("f", "f");
        registry.insert("c", "C");
        let second = registry.page(first.next.as_deref(), 3).unwrap();
        assert_eq!(names(&second), ["C", "d", "e"]);
        let third = registry.page(second.next.as_deref(), 3).unwrap();
        assert_eq!(names(&third), ["f"]);
        assert_eq!(third.next, None);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let registry = Registry::new("t");
        (0..100).for_each(|n: i32| registry.insert(&n.to_string(), "x"));
        for cursor in ["", "t", "p1", "t-1", "t99999999999999999999", "zz", "t2z"] {
            assert!(registry.page(Some(cursor), 1).is_none(), "{cursor}");
        }
        let next = registry.page(None, 70).unwrap().next.unwrap();
        assert_eq!(registry.page(Some(&next), 70).unwrap().entries.len(), 30);
        assert!(Registry::<&str>::new("t").page(None, 5).unwrap().entries.is_empty());
    }
}
