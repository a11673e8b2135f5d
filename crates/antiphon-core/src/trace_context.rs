//! Trace contexts of calls (W3C Trace Context).
//!
//! A context is sent in HTTP headers or in members of the message. In both cases the names are
//! `traceparent` and `tracestate`. A malformed context is ignored: it never makes a message invalid.
//!
//! Invariant: neither the trace id nor the span id is all zeros.

use std::fmt;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::escape::unescape;
use crate::members::ValueSpan;
use crate::scan::JsonKind;

/// The maximum number of members of a `tracestate`.
const MEMBERS: usize = 32;
/// The maximum length of a `tracestate`. A longer one is dropped.
const MAX_STATE: usize = 2_048;
/// The length of a `traceparent` of version 00.
const PARENT: usize = 55;

/// The trace that a call belongs to, and the span that is its parent.
///
/// ```
/// use antiphon_core::TraceContext;
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let trace = TraceContext::parse(text).unwrap();
/// assert!(trace.is_sampled());
/// assert_eq!(trace.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
/// assert_eq!(trace.to_string(), text);
/// assert!(TraceContext::parse("00-00000000000000000000000000000000-b7ad6b7169203331-01").is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
    state: Option<Arc<str>>,
}

/// Displays bytes in lower-case hexadecimal.
///
/// ```
/// assert_eq!(antiphon_core::Hex([1, 255]).to_string(), "01ff");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The flag of a trace that is sampled.
const SAMPLED: u8 = 1;
/// The flags with a meaning: sampled, and random trace id.
const KNOWN: u8 = 3;

impl TraceContext {
    /// Creates a context; `None` if an id is all zeros, which means "no id".
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) -> Option<Self> {
        let flags = if is_sampled { SAMPLED } else { 0 };
        let is_some = trace_id != [0; 16] && span_id != [0; 8];
        is_some.then_some(Self { trace_id, span_id, flags, state: None })
    }

    /// Parses a `traceparent`.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let text = traceparent.as_bytes();
        let (head, rest) = text.split_at_checked(PARENT)?;
        let [version] = hex(head.get(..2)?)?;
        // A later version may append fields after those of version 00.
        let is_whole = rest.is_empty() || (version > 0 && rest[0] == b'-');
        let has_dashes = [2, 35, 52].iter().all(|at| head[*at] == b'-');
        if version == 0xFF || !is_whole || !has_dashes {
            return None;
        }
        let [flags] = hex(&head[53..])?;
        let context = Self::new(hex(&head[3..35])?, hex(&head[36..52])?, false)?;
        Some(Self { flags: flags & KNOWN, ..context })
    }

    /// Adds a `tracestate`. A malformed one is left out.
    #[must_use]
    pub fn with_state(mut self, tracestate: &str) -> Self {
        let state = tracestate.trim_matches([' ', '\t']);
        self.state = is_state(state).then(|| state.into());
        self
    }

    /// Returns the context of this trace with another parent span.
    #[must_use]
    pub fn child(&self, span_id: [u8; 8]) -> Self {
        Self { span_id, ..self.clone() }
    }

    /// The id of the trace.
    pub fn trace_id(&self) -> Hex<16> {
        Hex(self.trace_id)
    }

    /// The id of the parent span.
    pub fn span_id(&self) -> Hex<8> {
        Hex(self.span_id)
    }

    /// Whether the trace is sampled.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The `tracestate`: data of the tracing systems on the path of the call.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Appends the members `traceparent` and `tracestate`, each with a comma before it.
    pub fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(b",\"traceparent\":\"");
        out.extend_from_slice(self.to_string().as_bytes());
        out.put_u8(b'"');
        if let Some(state) = &self.state {
            out.extend_from_slice(b",\"tracestate\":");
            crate::encode::text(&**state, out);
        }
    }

    /// Reads the context from members of a frame.
    #[cold]
    pub(crate) fn at(parent: ValueSpan, state: ValueSpan, frame: &Bytes) -> Option<Self> {
        let text = |span: ValueSpan| {
            let is_text = !span.is_none() && span.kind(frame) == JsonKind::String;
            is_text.then(|| unescape(span.of(frame)))
        };
        let context = Self::parse(std::str::from_utf8(&text(parent)?).ok()?)?;
        let state = text(state);
        Some(match state.as_deref().map(std::str::from_utf8) {
            Some(Ok(state)) => context.with_state(state),
            _ => context,
        })
    }
}

impl fmt::Display for TraceContext {
    /// Formats the `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id(), self.span_id(), self.flags)
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceContext({self})")
    }
}

/// Parses hexadecimal. The recommendation allows lower case only.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Whether the text is a list of members with distinct keys (section 3.3).
fn is_state(text: &str) -> bool {
    if text.is_empty() || text.len() > MAX_STATE {
        return false;
    }
    let mut keys = Vec::new();
    for member in text.split(',').map(|member| member.trim_matches([' ', '\t'])) {
        if member.is_empty() {
            continue;
        }
        match member.split_once('=') {
            Some((key, value)) if is_key(key) && is_value(value) && !keys.contains(&key) => {
                keys.push(key);
            }
            _ => return false,
        }
    }
    (1..=MEMBERS).contains(&keys.len())
}

fn is_key(key: &str) -> bool {
    let (tenant, system) = match key.split_once('@') {
        Some((tenant, system)) => (Some(tenant), system),
        None => (None, key),
    };
    let is_name = |name: &str, most: usize, may_count: bool| {
        let begins = |byte: u8| byte.is_ascii_lowercase() || (may_count && byte.is_ascii_digit());
        let goes_on = |byte: u8| begins(byte) || byte.is_ascii_digit() || b"_-*/".contains(&byte);
        (1..=most).contains(&name.len())
            && name.bytes().next().is_some_and(begins)
            && name.bytes().all(goes_on)
    };
    match tenant {
        Some(tenant) => is_name(tenant, 241, true) && is_name(system, 14, false),
        None => is_name(system, 256, false),
    }
}

fn is_value(value: &str) -> bool {
    (1..=256).contains(&value.len())
        && value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b",=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn a_malformed_traceparent_is_ignored() {
        let good = format!("00-{ID}-b7ad6b7169203331-01");
        assert_eq!(TraceContext::parse(&good).unwrap().to_string(), good);
        for bad in [
            String::new(),
            good[..54].to_owned(),
            format!("{good}-"),
            format!("{good} "),
            format!(" {good}"),
            good.to_uppercase(),
            good.replace("00-", "ff-"),
            good.replace("00-", "0x-"),
            good.replace(ID, &"0".repeat(32)),
            good.replace("b7ad6b7169203331", &"0".repeat(16)),
            good.replace("-01", "_01"),
            good.replace("-01", "-0g"),
            "é".repeat(30),
        ] {
            assert_eq!(TraceContext::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_version_00() {
        for later in
            [format!("cc-{ID}-b7ad6b7169203331-01"), format!("01-{ID}-b7ad6b7169203331-fd-x")]
        {
            let trace = TraceContext::parse(&later).unwrap();
            assert_eq!(trace.to_string(), format!("00-{ID}-b7ad6b7169203331-01"), "{later}");
        }
        assert_eq!(TraceContext::parse(&format!("01-{ID}-b7ad6b7169203331-01x")), None);
    }

    #[test]
    fn a_state_is_a_list_of_keys_and_values() {
        let state = |text: &str| {
            let trace = TraceContext::parse(&format!("00-{ID}-b7ad6b7169203331-00")).unwrap();
            trace.with_state(text).state().map(str::to_owned)
        };
        for good in ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1 , ,b=\"x\\", "0t@s=1"] {
            assert_eq!(state(good).as_deref(), Some(good));
        }
        let many = |n: usize| (0..n).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        assert!(state(&many(32)).is_some());
        for bad in ["", ",", "a", "a=", "=1", "A=1", "a=1,a=2", "a=1=2", "a=\u{e9}", "a=\n", "@s=1"]
        {
            assert_eq!(state(bad), None, "{bad:?}");
        }
        assert_eq!(state(&many(33)), None);
        assert_eq!(state(&format!("a={}", "x".repeat(257))), None);
    }

    /// A single message and an entry of a batch, decoded and encoded.
    #[test]
    fn members_are_read_and_written() {
        use crate::{Message, Payload, Rules, decode};
        let traced = |text: &str| match decode(&text.to_owned().into(), &Rules::default()) {
            Payload::One(Ok(Message::Request(request))) => request.trace,
            Payload::Batch(mut entries) => match entries.next() {
                Some(Ok(Message::Notification(note))) => note.trace,
                other => panic!("not a notification: {other:?}"),
            },
            other => panic!("not a request: {other:?}"),
        };
        let members = format!(r#""traceparent":"00-{ID}-b7ad6b7169203331-01","tracestate":"a=\"""#);
        let call = format!(r#"{{"jsonrpc":"2.0",{members},"method":"m","id":1}}"#);
        let trace = traced(&call).unwrap();
        assert_eq!(trace.state(), Some("a=\""));
        assert_eq!(traced(&call.replace("tracep", "trac\\u0065p")), Some(trace.clone()));
        assert_eq!(
            traced(&format!(r#"[{{"jsonrpc":"2.0","method":"m",{members}}}]"#)),
            Some(trace)
        );
        for other in [r#""traceparent":1"#, r#""tracestate":"a=1""#, r#""traceparent":"x""#] {
            assert_eq!(traced(&call.replace(&members, other)), None, "{other}");
        }
        let Payload::One(Ok(message)) = decode(&call.into(), &Rules::default()) else { panic!() };
        let mut out = BytesMut::new();
        message.encode(&mut out);
        let again = decode(&out.freeze(), &Rules::default());
        assert_eq!(again, Payload::One(Ok(message)));
    }
}
