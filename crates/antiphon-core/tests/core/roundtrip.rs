//! Encoded messages decode to themselves, and every input gives a sound payload.

use std::collections::BTreeMap;

use antiphon_core::{
    Code, Entries, Entry, ErrorObject, Id, Intent, Message, Method, Notification, Params, Payload,
    RawJson, Request, Response, Rules, Versions, decode,
};
use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A Number in any JSON spelling, also outside the range of machine types.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,8})?([eE][+-]?[0-9]{1,4})?",
    ]
}

/// A String in quotes, with and without escapes, lone surrogates included.
fn string() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "a",
        "id",
        " ",
        "é",
        "😀",
        "\u{2028}",
        "\u{7f}",
        "{",
        "]",
        ",",
        "\\\"",
        "\\\\",
        "\\/",
        "\\b",
        "\\n",
        "\\u0000",
        "\\u0041",
        "\\u00E9",
        "\\ud83d\\ude00",
        "\\ud800",
        "\\udfff",
        "long enough",
    ]);
    prop_oneof![
        vec(piece, 0..8).prop_map(|pieces| format!("\"{}\"", pieces.concat())),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ]
}

/// Any value, with white space that must survive.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        select(vec!["null", "true", "false"]).prop_map(str::to_owned),
        number(),
        string(),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| prop_oneof![array(inner.clone()), object(inner)])
}

fn array(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (vec(inner, 0..4), space())
        .prop_map(|(items, space)| format!("[{space}{}]", items.join(&format!("{space},"))))
}

fn object(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (vec((string(), inner), 0..4), space()).prop_map(|(members, space)| {
        let members: Vec<_> =
            members.iter().map(|(name, value)| format!("{name}{space}:{value}")).collect();
        format!("{{{}{space}}}", members.join(&format!("{space},")))
    })
}

fn space() -> impl Strategy<Value = &'static str> {
    select(vec!["", " ", "\n\t"])
}

fn raw(text: impl Strategy<Value = String>) -> impl Strategy<Value = RawJson> {
    text.prop_map(|text| RawJson::parse(text).unwrap())
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![
        1 => Just(Id::Null),
        4 => raw(number()).prop_map(|number| Id::from_json(number).unwrap()),
        4 => raw(string()).prop_map(|string| Id::from_json(string).unwrap()),
    ]
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        any::<String>().prop_map(|name| Method::new(&name)),
        raw(string()).prop_map(|quoted| Method::from_json(quoted).unwrap()),
    ]
}

fn params() -> impl Strategy<Value = Option<Params>> {
    let structured = prop_oneof![array(value()), object(value())];
    option::of(raw(structured).prop_map(|value| Params::from_json(value).unwrap()))
}

fn error() -> impl Strategy<Value = ErrorObject> {
    (any::<i64>(), any::<String>(), option::of(raw(value())))
        .prop_map(|(code, message, data)| ErrorObject { data, ..ErrorObject::new(code, message) })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (id(), method(), params()).prop_map(|(id, method, params)| Request {
            id,
            method,
            params,
            trace: None
        }
        .into()),
        (method(), params()).prop_map(|(method, params)| Notification {
            method,
            params,
            trace: None
        }
        .into()),
        (id(), raw(value())).prop_map(|(id, result)| Response { id, outcome: Ok(result) }.into()),
        (id(), error()).prop_map(|(id, error)| Response { id, outcome: Err(error) }.into()),
    ]
}

fn encoded(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    out.freeze()
}

fn batch_of(messages: &[Message]) -> Bytes {
    let mut out = BytesMut::new();
    for message in messages {
        out.extend_from_slice(if out.is_empty() { b"[" } else { b" ,\n" });
        message.encode(&mut out);
    }
    out.extend_from_slice(b"]");
    out.freeze()
}

fn read(frame: &Bytes) -> Payload {
    decode(frame, &Rules::default())
}

/// The members that serde_json finds in a text: a second, independent reader.
fn members(text: &str) -> BTreeMap<String, String> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
    members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()
}

/// The members that a message should have on the wire, `error` apart.
fn expected_members(message: &Message) -> BTreeMap<String, String> {
    let (id, method, params, result) = match message {
        Message::Request(call) => (Some(&call.id), Some(&call.method), call.params.as_ref(), None),
        Message::Notification(call) => (None, Some(&call.method), call.params.as_ref(), None),
        Message::Response(answer) => (Some(&answer.id), None, None, answer.outcome.as_ref().ok()),
    };
    let members = [
        ("jsonrpc", Some("\"2.0\"")),
        ("id", id.map(Id::as_str)),
        ("method", method.map(|method| method.as_json().as_str())),
        ("params", params.map(|params| params.as_json().as_str())),
        ("result", result.map(RawJson::as_str)),
    ];
    let present = members.into_iter().filter_map(|(name, text)| Some((name, text?)));
    present.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// JSON and what is nearly JSON: pieces at random, and messages with a little damage.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"a\"",
        "1",
        "-",
        "0",
        "1.5e+3",
        "true",
        "null",
        " ",
        "\n",
        "\\u00e9",
        "\\ud800",
        "é",
        "\u{1}",
        "e",
        "\u{feff}",
        "\"jsonrpc\":\"2.0\"",
        "\"method\":\"m\"",
        "\"id\":1",
        "\"params\":[]",
        "\"result\":1",
        "\"error\":{}",
    ]);
    let frame = prop_oneof![
        message().prop_map(|message| encoded(&message).to_vec()),
        vec(message(), 1..3).prop_map(|messages| batch_of(&messages).to_vec()),
    ];
    let damage = (any::<Index>(), select(b"{}[],:\"\\019eE.-+tn u\x00\xFF\n".to_vec()), 0..3_u8);
    let damaged = (frame, vec(damage, 0..3)).prop_map(|(mut frame, damages)| {
        for (at, byte, how) in damages {
            let at = at.index(frame.len());
            match how {
                0 => frame[at] = byte,
                1 => frame.insert(at, byte),
                _ if frame.len() > 1 => drop(frame.remove(at)),
                _ => {}
            }
        }
        frame
    });
    prop_oneof![
        2 => vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes()),
        3 => damaged,
    ]
}

/// Objects with valid and invalid members in any order and number, and other values.
fn nearly_a_message() -> impl Strategy<Value = String> {
    let member = select(vec![
        r#""jsonrpc":"2.0""#,
        r#""jsonrpc":"2.\u0030""#,
        r#""jsonrpc":"1.0""#,
        r#""method":"m""#,
        r#""method":"a\/name that is quite long""#,
        r#""method":1"#,
        r#""id":1"#,
        r#""id":"a String that is quite long""#,
        r#""id":null"#,
        r#""id":[]"#,
        r#""params":[1,{"a":"some more of them"}]"#,
        r#""params":{}"#,
        r#""params":null"#,
        r#""params":"x""#,
        r#""result":1"#,
        r#""error":{"code":1,"message":"e"}"#,
        r#""error":2"#,
        r#""\u0069d":3"#,
        r#""more":[true]"#,
    ]);
    let object = vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")));
    let usual = object
        .clone()
        .prop_map(|object| object.replacen('{', r#"{"jsonrpc":"2.0","#, 1).replace(",}", "}"));
    prop_oneof![3 => usual, 2 => object, 1 => value()]
}

fn is_parse_error(payload: &Payload) -> bool {
    matches!(payload, Payload::One(Err(invalid)) if invalid.error.code == Code::PARSE_ERROR)
}

/// Asserts the properties of every payload.
fn assert_sound(payload: &Payload) {
    let entries: Vec<Entry> = match payload {
        Payload::One(entry) => vec![entry.clone()],
        Payload::Batch(entries) => entries.clone().collect(),
    };
    assert!(!entries.is_empty(), "a batch is never empty");
    for invalid in entries.iter().filter_map(|entry: &Entry| entry.as_ref().err()) {
        let code = invalid.error.code;
        let whole = matches!(payload, Payload::One(_));
        let fits = match invalid.intent {
            Intent::Response | Intent::Notification => code == Code::INVALID_REQUEST,
            Intent::Request if whole && invalid.id.as_str() == "null" => {
                [Code::PARSE_ERROR, Code::INVALID_REQUEST, Code::BATCH_TOO_LARGE].contains(&code)
            }
            Intent::Request => code == Code::INVALID_REQUEST,
        };
        assert!(fits, "{invalid:?}");
        assert!(invalid.error.data.is_some(), "the reason is missing: {invalid:?}");
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn a_message_survives_encode_and_decode(message in message()) {
        let text = encoded(&message);
        let Payload::One(Ok(back)) = read(&text) else {
            return Err(TestCaseError::fail(format!("{text:?}")));
        };
        prop_assert_eq!(&back, &message);
        // Strings are equal by value; this checks that their bytes stay too.
        prop_assert_eq!(encoded(&back), text);
    }

    /// A frame cut short is never taken for a whole one.
    #[test]
    fn a_truncated_message_is_a_parse_error(message in message(), at in any::<Index>()) {
        let text = encoded(&message);
        prop_assert!(is_parse_error(&read(&text.slice(..at.index(text.len())))));
    }

    #[test]
    fn serde_json_reads_the_same_members(message in message()) {
        let text = encoded(&message);
        let mut found = members(std::str::from_utf8(&text).unwrap());
        if let Message::Response(Response { outcome: Err(error), .. }) = &message {
            let mut inner = members(&found.remove("error").unwrap());
            prop_assert_eq!(inner.remove("code"), Some(error.code.to_string()));
            let quoted = inner.remove("message").unwrap();
            prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), error.message.as_ref());
            prop_assert_eq!(inner.remove("data"), error.data.as_ref().map(ToString::to_string));
            prop_assert!(inner.is_empty(), "{:?}", inner);
        }
        prop_assert_eq!(found, expected_members(&message));
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_batch_survives_encode_and_decode(messages in vec(message(), 1..6)) {
        let expected = messages.iter().cloned().map(Ok).collect();
        prop_assert_eq!(read(&batch_of(&messages)), Payload::Batch(expected));
    }
}

proptest! {
    #![proptest_config(config(2500))]

    /// The entries of an Array are built later, and by other code, than a single message.
    #[test]
    fn an_entry_of_a_batch_equals_the_single_message(texts in vec(nearly_a_message(), 1..5)) {
        let alone = |text: &String| match read(&Bytes::from(text.clone())) {
            // An Array in an Array is not a message, and alone it is a batch.
            Payload::Batch(_) => None,
            Payload::One(_) if text.starts_with('[') => None,
            Payload::One(entry) => Some(entry),
        };
        let Payload::Batch(entries) = read(&format!("[{}]", texts.join(" , ")).into()) else {
            return Err(TestCaseError::fail("it is an Array"));
        };
        for (text, entry) in texts.iter().zip(entries.clone()) {
            if let Some(alone) = alone(text) {
                prop_assert_eq!(&entry, &alone, "{}", text);
            }
        }
        prop_assert_eq!(entries.len(), texts.len());
        prop_assert_eq!(entries.clone().collect::<Entries>(), entries);
    }
}

proptest! {
    #![proptest_config(config(2500))]

    #[test]
    fn any_bytes_give_a_payload(frame in vec(any::<u8>(), 0..80), batch_entries in 0..4_usize) {
        let frame = frame.into();
        for versions in [Versions::V2, Versions::V1AndV2, Versions::Bitcoin] {
            let limits = Rules { batch_entries, batch_answers: batch_entries, ..Rules::default() };
            let rules = Rules { depth: 3, null_params: true, versions, ..limits };
            match decode(&frame, &rules) {
                Payload::Batch(entries) if entries.len() == 0 => {
                    prop_assert_eq!(versions, Versions::Bitcoin);
                }
                payload => assert_sound(&payload),
            }
        }
    }

    /// RFC 8259 separates -32700 from everything else. serde_json skips the values here, so values that
    /// Rust cannot hold (lone surrogates, huge numbers) do not matter.
    #[test]
    fn exactly_invalid_json_is_a_parse_error(frame in nearly_json(), batch_entries in 0..4_usize) {
        let text = std::str::from_utf8(&frame);
        let is_json = text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
        let rules = Rules { batch_entries, batch_answers: batch_entries, ..Rules::default() };
        let payload = decode(&frame.clone().into(), &rules);
        prop_assert_eq!(is_parse_error(&payload), !is_json, "{}", String::from_utf8_lossy(&frame));
        assert_sound(&payload);
    }
}
