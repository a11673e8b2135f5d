//! Output to stdout and stderr.
//!
//! stdout carries results only. On a terminal, JSON is indented and coloured. Elsewhere it is printed
//! as it was received. No value is parsed, so a Number keeps every digit and a String its escapes. A
//! broken pipe is not an error, on either stream. While a session has a prompt, output to the terminal appears
//! above it.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use antiphon::RawJson;

use crate::exit::{CommandError, Exit};
use crate::prompt_printer;

/// Prints a result.
pub(crate) fn result(json: &RawJson) -> Result<(), CommandError> {
    let text = json.as_str();
    if io::stdout().is_terminal() {
        line(&pretty(text, colours(&io::stdout())))
    } else {
        line(text)
    }
}

/// Prints JSON as it was received. On a terminal, control characters are escaped.
pub(crate) fn exact(json: &str) -> Result<(), CommandError> {
    if io::stdout().is_terminal() { line(&escaped(json)) } else { line(json) }
}

/// Prints one line on stdout.
pub(crate) fn line(text: &str) -> Result<(), CommandError> {
    if io::stdout().is_terminal() && prompt_printer::output(text) {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::new(Exit::Transport, format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints an item on one line, also on a terminal. Returns false after a broken pipe.
pub(crate) fn item(json: &RawJson) -> Result<bool, CommandError> {
    item_above(json, prompt_printer::output)
}

/// Prints a message from the server like an item. A prompt drops it if the terminal is too slow, because a server may
/// send any number of messages.
pub(crate) fn message_item(json: &RawJson) -> Result<bool, CommandError> {
    item_above(json, prompt_printer::message)
}

/// Prints JSON on one line. `above_prompt` prints it if there is a prompt, and returns false if there is none.
fn item_above(json: &RawJson, above_prompt: fn(&str) -> bool) -> Result<bool, CommandError> {
    let mut text = on_one_line(json.as_str());
    if io::stdout().is_terminal() {
        text = escaped(&text);
        if above_prompt(&text) {
            return Ok(true);
        }
    }
    let mut stdout = io::stdout().lock();
    text.push('\n');
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            Err(CommandError::new(Exit::Transport, format!("cannot write to stdout: {error}")))
        }
    }
}

/// Prints one line on stderr. Errors are ignored, since there is no other way to report them.
pub(crate) fn note(text: &str) {
    if io::stderr().is_terminal() && prompt_printer::output(text) {
        return;
    }
    crate::waiting_line::erase();
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a message from the server, or one that was sent to it, as a line on stderr. A prompt drops it if the terminal
/// is too slow.
pub(crate) fn message(text: &str) {
    if !(io::stderr().is_terminal() && prompt_printer::message(text)) {
        note(text);
    }
}

/// Prints on stderr without a newline.
pub(crate) fn draw(text: &str) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Formats JSON for stderr.
pub(crate) fn for_stderr(json: &RawJson) -> String {
    if io::stderr().is_terminal() {
        pretty(json.as_str(), colours(&io::stderr()))
    } else {
        json.as_str().to_owned()
    }
}

/// Highlights a word on stderr.
pub(crate) fn red(word: &str) -> String {
    paint(colours(&io::stderr()), "1;31", word)
}

/// Dims a text on stderr.
pub(crate) fn dim(word: &str) -> String {
    paint(colours(&io::stderr()), "2", word)
}

/// Escapes what a terminal would execute in a peer's text, and what it would not show.
pub(crate) fn visible(text: &str) -> String {
    escape(text, |c| c.is_control() || is_invisible(c))
}

/// Escapes only control characters, for lines that programs read.
pub(crate) fn without_controls(text: &str) -> String {
    escape(text, char::is_control)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_escaped(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Whether the character has no width, or changes the direction of others. A peer could disguise a name, a URL or a
/// command with it.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Returns the start of a text that is too long for a line of stderr.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 1_000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Returns JSON without white space between its tokens.
pub(crate) fn on_one_line(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for token in Tokens(json) {
        out.push_str(token);
    }
    out
}

/// Returns whether stdout shows colours.
pub(crate) fn is_coloured() -> bool {
    colours(&io::stdout())
}

/// Follows <https://no-color.org>.
fn colours(stream: &impl io::IsTerminal) -> bool {
    let unset = |name| std::env::var_os(name).is_none_or(|value| value.is_empty());
    stream.is_terminal()
        && unset("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

pub(crate) fn paint(coloured: bool, style: &str, text: &str) -> String {
    if coloured { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Indents JSON by two spaces per level.
fn pretty(json: &str, coloured: bool) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut tokens = Tokens(json).peekable();
    while let Some(token) = tokens.next() {
        let next = tokens.peek().copied();
        match token {
            "{" | "[" if matches!(next, Some("}" | "]")) => out.push_str(token),
            "{" | "[" => {
                out.push_str(token);
                depth += 1;
                break_line(&mut out, depth);
            }
            "," => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            "}" | "]" => out.push_str(token),
            scalar => {
                let style = style_of(scalar, next == Some(":"));
                out.push_str(&paint(coloured, style, &escaped(scalar)));
            }
        }
        let closes = matches!(next, Some("}" | "]"));
        if closes && !matches!(token, "{" | "[") {
            depth = usize::saturating_sub(depth, 1);
            break_line(&mut out, depth);
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    let _ = write!(out, "\n{:1$}", "", depth * 2);
}

fn style_of(scalar: &str, is_name: bool) -> &'static str {
    match scalar.as_bytes().first() {
        Some(b'"') if is_name => "34",
        Some(b'"') => "32",
        Some(b't' | b'f' | b'n') => "33",
        _ => "36",
    }
}

/// Escapes U+007F to U+009F and invisible characters in JSON. JSON allows them unescaped, and terminals execute or hide
/// them. Between tokens, JSON allows carriage returns, which could hide a text on a terminal: they are removed.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {}
            c if c.is_control() || is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// Iterates over the tokens of valid JSON and skips the white space between them.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
        let length = match text.as_bytes().first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_length(text),
            _ => text.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

fn string_length(text: &str) -> usize {
    let mut escape = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escape => escape = false,
            b'\\' => escape = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indents_and_keeps_every_character_of_a_value() {
        let json =
            r#"{"a":[1.50,1E+2,-0,18446744073709551616],"b":{"c":"x\"]}\\","d":"\ud800é😀"}}"#;
        let expected = r#"{
  "a": [
    1.50,
    1E+2,
    -0,
    18446744073709551616
  ],
  "b": {
    "c": "x\"]}\\",
    "d": "\ud800é😀"
  }
}"#;
        assert_eq!(pretty(json, false), expected);
        assert_eq!(pretty(expected, false), expected);
        assert_eq!(on_one_line(expected), json);
    }

    #[test]
    fn empty_arrays_and_objects_stay_on_one_line() {
        assert_eq!(pretty("[ ]", false), "[]");
        assert_eq!(pretty("{}", false), "{}");
        assert_eq!(pretty("[[],{ },[[]]]", false), "[\n  [],\n  {},\n  [\n    []\n  ]\n]");
    }

    #[test]
    fn a_scalar_is_printed_as_it_is() {
        for scalar in ["null", "true", "0.10", "\"\"", "\"a: [1, 2]\""] {
            assert_eq!(pretty(scalar, false), scalar);
        }
    }

    #[test]
    fn colours_do_not_change_the_text() {
        let json = r#"{"name":"text","n":[1,null]}"#;
        let coloured = pretty(json, true);
        assert!(coloured.contains("\x1b[34m\"name\"\x1b[0m: \x1b[32m\"text\"\x1b[0m"));
        let mut plain = coloured;
        for style in ["34", "32", "33", "36", "0"] {
            plain = plain.replace(&format!("\x1b[{style}m"), "");
        }
        assert_eq!(plain, pretty(json, false));
    }

    #[test]
    fn control_characters_of_a_peer_are_escaped() {
        assert_eq!(visible("a\x1b[2J\u{9b}b\nc"), "a\\u{1b}[2J\\u{9b}b\nc");
        assert_eq!(pretty("\"\u{9b}2J\u{7f}\"", false), r#""\u009b2J\u007f""#);
        assert_eq!(escaped("[\"\u{9b}\",\r\n\t1]"), "[\"\\u009b\",\n\t1]");
    }

    #[test]
    fn invisible_characters_of_a_peer_are_escaped() {
        let disguised = "a\u{202e}b\u{200b}c\u{e0041}";
        assert_eq!(visible(disguised), r"a\u{202e}b\u{200b}c\u{e0041}");
        assert_eq!(escaped(&format!("\"{disguised}\"")), r#""a\u202eb\u200bc\udb40\udc41""#);
        assert_eq!(without_controls(disguised), disguised);
        assert_eq!(visible("é שלום 😀"), "é שלום 😀");
    }
}
