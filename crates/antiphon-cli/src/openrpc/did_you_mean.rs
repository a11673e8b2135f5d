//! Suggestions for a misspelled name, by edit distance.

/// Longer names are not compared, since a peer may send names of any length.
const LONGEST: usize = 100;

/// The maximum number of suggestions.
const MOST: usize = 3;

/// Returns the names most similar to this one, the best first.
pub(crate) fn similar<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<_> =
        names.into_iter().filter_map(|name| Some((distance(typed, name)?, name))).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// Formats "did you mean `a`, `b` or `c`?".
pub(crate) fn did_you_mean(names: &[&str]) -> Option<String> {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let listed = match &*quoted {
        [] => return None,
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    };
    Some(format!("did you mean {listed}?"))
}

/// Returns the edit distance, or `None` if the names have little in common.
fn distance(typed: &str, name: &str) -> Option<usize> {
    let fold = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (typed, name) = (fold(typed), fold(name));
    if typed.len() > LONGEST || name.len() > LONGEST {
        return None;
    }
    let edits = edits(&typed, &name);
    let tolerated = typed.len().max(name.len()).div_ceil(3);
    let is_part = typed.len() > 2 && name.windows(typed.len()).any(|part| part == typed);
    (edits <= tolerated || is_part).then_some(edits)
}

/// Returns the number of characters to add, remove or change.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_found() {
        let names = ["subtract", "sum", "sleep", "subscribe_ticks", "eth_getBlockByNumber"];
        assert_eq!(similar("substract", names), ["subtract"]);
        assert_eq!(similar("SUM", names), ["sum"]);
        assert_eq!(similar("getblock", names), ["eth_getBlockByNumber"]);
        assert_eq!(similar("frobnicate", names), [""; 0]);
        assert_eq!(similar(&"a".repeat(1000), names), [""; 0]);
        assert_eq!(similar("", names), [""; 0]);
    }

    #[test]
    fn edits_are_counted() {
        let count = |a: &str, b: &str| {
            edits(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
        };
        for (a, b, edits) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(count(a, b), edits, "{a} {b}");
            assert_eq!(count(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn names_are_listed_in_one_sentence() {
        assert_eq!(did_you_mean(&[]), None);
        assert_eq!(did_you_mean(&["a"]).unwrap(), "did you mean `a`?");
        assert_eq!(did_you_mean(&["a", "b", "c"]).unwrap(), "did you mean `a`, `b` or `c`?");
    }
}
