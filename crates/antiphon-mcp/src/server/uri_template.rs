//! URI templates: which URIs match a template, and the values of its variables (RFC 6570).
//!
//! `{name}` matches one part of a path, and `{+name}` or `{name*}` also matches slashes. Values are percent-decoded.
//! Other operators of the RFC are refused, because a URI does not always have only one reading under them.

use std::collections::BTreeMap;

/// A template that URIs are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable { name: String, has_slashes: bool },
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// Fails if a brace is not closed, a name is not valid, or two variables follow each other.
    pub(crate) fn parse(template: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let (text, from) = rest.split_at(open);
            let close = from.find('}').ok_or_else(|| format!("`{template}` has an open brace"))?;
            let variable = variable(&from[1..close])?;
            if text.is_empty() && matches!(parts.last(), Some(Part::Variable { .. })) {
                return Err(format!("`{template}` has two variables without a text between them"));
            }
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            }
            parts.push(variable);
            rest = &from[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// A template that matches no URI.
    pub(crate) fn unmatched() -> Self {
        // No URI has this character.
        Self { parts: vec![Part::Text("\0".to_owned())] }
    }

    /// The names of the variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The values of the variables, if the URI matches.
    pub(crate) fn read(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let mut values = BTreeMap::new();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Variable { name, has_slashes } => {
                    let is_last_but_one = at + 2 == self.parts.len();
                    let end = match self.parts.get(at + 1) {
                        Some(Part::Text(next)) if *has_slashes && is_last_but_one => {
                            rest.rfind(next.as_str())?
                        }
                        Some(Part::Text(next)) => rest.find(next.as_str())?,
                        _ => rest.len(),
                    };
                    let (value, after) = rest.split_at(end);
                    if value.is_empty() || (!has_slashes && value.contains('/')) {
                        return None;
                    }
                    values.insert(name.clone(), percent_decoded(value)?);
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(values)
    }
}

fn variable(text: &str) -> Result<Part, String> {
    let (reserved, name) = match text.strip_prefix('+') {
        Some(name) => (true, name),
        None => (false, text),
    };
    let (exploded, name) = match name.strip_suffix('*') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let is_valid = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    if !is_valid {
        return Err(format!(
            "`{{{text}}}` is not supported: write {{name}}, {{+name}} or {{name*}}"
        ));
    }
    Ok(Part::Variable { name: name.to_owned(), has_slashes: reserved || exploded })
}

/// Decodes `%41` as `A`; `None` if the result is not UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        Some(UriTemplate::parse(template).unwrap().read(uri)?.into_iter().collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn variables_are_read() {
        assert_eq!(read("t://x/{id}/data", "t://x/123/data"), pairs(&[("id", "123")]));
        assert_eq!(read("t://{a}/{b}", "t://1/%C3%A4"), pairs(&[("a", "1"), ("b", "ä")]));
        assert_eq!(read("file:///{+path}", "file:///a/b.txt"), pairs(&[("path", "a/b.txt")]));
        assert_eq!(read("f:/{path*}/end", "f:/a/end/b/end"), pairs(&[("path", "a/end/b")]));
        assert_eq!(read("t://fixed", "t://fixed"), pairs(&[]));
    }

    #[test]
    fn other_uris_do_not_match() {
        for uri in
            ["t://x//data", "t://x/1/2/data", "t://x/1/data/", "t://y/1/data", "", "t://x/%/data"]
        {
            assert_eq!(read("t://x/{id}/data", uri), None, "{uri}");
        }
    }

    #[test]
    fn unclear_templates_are_refused() {
        for template in ["t://{", "t://{}", "t://{a}{b}", "t://{?q}", "t://{#f}", "t://{a,b}"] {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }
}
