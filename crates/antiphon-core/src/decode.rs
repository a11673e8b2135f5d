//! Decoding of one frame into messages, in one pass.
//!
//! Decoding never fails: an entry that is not a message becomes an [`Invalid`] with the error that its
//! sender should receive. The decoder never parses the same bytes twice. It uses no derived
//! `Deserialize`: a derived struct would accept an Array as an Object, and would read `"id": null` as
//! absent.
//!
//! Invariant: a frame that is not JSON is exactly one Parse error, even if it is a batch.

use bytes::Bytes;

use crate::batch::{Entries, ScannedEntry};
use crate::envelope::Envelope;
use crate::error::ErrorObject;
use crate::id::Id;
use crate::members::ValueSpan;
use crate::message::{Entry, Intent, Invalid, Payload};
use crate::scan::{JsonKind, Scanner, SyntaxError};
use crate::version::Versions;

/// Limits of the decoder, and the deviations from the specification that it accepts.
///
/// ```
/// use antiphon_core::{Payload, Rules, decode};
///
/// let frame = br#"{"jsonrpc":"2.0","method":"ping","params":null,"id":1}"#[..].into();
/// assert!(matches!(decode(&frame, &Rules::default()), Payload::One(Err(_))));
/// let lenient = Rules { null_params: true, ..Rules::default() };
/// assert!(matches!(decode(&frame, &lenient), Payload::One(Ok(_))));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The maximum nesting of Arrays and Objects.
    pub depth: usize,
    /// The maximum number of entries in a batch.
    pub batch_entries: usize,
    /// The maximum number of entries in a batch of Responses, which is the reply to an outgoing batch.
    pub batch_answers: usize,
    /// Whether `"params": null` counts as absent. Some clients send it.
    pub null_params: bool,
    /// The accepted versions of JSON-RPC.
    pub versions: Versions,
}

impl Default for Rules {
    fn default() -> Self {
        crate::Limits::default().rules()
    }
}

/// Decodes one frame.
///
/// ```
/// use antiphon_core::{Message, Payload, decode};
///
/// let frame = br#"{"jsonrpc": "2.0", "method": "sum", "params": [1, 2], "id": 1.50}"#;
/// let Payload::One(Ok(Message::Request(request))) = decode(&frame[..].into(), &Default::default())
/// else { panic!("it is a Request") };
/// assert_eq!(request.id.as_str(), "1.50");
/// ```
pub fn decode(frame: &Bytes, rules: &Rules) -> Payload {
    if let Err(error) = check_length(frame.len()) {
        return parse_error(error, rules);
    }
    let mut scanner = Scanner::new(frame, rules.depth);
    let start = scanner.space(0);
    if scanner.peek(start) != Some(b'{') {
        return decode_other(&mut scanner, start, frame, rules)
            .unwrap_or_else(|| parse_error(scanner.error(), rules));
    }
    // The fast path: the payload is built in its final place, after the last check.
    let mut envelope = Envelope::of(frame);
    let read = envelope.read(&mut scanner, start, 0).and_then(|end| scanner.end(end));
    match read {
        Some(_) => Payload::One(envelope.to_entry(rules)),
        None => parse_error(scanner.error(), rules),
    }
}

/// Fails for a message that is too long for spans. `Limits::longest_frame` prevents transports from
/// reading such a message.
fn check_length(len: usize) -> Result<(), SyntaxError> {
    match len {
        0..=ValueSpan::MAX => Ok(()),
        _ => Err(SyntaxError { at: ValueSpan::MAX, what: "a message of more than 4 GiB" }),
    }
}

fn parse_error(reason: SyntaxError, rules: &Rules) -> Payload {
    let error = ErrorObject::parse_error().with_data(&format_args!("{reason}"));
    Payload::One(unreadable(error, rules))
}

/// The entry for a message without an id that can be read.
fn unreadable(error: ErrorObject, rules: &Rules) -> Entry {
    Err(Invalid { id: rules.versions.unreadable_id(), error, intent: Intent::Request })
}

/// Decodes a payload that is not a single Object.
fn decode_other(
    scanner: &mut Scanner<'_>,
    start: usize,
    frame: &Bytes,
    rules: &Rules,
) -> Option<Payload> {
    let (payload, end) = match scanner.peek(start) {
        Some(b'[') => batch(scanner, start, frame, rules)?,
        _ => {
            let end = scanner.value(start, 0)?;
            let error = match rules.versions {
                Versions::Bitcoin => ErrorObject::parse_error(),
                _ => ErrorObject::invalid_request(),
            };
            (Payload::One(not_an_object(error, frame, start, rules)), end)
        }
    };
    scanner.end(end)?;
    Some(payload)
}

fn batch(
    scanner: &mut Scanner<'_>,
    start: usize,
    frame: &Bytes,
    rules: &Rules,
) -> Option<(Payload, usize)> {
    let at = scanner.enter(start, 0)?;
    let mut at = scanner.space(at);
    if scanner.peek(at) == Some(b']') {
        let payload = match rules.versions {
            Versions::Bitcoin => Payload::Batch(Entries::default()),
            _ => Payload::One(Err(Invalid::empty_batch(rules.versions))),
        };
        return Some((payload, at + 1));
    }
    let mut items = Vec::new();
    loop {
        let limit = match items.first() {
            Some(first) if ScannedEntry::is_response(first) => rules.batch_answers,
            _ => rules.batch_entries,
        };
        if items.len() >= limit {
            // The rest is still checked: a text that is not JSON is a Parse error, even over the limit
            // of entries.
            return skip_rest(scanner, at, limit, rules);
        }
        let start = at;
        if scanner.peek(at) == Some(b'{') {
            let mut envelope = Envelope::of(frame);
            at = envelope.read(scanner, at, 1)?;
            items.push(envelope.to_scanned_entry(rules));
        } else {
            at = scanner.value(at, 1)?;
            items.push(ScannedEntry::Other(Box::new(not_an_object(
                ErrorObject::invalid_request(),
                frame,
                start,
                rules,
            ))));
        }
        if items.len() == 1 {
            // Entries have similar sizes: reserve as if all were as long as the first.
            items.reserve((frame.len() / (at - start)).min(limit));
        }
        at = scanner.space(at);
        if scanner.peek(at) == Some(b']') {
            return Some((Payload::Batch(Entries::new(frame, items)), at + 1));
        }
        at = scanner.expect(at, b',', "expected ',' or ']'")?;
        at = scanner.space(at);
    }
}

fn skip_rest(
    scanner: &mut Scanner<'_>,
    mut at: usize,
    limit: usize,
    rules: &Rules,
) -> Option<(Payload, usize)> {
    loop {
        at = scanner.value(at, 1)?;
        at = scanner.space(at);
        if scanner.peek(at) == Some(b']') {
            let error = ErrorObject::batch_too_large(limit);
            return Some((Payload::One(unreadable(error, rules)), at + 1));
        }
        at = scanner.expect(at, b',', "expected ',' or ']'")?;
        at = scanner.space(at);
    }
}

/// The entry for a JSON value that is not an Object.
fn not_an_object(error: ErrorObject, frame: &[u8], at: usize, rules: &Rules) -> Entry {
    let kind = JsonKind::of(frame.get(at));
    let reason = format_args!("a message must be an Object, found {kind}");
    unreadable(error.with_data(&reason), rules)
}

pub(crate) fn invalid(id: Id, reason: &(impl serde::Serialize + ?Sized)) -> Entry {
    let error = ErrorObject::invalid_request().with_data(reason);
    Err(Invalid { id, error, intent: Intent::Request })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::message::Message;

    fn entry(text: &'static str) -> Entry {
        match decode(&text.into(), &Rules::default()) {
            Payload::One(entry) => entry,
            Payload::Batch(_) => panic!("a batch: {text}"),
        }
    }

    #[test]
    fn the_common_prefix_decodes_like_other_spellings() {
        let calls = [
            r#"{"jsonrpc":"2.0","method":"m","id":1}"#,
            r#"{"jsonrpc":"2.0", "method":"m","id":1}"#,
            r#"{ "jsonrpc":"2.0","method":"m","id":1}"#,
            r#"{"method":"m","id":1,"jsonrpc":"2.\u0030"}"#,
        ];
        let [common, others @ ..] = calls.map(entry);
        assert!(matches!(common, Ok(Message::Request(_))));
        others.iter().for_each(|other| assert_eq!(*other, common));
    }

    #[test]
    fn the_common_prefix_skips_no_check() {
        let code = |text| entry(text).unwrap_err().error.code;
        for text in
            [r#"{"jsonrpc":"2.0",}"#, r#"{"jsonrpc":"2.0","#, r#"{"jsonrpc":"2.0",,"id":1}"#]
        {
            assert_eq!(code(text), Code::PARSE_ERROR, "{text}");
        }
        let twice = r#"{"jsonrpc":"2.0","method":"m","jsonrpc":"2.0"}"#;
        assert_eq!(code(twice), Code::INVALID_REQUEST);
        let no_string = r#"{"jsonrpc":12.01,"method":"m"}"#;
        assert_eq!(code(no_string), Code::INVALID_REQUEST);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_message_over_4_gib_is_a_parse_error() {
        assert!(check_length(ValueSpan::MAX).is_ok());
        let error = check_length(ValueSpan::MAX + 1).unwrap_err();
        let Payload::One(Err(invalid)) = parse_error(error, &Rules::default()) else {
            panic!("it is rejected");
        };
        assert_eq!(invalid.error.code, Code::PARSE_ERROR);
        assert!(invalid.error.data.unwrap().as_str().contains("4 GiB"));
        let limits = crate::Limits { frame_bytes: usize::MAX, ..Default::default() };
        assert!(check_length(limits.longest_frame()).is_ok());
    }
}
