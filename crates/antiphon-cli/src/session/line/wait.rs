//! The arguments of `wait`, which select a message from the server.

use std::collections::BTreeMap;
use std::time::Duration;

use antiphon::{Params, RawJson};

use super::variable::Variables;
use super::word::Word;
use crate::exit::CommandError;
use crate::output;
use crate::params::ParamArgs;
use crate::quantity::Span;

/// The arguments of `wait`.
#[derive(Debug)]
pub(crate) struct WaitWords {
    pub(crate) method: String,
    /// The members that the params must have.
    members: Vec<Word>,
    pub(crate) timeout: Option<Duration>,
}

impl WaitWords {
    pub(super) fn parse(words: Vec<Word>) -> Result<Self, CommandError> {
        let mut words = words.into_iter();
        let method = super::method("wait", &mut words)?;
        let mut wait = Self { method, members: Vec::new(), timeout: None };
        for word in words {
            let span = word.bare().and_then(|text| text.parse::<Span>().ok());
            match span.filter(|_| wait.timeout.is_none()) {
                Some(Span(limit)) => wait.timeout = Some(limit),
                None => wait.members.push(word),
            }
        }
        Ok(wait)
    }

    /// Returns the members that the params must have.
    pub(crate) fn members(&self, variables: &Variables) -> Result<Members, CommandError> {
        let words = self.members.iter().map(|word| word.param(variables));
        let params = ParamArgs::new(words.collect::<Result<_, _>>()?, None).read()?;
        let Some(params) = params.map(Params::into_json) else { return Ok(Members::default()) };
        params.decode().map(Members).map_err(|_| {
            CommandError::usage(format!("{params} does not name a member of the params"))
                .hint("use name=text or name:=json, and at most one time limit, such as 10s")
        })
    }
}

/// The expected members of params, by name. A dot selects a nested member: `value.kind`.
#[derive(Debug, Default)]
pub(crate) struct Members(BTreeMap<String, RawJson>);

impl Members {
    /// Returns whether params have all these members with these values.
    pub(crate) fn fit(&self, params: &RawJson) -> bool {
        self.0
            .iter()
            .all(|(name, wanted)| member(params, name).is_some_and(|found| is_same(&found, wanted)))
    }
}

fn member(value: &RawJson, name: &str) -> Option<RawJson> {
    let members: BTreeMap<String, RawJson> = value.decode().ok()?;
    if let Some(found) = members.get(name) {
        return Some(found.clone());
    }
    let (first, rest) = name.split_once('.')?;
    member(members.get(first)?, rest)
}

/// Compares the texts of values, so large Numbers are not rounded. Escapes in a String are decoded first.
fn is_same(one: &RawJson, other: &RawJson) -> bool {
    match (one.decode::<String>(), other.decode::<String>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => output::on_one_line(one.as_str()) == output::on_one_line(other.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Result<Members, CommandError> {
        WaitWords::parse(super::super::word::split(text).unwrap())?.members(&Variables::default())
    }

    #[test]
    fn the_params_must_have_each_member() {
        let params =
            RawJson::parse(r#"{"uri":"\u0061","n":1.0,"value":{"kind":"end","x":[1, 2]},"v.w":1}"#);
        let params = params.unwrap();
        for (text, expected) in [
            ("m", true),
            ("m uri=a", true),
            ("m uri=a n:=1.0", true),
            ("m n:=1", false),
            ("m n=1.0", false),
            ("m value.kind=end value.x:=[1,2]", true),
            ("m v.w:=1 3s", true),
            ("m uri=b", false),
            ("m none=a", false),
            ("m uri.a=a", false),
        ] {
            assert_eq!(members(text).unwrap().fit(&params), expected, "{text}");
        }
        assert!(!members("m a=b").unwrap().fit(&RawJson::NULL));
    }

    #[test]
    fn a_word_without_a_name_is_an_error() {
        for text in ["m 1x", "m [1]", "m 3s 4s", "m 3parsecs"] {
            assert!(members(text).is_err(), "{text}");
        }
    }
}
