//! Comparison with serde_json: we reject what it rejects, and it reads the same value from what we forward.
//!
//! The two differ on purpose in these points, and in no other:
//!
//! - **Depth.** serde_json reads typed values to 128 levels, and skips values of any depth. Our limit is
//!   `Rules::depth`, and deeper text is a Parse error. The comparison uses what serde_json can skip.
//! - **Lone surrogates.** `"\ud800"` is valid JSON, but not a Rust string: serde_json can skip it and
//!   fails to read it. We forward it unchanged; in a method's name it becomes U+FFFD.
//! - **Numbers.** `1e999` is valid JSON, but not an `f64`: serde_json can skip it and fails to read it. We
//!   forward it. `1.50` stays `1.50`, and 2^64 keeps its digits.
//! - **Duplicate names.** A `Value` keeps the last one. We reject a message with a duplicate member of the
//!   envelope, and forward params with duplicate names.
//! - **UTF-8.** On bytes, serde_json skips text that is not UTF-8. We reject it, as reading a `str` does.
//! - **Arrays for Objects.** A derived struct accepts an Array. We do not derive.

use antiphon_core::{Entry, Intent, Message, Payload, RawJson, Rules, decode};
use bytes::{Bytes, BytesMut};
use serde_json::Value;

use crate::decode::input;
use crate::model::{Reading, Said, whole};

/// For every frame both readers give the same messages with the same values.
pub fn check(data: &[u8]) {
    let Some((rules, frame)) = input(data) else { return };
    let payload = decode(&frame, &rules);
    assert_same_reading(&payload, &frame, &rules);
    assert_values_stay(&payload, &frame);
    assert_same_text(&frame);
}

/// The message with the default rules.
pub fn seed(message: &[u8]) -> Vec<u8> {
    crate::decode::seed(message)
}

fn assert_same_reading(payload: &Payload, frame: &[u8], rules: &Rules) {
    let expected = Reading::of(frame, rules);
    match payload {
        Payload::One(Err(invalid)) if invalid.error.code.0 == -32700 => {
            assert_eq!(expected, Reading::NoJson, "{:?}", invalid.error);
        }
        Payload::One(Err(invalid)) if invalid.error.code.0 == -32010 => {
            assert_eq!(expected, Reading::TooMany);
        }
        Payload::One(entry) => assert_eq!(Reading::One(said(entry)), expected),
        Payload::Batch(entries) => {
            let entries: Vec<Entry> = entries.clone().collect();
            assert_eq!(Reading::Batch(entries.iter().map(said).collect()), expected);
        }
    }
}

/// Our payload in the types of the model.
fn said(entry: &Entry) -> Said<'_> {
    match entry {
        Ok(Message::Request(request)) => Said::Request {
            id: request.id.as_str(),
            method: request.method.as_str().to_owned(),
            params: request.params.as_ref().map(|params| params.as_json().as_str()),
        },
        Ok(Message::Notification(note)) => Said::Notification {
            method: note.method.as_str().to_owned(),
            params: note.params.as_ref().map(|params| params.as_json().as_str()),
        },
        Ok(Message::Response(response)) => match &response.outcome {
            Ok(result) => Said::Result { id: response.id.as_str(), result: result.as_str() },
            Err(error) => Said::Error {
                id: response.id.as_str(),
                code: error.code.0,
                message: error.message.to_string(),
                data: error.data.as_ref().map(RawJson::as_str),
            },
        },
        Err(invalid) => match invalid.intent {
            Intent::Request => Said::InvalidRequest { id: invalid.id.as_str() },
            Intent::Response => Said::InvalidResponse { id: invalid.id.as_str() },
            Intent::Notification => panic!("2.0 has no invalid notification: {invalid:?}"),
        },
    }
}

/// serde_json reads the same values from our encoded message as from the original.
fn assert_values_stay(payload: &Payload, frame: &[u8]) {
    let Ok(original) = serde_json::from_slice::<Value>(frame) else { return };
    match (payload, original) {
        (Payload::One(Ok(message)), original) => assert_forwarded(message, &original),
        (Payload::Batch(entries), Value::Array(originals)) => {
            for (entry, original) in entries.clone().zip(&originals) {
                entry.iter().for_each(|message| assert_forwarded(message, original));
            }
        }
        _ => {}
    }
}

fn assert_forwarded(message: &Message, original: &Value) {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    let written: Value = serde_json::from_slice(&out).expect("what we write is JSON");
    for name in ["jsonrpc", "id", "method"] {
        assert_eq!(written.get(name), original.get(name), "{name}");
    }
    if let Message::Request(_) | Message::Notification(_) = message {
        // With `null_params`, null is absent.
        let params = original.get("params").filter(|params| !params.is_null());
        return assert_eq!(written.get("params"), params);
    }
    assert_eq!(written.get("result"), original.get("result"));
    if let Some(error) = original.get("error") {
        for name in ["message", "data"] {
            assert_eq!(written["error"].get(name), error.get(name), "{name}");
        }
        assert_eq!(written["error"]["code"].as_f64(), error["code"].as_f64());
    }
}

/// Both readers accept a text or both reject it, and they read the same value.
fn assert_same_text(frame: &Bytes) {
    let (ours, theirs) = (RawJson::parse(frame.clone()).ok(), whole(frame));
    assert_eq!(ours.as_ref().map(RawJson::as_str), theirs);
    let Some(ours) = ours else { return };
    let theirs = theirs.and_then(|text| serde_json::from_str::<Value>(text).ok());
    assert_eq!(ours.decode::<Value>().ok(), theirs);
    let through: RawJson = serde_json::from_slice(frame).expect("a RawJson takes any text");
    let again = serde_json::to_string(&through).expect("it writes what it holds");
    assert_eq!((through.as_str(), again.as_str()), (ours.as_str(), ours.as_str()));
}
