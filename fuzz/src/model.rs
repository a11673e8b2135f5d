//! What is a message, read by serde_json and by nothing of ours?
//!
//! A second reading of the specification, slow and plain, for the targets to compare with. serde_json
//! splits the text here and judges no value: members stay [`RawValue`]s, and names are read as bytes,
//! since a lone surrogate is no Rust string.

use std::fmt;

use antiphon_core::Rules;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What a frame holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Reading<'a> {
    /// It is answered with -32700.
    NoJson,
    /// It is answered with -32010.
    TooMany,
    One(Said<'a>),
    Batch(Vec<Said<'a>>),
}

/// What one Object, or whatever stands in its place, says. Ids, params and results are as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said<'a> {
    Request {
        id: &'a str,
        method: String,
        params: Option<&'a str>,
    },
    Notification {
        method: String,
        params: Option<&'a str>,
    },
    Result {
        id: &'a str,
        result: &'a str,
    },
    Error {
        id: &'a str,
        code: i64,
        message: String,
        data: Option<&'a str>,
    },
    /// It is answered with -32600 and this id.
    InvalidRequest {
        id: &'a str,
    },
    /// It is answered by nobody.
    InvalidResponse {
        id: &'a str,
    },
}

impl<'a> Reading<'a> {
    /// Reads a frame by these rules.
    pub(crate) fn of(frame: &'a [u8], rules: &Rules) -> Self {
        let Some(value) = whole(frame) else { return Self::NoJson };
        if depth(value) > rules.depth {
            return Self::NoJson;
        }
        if !value.starts_with('[') {
            return Self::One(Said::of(value, rules));
        }
        let entries: Vec<&RawValue> = serde_json::from_str(value).expect("an Array of anything");
        let said: Vec<_> = entries.iter().map(|entry| Said::of(entry.get(), rules)).collect();
        let limit = match said.first() {
            None => return Self::One(Said::InvalidRequest { id: "null" }),
            Some(Said::Result { .. } | Said::Error { .. }) if rules.batch_entries > 0 => {
                rules.batch_answers
            }
            Some(_) => rules.batch_entries,
        };
        if said.len() > limit { Self::TooMany } else { Self::Batch(said) }
    }

    pub(crate) fn entries(self) -> Vec<Said<'a>> {
        match self {
            Self::NoJson | Self::TooMany => Vec::new(),
            Self::One(said) => vec![said],
            Self::Batch(said) => said,
        }
    }
}

/// The value that a frame is, where it is JSON.
///
/// The yardstick skips values, so it does not care for what Rust cannot hold: lone surrogates, huge
/// Numbers, any depth. On bytes it would skip text that is not UTF-8 too, which is no JSON
/// (RFC 8259, 8.1), so it is given a `str`.
pub(crate) fn whole(frame: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(frame).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Some(text.trim_matches([' ', '\t', '\r', '\n']))
}

/// How deep the Arrays and Objects of a well-formed text are nested.
fn depth(text: &str) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => now += 1,
            b']' | b'}' => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

impl<'a> Said<'a> {
    fn of(text: &'a str, rules: &Rules) -> Self {
        if !text.starts_with('{') {
            return Self::InvalidRequest { id: "null" };
        }
        let members: Members<'a> = serde_json::from_str(text).expect("an Object of anything");
        let [id, version, method, params, result, error] =
            ["id", "jsonrpc", "method", "params", "result", "error"].map(|name| members.one(name));
        let is_answer = method.is_absent() && !(result.is_absent() && error.is_absent());
        let told = id.as_id().unwrap_or("null");
        let all = [id, version, method, params, result, error];
        let is_sound = !all.contains(&Member::Twice)
            && string(version).is_some_and(|version| version == "2.0")
            && (id.is_absent() || id.as_id().is_some());
        if is_answer {
            let answer = is_sound.then(|| Self::answer(id, result, error)).flatten();
            return answer.unwrap_or(Self::InvalidResponse { id: told });
        }
        let call = is_sound.then(|| Self::call(id, method, params, rules)).flatten();
        call.unwrap_or(Self::InvalidRequest { id: told })
    }

    fn call(id: Member<'a>, method: Member<'a>, params: Member<'a>, rules: &Rules) -> Option<Self> {
        let method = string(method)?;
        let params = match params.text() {
            Some("null") if rules.null_params => None,
            Some(params) if !params.starts_with(['[', '{']) => return None,
            params => params,
        };
        Some(match id.as_id() {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }

    fn answer(id: Member<'a>, result: Member<'a>, error: Member<'a>) -> Option<Self> {
        let id = id.as_id()?;
        match (result.text(), error.text()) {
            (Some(result), None) => Some(Self::Result { id, result }),
            (None, Some(error)) if error.starts_with('{') => {
                let members: Members<'a> = serde_json::from_str(error).ok()?;
                let [code, message, data] =
                    ["code", "message", "data"].map(|name| members.one(name));
                let code = integer(code.text()?)?;
                let message = string(message)?;
                (data != Member::Twice).then(|| Self::Error {
                    id,
                    code,
                    message,
                    data: data.text(),
                })
            }
            _ => None,
        }
    }
}

/// A whole number, also where it is written with a fraction of zeros.
fn integer(text: &str) -> Option<i64> {
    let digits = match text.split_once('.') {
        Some((whole, fraction)) if fraction.trim_matches('0').is_empty() => whole,
        _ => text,
    };
    digits.parse().ok()
}

/// What a String says, each half of a lone surrogate as Rust says it.
fn string(member: Member<'_>) -> Option<String> {
    let text = member.text().filter(|text| text.starts_with('"'))?;
    let Bytes(text) = serde_json::from_str(text).expect("a String reads as bytes");
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A member of an Object that was looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Member<'a> {
    Absent,
    Once(&'a str),
    Twice,
}

impl<'a> Member<'a> {
    fn is_absent(self) -> bool {
        self == Self::Absent
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Once(text) => Some(text),
            Self::Absent | Self::Twice => None,
        }
    }

    /// The text of what may be an id: a String, a Number or Null (section 4).
    fn as_id(self) -> Option<&'a str> {
        self.text().filter(|text| !text.starts_with(['t', 'f', '[', '{']))
    }
}

/// All members of an Object, those that are there twice too.
struct Members<'a>(Vec<(Vec<u8>, &'a RawValue)>);

impl<'a> Members<'a> {
    fn one(&self, name: &str) -> Member<'a> {
        let mut named = self.0.iter().filter(|(other, _)| other == name.as_bytes());
        match (named.next(), named.next()) {
            (None, _) => Member::Absent,
            (Some((_, value)), None) => Member::Once(value.get()),
            (Some(_), Some(_)) => Member::Twice,
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an Object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Bytes(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// A String as bytes: serde_json writes a lone surrogate as WTF-8 has it.
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a String")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Any)
    }
}
