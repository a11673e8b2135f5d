//! Search in text eight bytes at a time (SIMD within a register).
//!
//! This module does not check JSON: it returns the positions of the bytes that the scanner must check.

/// The high bit of each byte, which no ASCII byte has.
pub(super) const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
const ONES: u64 = u64::from_ne_bytes([0x01; 8]);

/// Returns the number of bytes before the first quote, backslash or control character.
///
/// The first 64 bytes are searched eight at a time, the rest 256 at a time in a loop that the compiler
/// vectorises. The bitwise OR of the searched bytes is added to `seen`.
pub(crate) fn plain_run(bytes: &[u8], seen: &mut u64) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let words = &words[..words.len().min(8)];
    if let Some(at) = first_special(words, seen) {
        return at;
    }
    let mut passed = 8 * words.len();
    let (blocks, _) = bytes[passed..].as_chunks::<256>();
    let special = blocks.iter().position(|block| holds_special(block, seen));
    passed += 256 * special.unwrap_or(blocks.len());
    let (words, rest) = bytes[passed..].as_chunks::<8>();
    if let Some(at) = first_special(words, seen) {
        return passed + at;
    }
    *seen = rest.iter().fold(*seen, |seen, &byte| seen | u64::from(byte));
    bytes.len() - rest.len() + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

fn first_special(words: &[[u8; 8]], seen: &mut u64) -> Option<usize> {
    words.iter().enumerate().find_map(|(n, word)| {
        *seen |= u64::from_le_bytes(*word);
        special_in(word).map(|at| 8 * n + at)
    })
}

/// Returns the position of the first special byte of eight: quote, backslash or control character.
#[inline]
pub(crate) fn special_in(word: &[u8; 8]) -> Option<usize> {
    let word = u64::from_le_bytes(*word);
    let zero_byte = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let quote = zero_byte(word ^ (ONES * u64::from(b'"')));
    let backslash = zero_byte(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    let special = quote | backslash | control;
    // The lowest marked byte is exact: a borrow can only mark bytes above a true match.
    (special != 0).then(|| (special.trailing_zeros() / 8) as usize)
}

/// Returns the number of leading digits of eight bytes; `None` if all eight are digits.
#[inline]
pub(super) fn digits_in(word: &[u8; 8]) -> Option<usize> {
    // A digit is now a value below ten, so adding 0x76 does not carry into the high bit.
    let values = u64::from_le_bytes(*word) ^ (ONES * 0x30);
    let others = (((values & (ONES * 0x7F)) + ONES * 0x76) | values) & (ONES * 0x80);
    (others != 0).then(|| (others.trailing_zeros() / 8) as usize)
}

/// Whether the block has a special byte.
///
/// With one bit flipped, the quote and the control characters are exactly the bytes up to 0x20. So one
/// minimum finds both, and a second minimum finds backslashes. Minima vectorise well.
fn holds_special(block: &[u8; 256], seen: &mut u64) -> bool {
    const QUOTE_OR_CONTROL: u8 = b'"' ^ FLIP;
    const FLIP: u8 = 0x02;
    let (mut least, mut backslash, mut all) = (u8::MAX, u8::MAX, 0);
    for byte in block {
        least = least.min(byte ^ FLIP);
        backslash = backslash.min(byte ^ b'\\');
        all |= byte;
    }
    *seen |= u64::from(all);
    least <= QUOTE_OR_CONTROL || backslash == 0
}

fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}
