//! The names of tools: 1 to 128 characters of `A-Z a-z 0-9 _ - .`, each name once.
//!
//! A method whose name is valid keeps it. Other names are mapped, and numbered where two would be the same, in the order
//! of the document. So the same document always gives the same names.

use std::collections::{BTreeMap, BTreeSet};

use super::error::FromOpenRpcError;
use crate::tool_names::{MAX_LENGTH, is_allowed, is_valid};

/// Returns the name of the tool of each method.
pub(super) fn tool_names<'m>(
    methods: &[&'m str],
    prefix: &str,
    renamed: &BTreeMap<String, String>,
) -> Result<BTreeMap<&'m str, String>, FromOpenRpcError> {
    let mut taken = BTreeSet::new();
    let mut names = BTreeMap::new();
    for method in methods {
        let Some(name) = renamed.get(*method) else { continue };
        if !is_valid(name) || !taken.insert(name.clone()) {
            return Err(FromOpenRpcError::Name { name: name.clone() });
        }
        names.insert(*method, name.clone());
    }
    let (valid, others): (Vec<&str>, Vec<&str>) = methods
        .iter()
        .filter(|method| !renamed.contains_key(**method))
        .partition(|method| is_valid(&format!("{prefix}{method}")));
    for method in valid.into_iter().chain(others) {
        let name = unique(&mapped(&format!("{prefix}{method}")), &taken);
        taken.insert(name.clone());
        names.insert(method, name);
    }
    Ok(names)
}

/// Replaces each run of other characters by one `_`.
pub(super) fn mapped(name: &str) -> String {
    let mut out = String::with_capacity(name.len().min(MAX_LENGTH));
    let mut is_run = false;
    for c in name.chars() {
        let is_kept = u8::try_from(c).is_ok_and(is_allowed);
        match (is_kept, is_run) {
            (true, _) => out.push(c),
            (false, false) => out.push('_'),
            (false, true) => {}
        }
        is_run = !is_kept;
    }
    out.truncate(MAX_LENGTH);
    if out.is_empty() { "_".to_owned() } else { out }
}

/// Adds a number to a name that is taken.
pub(super) fn unique(name: &str, taken: &BTreeSet<String>) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    let numbered = |number: usize| {
        let number = format!("_{number}");
        let end = name.len().min(MAX_LENGTH - number.len());
        // Names are ASCII here, so each index is a boundary.
        format!("{}{number}", name.get(..end).unwrap_or_default())
    };
    (2..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(methods: &[&str], prefix: &str) -> Vec<String> {
        let names = tool_names(methods, prefix, &BTreeMap::new()).unwrap();
        methods.iter().map(|method| names[method].clone()).collect()
    }

    #[test]
    fn valid_names_stay_and_others_are_mapped() {
        assert_eq!(
            names(&["a/b", "a_b", "a b", "größe", "a::b", ""], ""),
            ["a_b_2", "a_b", "a_b_3", "gr_e", "a_b_4", "_"],
        );
        assert_eq!(names(&["get", "math.add"], "eth_"), ["eth_get", "eth_math.add"]);
    }

    #[test]
    fn long_names_stay_different() {
        let (one, other) = (format!("{}1", "x".repeat(200)), format!("{}2", "x".repeat(200)));
        let names = names(&[&one, &other], "");
        assert_eq!(names[0].len(), 128);
        assert_eq!(names[1].len(), 128);
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn a_new_name_must_be_valid_and_free() {
        let renamed = |name: &str| BTreeMap::from([("a".to_owned(), name.to_owned())]);
        let names = tool_names(&["b", "a"], "p_", &renamed("b")).unwrap();
        assert_eq!((names["a"].as_str(), names["b"].as_str()), ("b", "p_b"));
        assert!(tool_names(&["a"], "", &renamed("a b")).is_err());
        assert_eq!(tool_names(&["x"], "", &renamed("a b")).unwrap()["x"], "x");
    }
}
