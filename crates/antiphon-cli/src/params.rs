//! The params of the command line: one value per PARAM, or all params with `-d`.
//!
//! A PARAM that is JSON is that value. `name:=json` and `name=text` are named params. Any other text is
//! a String. JSON is sent as it was typed, so a Number keeps every digit.

use std::io::Read as _;

use antiphon::{Params, RawJson};
use clap::Args;
use serde_json::Value;

use crate::exit::CommandError;

/// The params of a call or a notification.
#[derive(Debug, Args)]
pub(crate) struct ParamArgs {
    /// Params: JSON values or Strings by position, or name=text and name:=json by name
    #[arg(value_name = "PARAM", allow_negative_numbers = true)]
    params: Vec<String>,
    /// Send these params, an Array or an Object: JSON, @FILE, or - for stdin
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "params")]
    data: Option<String>,
}

impl ParamArgs {
    /// The params of a line of a session.
    pub(crate) fn new(params: Vec<String>, data: Option<String>) -> Self {
        Self { params, data }
    }

    /// Returns the params, or `None` if none were given.
    pub(crate) fn read(&self) -> Result<Option<Params>, CommandError> {
        match &self.data {
            Some(data) => whole(read_data(data)?).map(Some),
            None => assemble(&self.params),
        }
    }

    /// Returns these named params, followed by the others, which must be named too.
    pub(crate) fn read_after(
        &self,
        first: &[(&'static str, Value)],
    ) -> Result<Params, CommandError> {
        if self.data.is_some() {
            return Err(CommandError::usage("--at and -d cannot be combined")
                .hint("give the other params by name, such as context:='{...}'"));
        }
        let first = first.iter().map(|(name, value)| format!("{name}:={value}"));
        let params: Vec<_> = first.chain(self.params.iter().cloned()).collect();
        let params = assemble(&params)?;
        params.ok_or_else(|| CommandError::usage("there are no params"))
    }
}

/// Reads the value of `-d`: the text itself, a file, or stdin.
pub(crate) fn read_data(data: &str) -> Result<Vec<u8>, CommandError> {
    let (read, name) = match data.strip_prefix('@') {
        None if data != "-" => return Ok(data.as_bytes().to_vec()),
        None | Some("-") => {
            let mut text = Vec::new();
            (std::io::stdin().read_to_end(&mut text).map(|_| text), "stdin")
        }
        Some(path) => (std::fs::read(path), path),
    };
    read.map_err(|error| {
        CommandError::usage(format!("cannot read {name}: {error}"))
            .hint("use JSON, @FILE, or - for stdin")
    })
}

fn whole(text: Vec<u8>) -> Result<Params, CommandError> {
    let remedy = "params are an Array or an Object, such as -d '[1,2]' or -d '{\"name\":1}'";
    let json = RawJson::parse(text)
        .map_err(|fault| CommandError::usage(format!("-d is not JSON: {fault}")).hint(remedy))?;
    let kind = json.kind();
    Params::from_json(json).map_err(|_| {
        CommandError::usage(format!("-d is {kind}, which is not valid as params")).hint(remedy)
    })
}

/// A parsed PARAM.
#[derive(Debug, PartialEq, Eq)]
enum TypedParam<'a> {
    Positional(RawJson),
    Named(&'a str, RawJson),
}

fn assemble(typed: &[String]) -> Result<Option<Params>, CommandError> {
    let params = typed.iter().map(|text| param(text)).collect::<Result<Vec<_>, _>>()?;
    let text = match params.first() {
        None => return Ok(None),
        Some(TypedParam::Positional(_)) => array(&params),
        Some(TypedParam::Named(..)) => object(&params),
    }?;
    let json = RawJson::parse(text).map_err(|fault| CommandError::usage(fault.to_string()))?;
    Params::from_json(json).map(Some).map_err(|error| CommandError::usage(error.to_string()))
}

fn array(params: &[TypedParam<'_>]) -> Result<String, CommandError> {
    let values = params.iter().map(|param| match param {
        TypedParam::Positional(value) => Ok(value.as_str()),
        TypedParam::Named(name, _) => Err(mixed(name)),
    });
    Ok(format!("[{}]", values.collect::<Result<Vec<_>, _>>()?.join(",")))
}

fn object(params: &[TypedParam<'_>]) -> Result<String, CommandError> {
    let mut members = Vec::with_capacity(params.len());
    let mut names: Vec<&str> = Vec::with_capacity(params.len());
    for param in params {
        let TypedParam::Named(name, value) = param else {
            return Err(mixed(names.first().copied().unwrap_or_default()));
        };
        if names.contains(name) {
            return Err(CommandError::usage(format!("param `{name}` is given twice")));
        }
        names.push(name);
        members.push(format!("{}:{value}", quoted(name)?));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn mixed(name: &str) -> CommandError {
    CommandError::usage(format!("params cannot be mixed: `{name}` has a name, but others do not"))
        .hint(format!("name all params or none; to send text with a `=` by position, quote it: '\"{name}=...\"'"))
}

fn param(text: &str) -> Result<TypedParam<'_>, CommandError> {
    if let Ok(json) = RawJson::parse(text.to_owned()) {
        return Ok(TypedParam::Positional(json));
    }
    if let Some((name, json)) = text.split_once(":=").filter(|(name, _)| is_name(name)) {
        return match RawJson::parse(json.to_owned()) {
            Ok(json) => Ok(TypedParam::Named(name, json)),
            Err(fault) => {
                // Without the value, which may be a password.
                let what = format!("the value of param `{name}` is not JSON: {fault}");
                Err(CommandError::usage(what).hint(format!("`{name}=TEXT` sends a String")))
            }
        };
    }
    match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, text)) => Ok(TypedParam::Named(name, quoted(text)?)),
        None => Ok(TypedParam::Positional(quoted(text)?)),
    }
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_alphabetic() || c == '_';
    let rest = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    text.starts_with(first) && text.chars().all(rest)
}

fn quoted(text: &str) -> Result<RawJson, CommandError> {
    RawJson::encode(text).map_err(|error| CommandError::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(typed: &[&str]) -> Result<String, CommandError> {
        let typed: Vec<_> = typed.iter().map(|&text| text.to_owned()).collect();
        let params = assemble(&typed)?;
        Ok(params.map_or("absent".to_owned(), |params| params.into_json().to_string()))
    }

    #[test]
    fn json_is_a_value_and_other_text_is_a_string() {
        let typed = ["42", "1.50", "-1", "true", "null", "[1, 2]", "\"42\"", "plain", "", "01"];
        assert_eq!(read(&typed).unwrap(), r#"[42,1.50,-1,true,null,[1, 2],"42","plain","","01"]"#);
        assert_eq!(read(&[]).unwrap(), "absent");
    }

    #[test]
    fn names_make_an_object() {
        let typed = ["a=1", "b:=1.0", "c.d-e=x=y", "_f:={\"g\":=", "h="];
        assert!(read(&typed).is_err());
        let typed = ["a=1", "b:=1.0", "c.d-e=x=y", "h=", "i=:=", "k:=null"];
        assert_eq!(
            read(&typed).unwrap(),
            r#"{"a":"1","b":1.0,"c.d-e":"x=y","h":"","i":":=","k":null}"#
        );
    }

    #[test]
    fn an_equals_sign_alone_does_not_make_a_name() {
        let typed = ["http://h/?a=b", "1=2", "=x", "a b=c", "\"a=b\"", "{\"a\":\"=\"}"];
        assert_eq!(
            read(&typed).unwrap(),
            r#"["http://h/?a=b","1=2","=x","a b=c","a=b",{"a":"="}]"#
        );
    }

    #[test]
    fn mixed_and_repeated_params_are_rejected() {
        for typed in [&["1", "a=2"][..], &["a=2", "1"], &["a=1", "a:=2"], &["a:=nope"]] {
            assert_eq!(read(typed).unwrap_err().exit, crate::exit::Exit::Usage, "{typed:?}");
        }
    }

    #[test]
    fn data_must_be_an_array_or_an_object() {
        assert_eq!(whole(b" [1.50]\n".to_vec()).unwrap().into_json().as_str(), "[1.50]");
        for text in ["1", "\"a\"", "null", "[1", "", "\u{feff}[]"] {
            assert!(whole(text.into()).is_err(), "{text}");
        }
    }
}
