//! The difference between two texts, as one change.

use std::ops::Range;

/// Returns the byte range of the old text to replace, and its replacement: everything between the common prefix and the
/// common suffix. Both ends are character boundaries, and never inside `\r\n`, because no position is there.
pub(crate) fn difference<'a>(old: &str, new: &'a str) -> (Range<usize>, &'a str) {
    let mut start = common(old.bytes(), new.bytes());
    while !(is_between(old, start) && is_between(new, start)) {
        start -= 1;
    }
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let mut end = common(old_rest.bytes().rev(), new_rest.bytes().rev());
    while !(is_between(old, old.len() - end) && is_between(new, new.len() - end)) {
        end -= 1;
    }
    (start..old.len() - end, &new[start..new.len() - end])
}

/// Returns the length of the common prefix in bytes.
fn common(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns whether an offset is a character boundary and not inside `\r\n`.
fn is_between(text: &str, offset: usize) -> bool {
    let bytes = text.as_bytes();
    let splits =
        offset > 0 && bytes.get(offset - 1) == Some(&b'\r') && bytes.get(offset) == Some(&b'\n');
    text.is_char_boundary(offset) && !splits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_what_is_between_the_common_ends() {
        for (old, new, range, text) in [
            ("", "", 0..0, ""),
            ("abc", "abc", 3..3, ""),
            ("abc", "aXc", 1..2, "X"),
            ("aa", "aaa", 2..2, "a"),
            ("aaa", "aa", 2..3, ""),
            ("", "new", 0..0, "new"),
            ("old", "", 0..3, ""),
            // The characters share their first byte, or their last one.
            ("ä", "ö", 0..2, "ö"),
            ("\u{e4}", "\u{124}", 0..2, "\u{124}"),
            ("a\r\nb", "a\rb", 1..3, "\r"),
            ("a\nb", "a\r\nb", 1..2, "\r\n"),
            ("a\r\n", "a\r\n\n", 3..3, "\n"),
        ] {
            assert_eq!(difference(old, new), (range, text), "{old:?} {new:?}");
        }
    }
}
