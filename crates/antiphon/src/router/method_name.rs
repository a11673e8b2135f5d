//! The keys of the method table, and their hash.

use std::borrow::Borrow;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A method's name, looked up by its bytes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct MethodName(pub(super) Box<str>);

impl Hash for MethodName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for MethodName {
    fn borrow(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// A fast hash without a secret key. It needs no key, because the author of a service chooses the names
/// and a peer cannot add any.
pub(super) type BuildNameHasher = BuildHasherDefault<NameHasher>;

/// A multiplicative hash, eight bytes at a time.
#[derive(Default)]
pub(super) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.write_u64(rest.iter().fold(0, |last, byte| (last << 8) | u64::from(*byte)));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Hashes the length, which distinguishes names that differ only in trailing zeros.
    fn write_usize(&mut self, len: usize) {
        self.write_u64(len as u64);
    }

    fn finish(&self) -> u64 {
        // The hash table uses both the lowest and the highest bits.
        self.0 ^ (self.0 >> 32)
    }
}
