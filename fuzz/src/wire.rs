//! The messages that the transcripts send: the seeds of every corpus.
//!
//! It reads sent lines only, and simplifies them: a placeholder for a method becomes `subtract`, and a long
//! repetition becomes a short one.

use std::path::Path;

/// The longest repetition. Longer ones test limits that no target has.
const MAX_REPEATED: usize = 40;

/// The messages that the transcripts in this directory send, in their order.
///
/// # Panics
/// If there are no transcripts.
pub fn messages(directory: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("a directory that can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wire"))
        .collect();
    files.sort();
    let texts = files.iter().map(|file| std::fs::read_to_string(file).expect("a file of text"));
    texts.flat_map(|text| text.lines().filter_map(message).collect::<Vec<_>>()).collect()
}

fn message(line: &str) -> Option<Vec<u8>> {
    if let Some(digits) = line.strip_prefix("-->x ") {
        return bytes(digits);
    }
    let text = line.strip_prefix("-->")?;
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some(expanded(&filled(text)))
}

fn filled(text: &str) -> String {
    text.replace("\"<method>\"", "\"subtract\"").replace("\"<params>\"", "[42,23]")
}

/// Expands `<<TEXT x N>>` and `<<C3 A9>>`.
fn expanded(mut text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((before, rest)) = text.split_once("<<")
        && let Some((what, after)) = rest.split_once(">>")
    {
        out.extend_from_slice(before.as_bytes());
        match what.rsplit_once(" x ").map(|(what, times)| (what, times.parse::<usize>())) {
            Some((what, Ok(times))) => out.extend(what.repeat(times.min(MAX_REPEATED)).bytes()),
            _ => out.extend(bytes(what).unwrap_or_default()),
        }
        text = after;
    }
    out.extend_from_slice(text.as_bytes());
    out
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    digits.split_whitespace().map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}
