//! WTF-8: UTF-8 that can also hold lone surrogates.
//!
//! A surrogate pair becomes one character; a lone surrogate is encoded like a character. So equal code
//! units always give equal bytes.

pub(super) struct Wtf8 {
    bytes: Vec<u8>,
    /// A high surrogate, while its low surrogate may still follow.
    half: Option<u16>,
}

impl From<&str> for Wtf8 {
    fn from(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), half: None }
    }
}

impl Wtf8 {
    pub(super) fn push(&mut self, unit: u16) {
        let whole = self.half.and_then(|first| char::decode_utf16([first, unit]).next()?.ok());
        if let Some(whole) = whole {
            self.half = None;
            return self.extend(whole.encode_utf8(&mut [0; 4]));
        }
        self.alone();
        match char::from_u32(unit.into()) {
            Some(whole) => self.extend(whole.encode_utf8(&mut [0; 4])),
            None => self.half = Some(unit),
        }
    }

    pub(super) fn extend(&mut self, text: &str) {
        if !text.is_empty() {
            self.alone();
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.alone();
        self.bytes
    }

    /// Writes a surrogate that has no other half.
    fn alone(&mut self) {
        if let Some(half) = self.half.take() {
            let low_bits = |shift: u16| 0x80 | (half >> shift & 0x3F) as u8;
            self.bytes.extend([0xE0 | (half >> 12) as u8, low_bits(6), low_bits(0)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(units: &[u16]) -> Vec<u8> {
        let mut wtf8 = Wtf8::from("");
        units.iter().for_each(|unit| wtf8.push(*unit));
        wtf8.end()
    }

    #[test]
    fn whole_characters_are_utf8() {
        let text = "a\u{e9}\u{ffff}\u{10000}\u{10ffff}";
        assert_eq!(bytes(&text.encode_utf16().collect::<Vec<_>>()), text.as_bytes());
    }

    #[test]
    fn halves_stay_apart() {
        assert_eq!(bytes(&[0xD800]), [0xED, 0xA0, 0x80]);
        assert_eq!(bytes(&[0xDFFF]), [0xED, 0xBF, 0xBF]);
        assert_eq!(bytes(&[0xDC00, 0xD800]), [0xED, 0xB0, 0x80, 0xED, 0xA0, 0x80]);
        assert_eq!(bytes(&[0xD800, 0xD800, 0xDC00]), [0xED, 0xA0, 0x80, 0xF0, 0x90, 0x80, 0x80]);
    }
}
