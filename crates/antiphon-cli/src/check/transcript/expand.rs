//! Which bytes does a line stand for?

/// The most bytes that one line may stand for once its repetitions are written out.
const MAX_MESSAGE: usize = 64 << 20;

/// Writes out `<<TEXT x N>>` (TEXT, N times) and `<<C3 A9>>` (these bytes).
pub(super) fn expand(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("<<") {
        let (inner, after) = from.split_once(">>").ok_or("`<<` without `>>`")?;
        bytes.extend_from_slice(before.as_bytes());
        match repetition(inner) {
            Some((text, times))
                if text.len().saturating_mul(times).saturating_add(bytes.len()) > MAX_MESSAGE =>
            {
                return Err(format!("`<<{inner}>>` is longer than {MAX_MESSAGE} bytes"));
            }
            Some((text, times)) => bytes.extend(text.repeat(times).bytes()),
            None => bytes.extend(hex(inner)?),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn repetition(inner: &str) -> Option<(&str, usize)> {
    let (text, times) = inner.rsplit_once(" x ")?;
    Some((text, times.parse().ok()?))
}

/// Bytes as they are written in hex.
pub(super) fn hex(text: &str) -> Result<Vec<u8>, String> {
    let fault = || format!("{text:?} is neither bytes in hex (`7B FF`) nor a repetition (`[ x 9`)");
    let byte = |pair: &str| match pair.len() {
        2 => u8::from_str_radix(pair, 16).ok(),
        _ => None,
    };
    text.split_whitespace().map(|pair| byte(pair).ok_or_else(fault)).collect()
}
