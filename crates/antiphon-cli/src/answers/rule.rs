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
            true => result(value).map(Answer::Result),
            false => error(value).map(Answer::Error),
        };
        let answer = answer.map_err(|fault| format!("the rule for `{method}`: {fault}"))?;
        Ok(Self { method: Cow::Owned(method.to_owned()), answer })
    }

    /// Parses `JSON` or `!CODE MESSAGE`, the answer without a method.
    pub(crate) fn parse_answer(text: &str) -> Result<Outcome, String> {
        match text.strip_prefix('!') {
            None => result(text).map(Ok),
            Some(text) => error(text.trim()).map(Err),
        }
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

/// Parses the result of an answer.
fn result(text: &str) -> Result<RawJson, String> {
    RawJson::parse(text.to_owned())
        .map_err(|fault| format!("the result is not JSON: {fault}; write a String as \"text\""))
}

/// Parses the error of an answer, after the `!`.
fn error(text: &str) -> Result<ErrorObject, String> {
    let (code, message) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let code = code.parse().map_err(|_| {
        format!(
            "`{code}` is not an error code; write a whole number after the `!`, such as !-32601"
        )
    })?;
    let message = match message.trim() {
        "" => "rejected by the client",
        message => message,
    };
    Ok(ErrorObject::new(code, message.to_owned()))
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
        assert_eq!(answer("a!7", None), "7 rejected by the client");
        for bad in ["a", "=1", "a=", "a=text", "a!", "a!text", ""] {
            assert!(Rule::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_error_of_an_answer_names_a_remedy_for_rules_and_for_reply() {
        for (text, remedy) in [("text", "write a String as \"text\""), ("!no", "such as !-32601")] {
            let fault = Rule::parse_answer(text).unwrap_err();
            assert!(fault.contains(remedy), "{fault}");
            let sign = if text.starts_with('!') { "" } else { "=" };
            let of_rule = Rule::parse(&format!("a/b{sign}{text}")).unwrap_err();
            assert_eq!(of_rule, format!("the rule for `a/b`: {fault}"));
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
