//! The value of a JSON String: its text without quotes and escapes.
//!
//! This module does not validate: the scanner has already checked the String.
//!
//! Invariant: two Strings have the same value only if they unescape to the same bytes.

use std::borrow::Cow;

/// Returns the text of a well-formed String without its quotes and escapes.
///
/// The bytes are UTF-8, except that a lone surrogate becomes the three bytes of its WTF-8 encoding.
/// So two different Strings never become equal.
pub(crate) fn unescape(quoted: &[u8]) -> Cow<'_, [u8]> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut text = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        text.extend_from_slice(&rest[..at]);
        rest = unescape_one(&rest[at + 1..], &mut text);
    }
    text.extend_from_slice(rest);
    Cow::Owned(text)
}

/// Appends the character of the escape after a backslash, and returns the bytes after the escape.
fn unescape_one<'a>(escape: &'a [u8], text: &mut Vec<u8>) -> &'a [u8] {
    let Some((&letter, rest)) = escape.split_first() else {
        return escape;
    };
    let plain = match letter {
        b'b' => 0x08,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unescape_unit(rest, text),
        other => other,
    };
    text.push(plain);
    rest
}

fn unescape_unit<'a>(digits: &'a [u8], text: &mut Vec<u8>) -> &'a [u8] {
    let Some((unit, rest)) = hex4(digits) else {
        return digits;
    };
    if (0xD800..0xDC00).contains(&unit)
        && let Some((low, after)) = rest.strip_prefix(b"\\u").and_then(hex4)
        && (0xDC00..0xE000).contains(&low)
    {
        push_scalar(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00), text);
        return after;
    }
    push_scalar(unit, text);
    rest
}

fn hex4(digits: &[u8]) -> Option<(u32, &[u8])> {
    let (four, rest) = digits.split_first_chunk::<4>()?;
    let four = std::str::from_utf8(four).ok()?;
    Some((u32::from_str_radix(four, 16).ok()?, rest))
}

fn push_scalar(code: u32, text: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(scalar) => text.extend_from_slice(scalar.encode_utf8(&mut [0; 4]).as_bytes()),
        None => text.extend_from_slice(&[
            0xE0 | (code >> 12) as u8,
            0x80 | ((code >> 6) & 0x3F) as u8,
            0x80 | (code & 0x3F) as u8,
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unescapes_to_the_value() {
        assert_eq!(unescape(br#""a\/b\u0041\ud83d\ude00\n""#).as_ref(), "a/bA😀\n".as_bytes());
        assert_eq!(unescape(br#""\ud800""#).as_ref(), b"\xED\xA0\x80");
        assert_ne!(unescape(br#""\ud800""#), unescape(br#""\ufffd""#));
    }
}
