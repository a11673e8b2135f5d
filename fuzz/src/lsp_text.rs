//! The text of a document in `antiphon-lsp`, compared with a `String`.

use antiphon_lsp::documents::{PositionEncoding, Text};

/// The model of the property tests.
#[path = "../../crates/antiphon-lsp/tests/lsp/documents/model.rs"]
mod model;

const ENCODINGS: [PositionEncoding; 3] =
    [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32];

/// The maximum number of edits of one input.
const EDITS: usize = 16;

/// After each edit, the text and the model have the same content, lines, offsets and positions, and a snapshot from
/// before the edit is unchanged.
///
/// An input is the first text and the edits. A text is its length, a number of repetitions, which makes texts of
/// several pieces, and its bytes. An edit is four numbers of two bytes and a text: the range, and a line and a
/// character to compare.
pub fn check(data: &[u8]) {
    let mut input = Input(data);
    let mut model = input.text();
    let mut text = Text::from(&*model);
    for _ in 0..EDITS {
        let [start, end, line, character] = [0; 4].map(|_| input.number());
        // A little more than the length, because an offset may be past the end.
        let within = |number: usize, len: usize| number % (len + 3);
        let (start, end) = (within(start, model.len()), within(end, model.len()));
        let line = within(line, model::lines(&model).len());
        compare(&text, &model, start, end, line, character % 64);
        if input.0.is_empty() {
            return;
        }
        let (new, snapshot, old) = (input.text(), text.clone(), model.clone());
        text.replace(start..end, &new);
        model.replace_range(model::clamped(&model, start..end), &new);
        assert_eq!(snapshot.to_string(), old, "the edit changes a snapshot");
    }
}

fn compare(text: &Text, model: &str, start: usize, end: usize, line: usize, character: usize) {
    let lines = model::lines(model);
    assert_eq!(text.to_string(), model);
    assert_eq!((text.len(), text.line_count()), (model.len(), lines.len()));
    let range = text.line_range(line).map(|range| (range.start, range.end));
    assert_eq!(range, lines.get(line).copied(), "line {line} of {model:?}");
    assert_eq!(text.slice(start..end), &model[model::clamped(model, start..end)]);
    for encoding in ENCODINGS {
        let offset = text.offset(line as u32, character as u32, encoding);
        let expected = model::offset(model, line, character, encoding);
        assert_eq!(offset, expected, "line {line}, {encoding:?} {character} of {model:?}");
        let position = text.position(start, encoding);
        let expected = model::position(model, start, encoding);
        assert_eq!(position, expected, "{encoding:?}, byte {start} of {model:?}");
    }
}

/// The rest of the input. At its end, numbers are 0 and texts are empty.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    fn number(&mut self) -> usize {
        self.byte() << 8 | self.byte()
    }

    fn text(&mut self) -> String {
        let (len, times) = (self.byte(), self.byte());
        let (text, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        let text = String::from_utf8_lossy(text);
        // Most texts are short; some have several pieces of 2 KiB.
        text.repeat(if times < 192 { 1 } else { times - 191 })
    }
}

/// Two edits of the message.
pub fn seed(message: &[u8]) -> Vec<u8> {
    let len = message.len().min(255);
    let mut input = vec![len as u8, 255];
    input.extend_from_slice(&message[..len]);
    input.extend_from_slice(&[0, 9, 0, 4, 0, 1, 0, 2, 3, 0, b'\r', b'\n', b'x']);
    input.extend_from_slice(&[8, 0, 8, 9, 0, 2, 0, 7, 5, 200, b'\n', 0xF0, 0x90, 0x90, 0x80]);
    input
}
