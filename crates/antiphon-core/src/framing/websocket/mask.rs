//! The mask of a client's frames (RFC 6455, section 5.3). Masking and unmasking are one operation.

/// Applies the mask to the bytes, and returns the mask for the bytes that follow. A mask of zeros means
/// no mask.
pub(super) fn apply(mask: [u8; 4], bytes: &mut [u8]) -> [u8; 4] {
    if mask == [0; 4] {
        return mask;
    }
    let wide = u64::from(u32::from_ne_bytes(mask)) * 0x1_0000_0001;
    // The compiler vectorises this loop.
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (at, byte) in rest.iter_mut().enumerate() {
        *byte ^= mask[at % 4];
    }
    let turned = u32::from_le_bytes(mask).rotate_right(8 * (rest.len() % 4) as u32);
    turned.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn masking_does_not_depend_on_the_cuts() {
        let text: Vec<u8> = (0..=255).collect();
        let mask = [1, 20, 77, 255];
        let whole: Vec<u8> = text.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b).collect();
        for size in 1..40 {
            let mut pieces = text.clone();
            pieces.chunks_mut(size).fold(mask, apply);
            assert_eq!(pieces, whole, "in pieces of {size}");
        }
    }
}
