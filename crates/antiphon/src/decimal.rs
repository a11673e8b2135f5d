//! Whole numbers as decimal digits, for heads and ids.
//!
//! The formatting of the standard library takes some 200 instructions for a short number. A call over
//! HTTP writes three.

/// The digits of the largest number.
pub(crate) const MAX_DIGITS: usize = 20;

/// The digits of a number.
pub(crate) struct Decimal {
    text: [u8; MAX_DIGITS],
    start: usize,
}

impl Decimal {
    #[inline]
    pub(crate) fn new(mut number: u64) -> Self {
        let mut text = [b'0'; MAX_DIGITS];
        let mut start = MAX_DIGITS;
        for digit in text.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
            start -= 1;
            if number == 0 {
                break;
            }
        }
        Self { text, start }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_every_length() {
        let powers = (0..20).map(|exponent| 10u64.pow(exponent));
        for number in powers.flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX]) {
            assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
        }
    }
}
