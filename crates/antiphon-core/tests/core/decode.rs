//! Classification of messages: the specification, and our choices where it is open.

use std::ops::Range;

use antiphon_core::{Id, Message, Payload, RawJson, Rules, decode};
use bytes::Bytes;

use crate::{check, read, read_by};

/// All payloads of section 7 that a server receives.
#[test]
fn the_examples_of_the_specification() {
    check([
        (
            r#"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#,
            "request 1 subtract [42, 23]",
        ),
        (
            r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}"#,
            r#"request 3 subtract {"subtrahend": 23, "minuend": 42}"#,
        ),
        (
            r#"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#,
            "notify update [1,2,3,4,5]",
        ),
        (r#"{"jsonrpc": "2.0", "method": "foobar"}"#, "notify foobar -"),
        (r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#, r#"request "1" foobar -"#),
        (r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#, "invalid null -32700"),
        (r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#, "invalid null -32600"),
        (
            r#"[
  {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
  {"jsonrpc": "2.0", "method"
]"#,
            "invalid null -32700",
        ),
        ("[]", "invalid null -32600"),
        ("[1]", "[invalid null -32600]"),
        ("[1,2,3]", "[invalid null -32600; invalid null -32600; invalid null -32600]"),
        (
            r#"[
  {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
  {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
  {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
  {"foo": "boo"},
  {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
  {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
]"#,
            r#"[request "1" sum [1,2,4]; notify notify_hello [7]; request "2" subtract [42,23]; invalid null -32600; request "5" foo.get {"name": "myself"}; request "9" get_data -]"#,
        ),
        (
            r#"[
  {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
  {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
]"#,
            "[notify notify_sum [1,2,4]; notify notify_hello [7]]",
        ),
    ]);
}

/// All payloads of section 7 that a client receives.
#[test]
fn the_answers_of_the_specification() {
    check([
        (r#"{"jsonrpc": "2.0", "result": -19, "id": 2}"#, "result 2 -19"),
        (
            r#"{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}"#,
            r#"error "1" -32601 Method not found -"#,
        ),
        (
            r#"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}"#,
            "error null -32700 Parse error -",
        ),
        (
            r#"[
  {"jsonrpc": "2.0", "result": 7, "id": "1"},
  {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
  {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}
]"#,
            r#"[result "1" 7; error null -32600 Invalid Request -; result "9" ["hello", 5]]"#,
        ),
    ]);
}

/// Sections 4 and 5 as a truth table: every known member absent, right and wrong, in both orders.
#[test]
fn every_combination_of_members() {
    // (text, right); an absent member has no text.
    const JSONRPC: [(&str, bool); 4] =
        [("", false), (r#""2.0""#, true), ("2.0", false), ("null", false)];
    const METHOD: [(&str, bool); 4] =
        [("", false), (r#""m""#, true), ("1", false), ("null", false)];
    const PARAMS: [(&str, bool); 6] =
        [("", true), ("[]", true), ("{}", true), ("null", false), ("1", false), ("true", false)];
    const ID: [(&str, bool); 7] = [
        ("", true),
        ("1", true),
        (r#""a""#, true),
        ("null", true),
        ("true", false),
        ("[]", false),
        ("{}", false),
    ];
    const RESULT: [(&str, bool); 3] = [("", true), ("null", true), ("1", true)];
    const ERROR: [(&str, bool); 4] =
        [("", false), (r#"{"code":1,"message":"e"}"#, true), ("null", false), ("{}", false)];

    let expected = |[jsonrpc, method, params, id, result, error]: [(&str, bool); 6]| {
        let echoed = if id.1 && !id.0.is_empty() { id.0 } else { "null" };
        let fits = jsonrpc.1 && id.1;
        if method.0.is_empty() && !(result.0.is_empty() && error.0.is_empty()) {
            let one_outcome = result.0.is_empty() == error.1 && (error.1 || error.0.is_empty());
            match (fits && one_outcome && !id.0.is_empty(), error.1) {
                (false, _) => format!("broken {echoed} -32600"),
                (true, false) => format!("result {echoed} {}", result.0),
                (true, true) => format!("error {echoed} 1 e -"),
            }
        } else if !(fits && method.1 && params.1) {
            format!("invalid {echoed} -32600")
        } else {
            let params = if params.0.is_empty() { "-" } else { params.0 };
            match id.0 {
                "" => format!("notify m {params}"),
                id => format!("request {id} m {params}"),
            }
        }
    };

    let sizes = [JSONRPC.len(), METHOD.len(), PARAMS.len(), ID.len(), RESULT.len(), ERROR.len()];
    for combination in 0..sizes.iter().product() {
        let mut rest = combination;
        let [jsonrpc, method, params, id, result, error] = sizes.map(|size| {
            let choice = rest % size;
            rest /= size;
            choice
        });
        let members = [
            JSONRPC[jsonrpc],
            METHOD[method],
            PARAMS[params],
            ID[id],
            RESULT[result],
            ERROR[error],
        ];
        let names = ["jsonrpc", "method", "params", "id", "result", "error"];
        let mut parts: Vec<_> = (names.iter().zip(members))
            .filter(|(_, (text, _))| !text.is_empty())
            .map(|(name, (text, _))| format!("\"{name}\":{text}"))
            .collect();
        for _ in 0..2 {
            let frame = format!("{{{}}}", parts.join(","));
            assert_eq!(read(&frame), expected(members), "{frame}");
            parts.reverse();
        }
    }
}

#[test]
fn an_id_keeps_its_bytes() {
    for id in [
        "1",
        "0",
        "-0",
        "-1",
        "1.50",
        "1e3",
        "1E+2",
        "18446744073709551615",
        "18446744073709551616",
        "123456789012345678901234567890.123456789",
        "1e999",
        r#""""#,
        r#""null""#,
        r#""a\/b\u0041\n\"\\""#,
        r#""é😀""#,
        r#""\ud83d\ude00""#,
        r#""\ud800""#,
        r#""\udc00\ud800x""#,
        "null",
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","id": {id} }}"#);
        assert_eq!(read(&frame), format!("request {id} m -"));
        let invalid = format!(r#"{{"jsonrpc":"2.0","method":1,"id":{id}}}"#);
        assert_eq!(read(&invalid), format!("invalid {id} -32600"));
        let answer = format!(r#"{{"jsonrpc":"2.0","result":0,"id":{id}}}"#);
        assert_eq!(read(&answer), format!("result {id} 0"));
    }
}

#[test]
fn string_ids_are_equal_by_value_and_numbers_by_text() {
    let id = |text: &'static str| Id::from_json(RawJson::parse(text).unwrap()).unwrap();
    assert_eq!(id(r#""\u0031\/""#), id(r#""1/""#));
    assert_eq!(id(r#""\ud83d\ude00""#), id(r#""😀""#));
    for (left, right) in
        [("1", "1.0"), ("1", r#""1""#), ("null", r#""null""#), (r#""\ud800""#, r#""\ufffd""#)]
    {
        assert_ne!(id(left), id(right));
    }
}

#[test]
fn a_bad_id_is_answered_and_never_a_notification() {
    for id in ["true", "false", "[]", "[1]", "{}", r#"{"id":1}"#] {
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#);
        assert_eq!(read(&frame), "invalid null -32600", "{frame}");
    }
}

#[test]
fn names_are_matched_after_unescaping_and_by_case() {
    check([
        (r#"{"jsonrpc":"2.0","method":"m","\u0069d":1}"#, "request 1 m -"),
        (r#"{"\u006asonrpc":"2\u002e0","\u006dethod":"m","p\u0061rams":[]}"#, "notify m []"),
        (r#"{"jsonrpc":"2.0","r\u0065sult":1,"i\u0064":2}"#, "result 2 1"),
        (
            r#"{"jsonrpc":"2.0","err\u006fr":{"c\u006fde":1,"m\u0065ssage":"\u0065","d\u0061ta":[]},"id":2}"#,
            "error 2 1 e []",
        ),
        (r#"{"jsonrpc":"2.0","method":"m","ID":1,"Params":1}"#, "notify m -"),
        (r#"{"JSONRPC":"2.0","method":"m","id":1}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","method":"m","id\u0000":1,"":2,"\ud800":3}"#, "notify m -"),
        (
            r#"{"jsonrpc":"2.0","method":"textDocument\/hover","id":1}"#,
            "request 1 textDocument/hover -",
        ),
        (r#"{"jsonrpc":"2.0","method":"\u0073um\ud83d\ude00"}"#, "notify sum😀 -"),
    ]);
}

/// The router decides whether a method exists, so these pass.
#[test]
fn any_string_is_a_method() {
    check([
        (r#"{"jsonrpc":"2.0","method":"","id":1}"#, "request 1  -"),
        (r#"{"jsonrpc":"2.0","method":"rpc.nothing","id":1}"#, "request 1 rpc.nothing -"),
        (r#"{"jsonrpc":"2.0","method":"naïve 方法"}"#, "notify naïve 方法 -"),
    ]);
    let lone = read(r#"{"jsonrpc":"2.0","method":"\ud800","id":1}"#);
    assert!(lone.starts_with("request 1 "), "{lone}");
}

#[test]
fn the_version_is_the_string_2_0() {
    for version in
        [r#""1.0""#, r#""2""#, r#""2.0 ""#, r#""""#, "2", "2.0", "true", "[\"2.0\"]", "{}"]
    {
        let frame = format!(r#"{{"jsonrpc":{version},"method":"m","id":1}}"#);
        assert_eq!(read(&frame), "invalid 1 -32600", "{frame}");
    }
    check([
        (r#"{"method":"m","params":[],"id":1}"#, "invalid 1 -32600"),
        (r#"{"method":"m"}"#, "invalid null -32600"),
        (r#"{"result":1,"error":null,"id":1}"#, "broken 1 -32600"),
    ]);
}

#[test]
fn null_params_are_absent_only_if_the_rules_allow_it() {
    let bent = Rules { null_params: true, ..Rules::default() };
    for (params, strict, lenient) in [
        ("null", "invalid 1 -32600", "request 1 m -"),
        ("[null]", "request 1 m [null]", "request 1 m [null]"),
        ("\"null\"", "invalid 1 -32600", "invalid 1 -32600"),
        ("0", "invalid 1 -32600", "invalid 1 -32600"),
        ("false", "invalid 1 -32600", "invalid 1 -32600"),
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params},"id":1}}"#);
        assert_eq!(read(&frame), strict, "{frame}");
        assert_eq!(read_by(&bent, &frame), lenient, "{frame}");
    }
    let notification = r#"{"jsonrpc":"2.0","method":"m","params":null}"#;
    assert_eq!(read(notification), "invalid null -32600");
    assert_eq!(read_by(&bent, notification), "notify m -");
}

#[test]
fn unknown_members_are_ignored_even_twice() {
    check([
        (r#"{"jsonrpc":"2.0","method":"m","id":1,"x":1,"x":[{}],"meta":null}"#, "request 1 m -"),
        (r#"{"jsonrpc":"2.0","method":"m","id":1,"result":1,"error":2}"#, "request 1 m -"),
        (r#"{"jsonrpc":"2.0","result":1,"id":1,"params":7,"x":0,"x":0}"#, "result 1 1"),
    ]);
}

/// A known member that occurs twice, in any spelling and at any distance, is rejected.
#[test]
fn duplicate_members_are_refused() {
    let request = [("jsonrpc", r#""2.0""#), ("method", r#""m""#), ("params", "[]"), ("id", "1")];
    let result = [("jsonrpc", r#""2.0""#), ("result", "1"), ("id", "1")];
    let error = [("jsonrpc", r#""2.0""#), ("error", r#"{"code":1,"message":"e"}"#), ("id", "1")];
    for (kind, members) in [("invalid", &request[..]), ("broken", &result), ("broken", &error)] {
        for (name, value) in members {
            let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
            for (spelling, value) in [(*name, *value), (&escaped, value), (name, "null")] {
                let all: Vec<_> = members.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect();
                let all = all.join(",");
                let id = if *name == "id" { "null" } else { "1" };
                for frame in [
                    format!("{{{all},\"{spelling}\":{value}}}"),
                    format!("{{\"{spelling}\":{value},{all}}}"),
                ] {
                    assert_eq!(read(&frame), format!("{kind} {id} -32600"), "{frame}");
                }
            }
        }
    }
}

/// With two ids the error has a null id, also if other members occur twice.
#[test]
fn two_ids_are_answered_with_null() {
    check([
        (r#"{"jsonrpc":"2.0","method":"m","id":1,"id":1}"#, "invalid null -32600"),
        (r#"{"method":"m","method":"m","id":1,"id":2}"#, "invalid null -32600"),
        (r#"{"id":1,"id":2,"method":"m","method":"m"}"#, "invalid null -32600"),
    ]);
}

#[test]
fn a_response_has_one_outcome_and_an_id() {
    check([
        (r#"{"jsonrpc":"2.0","result":null,"id":1}"#, "result 1 null"),
        (
            r#"{"jsonrpc":"2.0","result":1,"error":{"code":1,"message":"e"},"id":1}"#,
            "broken 1 -32600",
        ),
        (r#"{"jsonrpc":"2.0","result":1,"error":null,"id":1}"#, "broken 1 -32600"),
        (
            r#"{"jsonrpc":"2.0","result":null,"error":{"code":1,"message":"e"},"id":1}"#,
            "broken 1 -32600",
        ),
        (r#"{"jsonrpc":"2.0","result":1}"#, "broken null -32600"),
        (r#"{"jsonrpc":"2.0","result":1,"id":true}"#, "broken null -32600"),
        // Without outcome and method it is nothing recognisable, so it is answered.
        (r#"{"jsonrpc":"2.0","id":1}"#, "invalid 1 -32600"),
        ("{}", "invalid null -32600"),
    ]);
}

#[test]
fn an_error_has_an_integer_code_and_a_message() {
    for (error, expected) in [
        (r#"{"code":-32000,"message":"","data":null}"#, "error 1 -32000  null"),
        (r#"{"code":-32000.0,"message":"e"}"#, "error 1 -32000 e -"),
        (r#"{"code":-3.2e4,"message":"e"}"#, "broken 1 -32600"),
        (r#"{"code":9223372036854775807,"message":"e"}"#, "error 1 9223372036854775807 e -"),
        (r#"{"data":{"a":[]},"x":1,"message":"\u0065\/\n","code":0}"#, "error 1 0 e/\n {\"a\":[]}"),
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","error":{error},"id":1}}"#);
        assert_eq!(read(&frame), expected, "{frame}");
    }
    for error in [
        "null",
        "\"failed\"",
        "7",
        "true",
        "[]",
        r#"[1,"e"]"#,
        "{}",
        r#"{"code":1}"#,
        r#"{"message":"e"}"#,
        r#"{"code":1,"message":null}"#,
        r#"{"code":1,"message":["e"]}"#,
        r#"{"code":"1","message":"e"}"#,
        r#"{"code":1.5,"message":"e"}"#,
        r#"{"code":null,"message":"e"}"#,
        r#"{"code":1e300,"message":"e"}"#,
        r#"{"code":99999999999999999999,"message":"e"}"#,
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","error":{error},"id":1}}"#);
        assert_eq!(read(&frame), "broken 1 -32600", "{frame}");
    }
}

#[test]
fn each_entry_of_a_batch_is_judged_alone() {
    check([
        (r#"[[{"jsonrpc":"2.0","method":"m","id":1}]]"#, "[invalid null -32600]"),
        ("[[]]", "[invalid null -32600]"),
        (r#"[["2.0","m",[],1]]"#, "[invalid null -32600]"),
        (r#"["2.0","m"]"#, "[invalid null -32600; invalid null -32600]"),
        ("[null, true, {}]", "[invalid null -32600; invalid null -32600; invalid null -32600]"),
        (" [ ] ", "invalid null -32600"),
        (
            r#"[{"jsonrpc":"2.0","method":"m","id":1},{"jsonrpc":"2.0","result":2,"id":2},[3],{"jsonrpc":"2.0","result":4},{"id":5},{"jsonrpc":"2.0","method":"n"}]"#,
            "[request 1 m -; result 2 2; invalid null -32600; broken null -32600; invalid 5 -32600; notify n -]",
        ),
        // A batch may use an id twice; each Request has its own response.
        (
            r#"[{"jsonrpc":"2.0","method":"m","id":1},{"jsonrpc":"2.0","method":"m","id":1}]"#,
            "[request 1 m -; request 1 m -]",
        ),
    ]);
}

/// Contract 8: forwarded values are never copied.
#[test]
fn long_raw_members_are_slices_of_the_frame() {
    fn within(frame: &Range<*const u8>, part: &[u8]) -> bool {
        let part = part.as_ptr_range();
        frame.start <= part.start && part.end <= frame.end
    }
    let frame = Bytes::copy_from_slice(
        br#"[{"jsonrpc":"2.0","method":"a\/long/name/of/a/method","params":{"x":[1,"longer params"]},
              "id":"one of many that are long"},
             {"jsonrpc":"2.0","method":"another name of a method","params":[2,"and much longer params"]},
             {"jsonrpc":"2.0","result":{"y":"quite a long result"},"id":1.500000000000000000000000},
             {"jsonrpc":"2.0","error":{"code":1,"message":"e","data":["a lot of data, and more"]},
              "id":333333333333333333333333}]"#,
    );
    let memory = frame.as_ptr_range();
    let Payload::Batch(entries) = decode(&frame, &Rules::default()) else {
        unreachable!("it is an Array");
    };
    let entries: Vec<_> = entries.collect();
    let mut parts = Vec::new();
    for entry in &entries {
        match entry.as_ref().unwrap() {
            Message::Request(call) => {
                let params = call.params.as_ref().unwrap().as_json();
                parts.extend([params.as_bytes(), call.method.as_json().as_bytes()]);
                parts.push(call.id.as_bytes());
            }
            Message::Notification(call) => {
                let params = call.params.as_ref().unwrap().as_json();
                parts.extend([params.as_bytes(), call.method.as_json().as_bytes()]);
            }
            Message::Response(answer) => {
                let outcome = answer.outcome.as_ref();
                let raw = outcome.unwrap_or_else(|error| error.data.as_ref().unwrap());
                parts.extend([raw.as_bytes(), answer.id.as_bytes()]);
            }
        }
    }
    assert_eq!(parts.len(), 9);
    for part in parts {
        assert!(within(&memory, part), "{} was copied", String::from_utf8_lossy(part));
    }
}
