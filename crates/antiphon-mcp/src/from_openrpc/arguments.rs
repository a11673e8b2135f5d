//! Turns the arguments of a tool into the params of a method, byte for byte: `1.50` and large integers stay as they are.

use std::collections::HashMap;

use antiphon::RawJson;
use serde_json::value::RawValue;

/// The params of a method.
#[derive(Debug)]
pub(super) struct MethodParams {
    pub(super) params: Vec<Param>,
    pub(super) style: Style,
}

/// How a method gets its params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    ByName,
    ByPosition,
    /// By name, and the names are not known: the arguments are the params.
    AnyNames,
}

/// One param of a method.
#[derive(Debug)]
pub(super) struct Param {
    /// The name of the argument.
    pub(super) argument: String,
    /// The name on the wire.
    pub(super) name: String,
    /// What stands for an optional param if a later one is given.
    pub(super) default: RawJson,
    /// Whether the argument is a list, whose items are this param and all that follow.
    pub(super) is_repeated: bool,
}

type Given<'a> = HashMap<String, &'a RawValue>;

impl MethodParams {
    /// Encodes the arguments as params. `None` for a method without params.
    pub(super) fn encode(&self, arguments: &RawJson) -> Result<Option<RawJson>, serde_json::Error> {
        let given: Given<'_> = serde_json::from_str(arguments.as_str())?;
        let text = match self.style {
            Style::AnyNames if given.is_empty() => return Ok(None),
            Style::AnyNames => return Ok(Some(arguments.clone())),
            _ if self.params.is_empty() => return Ok(None),
            Style::ByName => self.by_name(&given)?,
            Style::ByPosition => self.by_position(&given)?,
        };
        RawJson::parse(text).map(Some).map_err(serde::de::Error::custom)
    }

    fn by_name(&self, given: &Given<'_>) -> Result<String, serde_json::Error> {
        let mut members = Vec::new();
        for param in &self.params {
            if let Some(value) = given.get(&param.argument) {
                members.push(format!("{}:{value}", serde_json::to_string(&param.name)?));
            }
        }
        Ok(format!("{{{}}}", members.join(",")))
    }

    fn by_position(&self, given: &Given<'_>) -> Result<String, serde_json::Error> {
        let is_given = |param: &Param| given.contains_key(&param.argument);
        let end = self.params.iter().rposition(is_given).map_or(0, |last| last + 1);
        let mut values = Vec::new();
        for param in self.params.iter().take(end) {
            match given.get(&param.argument) {
                None => values.push(param.default.as_str()),
                Some(value) if param.is_repeated => {
                    let items: Vec<&RawValue> = serde_json::from_str(value.get())?;
                    values.extend(items.iter().map(|item| item.get()));
                }
                Some(value) => values.push(value.get()),
            }
        }
        Ok(format!("[{}]", values.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str, default: &str) -> Param {
        let default = RawJson::parse(default.to_owned()).unwrap();
        Param { argument: name.to_lowercase(), name: name.to_owned(), default, is_repeated: false }
    }

    fn encoded(params: &MethodParams, arguments: &str) -> Option<String> {
        let arguments = RawJson::parse(arguments.to_owned()).unwrap();
        params.encode(&arguments).unwrap().map(|params| params.as_str().to_owned())
    }

    #[test]
    fn params_are_exact_and_in_order() {
        let params = vec![param("A", "null"), param("B", "\"latest\""), param("C", "null")];
        let mut method = MethodParams { params, style: Style::ByPosition };
        for (arguments, expected) in [
            ("{}", "[]"),
            (r#"{"c":1.50,"a":18446744073709551616}"#, r#"[18446744073709551616,"latest",1.50]"#),
            (r#"{"b":null}"#, "[null,null]"),
            (r#"{ "a" : { "x" : 1E5 } }"#, r#"[{ "x" : 1E5 }]"#),
        ] {
            assert_eq!(encoded(&method, arguments).unwrap(), expected);
        }
        method.style = Style::ByName;
        assert_eq!(encoded(&method, r#"{"c":1.50,"a":-0}"#).unwrap(), r#"{"A":-0,"C":1.50}"#);
        assert_eq!(encoded(&method, "{}").unwrap(), "{}");
    }

    #[test]
    fn a_repeated_param_takes_a_list() {
        let rest = Param { is_repeated: true, ..param("rest", "null") };
        let method =
            MethodParams { params: vec![param("a", "null"), rest], style: Style::ByPosition };
        assert_eq!(encoded(&method, r#"{"a":0,"rest":[1.0,[2]]}"#).unwrap(), "[0,1.0,[2]]");
        assert_eq!(encoded(&method, r#"{"a":0,"rest":[]}"#).unwrap(), "[0]");
    }

    #[test]
    fn a_method_without_params_gets_none() {
        let method = MethodParams { params: Vec::new(), style: Style::ByPosition };
        assert_eq!(encoded(&method, "{}"), None);
        let any = MethodParams { params: Vec::new(), style: Style::AnyNames };
        assert_eq!(encoded(&any, "{}"), None);
        assert_eq!(encoded(&any, r#"{"a":1.0}"#).unwrap(), r#"{"a":1.0}"#);
    }
}
