//! The value of the `date` header (RFC 9110, section 6.6.1), formatted once per second and thread.

use std::cell::Cell;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::BytesMut;

/// `Sun, 06 Nov 1994 08:49:37 GMT`
const LEN: usize = 29;

thread_local! {
    /// The last second, and its text.
    static NOW: Cell<(u64, [u8; LEN])> = const { Cell::new((0, [0; LEN])) };
}

/// Appends the date.
pub(super) fn write(out: &mut BytesMut) {
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (known, text) = NOW.get();
    if second == known {
        return out.extend_from_slice(&text);
    }
    let start = out.len();
    // A `BytesMut` grows as needed, so writing to it cannot fail.
    let _ = write!(out, "{}", httpdate::HttpDate::from(now));
    if let Ok(text) = out[start..].try_into() {
        NOW.set((second, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_for_a_second() {
        let mut twice = BytesMut::new();
        write(&mut twice);
        write(&mut twice);
        assert_eq!(twice.len(), 2 * LEN);
        assert!(twice.ends_with(b" GMT"));
    }
}
