//! A body that comes in chunks (RFC 9112, section 7.1).
//!
//! A chunk that is announced makes no buffer large: data is copied as it comes. What is no data
//! (extensions and trailers, which nobody here asks for) is bounded and passed over.

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderName, HeaderValue};

use super::fault::Fault;

/// The most bytes of extensions and trailers.
const MAX_ASIDE: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Chunked {
    next: Next,
    body: BytesMut,
    /// The most that the body may hold.
    limit: usize,
    /// Bytes that were passed over.
    aside: usize,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    /// The line that says how long a chunk is.
    Size,
    /// This much of a chunk.
    Data(usize),
    /// The end of its line.
    End,
    /// A line of what follows the last chunk.
    Trailer,
}

impl Chunked {
    pub(super) fn new(limit: usize) -> Self {
        Self { next: Next::Size, body: BytesMut::new(), limit, aside: 0 }
    }

    /// Takes in what has come. The body, once it is whole.
    pub(super) fn read(&mut self, buf: &mut BytesMut) -> Result<Option<Bytes>, Fault> {
        loop {
            match self.next {
                Next::Data(left) => {
                    let taken = left.min(buf.len());
                    self.body.extend_from_slice(&buf[..taken]);
                    buf.advance(taken);
                    if taken < left {
                        self.next = Next::Data(left - taken);
                        return Ok(None);
                    }
                    self.next = Next::End;
                }
                Next::End => match line_end(buf)? {
                    None => return Ok(None),
                    Some(0) => {
                        buf.advance(2);
                        self.next = Next::Size;
                    }
                    Some(_) => return Err(malformed("a chunk is longer than it says")),
                },
                Next::Size => {
                    let Some(end) = line_end(buf)? else { return Ok(None) };
                    self.read_size(&buf[..end])?;
                    buf.advance(end + 2);
                }
                Next::Trailer => {
                    let Some(end) = line_end(buf)? else { return Ok(None) };
                    self.pass_over(end)?;
                    if end > 0 && !is_field(&buf[..end]) {
                        return Err(malformed("a line after its chunks is no header"));
                    }
                    buf.advance(end + 2);
                    if end == 0 {
                        return Ok(Some(std::mem::take(&mut self.body).freeze()));
                    }
                }
            }
        }
    }

    fn read_size(&mut self, line: &[u8]) -> Result<(), Fault> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, rest) = line.split_at(digits);
        let extension = rest.trim_ascii_start();
        if digits.is_empty() || !(extension.is_empty() || extension.starts_with(b";")) {
            return Err(malformed("a chunk does not say how long it is"));
        }
        // Zeros may lead; more digits than a number has are no data.
        self.pass_over(rest.len() + digits.len().saturating_sub(16))?;
        let size = digits.iter().try_fold(0usize, |size, digit| {
            let digit = char::from(*digit).to_digit(16)? as usize;
            size.checked_mul(16)?.checked_add(digit)
        });
        match size {
            Some(0) => self.next = Next::Trailer,
            Some(size) if size <= self.limit - self.body.len() => self.next = Next::Data(size),
            _ => return Err(Fault::TooLarge(self.limit)),
        }
        Ok(())
    }

    fn pass_over(&mut self, bytes: usize) -> Result<(), Fault> {
        self.aside += bytes;
        if self.aside > MAX_ASIDE { Err(too_long()) } else { Ok(()) }
    }
}

/// Where the first line ends, with CR and LF; neither stands alone.
fn line_end(buf: &[u8]) -> Result<Option<usize>, Fault> {
    match buf.iter().position(|&byte| byte == b'\r' || byte == b'\n') {
        None if buf.len() > MAX_ASIDE => Err(too_long()),
        None => Ok(None),
        Some(at) => match (buf[at], buf.get(at + 1)) {
            (b'\r', None) => Ok(None),
            (b'\r', Some(b'\n')) => Ok(Some(at)),
            _ => Err(malformed("a line of its chunks ends in half a line end")),
        },
    }
}

fn is_field(line: &[u8]) -> bool {
    let colon = line.iter().position(|&byte| byte == b':').unwrap_or_default();
    HeaderName::from_bytes(&line[..colon]).is_ok()
        && HeaderValue::from_bytes(&line[colon..]).is_ok()
}

fn malformed(reason: &'static str) -> Fault {
    Fault::Malformed(reason.into())
}

fn too_long() -> Fault {
    malformed("its chunks come with too much that is no data")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, and what follows it; fed in pieces of this size.
    fn read(text: &[u8], piece: usize) -> Result<(Bytes, Vec<u8>), Fault> {
        let mut chunked = Chunked::new(1_000);
        let mut buf = BytesMut::new();
        let mut pieces = text.chunks(piece);
        for piece in pieces.by_ref() {
            buf.extend_from_slice(piece);
            if let Some(body) = chunked.read(&mut buf)? {
                return Ok((body, [&buf[..], &pieces.collect::<Vec<_>>().concat()].concat()));
            }
        }
        Err(Fault::BrokeOff("".into()))
    }

    #[test]
    fn chunks_become_one_body() {
        for (text, body) in [
            ("0\r\n\r\n", ""),
            ("5\r\nhello\r\n0\r\n\r\n", "hello"),
            ("5\r\nhello\r\n1\r\n \r\n00A\r\n0123456789\r\n000\r\n\r\n", "hello 0123456789"),
            ("3;a=b\r\n\r\n\r\r\n0;last\r\n\r\n", "\r\n\r"),
            ("3 ;a=\"b;c\"\r\nabc\r\n0 \t\r\n\r\n", "abc"),
            ("1\r\nx\r\n0\r\nExpires: never\r\nX: \r\n\r\n", "x"),
        ] {
            for piece in 1..=text.len() {
                let (whole, rest) = read(text.as_bytes(), piece).unwrap();
                assert_eq!((&whole[..], rest), (body.as_bytes(), vec![]), "{text:?} by {piece}");
            }
            let (_, rest) = read(format!("{text}HTTP/").as_bytes(), 1_000).unwrap();
            assert_eq!(rest, b"HTTP/");
        }
    }

    #[test]
    fn what_are_no_chunks_is_refused() {
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "0x1\r\na\r\n0\r\n\r\n",
            "1 1\r\na\r\n0\r\n\r\n",
            "1\na\r\n0\r\n\r\n",
            "1\rxa\r\n0\r\n\r\n",
            "1;a\nb\r\nx\r\n0\r\n\r\n",
            "1\r\nab\r\n0\r\n\r\n",
            "1\r\na\n0\r\n\r\n",
            "0\r\nX: y\nZ: w\r\n\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n: no name\r\n\r\n",
            "0\r\nX: y\r\n folded: z\r\n\r\n",
        ] {
            for piece in 1..=text.len() {
                let refused = read(text.as_bytes(), piece).unwrap_err();
                assert!(matches!(refused, Fault::Malformed(_)), "{text:?} by {piece}: {refused:?}");
            }
        }
    }

    #[test]
    fn everything_is_bounded() {
        for text in ["3e9\r\n", "fffffffffffffffff\r\n", "1\r\nx\r\n3e8\r\n"] {
            let refused = read(text.as_bytes(), 1_000).unwrap_err();
            assert!(matches!(refused, Fault::TooLarge(1_000)), "{text:?}: {refused:?}");
        }
        let much = "x".repeat(MAX_ASIDE);
        for text in [
            format!("1;{much}\r\n"),
            format!("1;{much}"),
            format!("0{much}"),
            format!("0\r\nx{much}"),
            format!("0\r\n{}", "a: b\r\n".repeat(MAX_ASIDE / 4 + 1)),
            "1;abc\r\nx\r\n".repeat(MAX_ASIDE / 4 + 1),
        ] {
            let refused = read(text.as_bytes(), 4_096).unwrap_err();
            let refused_as = matches!(refused, Fault::Malformed(_) | Fault::TooLarge(_));
            assert!(refused_as, "{}: {refused:?}", &text[..9]);
        }
        // The largest there may be.
        let most = format!("3e8\r\n{}\r\n0\r\n\r\n", "x".repeat(1_000));
        assert_eq!(read(most.as_bytes(), 100).unwrap().0.len(), 1_000);
    }
}
