//! The values of headers: lists and numbers.

use http::HeaderMap;
use http::header::HeaderName;

/// The members of a list, separated by commas. Empty members are skipped (RFC 9110, section 5.6.1).
pub(super) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    members.filter(|member| !member.is_empty())
}

/// Whether the list in a header has this member.
pub(in crate::transport) fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).into_iter();
    values.flat_map(|value| members(value.as_bytes())).any(|member| is(member, wanted))
}

pub(super) fn is(member: &[u8], name: &str) -> bool {
    member.eq_ignore_ascii_case(name.as_bytes())
}

/// A number in digits and nothing else: up to 19 of them, which 64 bits hold.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_members_between_commas() {
        let list = |value| members(value).collect::<Vec<_>>();
        assert_eq!(list(b" a,\tb , ,,c"), [&b"a"[..], b"b", b"c"]);
        assert!(list(b" , ").is_empty());
    }

    #[test]
    fn a_number_has_digits_alone() {
        assert_eq!(number(b"0012"), Some(12));
        assert_eq!(number(b"4294967301"), Some(4_294_967_301));
        assert_eq!(number(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        for wrong in [&b""[..], b"+1", b"-1", b"1 ", b"0x1", b"1,1", b"00000000000000000001"] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }
}
