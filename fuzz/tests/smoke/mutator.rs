//! Mutation of inputs: a few changes, all determined by a seed.

use std::path::Path;

/// The maximum length. Longer inputs find nothing more, and take longer.
const MAX_LENGTH: usize = 2_048;
/// Bytes with a meaning in some grammar.
const TELLING: &[u8] = b"{}[]\",:\\ \t\r\n0123456789eE.+-tfnu\x00\x1f\x7f\x80\xc3\xff";

/// Random numbers (SplitMix64), the same for the same seed and turn.
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(seed: u64, turn: u64) -> Self {
        let mut mutator = Self(seed ^ turn.rotate_left(32));
        mutator.next();
        mutator
    }

    /// One of the inputs with a few changes.
    pub(crate) fn mutated(&mut self, inputs: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(inputs).clone();
        for _ in 0..1 + self.below(5) {
            self.change(&mut input, inputs, words);
        }
        input.truncate(MAX_LENGTH);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, inputs: &[Vec<u8>], words: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below(input.len() - at + 1).min(16);
        match self.below(9) {
            0 => drop(input.drain(at..end)),
            1 => input.insert(at, *self.one_of(TELLING)),
            2 => drop(input.splice(at..at, self.one_of(words).iter().copied())),
            3 => drop(input.splice(at..end, self.one_of(words).iter().copied())),
            4 => drop(input.splice(at..at, input[at..end].to_vec())),
            // Replace the end by the end of another input.
            5 => {
                let other = self.one_of(inputs);
                let from = self.below(other.len() + 1);
                drop(input.splice(at.., other[from..].iter().copied()));
            }
            _ if at == input.len() => input.push(*self.one_of(TELLING)),
            6 => input[at] = *self.one_of(TELLING),
            7 => input[at] ^= 1 << self.below(8),
            // Change the options, which are the first byte.
            _ => input[0] = self.next() as u8,
        }
    }

    fn one_of<'a, T>(&mut self, many: &'a [T]) -> &'a T {
        &many[self.below(many.len())]
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// The words of a dictionary of libFuzzer: each in quotes, with `\"`, `\\` and `\xHH`.
pub(crate) fn words(file: &Path) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(file).expect("the dictionary is there");
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(unescaped).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let (mut out, mut bytes) = (Vec::new(), word.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(b'x') => {
                    let digits: String = bytes.by_ref().take(2).map(char::from).collect();
                    out.push(u8::from_str_radix(&digits, 16).expect("two hex digits"));
                }
                Some(plain) => out.push(plain),
                None => panic!("{word} ends in a backslash"),
            },
            plain => out.push(plain),
        }
    }
    out
}
