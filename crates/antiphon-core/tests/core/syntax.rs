//! JSON syntax, and the limits of depth and of batch entries.

use std::iter::repeat_n;

use antiphon_core::{Payload, Rules, decode};
use bytes::Bytes;

use crate::{read, read_by};

#[test]
fn a_batch_over_the_limit_is_one_error() {
    let batch = |entries: usize| {
        let entry = r#"{"jsonrpc":"2.0","method":"m"}"#;
        format!("[{}]", repeat_n(entry, entries).collect::<Vec<_>>().join(","))
    };
    let rules = Rules { batch_entries: 3, ..Rules::default() };
    assert_eq!(read_by(&rules, batch(1)), "[notify m -]");
    assert_eq!(read_by(&rules, batch(3)), "[notify m -; notify m -; notify m -]");
    assert_eq!(read_by(&rules, batch(4)), "invalid null -32010");
    assert_eq!(read_by(&rules, batch(50)), "invalid null -32010");
    assert_eq!(read_by(&rules, "[[],1,2,3]"), "invalid null -32010");
    assert_eq!(read_by(&rules, "[]"), "invalid null -32600");
    // Invalid JSON takes precedence over the limit.
    for rest in ["[1,2,3,4,]", "[1,2,3,4", "[1,2,3,4}", "[1,2,3,4] 5", "[1,2,3,4,NaN]", "[1,2,3,]"]
    {
        assert_eq!(read_by(&rules, rest), "invalid null -32700", "{rest}");
    }
    let none = Rules { batch_entries: 0, ..Rules::default() };
    assert_eq!(read_by(&none, batch(1)), "invalid null -32010");
    assert_eq!(read_by(&none, r#"{"jsonrpc":"2.0","method":"m"}"#), "notify m -");
}

#[test]
fn json_that_is_not_an_object_is_an_invalid_request() {
    for frame in ["1", "-0.5e1", "null", "true", "false", "\"\"", "\"{}\"", " 7 \r\n\t", "[]"] {
        assert_eq!(read(frame), "invalid null -32600", "{frame}");
    }
}

#[test]
fn invalid_json_is_a_parse_error() {
    let frames: [&[u8]; _] = [
        b"",
        b" \r\n\t",
        b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
        b" \xEF\xBB\xBF{}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"\xFF\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"x\":\"\xED\xA0\x80\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\xC3",
        br#"{"jsonrpc":"2.0","method":"m","params":[NaN]}"#,
        br#"{"jsonrpc":"2.0","method":"m","params":[Infinity]}"#,
        br#"{"jsonrpc":"2.0","method":"m","params":[1,]}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":1,}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":01}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":.5}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":+1}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":1"#,
        br#"{"jsonrpc":"2.0","method":"m","id":1}}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":1} {}"#,
        br#"{"jsonrpc":"2.0","method":"m","id":1},"#,
        br#"{"jsonrpc":"2.0","method":"m" "id":1}"#,
        br#"{'jsonrpc':'2.0','method':'m','id':1}"#,
        br#"{jsonrpc:"2.0",method:"m"}"#,
        br#"{"jsonrpc":"2.0","method":"\x41"}"#,
        br#"{"jsonrpc":"2.0","method":"\u12"}"#,
        b"{\"jsonrpc\":\"2.0\",\"method\":\"a\nb\"}",
        br#"{"jsonrpc":"2.0","method":"m"} // why"#,
        br#"[{"jsonrpc":"2.0","method":"m","id":1},]"#,
        br#"[{"jsonrpc":"2.0","method":"m","id":1}"#,
        br#"[{"jsonrpc":"2.0","method":"m","id":1} {}]"#,
        b"[,]",
        b"]",
        b"{}\0",
        b"garbage",
    ];
    for frame in frames {
        assert_eq!(read(frame), "invalid null -32700", "{}", String::from_utf8_lossy(frame));
    }
}

#[test]
fn raw_control_characters_are_rejected() {
    for byte in 0..=0x7F_u8 {
        let plain = byte >= 0x20 && byte != b'"' && byte != b'\\';
        // The scanner steps by eight bytes: every position in a step, and a tail shorter than a step.
        for before in 0..9 {
            for after in [0, 9] {
                let [left, right] = [before, after].map(|length| "x".repeat(length));
                let id = format!("\"{left}{}{right}\"", char::from(byte));
                let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#);
                let expected = format!("request {id} m -");
                let expected = if plain { &expected } else { "invalid null -32700" };
                assert_eq!(read(&frame), expected, "{frame:?}");
            }
        }
    }
    assert_eq!(read("\"\x1F"), "invalid null -32700");
    assert_eq!(read("[\"\x1F\"]"), "invalid null -32700");
}

#[test]
fn errors_have_a_reason_and_a_position() {
    let error = |frame: &'static str| match decode(&Bytes::from(frame), &Rules::default()) {
        Payload::One(Err(invalid)) => invalid.error.to_string(),
        other => unreachable!("{other:?}"),
    };
    assert_eq!(error("{\"a\":}"), "Parse error (-32700): \"expected a value at byte 5\"");
    assert_eq!(error("[1"), "Parse error (-32700): \"unexpected end at byte 2\"");
    assert_eq!(error("\u{feff}{}"), "Parse error (-32700): \"byte order mark at byte 0\"");
    let missing = error(r#"{"jsonrpc":"2.0","id":1}"#);
    assert_eq!(missing, "Invalid Request (-32600): \"`method` is missing\"");
    for member in ["jsonrpc", "method", "params", "id"] {
        let names = ["jsonrpc", "method", "params", "id"];
        let values = names.map(|name| match name {
            _ if name == member => "true",
            "jsonrpc" => "\"2.0\"",
            "method" => "\"m\"",
            "params" => "[]",
            _ => "1",
        });
        let parts: Vec<_> = names.iter().zip(values).map(|(n, v)| format!("\"{n}\":{v}")).collect();
        let frame: &'static str = format!("{{{}}}", parts.join(",")).leak();
        assert!(error(frame).contains(&format!("`{member}`")), "{frame}: {}", error(frame));
    }
}

#[test]
fn depth_counts_every_bracket_and_its_limit_is_exact() {
    // Arrays and Objects mixed, so that each closing bracket must know its opening one.
    let nested = |levels: usize| {
        let in_array = |level: &usize| level.is_multiple_of(3);
        let open = (0..levels).map(|level| if in_array(&level) { "[" } else { "{\"k\":" });
        let close = (0..levels).rev().map(|level| if in_array(&level) { "]" } else { "}" });
        open.chain(["1"]).chain(close).collect::<String>()
    };
    let call = |levels| format!(r#"{{"jsonrpc":"2.0","method":"m","params":{}}}"#, nested(levels));
    let ignored = |levels| format!(r#"{{"jsonrpc":"2.0","method":"m","x":{}}}"#, nested(levels));
    for depth in [2, 5, 63, 64, 65, 128] {
        let rules = Rules { depth, ..Rules::default() };
        let at = format!("notify m {}", nested(depth - 1));
        assert_eq!(read_by(&rules, call(depth - 1)), at);
        assert_eq!(read_by(&rules, call(depth)), "invalid null -32700", "{depth}");
        assert_eq!(read_by(&rules, ignored(depth - 1)), "notify m -");
        assert_eq!(read_by(&rules, ignored(depth)), "invalid null -32700", "{depth}");
        assert_eq!(read_by(&rules, format!("[{}]", ignored(depth - 2))), "[notify m -]");
        assert_eq!(read_by(&rules, format!("[{}]", ignored(depth - 1))), "invalid null -32700");
        // Closed brackets no longer count.
        let wide = format!("[{0},{0}]", ignored(depth - 2));
        assert_eq!(read_by(&rules, wide), "[notify m -; notify m -]");
    }
    let bomb = "[".repeat(1_000_000);
    assert_eq!(read(&bomb), "invalid null -32700");
    assert_eq!(read("{\"a\":".repeat(200_000)), "invalid null -32700");
}

#[test]
fn brackets_in_strings_do_not_count() {
    let text = "[{".repeat(200);
    let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","params":["{text}\"]}}"]}}"#);
    assert_eq!(read(&frame), format!(r#"notify m ["{text}\"]}}"]"#));
}
