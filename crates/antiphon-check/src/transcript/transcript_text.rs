//! Expands the text of a line to bytes: repetitions and hex.

/// The size limit of an expanded line.
const MAX_MESSAGE: usize = 64 << 20;

/// The text of a line. A few characters may stand for millions of bytes, so it is expanded only when it
/// is sent.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptText {
    pub(crate) written: String,
    /// A line end follows.
    is_line: bool,
}

impl TranscriptText {
    /// Parses a text with `<<TEXT x N>>` (TEXT, N times) and `<<C3 A9>>` (these bytes).
    pub(super) fn new(written: &str) -> Result<Self, String> {
        let mut length = 0_usize;
        for piece in pieces(written) {
            length = length.saturating_add(piece?.length());
        }
        if length > MAX_MESSAGE {
            return Err(format!(
                "it expands to more than {MAX_MESSAGE} bytes, longer than the limit"
            ));
        }
        Ok(Self { written: written.to_owned(), is_line: false })
    }

    /// Like [`Self::new`], with a line end.
    pub(super) fn line(written: &str) -> Result<Self, String> {
        Ok(Self { is_line: true, ..Self::new(written)? })
    }

    /// Parses bytes in hex.
    pub(super) fn hex(written: &str) -> Result<Self, String> {
        hex(written)?;
        Ok(Self { written: format!("<<{}>>", written.trim()), is_line: false })
    }

    /// Returns the expanded bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in pieces(&self.written).flatten() {
            piece.write(&mut bytes);
        }
        if self.is_line {
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }
}

/// A part of a text.
enum TextPiece<'a> {
    Plain(&'a str),
    Repeated(&'a str, usize),
    Bytes(Vec<u8>),
}

impl TextPiece<'_> {
    fn length(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Repeated(text, times) => text.len().saturating_mul(*times),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(text) => out.extend_from_slice(text.as_bytes()),
            Self::Repeated(text, times) => out.extend_from_slice(text.repeat(times).as_bytes()),
            Self::Bytes(bytes) => out.extend(bytes),
        }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = Result<TextPiece<'_>, String>> {
    let mut rest = Some(text);
    let mut inner = None;
    std::iter::from_fn(move || {
        if let Some(inner) = inner.take() {
            return Some(special(inner));
        }
        let text = rest.take().filter(|text| !text.is_empty())?;
        let Some((before, from)) = text.split_once("<<") else {
            return Some(Ok(TextPiece::Plain(text)));
        };
        let Some((within, after)) = from.split_once(">>") else {
            return Some(Err("`<<` without `>>`".to_owned()));
        };
        (inner, rest) = (Some(within), Some(after));
        Some(Ok(TextPiece::Plain(before)))
    })
}

fn special(inner: &str) -> Result<TextPiece<'_>, String> {
    match inner.rsplit_once(" x ").and_then(|(text, times)| Some((text, times.parse().ok()?))) {
        Some((text, times)) => Ok(TextPiece::Repeated(text, times)),
        None => hex(inner).map(TextPiece::Bytes),
    }
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let fault =
        || format!("{text:?} must be bytes in hex, as in `7B FF`, or a repetition, as in `[ x 9`");
    let byte = |pair: &str| match pair.len() {
        2 => u8::from_str_radix(pair, 16).ok(),
        _ => None,
    };
    text.split_whitespace().map(|pair| byte(pair).ok_or_else(fault)).collect()
}
