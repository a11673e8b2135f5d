//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// A text of series, written family by family.
pub(super) struct MetricsText {
    prefix: String,
    /// The full name of the current family.
    family: String,
    text: String,
}

impl MetricsText {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), family: String::new(), text: String::new() }
    }

    /// Starts the next family.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.family = format!("{}_{name}", self.prefix);
        let family = &self.family;
        // A `String` grows as needed, so writing to it cannot fail.
        let _ = writeln!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}");
    }

    pub(super) fn line(&mut self, labels: &[(&str, &str)], value: u64) {
        self.suffixed("", labels, &value);
    }

    pub(super) fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: &dyn Display) {
        self.text.push_str(&self.family);
        self.text.push_str(suffix);
        let mut before = '{';
        for (name, text) in labels {
            self.text.push(std::mem::replace(&mut before, ','));
            let _ = write!(self.text, "{name}=\"");
            text.chars().for_each(|c| push_escaped(c, &mut self.text));
            self.text.push('"');
        }
        let _ = writeln!(self.text, "}} {value}");
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

fn push_escaped(c: char, out: &mut String) {
    match c {
        '\\' => out.push_str("\\\\"),
        '"' => out.push_str("\\\""),
        '\n' => out.push_str("\\n"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = MetricsText::new("p");
        text.family("f", "counter", "Help.");
        text.line(&[("method", "a\"b\\c\nd"), ("k", "")], 1);
        let expected =
            "# HELP p_f Help.\n# TYPE p_f counter\np_f{method=\"a\\\"b\\\\c\\nd\",k=\"\"} 1\n";
        assert_eq!(text.finish(), expected);
    }
}
