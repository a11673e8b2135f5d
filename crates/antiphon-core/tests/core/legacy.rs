//! Messages of JSON-RPC 1.0 and 1.1, and the rules of Bitcoin nodes.

use antiphon_core::{
    Entry, ErrorObject, Intent, Message, Outcome, Payload, RawJson, Rules, Versions, decode, encode,
};
use bytes::{Bytes, BytesMut};

use crate::read_by;

fn rules(versions: Versions) -> Rules {
    Rules { versions, null_params: true, ..Rules::default() }
}

/// The reply of a server whose method `ok` has the result 0.10 and whose other methods are unknown; empty
/// without a reply.
fn reply(versions: Versions, frame: &'static str) -> String {
    let answer = |entry: Entry| -> String {
        let (id, outcome): (_, Outcome) = match entry {
            Ok(Message::Request(request)) if request.method == "ok" => {
                (request.id, Ok(RawJson::parse("0.10").unwrap()))
            }
            Ok(Message::Request(request)) => (request.id, Err(ErrorObject::new(-32601, "no"))),
            Err(invalid) if invalid.intent == Intent::Request => {
                (invalid.id, Err(ErrorObject::new(invalid.error.code.0, "bad")))
            }
            _ => return String::new(),
        };
        let mut out = BytesMut::new();
        encode::response(&id, &outcome, &mut out);
        if let Ok(result) = &outcome {
            assert_eq!(out.len(), encode::response_len(&id, &Ok(result.clone())));
        }
        String::from_utf8(out.to_vec()).unwrap()
    };
    match decode(&Bytes::from_static(frame.as_bytes()), &rules(versions)) {
        Payload::One(entry) => answer(entry),
        Payload::Batch(entries) => {
            let replies: Vec<_> = entries.map(answer).filter(|text| !text.is_empty()).collect();
            format!("[{}]", replies.join(","))
        }
    }
}

#[track_caller]
fn check(versions: Versions, rows: &[(&'static str, &str)]) {
    for (frame, expected) in rows {
        assert_eq!(reply(versions, frame), *expected, "{frame}");
    }
}

#[test]
fn bitcoin_answers_in_the_version_of_the_call() {
    check(
        Versions::Bitcoin,
        &[
            (r#"{"method":"ok","id":1}"#, r#"{"result":0.10,"error":null,"id":1}"#),
            (r#"{"jsonrpc":null,"method":"ok","id":1}"#, r#"{"result":0.10,"error":null,"id":1}"#),
            (r#"{"jsonrpc":"1.0","method":"ok","id":1}"#, r#"{"result":0.10,"error":null,"id":1}"#),
            (r#"{"version":"1.1","method":"ok","id":1}"#, r#"{"result":0.10,"error":null,"id":1}"#),
            (
                r#"{"jsonrpc":"2.0","method":"ok","id":1}"#,
                r#"{"jsonrpc":"2.0","result":0.10,"id":1}"#,
            ),
            (
                r#"{"jsonrpc":"\u0032.0","method":"ok","id":1}"#,
                r#"{"jsonrpc":"2.0","result":0.10,"id":1}"#,
            ),
            (
                r#"{"method":"x","id":1}"#,
                r#"{"result":null,"error":{"code":-32601,"message":"no"},"id":1}"#,
            ),
            (
                r#"{"jsonrpc":"2.1","method":"ok","id":1}"#,
                r#"{"result":null,"error":{"code":-32600,"message":"bad"},"id":1}"#,
            ),
            (
                r#"{"jsonrpc":2,"method":"ok"}"#,
                r#"{"result":null,"error":{"code":-32600,"message":"bad"}}"#,
            ),
            ("nonsense", r#"{"result":null,"error":{"code":-32700,"message":"bad"},"id":null}"#),
            ("7", r#"{"result":null,"error":{"code":-32700,"message":"bad"},"id":null}"#),
        ],
    );
}

#[test]
fn bitcoin_takes_every_json_value_as_an_id() {
    for id in ["null", "1.50", "1e400", r#""a\/b""#, "true", "[1, {}]", r#"{"a": 1}"#] {
        for (version, expected) in [
            ("", format!(r#"{{"result":0.10,"error":null,"id":{id}}}"#)),
            (r#""jsonrpc":"2.0","#, format!(r#"{{"jsonrpc":"2.0","result":0.10,"id":{id}}}"#)),
        ] {
            let frame = format!(r#"{{{version}"method":"ok","id":{id}}}"#);
            assert_eq!(reply(Versions::Bitcoin, frame.leak()), expected);
        }
    }
}

#[test]
fn bitcoin_notifies_only_in_2_0() {
    check(
        Versions::Bitcoin,
        &[
            (r#"{"method":"ok"}"#, r#"{"result":0.10,"error":null}"#),
            (r#"{"method":"ok","params":null}"#, r#"{"result":0.10,"error":null}"#),
            (r#"{"method":"ok","id":null}"#, r#"{"result":0.10,"error":null,"id":null}"#),
            (r#"{"jsonrpc":"2.0","method":"ok"}"#, ""),
            (
                r#"{"jsonrpc":"2.0","method":"ok","id":null}"#,
                r#"{"jsonrpc":"2.0","result":0.10,"id":null}"#,
            ),
            // An invalid message of 2.0 without an id: an error alone, and nothing in a batch.
            (
                r#"{"jsonrpc":"2.0"}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"}}"#,
            ),
            (r#"[{"jsonrpc":"2.0"},{"jsonrpc":"2.0","params":1,"method":"ok"}]"#, "[]"),
        ],
    );
}

#[test]
fn bitcoin_mixes_versions_in_a_batch() {
    check(
        Versions::Bitcoin,
        &[
            ("[]", "[]"),
            (
                r#"[{"method":"ok","id":1},{"jsonrpc":"2.0","method":"ok","id":[2]},{"jsonrpc":"2.0","method":"ok"},{"id":4},5]"#,
                concat!(
                    r#"[{"result":0.10,"error":null,"id":1},{"jsonrpc":"2.0","result":0.10,"id":[2]},"#,
                    r#"{"result":null,"error":{"code":-32600,"message":"bad"},"id":4},"#,
                    r#"{"result":null,"error":{"code":-32600,"message":"bad"},"id":null}]"#,
                ),
            ),
        ],
    );
}

#[test]
fn in_1_0_a_null_id_is_a_notification() {
    check(
        Versions::V1AndV2,
        &[
            (r#"{"method":"ok","params":[],"id":1}"#, r#"{"result":0.10,"error":null,"id":1}"#),
            (
                r#"{"method":"ok","params":[],"id":{"a":[]}}"#,
                r#"{"result":0.10,"error":null,"id":{"a":[]}}"#,
            ),
            (r#"{"method":"ok","params":[],"id":null}"#, ""),
            (r#"{"method":"ok","params":[]}"#, ""),
            (
                r#"{"jsonrpc":"2.0","method":"ok","id":null}"#,
                r#"{"jsonrpc":"2.0","result":0.10,"id":null}"#,
            ),
            // The rules of 2.0 apply to a message that states it.
            (
                r#"{"jsonrpc":"2.0","method":"ok","id":[]}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"},"id":null}"#,
            ),
            (
                r#"{"params":[],"id":1}"#,
                r#"{"result":null,"error":{"code":-32600,"message":"bad"},"id":1}"#,
            ),
            (
                r#"{"method":"ok","id":1,"id":2}"#,
                r#"{"result":null,"error":{"code":-32600,"message":"bad"},"id":null}"#,
            ),
            ("[]", r#"{"result":null,"error":{"code":-32600,"message":"bad"},"id":null}"#),
            ("7", r#"{"result":null,"error":{"code":-32600,"message":"bad"},"id":null}"#),
        ],
    );
}

#[test]
fn responses_of_both_versions_are_read() {
    for versions in [Versions::V1AndV2, Versions::Bitcoin] {
        for (frame, expected) in [
            (r#"{"result":0.10,"error":null,"id":1}"#, "result 1 0.10"),
            (r#"{"result":null,"error":null,"id":1}"#, "result 1 null"),
            (r#"{"jsonrpc":"2.0","result":1,"error":null,"id":1}"#, "result 1 1"),
            (r#"{"jsonrpc":"2.0","result":1,"id":1}"#, "result 1 1"),
            (r#"{"result":null,"error":{"code":-8,"message":"no"},"id":1}"#, "error 1 -8 no -"),
            (r#"{"error":{"code":-8,"message":"no"}}"#, "error null -8 no -"),
            (r#"{"result":null,"error":"no","id":1}"#, r#"error 1 -32000 no "no""#),
            (
                r#"{"result":null,"error":[7],"id":1}"#,
                "error 1 -32000 an error without a message [7]",
            ),
            (
                r#"{"result":null,"error":{"code":-8},"id":1}"#,
                r#"error 1 -8 an error without a message {"code":-8}"#,
            ),
            (
                r#"{"result":null,"error":{"message":"no"},"id":1}"#,
                r#"error 1 -32000 an error without a message {"message":"no"}"#,
            ),
            (r#"{"result":1,"error":{"code":-8,"message":"no"},"id":1}"#, "broken 1 -32600"),
            (r#"{"error":null,"id":1}"#, "broken 1 -32600"),
            (r#"{"jsonrpc":"3.0","result":1,"id":1}"#, "broken 1 -32600"),
        ] {
            assert_eq!(read_by(&rules(versions), frame), expected, "{frame}");
        }
    }
    let strict = r#"{"result":0.10,"error":null,"id":1}"#;
    assert_eq!(read_by(&Rules::default(), strict), "broken 1 -32600");
}

/// A message of 2.0 means the same to every decoder, except for ids of other kinds, notifications that are
/// invalid, and the empty batch.
#[test]
fn a_valid_message_of_2_0_stays_one() {
    for frame in [
        r#"{"jsonrpc":"2.0","method":"m","params":[1],"id":"a"}"#,
        r#"{"jsonrpc":"2.0","method":"m"}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"no"},"id":null}"#,
        r#"[{"jsonrpc":"2.0","method":"m","id":1},{"jsonrpc":"2.0","result":1,"id":2}]"#,
    ] {
        let frame = Bytes::from_static(frame.as_bytes());
        for versions in [Versions::V1AndV2, Versions::Bitcoin] {
            assert_eq!(decode(&frame, &rules(versions)), decode(&frame, &rules(Versions::V2)));
        }
    }
}
