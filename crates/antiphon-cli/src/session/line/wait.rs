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
        let mut members = BTreeMap::new();
        for word in &self.members {
            let text = word.param(variables)?;
            let (name, value) = condition(&text)?;
            if members.insert(name, value).is_some() {
                let what = format!("`{text}` is a second condition for the same member");
                return Err(CommandError::usage(what).hint("a member has one value; remove one"));
            }
        }
        Ok(Members(members))
    }
}

/// Parses `name=text` or `name:=json`.
fn condition(text: &str) -> Result<(String, RawJson), CommandError> {
    let params = ParamArgs::new(vec![text.to_owned()], None).read()?.map(Params::into_json);
    let member = params.and_then(|params| params.decode::<BTreeMap<String, RawJson>>().ok());
    member.and_then(|mut member| member.pop_first()).ok_or_else(|| {
        CommandError::usage(format!("`{text}` is not a condition of `wait`")).hint(
            "a condition is name=text or name:=json; `wait` takes one time limit, such as 10s",
        )
    })
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
    fn a_word_that_is_no_condition_is_an_error() {
        for (text, named) in [
            ("m 1x", "`1x`"),
            ("m a=b 1x", "`1x`"),
            ("m [1]", "`[1]`"),
            ("m 3s 4s", "`4s`"),
            ("m 3parsecs", "`3parsecs`"),
        ] {
            let fault = format!("{:?}", members(text).unwrap_err());
            assert!(fault.contains(&format!("{named} is not a condition")), "{text}: {fault}");
        }
        assert!(members("m a=b a=c").is_err());
    }
}
