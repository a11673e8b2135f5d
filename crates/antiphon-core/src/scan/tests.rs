//! The scanner against the grammar, and against serde_json.

use super::*;
use proptest::prelude::*;

fn check(text: &[u8], max_depth: usize) -> Result<(), SyntaxError> {
    let mut scanner = Scanner::new(text, max_depth);
    scanner.text().map(drop)
}

#[test]
fn accepts_exactly_what_the_grammar_accepts() {
    for good in [
        "0",
        "-0",
        "1.50",
        "1e3",
        "-12.5E-7",
        "18446744073709551616",
        "\"\"",
        "\"\\ud800\"",
        "\"a\\u00e9\\n\"",
        "[]",
        "{}",
        "[ 1 , [ ] , { \"a\" : null } ]",
        " true\n",
        "false",
        "{\"a\":1,\"a\":2}",
        "\"\u{7f}\"",
    ] {
        assert_eq!(check(good.as_bytes(), 8), Ok(()), "{good}");
    }
    for bad in [
        "",
        " ",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "-",
        "NaN",
        "Infinity",
        "nul",
        "tru",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "[1 2]",
        "[",
        "{",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "1 2",
        "]",
        "[}",
        "{\"a\":1]",
        "'a'",
        "\u{feff}1",
        "{\"a\"}",
        "[,]",
        "--1",
    ] {
        assert!(check(bad.as_bytes(), 8).is_err(), "{bad}");
    }
}

#[test]
fn depth_is_counted_across_words_of_the_bit_stack() {
    for depth in [1, 63, 64, 65, 127, 128, 129, 500] {
        let mut text = String::new();
        for level in 0..depth {
            text.push_str(if level % 3 == 0 { "{\"k\":" } else { "[" });
        }
        text.push('1');
        for level in (0..depth).rev() {
            text.push(if level % 3 == 0 { '}' } else { ']' });
        }
        assert_eq!(check(text.as_bytes(), depth), Ok(()), "{depth}");
        assert_eq!(check(text.as_bytes(), depth - 1).unwrap_err().what, "nesting over the limit");
    }
}

/// JSON-like bytes: valid texts with a few bytes changed reach further than pure noise.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"a\"",
        "\"id\"",
        "1",
        "-0",
        "1.5e+3",
        "0",
        "true",
        "false",
        "null",
        " ",
        "\n",
        "\\u00e9",
        "\\ud800",
        "é",
        "\u{1}",
        "e",
        "\"jsonrpc\":",
        "\"a long text with more than eight bytes\"",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..60),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn agrees_with_serde_json(text in nearly_json()) {
        let theirs = std::str::from_utf8(&text)
            .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
        prop_assert_eq!(check(&text, 100).is_ok(), theirs, "{}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn invalid_utf8_is_found_at_every_position() {
    for len in [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 72, 255, 256, 257, 330, 700] {
        for at in 0..len {
            let mut text = vec![b'x'; len + 4];
            (text[0], text[1], text[len + 2], text[len + 3]) = (b'[', b'"', b'"', b']');
            text[at + 2] = 0xFF;
            let fault = SyntaxError { at: at + 2, what: "invalid UTF-8" };
            assert_eq!(check(&text, 8), Err(fault), "{at} of {len}");
            text[at + 2] = b'\n';
            assert_eq!(check(&text, 8).unwrap_err().at, at + 2, "{at} of {len}");
            if at + 1 < len {
                text[at + 2..at + 4].copy_from_slice("é".as_bytes());
                assert_eq!(check(&text, 8), Ok(()), "{at} of {len}");
                text[at + 2..at + 4].copy_from_slice(b"\\\\");
                assert_eq!(check(&text, 8), Ok(()), "{at} of {len}");
            }
        }
    }
}

#[test]
fn invalid_utf8_is_reported_before_other_errors() {
    for text in [&b"\xFF"[..], b"[1,\xFF]", b"{\"a\":x \xC3(}", b"[1] \x80", b"nul\xED\xA0\x80"] {
        assert_eq!(check(text, 8).unwrap_err().what, "invalid UTF-8", "{text:?}");
    }
    assert_eq!(check("\u{feff}{}".as_bytes(), 8).unwrap_err().what, "byte order mark");
}
