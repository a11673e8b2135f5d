//! Params as they are typed: each PARAM a value, or all of them at once with `-d`.
//!
//! A PARAM that is JSON is that value; `name:=json` and `name=text` make named params; anything else
//! is a String. The text of a value is sent as it was typed, to the last digit.

use std::io::Read as _;

use antiphon::{Params, RawJson};
use clap::Args;

use crate::exit::Failure;

/// The params of a call or a notification.
#[derive(Debug, Args)]
pub(crate) struct ParamArgs {
    /// JSON, or else a String; name=text and name:=json are params by name
    #[arg(value_name = "PARAM", allow_negative_numbers = true)]
    params: Vec<String>,
    /// All params at once, an Array or an Object: JSON, @file, or - for stdin
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "params")]
    data: Option<String>,
}

impl ParamArgs {
    /// The params, or none where nothing was typed.
    pub(crate) fn read(&self) -> Result<Option<Params>, Failure> {
        match &self.data {
            Some(data) => whole(read_data(data)?).map(Some),
            None => assemble(&self.params),
        }
    }
}

/// What `-d` names: the text itself, a file's, or that of stdin.
pub(crate) fn read_data(data: &str) -> Result<Vec<u8>, Failure> {
    let (read, name) = match data.strip_prefix('@') {
        None if data != "-" => return Ok(data.as_bytes().to_vec()),
        None | Some("-") => {
            let mut text = Vec::new();
            (std::io::stdin().read_to_end(&mut text).map(|_| text), "stdin")
        }
        Some(path) => (std::fs::read(path), path),
    };
    read.map_err(|error| {
        Failure::usage(format!("{name} cannot be read: {error}"))
            .hint("-d takes JSON, @file, or - for stdin")
    })
}

fn whole(text: Vec<u8>) -> Result<Params, Failure> {
    let remedy = "params are an Array or an Object, as in -d '[1,2]' or -d '{\"name\":1}'";
    let json = RawJson::parse(text)
        .map_err(|fault| Failure::usage(format!("-d is not JSON: {fault}")).hint(remedy))?;
    let kind = json.kind();
    Params::from_json(json).map_err(|_| {
        Failure::usage(format!("-d holds {kind}, which cannot be params")).hint(remedy)
    })
}

/// One typed PARAM.
#[derive(Debug, PartialEq, Eq)]
enum Param<'a> {
    Positional(RawJson),
    Named(&'a str, RawJson),
}

fn assemble(typed: &[String]) -> Result<Option<Params>, Failure> {
    let params = typed.iter().map(|text| param(text)).collect::<Result<Vec<_>, _>>()?;
    let text = match params.first() {
        None => return Ok(None),
        Some(Param::Positional(_)) => array(&params),
        Some(Param::Named(..)) => object(&params),
    }?;
    let json = RawJson::parse(text).map_err(|fault| Failure::usage(fault.to_string()))?;
    Params::from_json(json).map(Some).map_err(|error| Failure::usage(error.to_string()))
}

fn array(params: &[Param<'_>]) -> Result<String, Failure> {
    let values = params.iter().map(|param| match param {
        Param::Positional(value) => Ok(value.as_str()),
        Param::Named(name, _) => Err(mixed(name)),
    });
    Ok(format!("[{}]", values.collect::<Result<Vec<_>, _>>()?.join(",")))
}

fn object(params: &[Param<'_>]) -> Result<String, Failure> {
    let mut members = Vec::with_capacity(params.len());
    let mut names: Vec<&str> = Vec::with_capacity(params.len());
    for param in params {
        let Param::Named(name, value) = param else {
            return Err(mixed(names.first().copied().unwrap_or_default()));
        };
        if names.contains(name) {
            return Err(Failure::usage(format!("`{name}` is given twice")));
        }
        names.push(name);
        members.push(format!("{}:{value}", quoted(name)?));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn mixed(name: &str) -> Failure {
    Failure::usage(format!("`{name}=` is by name, and other params are by position"))
        .hint(format!("params are all by position or all by name; '\"{name}=...\"' is a String"))
}

fn param(text: &str) -> Result<Param<'_>, Failure> {
    if let Ok(json) = RawJson::parse(text.to_owned()) {
        return Ok(Param::Positional(json));
    }
    if let Some((name, json)) = text.split_once(":=").filter(|(name, _)| is_name(name)) {
        return match RawJson::parse(json.to_owned()) {
            Ok(json) => Ok(Param::Named(name, json)),
            Err(fault) => Err(Failure::usage(format!("`{json}` of `{name}` is not JSON: {fault}"))
                .hint(format!("`{name}={json}` gives it as a String"))),
        };
    }
    match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, text)) => Ok(Param::Named(name, quoted(text)?)),
        None => Ok(Param::Positional(quoted(text)?)),
    }
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_alphabetic() || c == '_';
    let rest = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    text.starts_with(first) && text.chars().all(rest)
}

fn quoted(text: &str) -> Result<RawJson, Failure> {
    RawJson::encode(text).map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(typed: &[&str]) -> Result<String, Failure> {
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
    fn text_with_an_equals_sign_is_no_name_by_itself() {
        let typed = ["http://h/?a=b", "1=2", "=x", "a b=c", "\"a=b\"", "{\"a\":\"=\"}"];
        assert_eq!(
            read(&typed).unwrap(),
            r#"["http://h/?a=b","1=2","=x","a b=c","a=b",{"a":"="}]"#
        );
    }

    #[test]
    fn mixing_and_repeating_are_refused() {
        for typed in [&["1", "a=2"][..], &["a=2", "1"], &["a=1", "a:=2"], &["a:=nope"]] {
            assert_eq!(read(typed).unwrap_err().exit, crate::exit::Exit::Usage, "{typed:?}");
        }
    }

    #[test]
    fn whole_params_are_structured() {
        assert_eq!(whole(b" [1.50]\n".to_vec()).unwrap().into_json().as_str(), "[1.50]");
        for text in ["1", "\"a\"", "null", "[1", "", "\u{feff}[]"] {
            assert!(whole(text.into()).is_err(), "{text}");
        }
    }
}
