//! Patterns: compare a message with the expected one.
//!
//! Every member of the pattern must be present, and no other member may be. An `error` is the exception:
//! section 5.1 fixes the code, but the message and the data are the server's.

mod bindings;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use self::bindings::Bindings;
use super::json::{Json, JsonValue};

/// An expected message of the server.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Json);

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Json::parse(text).map(Self)
    }

    /// Compares one message. Placeholders are bound only if the whole message matches.
    pub(crate) fn matches(
        &self,
        message: &[u8],
        order: Order,
        bindings: &mut Bindings,
    ) -> Result<(), String> {
        if matches!(placeholder(&self.0), Some(Placeholder::Any)) {
            // `"<anything>"` matches any bytes, JSON or not.
            return Ok(());
        }
        let found = std::str::from_utf8(message)
            .map_err(|_| "it is not UTF-8".to_owned())
            .and_then(Json::parse)?;
        self.matches_json(&found, order, bindings)
    }

    /// Like [`Self::matches`], for a parsed message.
    pub(crate) fn matches_json(
        &self,
        found: &Json,
        order: Order,
        bindings: &mut Bindings,
    ) -> Result<(), String> {
        let mut bound = bindings.clone();
        self.payload(found, order, &mut bound)?;
        *bindings = bound;
        Ok(())
    }

    /// Reports whether it is a Request or a Notification of the server.
    pub(crate) fn is_call(&self) -> bool {
        self.0.member("method").is_some()
    }

    /// Reports whether a message with a null id can match.
    pub(crate) fn has_null_id(&self) -> bool {
        let in_entry = |entry: &Json| match entry.member("id") {
            Some(id) => matches!(id.value, JsonValue::Null) || placeholder(id).is_some(),
            None => true,
        };
        match &self.0.value {
            JsonValue::Array(entries) => entries.iter().any(in_entry),
            _ => in_entry(&self.0),
        }
    }

    /// Reports whether the server must run a method to reply so, and not only reject the call.
    pub(crate) fn asks_for_work(&self) -> bool {
        let is_refusal = |entry: &Json| {
            let code = entry.member("error").and_then(|error| error.member("code"));
            code.is_some_and(|code| matches!(code.text(), "-32600" | "-32601" | "-32700"))
        };
        match &self.0.value {
            JsonValue::Array(entries) => !entries.iter().all(is_refusal),
            _ => !is_refusal(&self.0),
        }
    }

    fn payload(&self, found: &Json, order: Order, bound: &mut Bindings) -> Result<(), String> {
        let (JsonValue::Array(expected), JsonValue::Array(entries)) = (&self.0.value, &found.value)
        else {
            return message(&self.0, found, "", bound);
        };
        same_length(expected, entries, "the batch")?;
        let before = bound.clone();
        let ordered =
            expected.iter().zip(&**entries).enumerate().try_for_each(|(index, pair)| {
                message(pair.0, pair.1, &format!("[{index}]"), bound)
            });
        let Err(fault) = ordered else { return Ok(()) };
        if order == Order::Kept || entries.len() > MAX_SHUFFLED {
            return Err(fault);
        }
        *bound = before;
        shuffled(expected, entries, bound)
    }
}

/// The order of the replies to a batch. Section 6 allows any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Kept,
    Free,
}

/// The limit of entries that are compared in any order.
const MAX_SHUFFLED: usize = 500;

/// Finds one entry for each expected one. Patterns without placeholders come first, because they can
/// match only one entry.
fn shuffled(expected: &[Json], entries: &[Json], bound: &mut Bindings) -> Result<(), String> {
    let mut left: Vec<&Json> = entries.iter().collect();
    let (open, closed): (Vec<_>, Vec<_>) = expected.iter().partition(|e| e.text().contains("\"<"));
    for one in closed.into_iter().chain(open) {
        let fits = |entry: &&Json| {
            if is_plainly_another(one, entry) {
                return None;
            }
            let mut tried = bound.clone();
            message(one, entry, "", &mut tried).ok().map(|()| tried)
        };
        let found = left.iter().enumerate().find_map(|(at, entry)| Some((at, fits(entry)?)));
        let (at, tried) = found.ok_or_else(|| format!("no entry is {one}"))?;
        *bound = tried;
        left.swap_remove(at);
    }
    Ok(())
}

/// Reports whether a short member, such as the id, differs. It avoids a comparison of long members of
/// each entry with each other.
fn is_plainly_another(expected: &Json, found: &Json) -> bool {
    let (JsonValue::Object(wanted), JsonValue::Object(members)) = (&expected.value, &found.value)
    else {
        return false;
    };
    let is_short = |json: &Json| !json.is_structure() && placeholder(json).is_none();
    let mut short = wanted.written().filter(|(_, json)| is_short(json));
    short.any(|(name, json)| members.like(name) != Some(json))
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A placeholder of a pattern: a String written `"<...>"`.
enum Placeholder<'a> {
    Any,
    /// Any value of this type.
    Typed(JsonType),
    /// An Ethereum quantity: `"0x1f"`.
    Quantity,
    Absent,
    Name(&'a str),
}

/// The type that a placeholder such as `"<any Object>"` requires.
#[derive(Clone, Copy)]
enum JsonType {
    String,
    Integer,
    Array,
    Object,
}

impl JsonType {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "String" => Some(Self::String),
            "integer" => Some(Self::Integer),
            "Array" => Some(Self::Array),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }

    fn has(self, found: &Json) -> bool {
        match self {
            Self::String => found.is_string(),
            Self::Integer => found.is_integer(),
            Self::Array => matches!(found.value, JsonValue::Array(_)),
            Self::Object => matches!(found.value, JsonValue::Object(_)),
        }
    }
}

fn placeholder(expected: &Json) -> Option<Placeholder<'_>> {
    let name = expected.text().strip_prefix("\"<")?.strip_suffix(">\"")?;
    match name {
        "any" => Some(Placeholder::Any),
        "quantity" => Some(Placeholder::Quantity),
        "none" => Some(Placeholder::Absent),
        _ if let Some(wanted) = name.strip_prefix("any ").and_then(JsonType::parse) => {
            Some(Placeholder::Typed(wanted))
        }
        _ if !name.is_empty() && name.bytes().all(bindings::is_in_name) => {
            Some(Placeholder::Name(name))
        }
        _ => None,
    }
}

/// Compares a Request, a Response or a batch entry. Only here, the member `error` is an Error object.
fn message(expected: &Json, found: &Json, at: &str, bindings: &mut Bindings) -> Result<(), String> {
    let (Some(expected_error), Some(found_error)) =
        (expected.member("error"), found.member("error"))
    else {
        return value(expected, found, at, bindings);
    };
    object(expected, found, at, &|name| name != "error", bindings)?;
    error_object(expected_error, found_error, &join(at, "error"), bindings)
}

fn error_object(
    expected: &Json,
    found: &Json,
    at: &str,
    bindings: &mut Bindings,
) -> Result<(), String> {
    if !matches!((&expected.value, &found.value), (JsonValue::Object(_), JsonValue::Object(_))) {
        return value(expected, found, at, bindings);
    }
    if !found.member("code").is_some_and(Json::is_integer) {
        return Err(format!("at `{at}.code`: an error must have an integer code"));
    }
    if !found.member("message").is_some_and(Json::is_string) {
        return Err(format!("at `{at}.message`: an error must have a String message"));
    }
    let is_strict = expected.member(OTHER).is_some_and(|other| !is_any(other));
    let open = |name: &str| match name {
        "code" => false,
        "message" | "data" => expected.member(name).is_none(),
        _ => !is_strict && expected.member(name).is_none(),
    };
    object(expected, found, at, &|name| !open(name), bindings)
}

fn value(expected: &Json, found: &Json, at: &str, bindings: &mut Bindings) -> Result<(), String> {
    match placeholder(expected) {
        Some(Placeholder::Any) => return Ok(()),
        Some(Placeholder::Typed(wanted)) if wanted.has(found) => return Ok(()),
        Some(Placeholder::Quantity) if is_quantity(found.text()) => return Ok(()),
        Some(Placeholder::Quantity) => {
            return Err(format!(
                "at {}: expected a quantity such as \"0x1f\", found {found}",
                place(at)
            ));
        }
        Some(Placeholder::Name(name)) => return bindings.bind(name, found),
        Some(Placeholder::Absent | Placeholder::Typed(_)) | None => {}
    }
    match (&expected.value, &found.value) {
        (JsonValue::Object(_), JsonValue::Object(_)) => {
            object(expected, found, at, &|_| true, bindings)
        }
        (JsonValue::Array(one), JsonValue::Array(two)) => {
            same_length(one, two, &place(at))?;
            let mut items = one.iter().zip(&**two).enumerate();
            items.try_for_each(|(index, (one, two))| {
                value(one, two, &format!("{at}[{index}]"), bindings)
            })
        }
        _ if expected == found => Ok(()),
        _ if expected.kind() != found.kind() && expected.is_structure() => {
            Err(format!("at {}: expected {}, found {}", place(at), expected.kind(), found.kind()))
        }
        _ => Err(format!("at {}: expected {expected}, found {found}", place(at))),
    }
}

/// Compares the members whose names `is_compared` accepts.
fn object(
    expected: &Json,
    found: &Json,
    at: &str,
    is_compared: &dyn Fn(&str) -> bool,
    bindings: &mut Bindings,
) -> Result<(), String> {
    let (JsonValue::Object(wanted), JsonValue::Object(members)) = (&expected.value, &found.value)
    else {
        return Ok(());
    };
    let is_open = expected.member(OTHER).is_some_and(is_any);
    let is_named = |name: &str| is_compared(name) && !(is_open && name == OTHER);
    for (name, json) in wanted.written().filter(|(name, _)| is_named(&name.lossy())) {
        let at = join(at, &name.lossy());
        let absent = matches!(placeholder(json), Some(Placeholder::Absent));
        match members.like(name) {
            Some(member) if !absent => value(json, member, &at, bindings)?,
            Some(member) => return Err(unwanted(&at, member)),
            None if absent => {}
            None => return Err(format!("at `{at}`: expected {json}, but the member is absent")),
        }
    }
    if is_open {
        return Ok(());
    }
    let mut others = members.written().filter(|(name, _)| is_compared(&name.lossy()));
    match others.find(|(name, _)| wanted.like(name).is_none()) {
        Some((name, json)) => Err(unwanted(&join(at, &name.lossy()), json)),
        None => Ok(()),
    }
}

/// The member of a pattern that stands for all members that the pattern does not name.
const OTHER: &str = "<other>";

fn is_any(pattern: &Json) -> bool {
    matches!(placeholder(pattern), Some(Placeholder::Any))
}

fn unwanted(at: &str, member: &Json) -> String {
    format!("at `{at}`: the member must be absent, found {member}")
}

/// Reports whether it is `"0x0"`, or hex digits without leading zeros.
fn is_quantity(text: &str) -> bool {
    let digits = text.strip_prefix("\"0x").and_then(|text| text.strip_suffix('"'));
    digits.is_some_and(|digits| {
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex && (digits == "0" || !digits.starts_with('0'))
    })
}

fn same_length(expected: &[Json], found: &[Json], what: &str) -> Result<(), String> {
    if expected.len() == found.len() {
        return Ok(());
    }
    Err(format!("at {what}: expected {} entries, found {}", expected.len(), found.len()))
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

fn place(at: &str) -> String {
    if at.is_empty() { "the message".to_owned() } else { format!("`{at}`") }
}
