//! Patterns of method names.

/// A set of patterns. A pattern is the name of a method, or a prefix followed by `*`.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    pub(super) fn extend<P: Into<String>>(&mut self, patterns: impl IntoIterator<Item = P>) {
        self.0.extend(patterns.into_iter().map(Into::into));
    }

    pub(super) fn match_any(&self, method: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => method.starts_with(start),
            None => method == pattern,
        })
    }
}
