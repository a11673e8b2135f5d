//! A model of JSON-RPC messages on serde_json, which shares no code with the library.
//!
//! It is a second, slow and simple implementation of the specification for the targets to compare with.
//! serde_json only splits the text: members stay [`RawValue`]s, and names are read as bytes, since a lone
//! surrogate is not a Rust string.

use std::fmt;

use antiphon_core::Rules;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The content of a frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Reading<'a> {
    /// It is answered with -32700.
    NoJson,
    /// It is answered with -32010.
    TooMany,
    One(Said<'a>),
    Batch(Vec<Said<'a>>),
}

/// The meaning of one entry, an Object or another value. Ids, params and results keep their bytes.
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
    /// It is never answered.
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

/// The value of a frame, if it is JSON.
///
/// serde_json skips the value, so values that Rust cannot hold (lone surrogates, huge Numbers, any depth)
/// do not matter. On bytes it would also skip text that is not UTF-8, which is not JSON (RFC 8259, 8.1),
/// so it gets a `str`.
pub(crate) fn whole(frame: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(frame).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Some(text.trim_matches([' ', '\t', '\r', '\n']))
}

/// The nesting depth of the Arrays and Objects of a well-formed text.
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

/// A whole number, also with a fraction of zeros.
fn integer(text: &str) -> Option<i64> {
    let digits = match text.split_once('.') {
        Some((whole, fraction)) if fraction.trim_matches('0').is_empty() => whole,
        _ => text,
    };
    digits.parse().ok()
}

/// The value of a String, with lone surrogates replaced as in Rust.
fn string(member: Member<'_>) -> Option<String> {
    let text = member.text().filter(|text| text.starts_with('"'))?;
    let Bytes(text) = serde_json::from_str(text).expect("a String reads as bytes");
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A known member of an Object.
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

    /// The text of a valid id: a String, a Number or Null (section 4).
    fn as_id(self) -> Option<&'a str> {
        self.text().filter(|text| !text.starts_with(['t', 'f', '[', '{']))
    }
}

/// All members of an Object, duplicates included.
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

/// A String as bytes: serde_json reads a lone surrogate as WTF-8.
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
