//! The naive model: a text is a `String`, and every question is answered by a walk over its characters.

use std::ops::Range;

use antiphon_lsp::documents::PositionEncoding;

/// The byte ranges of all lines, without their ends.
pub(super) fn lines(text: &str) -> Vec<(usize, usize)> {
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let end = ["\r\n", "\n", "\r"].into_iter().find(|end| rest.starts_with(end));
        match end {
            Some(end) => {
                lines.push((start, at));
                at += end.len();
                start = at;
            }
            None => at += rest.chars().next().unwrap().len_utf8(),
        }
    }
    lines.push((start, text.len()));
    lines
}

pub(super) fn offset(
    text: &str,
    line: usize,
    character: usize,
    encoding: PositionEncoding,
) -> usize {
    let Some(&(start, end)) = lines(text).get(line) else { return text.len() };
    let mut units = 0;
    for (at, char) in text[start..end].char_indices() {
        units += encoding.units_of(char);
        if character < units {
            return start + at;
        }
    }
    end
}

pub(super) fn position(text: &str, offset: usize, encoding: PositionEncoding) -> (u32, u32) {
    let offset = floor(text, offset);
    let lines = lines(text);
    let line = lines.iter().rposition(|(start, _)| *start <= offset).unwrap();
    let (start, end) = lines[line];
    let before = &text[start..offset.min(end)];
    let character: usize = before.chars().map(|char| encoding.units_of(char)).sum();
    (line as u32, character as u32)
}

/// The start of the character that has this byte.
pub(super) fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap()
}

/// The range between the starts of two characters, in order.
pub(super) fn clamped(text: &str, range: Range<usize>) -> Range<usize> {
    let (start, end) = (floor(text, range.start), floor(text, range.end));
    start.min(end)..start.max(end)
}
