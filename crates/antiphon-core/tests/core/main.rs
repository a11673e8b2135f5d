//! The behaviour of the public API: bytes to messages, and messages to bytes.

#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]

mod decode;
mod encode;
mod legacy;
mod roundtrip;
mod session;
mod syntax;

use antiphon_core::{Entry, Intent, Invalid, Message, Params, Payload, Rules};
use bytes::Bytes;

/// Decodes by these rules and formats the payload in one line.
fn read_by(rules: &Rules, frame: impl AsRef<[u8]>) -> String {
    match antiphon_core::decode(&Bytes::copy_from_slice(frame.as_ref()), rules) {
        Payload::One(entry) => line(&entry),
        Payload::Batch(entries) => {
            let lines: Vec<_> = entries.map(|entry| line(&entry)).collect();
            format!("[{}]", lines.join("; "))
        }
    }
}

fn read(frame: impl AsRef<[u8]>) -> String {
    read_by(&Rules::default(), frame)
}

/// One entry: its kind, then its members in the order `id`, `method`, `params`; `-` where absent.
/// `invalid` is answered with an error, `broken` is a Response that must not be answered.
fn line(entry: &Entry) -> String {
    fn or_dash(part: Option<&impl ToString>) -> String {
        part.map_or("-".to_owned(), ToString::to_string)
    }
    match entry {
        Ok(Message::Request(call)) => {
            let params = call.params.as_ref().map(Params::as_json);
            format!("request {} {} {}", call.id, call.method, or_dash(params))
        }
        Ok(Message::Notification(call)) => {
            let params = call.params.as_ref().map(Params::as_json);
            format!("notify {} {}", call.method, or_dash(params))
        }
        Ok(Message::Response(answer)) => match &answer.outcome {
            Ok(result) => format!("result {} {result}", answer.id),
            Err(error) => {
                let data = or_dash(error.data.as_ref());
                format!("error {} {} {} {data}", answer.id, error.code, error.message)
            }
        },
        Err(Invalid { id, error, intent: Intent::Request }) => {
            format!("invalid {id} {}", error.code)
        }
        Err(Invalid { id, error, intent: Intent::Response }) => {
            format!("broken {id} {}", error.code)
        }
        Err(Invalid { id, error, intent: Intent::Notification }) => {
            format!("silent {id} {}", error.code)
        }
    }
}

/// Decodes each row's frame and compares.
fn check<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (frame, expected) in rows {
        assert_eq!(read(frame), expected, "{frame}");
    }
}
