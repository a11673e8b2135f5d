//! Deserializes params into the type that a handler takes.
//!
//! One struct accepts params by position and by name, because serde's derive reads both. Absent params,
//! `[]` and `{}` mean the same: no params.

use antiphon_core::{ErrorObject, Params, RawJson};
use serde::Serialize;
use serde::de::value::{Error as PlainError, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, Visitor};
use serde::forward_to_deserialize_any;

use crate::same_type::same_type;

/// Deserializes params. The error is -32602 with the path of the invalid value.
pub(crate) fn read<P: DeserializeOwned + 'static>(
    params: Option<Params>,
) -> Result<P, ErrorObject> {
    let params = match same_type::<Option<RawJson>, P>(params.map(Params::into_json)) {
        Ok(raw) => return Ok(raw),
        Err(params) => params,
    };
    let Some(raw) = params else {
        // The function is cast and not its result, so that only a handler of `RawJson` pays for it.
        return same_type::<fn() -> RawJson, fn() -> P>(empty)
            .map_or_else(|_| absent(), |empty| Ok(empty()));
    };
    same_type(raw).or_else(|raw| match serde_json::from_slice(raw.as_bytes()) {
        Ok(value) => Ok(value),
        Err(_) if is_empty(&raw) => absent(),
        Err(_) => Err(locate_error::<P>(&raw)),
    })
}

/// Absent params for a handler that takes them unparsed. They mean the same, and like all params they are
/// an Array or an Object, so they can be passed on.
fn empty() -> RawJson {
    RawJson::parse("[]").unwrap_or(RawJson::NULL)
}

fn is_empty(raw: &RawJson) -> bool {
    let inner = &raw.as_bytes()[1..raw.as_bytes().len() - 1];
    inner.iter().all(u8::is_ascii_whitespace)
}

fn absent<P: DeserializeOwned>() -> Result<P, ErrorObject> {
    P::deserialize(AbsentParams).map_err(|error| invalid("", &error.to_string()))
}

/// Deserializes once more, slower, to find the path of the invalid value.
fn locate_error<P: DeserializeOwned>(raw: &RawJson) -> ErrorObject {
    let source = &mut serde_json::Deserializer::from_slice(raw.as_bytes());
    match serde_path_to_error::deserialize::<_, P>(source) {
        // The value itself is valid, so the error was the text after it.
        Ok(_) => invalid("", &too_many(raw)),
        Err(error) => {
            let path = error.path().to_string();
            let reason = error.inner().to_string();
            match (path.as_str(), reason.split(" at line ").next().unwrap_or_default()) {
                (".", "trailing characters") => invalid("", &too_many(raw)),
                (".", reason) => invalid("", reason),
                (path, reason) => invalid(path, reason),
            }
        }
    }
}

/// The reason why an Array is rejected that has more values than the method has params.
fn too_many(raw: &RawJson) -> String {
    let given =
        serde_json::from_slice::<Vec<IgnoredAny>>(raw.as_bytes()).map_or(0, |all| all.len());
    format!("{given} params were given, more than the method takes")
}

/// The error -32602 with the path of the invalid value and the reason.
pub(crate) fn invalid(path: &str, reason: &str) -> ErrorObject {
    #[derive(Serialize)]
    struct InvalidParamsData<'a> {
        path: &'a str,
        reason: &'a str,
    }
    let reworded = reworded(path, reason);
    let reason = reworded.as_deref().unwrap_or(reason);
    ErrorObject::invalid_params().with_data(&InvalidParamsData { path, reason })
}

/// Rewrites a message of serde in terms of params: the caller does not know our structs and tuples.
fn reworded(path: &str, reason: &str) -> Option<String> {
    if let Some((kind, rest)) = reason.split_once(" field `") {
        let of_params = path.is_empty() || rest.strip_prefix(path)?.starts_with('`');
        return of_params.then(|| format!("{kind} param `{rest}"));
    }
    if !path.is_empty() {
        return None;
    }
    if let Some(rest) = reason.strip_prefix("invalid length ") {
        let (given, expected) = rest.split_once(", expected ")?;
        let counts = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
        let taken = expected.split(' ').rfind(counts)?;
        return Some(format!("the method takes {taken} params, but {given} were given"));
    }
    let (given, expected) = reason.strip_prefix("invalid type: ")?.split_once(", expected ")?;
    let takes = match expected.split(' ').next()? {
        "unit" => "no params",
        "struct" => "them by position or by name",
        "a" if expected.contains("map") => "them by name",
        "a" | "tuple" => "them by position",
        _ => return None,
    };
    let given = match given {
        "map" => "given by name",
        "sequence" => "given by position",
        _ => "missing",
    };
    Some(format!("params are {given}: the method takes {takes}"))
}

/// The deserializer of absent params.
struct AbsentParams;

impl<'de> Deserializer<'de> for AbsentParams {
    type Error = PlainError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, PlainError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        visitor.visit_seq(SeqDeserializer::<_, PlainError>::new(std::iter::empty::<()>()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, PlainError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, PlainError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        visitor.visit_map(MapDeserializer::<_, PlainError>::new(std::iter::empty::<((), ())>()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PlainError> {
        self.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::HashMap;

    #[derive(Debug, PartialEq, Deserialize)]
    struct SubtractParams {
        minuend: i64,
        subtrahend: i64,
    }

    #[derive(Debug, PartialEq, Default, Deserialize)]
    struct PageParams {
        #[serde(default)]
        offset: u32,
        limit: Option<u32>,
    }

    fn parse<P: DeserializeOwned + 'static>(text: &str) -> Result<P, ErrorObject> {
        read(Some(Params::parse(text).unwrap()))
    }

    #[test]
    fn one_struct_by_position_and_by_name() {
        let expected = SubtractParams { minuend: 42, subtrahend: 23 };
        assert_eq!(parse::<SubtractParams>("[42, 23]").unwrap(), expected);
        assert_eq!(parse::<SubtractParams>(r#"{"subtrahend":23,"minuend":42}"#).unwrap(), expected);
    }

    #[test]
    fn absent_and_empty_params_mean_the_same() {
        assert!(read::<()>(None).is_ok());
        assert!(parse::<()>("[]").is_ok());
        assert!(parse::<()>("{ }").is_ok());
        assert!(parse::<()>("[1]").is_err());
        assert!(read::<Vec<i64>>(None).unwrap().is_empty());
        assert_eq!(read::<Option<SubtractParams>>(None).unwrap(), None);
        assert_eq!(read::<PageParams>(None).unwrap(), PageParams::default());
        assert!(read::<HashMap<String, i64>>(None).unwrap().is_empty());
        assert_eq!(read::<serde_json::Value>(None).unwrap(), serde_json::Value::Null);
    }

    #[test]
    fn raw_params_pass_as_they_are() {
        assert_eq!(parse::<RawJson>("[1.50]").unwrap().as_str(), "[1.50]");
        assert_eq!(parse::<Option<RawJson>>("[1e3]").unwrap().unwrap().as_str(), "[1e3]");
        assert_eq!(read::<Option<RawJson>>(None).unwrap(), None);
        assert_eq!(read::<RawJson>(None).unwrap().as_str(), "[]");
    }

    #[test]
    fn the_error_names_the_path() {
        let data = |error: ErrorObject| error.data.unwrap().to_string();
        let error = parse::<SubtractParams>(r#"{"minuend":1,"subtrahend":"x"}"#).unwrap_err();
        assert_eq!(error.code.0, -32602);
        assert_eq!(
            data(error),
            r#"{"path":"subtrahend","reason":"invalid type: string \"x\", expected i64"}"#
        );
        assert!(data(parse::<Vec<i64>>("[1,null]").unwrap_err()).contains("\"[1]\""));
    }

    #[test]
    fn the_error_speaks_of_params_and_not_of_our_types() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Strict {
            #[serde(rename = "n")]
            _n: i64,
        }
        fn reason<P: DeserializeOwned + 'static>(text: &str) -> String {
            let Err(error) = parse::<P>(text) else { panic!("{text} is taken") };
            let data: serde_json::Value = error.data.unwrap().decode().unwrap();
            data["reason"].as_str().unwrap().to_owned()
        }
        let two = "the method takes 2 params, but 1 were given";
        assert_eq!(reason::<SubtractParams>("[1]"), two);
        assert_eq!(reason::<(i64, i64)>("[1]"), two);
        let three = "3 params were given, more than the method takes";
        assert_eq!(reason::<SubtractParams>("[1,2,3]"), three);
        assert_eq!(reason::<(i64, i64)>("[1,2,3]"), three);
        assert_eq!(reason::<SubtractParams>("{}"), "missing param `minuend`");
        assert_eq!(reason::<Strict>(r#"{"m":1}"#), "unknown param `m`, expected `n`");
        assert_eq!(reason::<Strict>(r#"{"n":1,"n":2}"#), "duplicate param `n`");
        assert_eq!(
            reason::<Vec<i64>>(r#"{"n":1}"#),
            "params are given by name: the method takes them by position"
        );
        assert_eq!(
            reason::<HashMap<String, i64>>("[1]"),
            "params are given by position: the method takes them by name"
        );
        assert_eq!(reason::<()>("[1]"), "params are given by position: the method takes no params");
        let missing = read::<String>(None).unwrap_err().data.unwrap().to_string();
        assert!(
            missing.contains("params are missing: the method takes them by position"),
            "{missing}"
        );
    }
}
