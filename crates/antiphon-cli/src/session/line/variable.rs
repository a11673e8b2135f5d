//! The variables of a session: results of earlier lines, and paths into them.
//!
//! A value is stored as the received text, so a Number keeps every digit.

use std::collections::BTreeMap;
use std::fmt;

use antiphon::RawJson;

use crate::exit::CommandError;
use crate::openrpc::did_you_mean::{did_you_mean, similar};

/// The variable that holds the last result.
pub(crate) const LAST: &str = "_";

/// The stored results of lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, RawJson>);

impl Variables {
    pub(crate) fn set(&mut self, name: &str, value: RawJson) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Completes `$name` or `$name.member`.
    pub(crate) fn completions(&self, typed: &str) -> Vec<String> {
        let Some((place, prefix)) = typed.rsplit_once('.') else {
            let names = self.iter().map(|(name, _)| format!("${name}"));
            return names.filter(|name| name.starts_with(typed)).collect();
        };
        let path = place.get(1..).and_then(|path| VariablePath::parse(path).ok()?);
        let value = path.and_then(|(path, _)| self.get(&path).ok());
        let members = value.and_then(|value| value.decode::<BTreeMap<String, RawJson>>().ok());
        let names = members.into_iter().flatten().map(|(name, _)| name);
        let fits = names.filter(|name| name.starts_with(prefix) && identifier(name) == Some(name));
        fits.map(|name| format!("{place}.{name}")).collect()
    }

    /// Returns the value at a path.
    pub(super) fn get(&self, path: &VariablePath) -> Result<RawJson, CommandError> {
        let mut value = self.0.get(&path.name).ok_or_else(|| self.unknown(&path.name))?.clone();
        for (depth, step) in path.steps.iter().enumerate() {
            value = step.of(&value, || path.up_to(depth).to_string())?;
        }
        Ok(value)
    }

    fn unknown(&self, name: &str) -> CommandError {
        let known = similar(name, self.iter().map(|(name, _)| name));
        let remedy = did_you_mean(&known).unwrap_or_else(|| {
            format!("set it first with `{name} = METHOD`, or quote the text: '${name}'")
        });
        CommandError::usage(format!("there is no variable `${name}`")).hint(remedy)
    }
}

/// A variable, or a part of its value: `$tip.transactions[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VariablePath {
    name: String,
    steps: Vec<PathStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Member(String),
    /// A negative index counts from the end.
    Index(i64),
}

impl VariablePath {
    /// Parses the path after a `$`. Returns the path and its length; `None` for other text.
    pub(super) fn parse(text: &str) -> Result<Option<(Self, usize)>, String> {
        if let Some(inner) = text.strip_prefix('{') {
            let Some((path, length)) = Self::unbraced(inner) else { return Ok(None) };
            return match inner[length..].starts_with('}') {
                true => Ok(Some((path, length + 2))),
                false => Err(format!(
                    "`${{{}` is not a variable; use ${{name.member[0]}}",
                    inner.split_whitespace().next().unwrap_or_default()
                )),
            };
        }
        Ok(Self::unbraced(text))
    }

    fn unbraced(text: &str) -> Option<(Self, usize)> {
        let name = identifier(text)?;
        let mut path = Self { name: name.to_owned(), steps: Vec::new() };
        let mut at = name.len();
        while let Some((step, length)) = PathStep::parse(&text[at..]) {
            path.steps.push(step);
            at += length;
        }
        Some((path, at))
    }

    fn up_to(&self, depth: usize) -> Self {
        let steps = self.steps.iter().take(depth).cloned().collect();
        Self { name: self.name.clone(), steps }
    }
}

impl fmt::Display for VariablePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.name)?;
        self.steps.iter().try_for_each(|step| match step {
            PathStep::Member(name) if identifier(name) == Some(name) => write!(f, ".{name}"),
            PathStep::Member(name) => write!(f, "[\"{name}\"]"),
            PathStep::Index(index) => write!(f, "[{index}]"),
        })
    }
}

impl PathStep {
    /// Parses `.member`, `[0]` or `["member"]`. Returns the part and its length.
    fn parse(text: &str) -> Option<(Self, usize)> {
        if let Some(rest) = text.strip_prefix('.') {
            let name = identifier(rest)?;
            return Some((Self::Member(name.to_owned()), name.len() + 1));
        }
        let inner = text.strip_prefix('[')?;
        if let Some(name) = inner.strip_prefix('"') {
            let (name, _) = name.split_once("\"]")?;
            return Some((Self::Member(name.to_owned()), name.len() + 4));
        }
        let (index, _) = inner.split_once(']')?;
        Some((Self::Index(index.parse().ok()?), index.len() + 2))
    }

    /// Returns this part of a value. `place` names the value in an error.
    fn of(&self, value: &RawJson, place: impl Fn() -> String) -> Result<RawJson, CommandError> {
        let wrong_kind = |wanted: &str| {
            CommandError::usage(format!("`{}` is {}, not {wanted}", place(), value.kind()))
                .hint(format!("a line with only `{}` prints it", place()))
        };
        match self {
            Self::Member(name) => {
                let members = value.decode::<BTreeMap<String, RawJson>>();
                let members = members.map_err(|_| wrong_kind("an Object"))?;
                members.get(name).cloned().ok_or_else(|| no_member(&place(), name, &members))
            }
            Self::Index(index) => {
                let entries = value.decode::<Vec<RawJson>>();
                let entries = entries.map_err(|_| wrong_kind("an Array"))?;
                entry(&entries, *index).cloned().ok_or_else(|| {
                    let count = entries.len();
                    CommandError::usage(format!("`{}[{index}]` does not exist", place()))
                        .hint(format!("the Array has {count} entries, and the first is [0]"))
                })
            }
        }
    }
}

fn entry(entries: &[RawJson], index: i64) -> Option<&RawJson> {
    let index = match usize::try_from(index) {
        Ok(index) => index,
        Err(_) => entries.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    entries.get(index)
}

fn no_member(place: &str, name: &str, members: &BTreeMap<String, RawJson>) -> CommandError {
    /// The maximum number of names in a remedy.
    const MOST: usize = 10;
    let remedy = did_you_mean(&similar(name, members.keys().map(String::as_str)));
    let remedy = remedy.unwrap_or_else(|| {
        let names: Vec<_> = members.keys().take(MOST).map(|name| format!("`{name}`")).collect();
        match &*names {
            [] => "the Object has no members".to_owned(),
            names => format!("its members: {}", names.join(", ")),
        }
    });
    CommandError::usage(format!("`{place}` has no member `{name}`")).hint(remedy)
}

/// Returns the identifier at the start of a text.
pub(super) fn identifier(text: &str) -> Option<&str> {
    let begins = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    begins.then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str) -> Result<String, String> {
        let mut variables = Variables::default();
        let tip = r#"{"n":1.50,"big":18446744073709551616,"a":[10,{"b-c":"x"}],"e":[]}"#;
        variables.set("tip", RawJson::parse(tip).unwrap());
        let (path, length) = VariablePath::parse(text).unwrap().unwrap();
        assert_eq!(length, text.len(), "{text}");
        variables.get(&path).map(|value| value.to_string()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn a_path_names_an_exact_part() {
        for (text, expected) in [
            ("tip.n", "1.50"),
            ("tip.big", "18446744073709551616"),
            ("tip.a[0]", "10"),
            ("tip.a[-1][\"b-c\"]", "\"x\""),
            ("{tip.a[1]}", "{\"b-c\":\"x\"}"),
            ("tip.e", "[]"),
        ] {
            assert_eq!(get(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_wrong_path_names_the_remedy() {
        for (text, remedy) in [
            ("tips", "did you mean `tip`?"),
            ("block", "block = METHOD"),
            ("tip.bigg", "did you mean `big`?"),
            ("tip.other", "its members: `a`, `big`"),
            ("tip.n.x", "`$tip.n` is a Number, not an Object"),
            ("tip[0]", "`$tip` is an Object, not an Array"),
            ("tip.a[2]", "the Array has 2 entries"),
            ("tip.a[-3]", "`$tip.a[-3]` does not exist"),
            ("tip.a[-9223372036854775808]", "does not exist"),
            ("tip.a[1].x", "its members: `b-c`"),
        ] {
            let fault = get(text).unwrap_err();
            assert!(fault.contains(remedy), "{text}: {fault}");
        }
    }

    #[test]
    fn other_text_is_not_a_variable() {
        for text in ["/cancelRequest", "", "1", ".a", "{", "{}"] {
            assert_eq!(VariablePath::parse(text), Ok(None), "{text}");
        }
        assert!(VariablePath::parse("{tip.a[").is_err());
        let (path, length) = VariablePath::parse("a.b.[x]").unwrap().unwrap();
        assert_eq!((path.to_string(), length), ("$a.b".to_owned(), 3));
    }
}
