//! Which name was meant by one that is not there.

/// Names longer than this are not compared: a peer may send any.
const LONGEST: usize = 100;

/// How many are told.
const MOST: usize = 3;

/// The names most like this one, the best first.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<_> =
        names.into_iter().filter_map(|name| Some((distance(typed, name)?, name))).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// "did you mean `a`, `b` or `c`?"
pub(crate) fn did_you_mean(names: &[&str]) -> Option<String> {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let listed = match &*quoted {
        [] => return None,
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    };
    Some(format!("did you mean {listed}?"))
}

/// How far apart they are, or none where they have little in common.
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

/// Characters to add, take away or change.
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
    fn what_is_like_it_is_found_and_the_rest_is_not() {
        let names = ["subtract", "sum", "sleep", "subscribe_ticks", "eth_getBlockByNumber"];
        assert_eq!(nearest("substract", names), ["subtract"]);
        assert_eq!(nearest("SUM", names), ["sum"]);
        assert_eq!(nearest("getblock", names), ["eth_getBlockByNumber"]);
        assert_eq!(nearest("frobnicate", names), [""; 0]);
        assert_eq!(nearest(&"a".repeat(1000), names), [""; 0]);
        assert_eq!(nearest("", names), [""; 0]);
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
    fn the_question_reads_well() {
        assert_eq!(did_you_mean(&[]), None);
        assert_eq!(did_you_mean(&["a"]).unwrap(), "did you mean `a`?");
        assert_eq!(did_you_mean(&["a", "b", "c"]).unwrap(), "did you mean `a`, `b` or `c`?");
    }
}
