//! The text beside a naive model, in all three encodings, with random texts and edits.

use antiphon_lsp::documents::{PositionEncoding, Text};
use proptest::prelude::*;

use super::model;

const ENCODINGS: [PositionEncoding; 3] =
    [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32];

/// Line ends in all mixes, one to four bytes per character, combining characters, and what ends a line
/// elsewhere but not in LSP: form feed, NEL, U+2028.
fn fragment() -> impl Strategy<Value = String> {
    let graphemes = vec![
        "e\u{301}",
        "👩\u{200d}👧",
        "𐐀",
        "é",
        "漢",
        "\u{c}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\0",
    ];
    let part = prop_oneof![
        4 => prop::sample::select(vec!["\r", "\n", "\r\n", "\n\r", "\r\r\n"]).prop_map(String::from),
        4 => prop::sample::select(graphemes).prop_map(String::from),
        3 => "[a-z ]{0,12}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// A text of one or of many pieces.
fn text() -> impl Strategy<Value = String> {
    (fragment(), fragment(), 0..60_usize).prop_map(|(unit, rest, times)| unit.repeat(times) + &rest)
}

/// Places as parts of a whole, so that they fit to every length, and somewhat more.
fn place() -> impl Strategy<Value = f64> {
    0.0..1.05_f64
}

fn at(place: f64, len: usize) -> usize {
    (place * len as f64) as usize
}

fn same(text: &Text, model: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(text.to_string(), model);
    prop_assert_eq!(text.len(), model.len());
    let lines = model::lines(model);
    prop_assert_eq!(text.line_count(), lines.len());
    for line in 0..lines.len() + 1 {
        let range = text.line_range(line).map(|range| (range.start, range.end));
        prop_assert_eq!(range, lines.get(line).copied());
        if lines.len() > 50 && line == 20 {
            break;
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn edits_change_what_they_change_in_a_string(
        first in text(),
        edits in prop::collection::vec(
            (place(), place(), any::<bool>(), prop_oneof![4 => fragment(), 1 => text()]),
            0..20,
        ),
    ) {
        let mut text = Text::from(&*first);
        let mut model = first;
        same(&text, &model)?;
        for (start, len, is_reversed, new) in edits {
            let (old, old_model) = (text.clone(), model.clone());
            let start = at(start, model.len());
            let len = at(len * len * len, model.len());
            let (start, end) = if is_reversed { (start + len, start) } else { (start, start + len) };
            text.replace(start..end, &new);
            model.replace_range(model::clamped(&model, start..end), &new);
            same(&text, &model)?;
            prop_assert_eq!(old.to_string(), old_model);
        }
    }

    #[test]
    fn positions_become_the_offsets_of_the_model(
        model in text(),
        positions in prop::collection::vec((place(), place()), 1..20),
    ) {
        let text = Text::from(&*model);
        let lines = model::lines(&model);
        for (line, character) in positions {
            let line = at(line, lines.len() + 1);
            let width = lines.get(line).map_or(0, |(start, end)| end - start);
            let character = at(character, width + 4);
            for encoding in ENCODINGS {
                let expected = model::offset(&model, line, character, encoding);
                prop_assert_eq!(text.offset(line as u32, character as u32, encoding), expected);
            }
        }
    }

    #[test]
    fn offsets_become_the_positions_of_the_model(
        model in text(),
        offsets in prop::collection::vec(place(), 1..20),
    ) {
        let text = Text::from(&*model);
        for offset in offsets {
            let offset = at(offset, model.len());
            for encoding in ENCODINGS {
                let (line, character) = text.position(offset, encoding);
                prop_assert_eq!((line, character), model::position(&model, offset, encoding));
                let back = text.offset(line, character, encoding);
                let floor = model::floor(&model, offset);
                let (_, end) = model::lines(&model)[line as usize];
                prop_assert_eq!(back, floor.min(end));
            }
        }
    }

    #[test]
    fn slices_are_those_of_the_model(model in text(), start in place(), end in place()) {
        let text = Text::from(&*model);
        let (start, end) = (at(start, model.len()), at(end, model.len()));
        prop_assert_eq!(text.slice(start..end), &model[model::clamped(&model, start..end)]);
    }
}

#[test]
fn a_position_inside_of_a_surrogate_pair_is_its_start() {
    let text = Text::from("a𐐀b");
    let offsets = |encoding| (0..8).map(|at| text.offset(0, at, encoding)).collect::<Vec<_>>();
    assert_eq!(offsets(PositionEncoding::Utf16), [0, 1, 1, 5, 6, 6, 6, 6]);
    assert_eq!(offsets(PositionEncoding::Utf8), [0, 1, 1, 1, 1, 5, 6, 6]);
    assert_eq!(offsets(PositionEncoding::Utf32), [0, 1, 5, 6, 6, 6, 6, 6]);
}

#[test]
fn positions_outside_of_the_text_are_moved_into_it() {
    let text = Text::from("ab\r\nc\rd\n");
    let rows = [((0, 9), 2), ((1, 1), 5), ((1, u32::MAX), 5), ((3, 0), 8), ((4, 0), 8)];
    for ((line, character), expected) in rows {
        assert_eq!(text.offset(line, character, PositionEncoding::Utf16), expected);
    }
    assert_eq!(text.offset(u32::MAX, u32::MAX, PositionEncoding::Utf16), 8);
    assert_eq!(text.position(3, PositionEncoding::Utf16), (0, 2), "inside of \\r\\n");
    assert_eq!(text.position(usize::MAX, PositionEncoding::Utf16), (3, 0));
}

#[test]
fn a_line_end_that_two_edits_make_is_one() {
    let mut text = Text::from(&*"x".repeat(5_000));
    text.replace(2_500..2_500, "\r");
    text.replace(2_501..2_501, "\n");
    assert_eq!(text.line_count(), 2);
    text.replace(2_501..2_501, "-");
    assert_eq!(text.line_count(), 3);
    text.replace(2_501..2_502, "");
    assert_eq!(text.line_count(), 2);
}

/// For every place of the line end near the places where a text may be cut.
#[test]
fn a_line_end_is_one_wherever_a_text_is_cut() {
    for before in 2_000..2_100 {
        let old = format!("{}\r{}", "x".repeat(before), "y".repeat(4_095 - before));
        let mut text = Text::from(&*old);
        text.replace(before + 1..before + 1, "\n");
        assert_eq!(text.line_count(), 2);
        assert_eq!(text.offset(1, 0, PositionEncoding::Utf16), before + 2);
        text.replace(before..before + 1, "");
        assert_eq!(text.line_count(), 2);
        text.replace(before..before, "\r");
        assert_eq!((text.line_count(), text.len()), (2, 4_097));
    }
}

#[test]
fn two_thousand_edits_in_a_megabyte() {
    let mut model = "let value = compute(é, 17); // a comment\n".repeat(25_000);
    let mut text = Text::from(&*model);
    for edit in 0..2_000_usize {
        let offset = model::floor(&model, (edit * 7_919 * 131) % model.len());
        text.replace(offset..offset, if edit % 9 == 0 { "\n" } else { "x" });
        model.insert_str(offset, if edit % 9 == 0 { "\n" } else { "x" });
    }
    assert_eq!(text, Text::from(&*model));
    assert_eq!(text.to_string(), model);
}
