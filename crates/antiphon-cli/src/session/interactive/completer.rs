//! Completion at the prompt: commands, methods, variables and their members, params by name, and files.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use antiphon::openrpc::Document;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper, Result};

use crate::completions::{is_plain, params};
use crate::session::Inbox;
use crate::session::line::{COMMANDS, Variables};

/// The names that completion offers. Clones share the same names.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary(Arc<RwLock<Words>>);

#[derive(Debug, Default)]
struct Words {
    methods: BTreeSet<String>,
    document: Option<Document>,
    variables: Variables,
}

impl Vocabulary {
    pub(super) fn add_methods<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let plain = names.into_iter().filter(|name| is_plain_method(name));
        self.write(|words| words.methods.extend(plain.map(str::to_owned)));
    }

    pub(super) fn set_document(&self, document: Document) {
        self.add_methods(document.methods.iter().map(|method| &*method.name));
        self.write(|words| words.document = Some(document));
    }

    pub(super) fn set_variables(&self, variables: &Variables) {
        self.write(|words| words.variables = variables.clone());
    }

    fn write(&self, change: impl FnOnce(&mut Words)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns whether a method is one plain word, also one that begins with `$/`. Text from a peer must not add a word to
/// the line or control the terminal.
fn is_plain_method(name: &str) -> bool {
    is_plain(name.strip_prefix("$/").unwrap_or(name))
}

/// Completes the word before the cursor.
pub(super) struct LineCompleter {
    pub(super) vocabulary: Vocabulary,
    pub(super) inbox: Inbox,
    pub(super) files: FilenameCompleter,
}

impl LineCompleter {
    /// Returns the candidates for the last word of a text, and the position of the text that they replace. Returns
    /// `None` if the word is the name of a file.
    fn candidates(&self, text: &str) -> Option<(usize, Vec<String>)> {
        let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, word) = text.split_at(start);
        let mut before: Vec<_> = before.split_whitespace().collect();
        if before.get(1) == Some(&"=") {
            before.drain(..2);
        }
        let words = self.vocabulary.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = word.rfind('$').filter(|at| !word[*at..].starts_with("$/")) {
            return Some((start + at, words.variables.completions(&word[at..])));
        }
        let methods = || words.methods.iter().cloned();
        let all: Vec<String> = match &*before {
            [] => COMMANDS.iter().map(|&name| name.to_owned()).chain(methods()).collect(),
            ["call" | "notify"] => methods().collect(),
            ["wait"] => {
                self.inbox.methods().into_iter().filter(|name| is_plain_method(name)).collect()
            }
            ["open"] | [.., "--at"] => return None,
            ["call" | "notify", method, typed @ ..] | [method, typed @ ..] => {
                return Some((start, words.params(method, typed, word)));
            }
        };
        let fits = all.into_iter().filter(|name| name.starts_with(word));
        Some((start, fits.map(|name| name + " ").collect()))
    }
}

impl Words {
    fn params(&self, method: &str, typed: &[&str], prefix: &str) -> Vec<String> {
        let method = self.document.as_ref().and_then(|document| document.method(method));
        let params = method.map(|method| params(&method.params, typed));
        let names = params.into_iter().flatten().map(|(name, _)| name);
        names.filter(|name| name.starts_with(prefix) && is_plain(name)).collect()
    }
}

impl Completer for LineCompleter {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let text = line.get(..at).unwrap_or(line);
        let Some((start, candidates)) = self.candidates(text) else {
            return self.files.complete(line, at, context);
        };
        let pair = |text: String| Pair { display: text.trim_end().to_owned(), replacement: text };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Hinter for LineCompleter {
    type Hint = String;
}

impl Highlighter for LineCompleter {}

impl Validator for LineCompleter {}

impl Helper for LineCompleter {}

#[cfg(test)]
mod tests {
    use antiphon::{Invocation, RawJson};

    use super::*;

    #[test]
    fn the_place_decides_what_is_offered() {
        let vocabulary = Vocabulary::default();
        let unsafe_names = ["a b", "\u{1b}[2J", "$/\u{9b}2J", "$/a b", "$/", "w\n"];
        vocabulary.add_methods(["eth_call", "eth_chainId", "clock", "$/setTrace"]);
        vocabulary.add_methods(unsafe_names);
        let mut variables = Variables::default();
        let tip = r#"{"hash":"0x1","height":{"n":1},"a b":2,"list":[{"x":1}]}"#;
        variables.set("tip", RawJson::parse(tip).unwrap());
        vocabulary.set_variables(&variables);
        let inbox = Inbox::default();
        for name in ["window/logMessage", "$/progress"].iter().chain(&unsafe_names) {
            inbox.push(&Invocation::new(name, None));
        }
        let files = FilenameCompleter::new();
        let completer = LineCompleter { vocabulary, inbox, files };
        for (text, start, expected) in [
            ("eth_", 0, &["eth_call ", "eth_chainId "][..]),
            ("cl", 0, &["clear ", "clock "]),
            ("x = eth_ch", 4, &["eth_chainId "]),
            ("notify cl", 7, &["clock "]),
            ("call eth_ca", 5, &["eth_call "]),
            ("wait w", 5, &["window/logMessage "]),
            ("wait ", 5, &["$/progress ", "window/logMessage "]),
            ("call ", 5, &["$/setTrace ", "clock ", "eth_call ", "eth_chainId "]),
            ("eth_call $t", 9, &["$tip"]),
            ("eth_call a:=$tip.h", 12, &["$tip.hash", "$tip.height"]),
            ("$tip.height.", 0, &["$tip.height.n"]),
            ("$tip.list[0].", 0, &["$tip.list[0].x"]),
            ("$other.", 0, &[]),
            ("$/", 0, &["$/setTrace "]),
        ] {
            let (at, found) = completer.candidates(text).unwrap();
            assert_eq!(
                (at, found),
                (start, expected.iter().map(|&it| it.to_owned()).collect()),
                "{text}"
            );
        }
        for text in ["open /t", "textDocument/hover --at ma"] {
            assert!(completer.candidates(text).is_none(), "{text}");
        }
    }
}
