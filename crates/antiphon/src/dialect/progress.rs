//! The progress of a call on the wire.

use std::collections::{BTreeMap, HashMap};

use antiphon_core::{Id, JsonKind, Method, Params, RawJson, encode};
use bytes::{BufMut as _, Bytes, BytesMut};

/// The notification that reports the progress of a call, and how it identifies the call.
///
/// ```
/// use antiphon::{Dialect, ProgressStyle};
///
/// // A call asks for progress with the param `{"meta": {"progressToken": ..}}`, and gets
/// // `{"method": "progress", "params": {"progressToken": .., "value": ..}}`.
/// let style = ProgressStyle::by_param("progress", "progressToken", &["meta", "progressToken"]);
/// let dialect = Dialect::plain().progress(style.under("value"));
/// # drop(dialect);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressStyle {
    method: Method,
    /// The member of its params that holds the token of the call.
    member: String,
    /// The member that holds the progress value. Without it, the members of the value are next to the
    /// token.
    value: Option<String>,
    token: Token,
}

/// The token that identifies a call in its progress notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Token {
    /// The id of the call. Every call may get progress.
    Id,
    /// A value that the caller puts at this path of the params. A call without it gets no progress.
    Param(Vec<String>),
}

impl ProgressStyle {
    /// Creates a style whose notifications contain the id of the call: `{"token": id, "value": ...}`.
    pub fn by_id(method: &str) -> Self {
        let (method, member) = (Method::new(method), "token".to_owned());
        Self { method, member, value: Some("value".to_owned()), token: Token::Id }
    }

    /// Creates a style with a token, which the caller puts at `path` in the params of its call. The params must be an
    /// Object. `method` is the name of the notification, and `member` is the name of the param that holds the token.
    pub fn by_param(method: &str, member: &str, path: &[&str]) -> Self {
        let token = Token::Param(path.iter().map(|&name| name.to_owned()).collect());
        Self { method: Method::new(method), member: member.to_owned(), value: None, token }
    }

    /// Puts the progress value into this member. Without `under`, the members of the value are placed next to
    /// the token; a value that is not an Object becomes the member `progress`.
    #[must_use]
    pub fn under(mut self, member: &str) -> Self {
        self.value = Some(member.to_owned());
        self
    }

    pub(crate) fn is_by_id(&self) -> bool {
        self.token == Token::Id
    }

    /// The token of a call, if its caller requests progress.
    pub(crate) fn token(&self, id: &Id, params: Option<&Params>) -> Option<RawJson> {
        match &self.token {
            Token::Id => RawJson::parse(id.as_str().to_owned()).ok(),
            Token::Param(path) => {
                let mut value = params?.as_json().clone();
                for name in path {
                    let mut members: HashMap<String, RawJson> = value.decode().ok()?;
                    value = members.remove(name)?;
                }
                Some(value)
            }
        }
    }

    /// Adds a token to the params; `None` if the params cannot hold one.
    pub(crate) fn with_token(&self, params: Option<&Params>, token: &Id) -> Option<Option<Params>> {
        let Token::Param(path) = &self.token else { return Some(params.cloned()) };
        let text = params.map_or("{}", |params| params.as_json().as_str());
        let with = insert(text, path, token.as_str())?;
        Params::parse(&with).ok().map(Some)
    }

    /// The token and the value of a progress notification; `None` for any other notification.
    pub(crate) fn read(&self, method: &[u8], params: Option<&Params>) -> Option<(Id, RawJson)> {
        if method != self.method.as_bytes() {
            return None;
        }
        let params = params?.as_json();
        let mut members: HashMap<String, RawJson> = params.decode().ok()?;
        let id = Id::from_json(members.remove(&self.member)?)?;
        let value = match &self.value {
            Some(member) => members.remove(member)?,
            None => params.clone(),
        };
        Some((id, value))
    }

    /// Encodes the notification with this value for the call with this token.
    pub(crate) fn encode(&self, token: &RawJson, value: &RawJson) -> Bytes {
        let mut out = BytesMut::new();
        encode::call_head(&self.method, None, &mut out);
        out.extend_from_slice(b",\"params\":{");
        put_name(&self.member, &mut out);
        out.extend_from_slice(token.as_bytes());
        match &self.value {
            Some(member) => {
                out.put_u8(b',');
                put_name(member, &mut out);
                out.extend_from_slice(value.as_bytes());
            }
            None => put_members(value, &mut out),
        }
        out.extend_from_slice(b"}}");
        out.freeze()
    }
}

fn put_name(name: &str, out: &mut BytesMut) {
    out.extend_from_slice(Method::new(name).as_json().as_bytes());
    out.put_u8(b':');
}

/// Appends the members of an Object; any other value becomes the member `progress`.
fn put_members(value: &RawJson, out: &mut BytesMut) {
    let text = value.as_str();
    match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        Some(members) if value.kind() == JsonKind::Object => {
            if !members.trim().is_empty() {
                out.put_u8(b',');
                out.extend_from_slice(members.as_bytes());
            }
        }
        _ => {
            out.extend_from_slice(b",\"progress\":");
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Inserts a value at this path of an Object; `None` if the text is not an Object.
fn insert(object: &str, path: &[String], value: &str) -> Option<String> {
    let Some((name, rest)) = path.split_first() else { return Some(value.to_owned()) };
    let mut members: BTreeMap<String, RawJson> = serde_json::from_str(object).ok()?;
    let inner = members.remove(name).filter(|inner| inner.kind() == JsonKind::Object);
    let inner = inner.as_ref().map_or("{}", RawJson::as_str);
    let mut out = format!("{{{}:{}", Method::new(name).as_json(), insert(inner, rest, value)?);
    for (other, value) in members {
        out.push_str(&format!(",{}:{value}", Method::new(&other).as_json()));
    }
    out.push('}');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    fn parse(text: &str) -> Params {
        Params::parse(text).unwrap()
    }

    fn params_of(message: &Bytes) -> Params {
        let message: HashMap<String, RawJson> = serde_json::from_slice(message).unwrap();
        Params::from_json(message["params"].clone()).unwrap()
    }

    #[test]
    fn a_token_is_inserted_and_found_again() {
        let token = Id::from("t1");
        for (dialect, params) in [
            (Dialect::lsp(), None),
            (Dialect::lsp(), Some(r#"{"uri":"a","n":1.50}"#)),
            (Dialect::mcp(), Some(r#"{"name":"x","_meta":{"a":1}}"#)),
            (Dialect::mcp(), Some(r#"{"_meta":7}"#)),
        ] {
            let style = dialect.progress.unwrap();
            let params = params.map(parse);
            assert_eq!(style.token(&Id::from(1), params.as_ref()), None);
            let asked = style.with_token(params.as_ref(), &token).unwrap();
            assert_eq!(style.token(&Id::from(1), asked.as_ref()).unwrap().as_str(), "\"t1\"");
            if let Some(params) = params.filter(|params| params.as_json().as_str().contains("1.50"))
            {
                assert!(asked.unwrap().as_json().as_str().contains("1.50"), "{params:?}");
            }
            assert!(style.with_token(Some(&parse("[1]")), &token).is_none());
        }
        let by_id = ProgressStyle::by_id("p");
        assert_eq!(by_id.token(&Id::from(7), None).unwrap().as_str(), "7");
        assert_eq!(by_id.with_token(Some(&parse("[1]")), &token), Some(Some(parse("[1]"))));
    }

    #[test]
    fn an_encoded_progress_notification_is_recognised() {
        let token = RawJson::parse("\"t\"").unwrap();
        let value = RawJson::parse(r#"{"progress":1,"total":2}"#).unwrap();
        let styles = [Dialect::lsp().progress, Dialect::mcp().progress];
        for style in styles.into_iter().flatten().chain([ProgressStyle::by_id("p")]) {
            let message = style.encode(&token, &value);
            let params = params_of(&message);
            let method = style.method.as_bytes();
            let (id, heard) = style.read(method, Some(&params)).unwrap();
            assert_eq!(id, Id::from("t"));
            let heard: serde_json::Value = heard.decode().unwrap();
            assert_eq!((&heard["progress"], &heard["total"]), (&1.into(), &2.into()));
            assert!(style.read(b"other", Some(&params)).is_none());
            assert!(style.read(method, None).is_none());
        }
        let mcp = Dialect::mcp().progress.unwrap();
        let bare = params_of(&mcp.encode(&token, &RawJson::parse("50").unwrap()));
        assert!(bare.as_json().as_str().contains("\"progress\":50"));
    }
}
