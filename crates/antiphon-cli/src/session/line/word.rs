//! The words of a line: quotes as in a shell, JSON without quotes, and variables.
//!
//! The text of a variable is never parsed as syntax: a String that looks like JSON or like a named param stays a
//! String.

use antiphon::RawJson;

use super::variable::{VariablePath, Variables};
use crate::exit::CommandError;

/// A word of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::session) struct Word {
    pieces: Vec<Piece>,
    /// The kind of the value at the start of the word, or after the first `=`.
    value: ValueForm,
    /// Whether the word has an `=` outside of quotes, before any variable.
    has_name: bool,
    /// Whether a part of the word is quoted.
    is_quoted: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(VariablePath),
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ValueForm {
    #[default]
    Text,
    /// The value begins with `{` or `[`, outside of quotes.
    Json,
}

impl Word {
    /// Returns the text if the word contains no variable.
    pub(super) fn plain(&self) -> Option<String> {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Variable(_) => None,
        });
        texts.collect()
    }

    /// Returns the text if the word contains neither a variable nor quotes.
    pub(super) fn bare(&self) -> Option<String> {
        self.plain().filter(|_| !self.is_quoted)
    }

    /// Returns the variable that is the whole word.
    pub(super) fn variable(&self) -> Option<&VariablePath> {
        match &*self.pieces {
            [Piece::Variable(path)] if !self.is_quoted => Some(path),
            _ => None,
        }
    }

    /// Returns the word as text. Strings in it have no quotes.
    pub(in crate::session) fn text(&self, variables: &Variables) -> Result<String, CommandError> {
        join(&self.pieces, variables, text_of)
    }

    /// Returns the word with its variables as JSON.
    pub(super) fn json(&self, variables: &Variables) -> Result<String, CommandError> {
        join(&self.pieces, variables, ToString::to_string)
    }

    /// Returns the word as a PARAM of `antiphon call`.
    pub(super) fn param(&self, variables: &Variables) -> Result<String, CommandError> {
        if let Some(plain) = self.plain() {
            return Ok(plain);
        }
        if let [Piece::Text(name), ..] = &*self.pieces
            && self.has_name
        {
            // `name:=` takes JSON. The rest after `name=` is always text.
            let takes_json = name.split_once('=').is_some_and(|(name, _)| name.ends_with(':'));
            let is_json = takes_json || self.value == ValueForm::Json;
            return if is_json { self.json(variables) } else { self.text(variables) };
        }
        if self.value == ValueForm::Json || self.variable().is_some() {
            return self.json(variables);
        }
        let quoted = RawJson::encode(&self.text(variables)?);
        quoted.map(|json| json.to_string()).map_err(|fault| CommandError::usage(fault.to_string()))
    }

    fn push(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }
}

fn join(
    pieces: &[Piece],
    variables: &Variables,
    show: impl Fn(&RawJson) -> String,
) -> Result<String, CommandError> {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Ok(text.clone()),
        Piece::Variable(path) => variables.get(path).map(|value| show(&value)),
    });
    texts.collect()
}

/// Returns a String without its quotes, and any other value as JSON.
fn text_of(value: &RawJson) -> String {
    value.decode().unwrap_or_else(|_| value.to_string())
}

/// Splits a line into words. A `#` at the start of a word starts a comment.
pub(super) fn split(line: &str) -> Result<Vec<Word>, CommandError> {
    let mut splitter = Splitter { line, at: 0 };
    let mut words = Vec::new();
    loop {
        splitter.skip_space();
        if matches!(splitter.peek(), None | Some('#')) {
            return Ok(words);
        }
        words.push(splitter.word()?);
    }
}

struct Splitter<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Splitter<'a> {
    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        self.at = self.line.len() - self.rest().trim_start().len();
    }

    fn word(&mut self) -> Result<Word, CommandError> {
        let mut word = Word::default();
        let mut begins = true;
        while let Some(c) = self.peek().filter(|c| !c.is_whitespace()) {
            match c {
                '{' | '[' if begins => self.bracketed(&mut word)?,
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => self.escaped(&mut word)?,
                '$' => self.variable(&mut word)?,
                _ => self.take(&self.rest()[..c.len_utf8()], &mut word),
            }
            begins = c == '=' && !word.has_name && word.bare().is_some();
            word.has_name |= begins;
        }
        Ok(word)
    }

    /// Reads `'...'`, which is plain text.
    fn single_quoted(&mut self, word: &mut Word) -> Result<(), CommandError> {
        let inner = &self.rest()[1..];
        let length = inner.find('\'').ok_or_else(|| self.unclosed('\''))?;
        word.push(&inner[..length]);
        word.is_quoted = true;
        self.at += length + 2;
        Ok(())
    }

    /// Reads `"..."`, which may contain variables. A backslash escapes `"`, `\` and `$`.
    fn double_quoted(&mut self, word: &mut Word) -> Result<(), CommandError> {
        let fault = self.unclosed('"');
        word.push("");
        word.is_quoted = true;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(fault),
                Some('"') => break self.at += 1,
                Some('$') => self.variable(word)?,
                Some('\\') if self.rest()[1..].starts_with(['"', '\\', '$']) => {
                    self.escaped(word)?;
                }
                Some(c) => self.take(&self.rest()[..c.len_utf8()], word),
            }
        }
        Ok(())
    }

    /// Reads a backslash and the character that it escapes.
    fn escaped(&mut self, word: &mut Word) -> Result<(), CommandError> {
        self.at += 1;
        let Some(c) = self.peek() else {
            return Err(CommandError::usage("the line ends with a backslash")
                .hint("write the call on one line; for a backslash as text, write '\\'"));
        };
        self.take(&self.rest()[..c.len_utf8()], word);
        word.is_quoted = true;
        Ok(())
    }

    fn variable(&mut self, word: &mut Word) -> Result<(), CommandError> {
        match VariablePath::parse(&self.rest()[1..]).map_err(CommandError::usage)? {
            Some((path, length)) => {
                word.pieces.push(Piece::Variable(path));
                self.at += 1 + length;
            }
            None => {
                self.at += 1;
                word.push("$");
            }
        }
        Ok(())
    }

    /// Reads JSON from a bracket to its closing bracket. A `$` inside a JSON String is text.
    fn bracketed(&mut self, word: &mut Word) -> Result<(), CommandError> {
        word.value = ValueForm::Json;
        let fault = self.unclosed(self.peek().unwrap_or('{'));
        let mut depth = 0_usize;
        while let Some(c) = self.peek() {
            match c {
                '$' => self.variable(word)?,
                '"' => match json_string(self.rest()) {
                    Some(string) => self.take(string, word),
                    None => return Err(fault),
                },
                c => {
                    self.take(&self.rest()[..c.len_utf8()], word);
                    match c {
                        '{' | '[' => depth += 1,
                        '}' | ']' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    if depth == 0 {
                        return Ok(());
                    }
                }
            }
        }
        Err(fault)
    }

    /// Moves a text from the rest of the line to the word.
    fn take(&mut self, text: &str, word: &mut Word) {
        word.push(text);
        self.at += text.len();
    }

    fn unclosed(&self, opening: char) -> CommandError {
        let column = self.line[..self.at].chars().count() + 1;
        let remedy = match opening {
            '{' | '[' => format!("close it on this line, or send it as text: '{opening}...'"),
            quote => format!("close it on this line, or write \\{quote} for the character"),
        };
        CommandError::usage(format!("the {opening} in column {column} is not closed")).hint(remedy)
    }
}

/// Returns the JSON String at the start of a text.
fn json_string(text: &str) -> Option<&str> {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    end.map(|(at, _)| &text[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        let mut variables = Variables::default();
        for (name, json) in [
            ("n", "1.50"),
            ("s", r#""a=\"1\" {""#),
            ("looks", r#""42""#),
            ("o", r#"{"a":[1,{"b":2E+1}]}"#),
            ("file", r#""main.c""#),
        ] {
            variables.set(name, RawJson::parse(json).unwrap());
        }
        variables
    }

    fn params(line: &str) -> Vec<String> {
        let words = split(line).unwrap();
        words.iter().map(|word| word.param(&variables()).unwrap()).collect()
    }

    #[test]
    fn quotes_are_those_of_a_shell() {
        for (line, expected) in [
            (r"a 'b c' d\ e", &["a", "b c", "d e"][..]),
            (r#""a b" "\"42\"" "\x""#, &["a b", "\"42\"", "\\x"]),
            (r#"'"42"' '{"a":1}' ''"#, &["\"42\"", "{\"a\":1}", ""]),
            ("a # b", &["a"]),
            ("# a", &[]),
            ("a#b c=#d", &["a#b", "c=#d"]),
            (r"'$n' \$n $/x $ $1", &["$n", "$n", "$/x", "$", "$1"]),
            ("a'b c'd=e'f g'", &["ab cd=ef g"]),
        ] {
            assert_eq!(params(line), expected, "{line}");
        }
    }

    #[test]
    fn json_needs_no_quotes() {
        for (line, expected) in [
            (
                r#"[1, "a ] b"] {"c": "d\"}"} e"#,
                &["[1, \"a ] b\"]", "{\"c\": \"d\\\"}\"}", "e"][..],
            ),
            (r#"a:={"b": [1]} c=[d e]"#, &["a:={\"b\": [1]}", "c=[d e]"]),
            (
                r#"{"a": $n, "b": "$n", "c": [$s]}"#,
                &[r#"{"a": 1.50, "b": "$n", "c": ["a=\"1\" {"]}"#],
            ),
            ("a[1 b]", &["a[1", "b]"]),
        ] {
            assert_eq!(params(line), expected, "{line}");
        }
    }

    #[test]
    fn a_variable_alone_is_its_value() {
        let line = "$n $s $looks $o.a[1].b a:=$looks b=$looks c=$o.a";
        let expected = [
            "1.50",
            r#""a=\"1\" {""#,
            "\"42\"",
            "2E+1",
            "a:=\"42\"",
            "b=42",
            r#"c=[1,{"b":2E+1}]"#,
        ];
        assert_eq!(params(line), expected);
    }

    #[test]
    fn a_variable_within_text_is_text() {
        let line = r#"file:///$file ${file}.bak "$looks" a=x$looks 1$n"#;
        let expected = [r#""file:///main.c""#, r#""main.c.bak""#, r#""42""#, "a=x42", r#""11.50""#];
        assert_eq!(params(line), expected);
        let word = &split("$file:3:5").unwrap()[0];
        assert_eq!(word.text(&variables()).unwrap(), "main.c:3:5");
        let word = &split("a/b=$s").unwrap()[0];
        assert_eq!(word.json(&variables()).unwrap(), r#"a/b="a=\"1\" {""#);
    }

    #[test]
    fn what_is_not_closed_is_an_error_with_its_column() {
        for (line, expected) in [
            ("é 'a", "the ' in column 3"),
            ("a \"b", "the \" in column 3"),
            ("a [1, {2}", "the [ in column 3"),
            ("a {\"b", "the { in column 3"),
            ("a=[", "the [ in column 3"),
            ("a \\", "ends with a backslash"),
            ("${n", "is not a variable"),
        ] {
            let fault = format!("{:?}", split(line).unwrap_err());
            assert!(fault.contains(&expected.replace('"', "\\\"")), "{line}: {fault}");
        }
    }
}
