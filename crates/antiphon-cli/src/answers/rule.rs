//! One rule: the methods that it matches, and its answer.

use std::borrow::Cow;

use antiphon::{ErrorObject, Outcome, Params, RawJson};

/// An answer to the calls of one method, or of all methods with a prefix.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// A name, or a prefix if it ends with `*`.
    method: Cow<'static, str>,
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Answer {
    Result(RawJson),
    Error(ErrorObject),
    /// An Array with one null per entry of the param `items`, for `workspace/configuration`.
    NullPerItem,
}

const REMEDY: &str = "use METHOD=JSON for a result, or METHOD!CODE MESSAGE for an error";

impl Rule {
    pub(crate) fn result(method: &'static str, result: RawJson) -> Self {
        Self { method: Cow::Borrowed(method), answer: Answer::Result(result) }
    }

    pub(crate) fn null_per_item(method: &'static str) -> Self {
        Self { method: Cow::Borrowed(method), answer: Answer::NullPerItem }
    }

    /// Parses `METHOD=JSON` or `METHOD!CODE MESSAGE`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let at =
            text.find(['=', '!']).ok_or_else(|| format!("`{text}` has no answer; {REMEDY}"))?;
        let (method, rest) = text.split_at(at);
        let (method, value) = (method.trim(), rest[1..].trim());
        if method.is_empty() {
            return Err(format!("`{text}` has no method; {REMEDY}"));
        }
        let answer = match rest.starts_with('=') {
            true => Answer::Result(RawJson::parse(value.to_owned()).map_err(|fault| {
                format!(
                    "the result for `{method}` is not JSON: {fault}; quote a String: '\"text\"'"
                )
            })?),
            false => Answer::Error(error(value).ok_or_else(|| {
                format!("`{value}` does not start with an error code, such as {method}!-32601")
            })?),
        };
        Ok(Self { method: Cow::Owned(method.to_owned()), answer })
    }

    /// Parses `JSON` or `!CODE MESSAGE`, the answer without a method.
    pub(crate) fn parse_answer(text: &str) -> Result<Outcome, String> {
        let sign = if text.starts_with('!') { "" } else { "=" };
        Self::parse(&format!("reply{sign}{text}")).map(|rule| rule.answer(None))
    }

    pub(crate) fn fits(&self, method: &str) -> bool {
        match self.method.strip_suffix('*') {
            Some(prefix) => method.starts_with(prefix),
            None => method == self.method,
        }
    }

    pub(crate) fn answer(&self, params: Option<&Params>) -> Outcome {
        match &self.answer {
            Answer::Result(result) => Ok(result.clone()),
            Answer::Error(error) => Err(error.clone()),
            Answer::NullPerItem => Ok(null_per_item(params)),
        }
    }
}

fn error(text: &str) -> Option<ErrorObject> {
    let (code, message) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let message = match message.trim() {
        "" => "Refused by a rule of antiphon".to_owned(),
        message => message.to_owned(),
    };
    Some(ErrorObject::new(code.parse().ok()?, message))
}

fn null_per_item(params: Option<&Params>) -> RawJson {
    #[derive(serde::Deserialize)]
    struct Configuration {
        #[serde(default)]
        items: Vec<serde::de::IgnoredAny>,
    }
    let items = params.and_then(|params| params.as_json().decode().ok());
    let count = items.map_or(0, |asked: Configuration| asked.items.len());
    let nulls = vec!["null"; count].join(",");
    RawJson::parse(format!("[{nulls}]")).unwrap_or(RawJson::NULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rule: &str, params: Option<&str>) -> String {
        let params = params.map(|text| Params::parse(text).unwrap());
        match Rule::parse(rule).unwrap().answer(params.as_ref()) {
            Ok(result) => result.to_string(),
            Err(error) => format!("{} {}", error.code, error.message),
        }
    }

    #[test]
    fn a_rule_has_a_method_and_a_result_or_an_error() {
        assert_eq!(answer("a/b=[1.50, null]", None), "[1.50, null]");
        assert_eq!(answer("a = \"x=y\"", None), "\"x=y\"");
        assert_eq!(answer("a!-32000 not now", None), "-32000 not now");
        assert_eq!(answer("a!7", None), "7 Refused by a rule of antiphon");
        for bad in ["a", "=1", "a=", "a=text", "a!", "a!text", ""] {
            assert!(Rule::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_star_fits_every_method_with_the_prefix() {
        let rule = Rule::parse("workspace/*=null").unwrap();
        assert!(rule.fits("workspace/applyEdit") && !rule.fits("window/showDocument"));
        assert!(Rule::parse("*=null").unwrap().fits("anything"));
        assert!(!Rule::parse("a=null").unwrap().fits("ab"));
    }

    #[test]
    fn a_configuration_is_one_null_per_item() {
        let rule = Rule::null_per_item("workspace/configuration");
        for (params, expected) in [
            (Some(r#"{"items":[{"section":"a"},{}]}"#), "[null,null]"),
            (Some(r#"{"items":[]}"#), "[]"),
            (Some(r#"{"items":7}"#), "[]"),
            (None, "[]"),
        ] {
            let params = params.map(|text| Params::parse(text).unwrap());
            assert_eq!(rule.answer(params.as_ref()).unwrap().as_str(), expected);
        }
    }
}
