//! Text documents for language servers: a file as `didOpen` describes it, and a position in it.
//!
//! On the command line, lines and columns start at 1, as in editors and compiler messages, and a column is a character.
//! LSP counts from 0, in UTF-16 code units.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::exit::CommandError;

/// A text document.
#[derive(Debug)]
pub(crate) struct TextDocument {
    pub(crate) uri: String,
    pub(crate) language: String,
    pub(crate) text: String,
}

impl TextDocument {
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        let name = path.display();
        let bytes = std::fs::read(path).map_err(|error| CommandError::cannot_read(path, &error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            CommandError::usage(format!("{name} is not UTF-8: {error}"))
                .hint("a language server reads text; convert the file to UTF-8")
        })?;
        Ok(Self { uri: file_uri(path)?, language: language(path), text })
    }
}

/// A file, and perhaps a position in it: `FILE`, `FILE:LINE` or `FILE:LINE:COLUMN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePosition {
    pub(crate) file: PathBuf,
    /// Line and column, from 1.
    position: Option<(usize, usize)>,
}

impl FilePosition {
    /// Parses the value of `--at`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (rest, last) = split_number(text);
        let (file, first) = split_number(rest);
        let (file, position) = match (first, last) {
            (Some(line), Some(column)) => (file, Some((line, column))),
            (None, Some(line)) => (rest, Some((line, 1))),
            _ => (text, None),
        };
        if position.is_some_and(|(line, column)| line == 0 || column == 0) {
            return Err("lines and columns begin with 1".to_owned());
        }
        if file.is_empty() {
            return Err("the file is missing; use FILE:LINE:COLUMN, such as main.c:3:5".to_owned());
        }
        Ok(Self { file: file.into(), position })
    }

    /// Returns the position for LSP, if there is one.
    pub(crate) fn position(&self, document: &TextDocument) -> Result<Option<Value>, CommandError> {
        let Some((line, column)) = self.position else { return Ok(None) };
        let name = self.file.display();
        // A text that ends with a newline has an empty last line in LSP.
        let lines: Vec<_> = document.text.split('\n').collect();
        let Some(text) = lines.get(line - 1) else {
            return Err(CommandError::usage(format!(
                "{name} has {} lines, so line {line} does not exist",
                lines.len()
            )));
        };
        let text = text.strip_suffix('\r').unwrap_or(text);
        let length = text.chars().count();
        if column > length + 1 {
            let what = format!("line {line} of {name} has {length} characters");
            return Err(CommandError::usage(format!("{what}, so column {column} does not exist"))
                .hint("the first character is column 1"));
        }
        let character: usize = text.chars().take(column - 1).map(char::len_utf16).sum();
        Ok(Some(json!({ "line": line - 1, "character": character })))
    }
}

/// Splits `text:7` into the text and the number.
fn split_number(text: &str) -> (&str, Option<usize>) {
    match text.rsplit_once(':').map(|(rest, number)| (rest, number.parse())) {
        Some((rest, Ok(number))) => (rest, Some(number)),
        _ => (text, None),
    }
}

/// Returns the `file:` URI of a path (RFC 8089). Relative paths begin at the current directory.
pub(crate) fn file_uri(path: &Path) -> Result<String, CommandError> {
    use std::os::unix::ffi::OsStrExt as _;
    let whole = absolute(path)?;
    let mut uri = "file://".to_owned();
    for &byte in whole.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    Ok(uri)
}

/// Returns the description of a directory, for the workspace of LSP and the roots of MCP.
pub(crate) fn folder(path: &Path) -> Result<Value, CommandError> {
    let whole = absolute(path)?;
    let name = whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy();
    Ok(json!({ "uri": file_uri(path)?, "name": name }))
}

/// Returns the absolute path, without `.` and `..`. The file system is not read.
fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    let absolute = std::path::absolute(path)
        .map_err(|error| CommandError::usage(format!("cannot find {}: {error}", path.display())))?;
    let mut whole = PathBuf::new();
    // An empty component at the end becomes a final `/`, so it stays.
    let end = absolute.as_os_str().as_encoded_bytes().ends_with(b"/").then_some("".as_ref());
    for component in absolute.components().map(Component::as_os_str).chain(end) {
        match component.to_str() {
            Some("..") => _ = whole.pop(),
            _ => whole.push(component),
        }
    }
    Ok(whole)
}

/// The language identifiers of LSP by file extension.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("c", &["c", "h"]),
    ("cpp", &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "ipp"]),
    ("csharp", &["cs"]),
    ("css", &["css"]),
    ("dart", &["dart"]),
    ("elixir", &["ex", "exs"]),
    ("erlang", &["erl", "hrl"]),
    ("go", &["go"]),
    ("haskell", &["hs"]),
    ("html", &["html", "htm"]),
    ("java", &["java"]),
    ("javascript", &["js", "mjs", "cjs"]),
    ("javascriptreact", &["jsx"]),
    ("json", &["json"]),
    ("jsonc", &["jsonc"]),
    ("kotlin", &["kt", "kts"]),
    ("latex", &["tex"]),
    ("lua", &["lua"]),
    ("markdown", &["md", "markdown"]),
    ("objective-c", &["m"]),
    ("perl", &["pl", "pm"]),
    ("php", &["php"]),
    ("plaintext", &["txt"]),
    ("python", &["py", "pyi"]),
    ("ruby", &["rb"]),
    ("rust", &["rs"]),
    ("scala", &["scala"]),
    ("shellscript", &["sh", "bash"]),
    ("sql", &["sql"]),
    ("swift", &["swift"]),
    ("toml", &["toml"]),
    ("typescript", &["ts", "mts", "cts"]),
    ("typescriptreact", &["tsx"]),
    ("xml", &["xml"]),
    ("yaml", &["yaml", "yml"]),
    ("zig", &["zig"]),
];

/// Returns the language identifier of a file. An unknown extension is the identifier itself.
fn language(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match &*name {
        "Makefile" | "makefile" => return "makefile".to_owned(),
        "Dockerfile" => return "dockerfile".to_owned(),
        _ => {}
    }
    let Some(extension) = path.extension() else { return "plaintext".to_owned() };
    let extension = extension.to_string_lossy().to_lowercase();
    let known = LANGUAGES.iter().find(|(_, extensions)| extensions.contains(&&*extension));
    known.map_or(extension, |(language, _)| (*language).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> TextDocument {
        TextDocument { uri: String::new(), language: String::new(), text: text.to_owned() }
    }

    fn position(place: &str, text: &str) -> Result<Option<Value>, CommandError> {
        FilePosition::parse(place).unwrap().position(&document(text))
    }

    #[test]
    fn a_file_position_has_a_file_and_perhaps_a_line_and_a_column() {
        for (text, file, position) in [
            ("a.c", "a.c", None),
            ("a.c:3", "a.c", Some((3, 1))),
            ("dir:x/a.c:3:5", "dir:x/a.c", Some((3, 5))),
            ("a:b", "a:b", None),
        ] {
            assert_eq!(
                FilePosition::parse(text),
                Ok(FilePosition { file: file.into(), position }),
                "{text}"
            );
        }
        for text in ["a.c:0:1", "a.c:1:0", ":3:5", ""] {
            assert!(FilePosition::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_column_is_a_character_and_becomes_utf_16() {
        let text = "int a;\r\né😀x\n";
        for (place, line, character) in
            [("f:1:1", 0, 0), ("f:1:7", 0, 6), ("f:2:3", 1, 3), ("f:2:4", 1, 4), ("f:3", 2, 0)]
        {
            let expected = json!({ "line": line, "character": character });
            assert_eq!(position(place, text).unwrap(), Some(expected), "{place}");
        }
        assert_eq!(position("f", text).unwrap(), None);
        for place in ["f:4", "f:1:8", "f:2:5"] {
            assert!(position(place, text).is_err(), "{place}");
        }
    }

    #[test]
    fn a_uri_escapes_what_is_not_plain() {
        assert_eq!(file_uri(Path::new("/a b/é#.c")).unwrap(), "file:///a%20b/%C3%A9%23.c");
        assert!(file_uri(Path::new("x")).unwrap().ends_with("/x"));
        assert_eq!(file_uri(Path::new("/../a/../b/./c/")).unwrap(), "file:///b/c/");
    }

    #[test]
    fn the_extension_names_the_language() {
        for (file, expected) in [
            ("a.CPP", "cpp"),
            ("a/b.py", "python"),
            ("Makefile", "makefile"),
            ("x.tsx", "typescriptreact"),
            ("x.odd", "odd"),
            ("x", "plaintext"),
        ] {
            assert_eq!(language(Path::new(file)), expected, "{file}");
        }
    }
}
