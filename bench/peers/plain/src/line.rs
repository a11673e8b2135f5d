//! One message per line.

use std::io;

pub(crate) fn answer(input: &mut [u8], out: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let Some(end) = memchr::memchr(b'\n', input) else { return Ok(None) };
    hand::answer(&input[..end], out);
    out.push(b'\n');
    Ok(Some(end + 1))
}
