//! Matches, mismatches, and the texts of mismatches.

use super::*;

fn check(expected: &str, found: &str) -> Result<(), String> {
    Pattern::parse(expected).unwrap().matches(
        found.as_bytes(),
        Order::Kept,
        &mut Bindings::default(),
    )
}

#[test]
fn a_response_is_compared_whole() {
    let expected = r#"{"jsonrpc": "2.0", "result": [1.50], "id": 1}"#;
    assert_eq!(check(expected, r#"{"id":1,"result":[1.50],"jsonrpc":"2.0"}"#), Ok(()));
    for wrong in [
        r#"{"id":1,"result":[1.5],"jsonrpc":"2.0"}"#,
        r#"{"id":"1","result":[1.50],"jsonrpc":"2.0"}"#,
        r#"{"id":1,"result":[1.50]}"#,
        r#"{"id":1,"result":[1.50],"error":null,"jsonrpc":"2.0"}"#,
        r#"[{"id":1,"result":[1.50],"jsonrpc":"2.0"}]"#,
        "",
    ] {
        assert!(check(expected, wrong).is_err(), "{wrong}");
    }
    assert!(
        Pattern::parse(expected)
            .unwrap()
            .matches(b"\xFF", Order::Free, &mut Bindings::default())
            .is_err()
    );
}

#[test]
fn an_error_may_leave_words_open() {
    let expected = r#"{"error":{"code":-32600},"id":null}"#;
    assert_eq!(check(expected, r#"{"error":{"code":-32600,"message":"m"},"id":null}"#), Ok(()));
    assert_eq!(
        check(expected, r#"{"error":{"code":-32600,"message":"","data":[1]},"id":null}"#),
        Ok(())
    );
    for wrong in [
        r#"{"error":{"code":-32600},"id":null}"#,
        r#"{"error":{"code":-32600,"message":1},"id":null}"#,
        r#"{"error":{"code":-32600.0,"message":"m"},"id":null}"#,
        r#"{"error":{"code":-32700,"message":"m"},"id":null}"#,
        r#"{"error":"-32600","id":null}"#,
    ] {
        assert!(check(expected, wrong).is_err(), "{wrong}");
    }
    let fourth = r#"{"error":{"code":-32600,"message":"m","name":"x"},"id":null}"#;
    assert_eq!(check(expected, fourth), Ok(()));
    let strict = r#"{"error":{"code":-32600,"<other>":"<none>"},"id":null}"#;
    assert!(check(strict, fourth).is_err());
    assert_eq!(check(strict, r#"{"error":{"code":-32600,"message":"m"},"id":null}"#), Ok(()));
    let in_batch = format!("[{expected}]");
    assert_eq!(check(&in_batch, r#"[{"error":{"code":-32600,"message":"m"},"id":null}]"#), Ok(()));
}

#[test]
fn words_that_are_spelled_out_are_compared() {
    let expected = r#"{"error":{"code":1,"message":"m","data":"<none>"},"id":1}"#;
    assert_eq!(check(expected, r#"{"error":{"code":1,"message":"m"},"id":1}"#), Ok(()));
    assert!(check(expected, r#"{"error":{"code":1,"message":"n"},"id":1}"#).is_err());
    assert!(check(expected, r#"{"error":{"code":1,"message":"m","data":null},"id":1}"#).is_err());
}

#[test]
fn any_error_is_still_an_error_object() {
    let expected = r#"{"error":{"code":"<any>"},"id":1}"#;
    assert_eq!(check(expected, r#"{"error":{"code":7,"message":"m"},"id":1}"#), Ok(()));
    assert!(check(expected, r#"{"error":{"code":"7","message":"m"},"id":1}"#).is_err());
}

#[test]
fn an_error_inside_a_result_is_plain_data() {
    let expected = r#"{"result":{"error":{"code":1}},"id":1}"#;
    assert!(check(expected, r#"{"result":{"error":{"code":1,"message":"m"}},"id":1}"#).is_err());
    assert_eq!(check(expected, expected), Ok(()));
}

#[test]
fn quantities_have_no_leading_zeros() {
    for (text, is_one) in [
        ("\"0x0\"", true),
        ("\"0x1F\"", true),
        ("\"0x\"", false),
        ("\"0x01\"", false),
        ("31", false),
    ] {
        assert_eq!(check("\"<quantity>\"", text).is_ok(), is_one, "{text}");
    }
}

#[test]
fn names_are_bound_and_filled() {
    let mut bindings = Bindings::default();
    let pattern = Pattern::parse(r#"{"method":"m","id":"<a>"}"#).unwrap();
    pattern.matches(br#"{"method":"m","id":1.50}"#, Order::Free, &mut bindings).unwrap();
    assert_eq!(bindings.fill(br#"{"id":"<a>","x":"<b>"}"#), br#"{"id":1.50,"x":"<b>"}"#);
    assert_eq!(bindings.fill(b"\"<a>\"\xFF\"<a>\""), b"1.50\xFF1.50");
    assert!(pattern.matches(br#"{"method":"m","id":1.5}"#, Order::Free, &mut bindings).is_err());
    assert!(pattern.matches(br#"{"method":"m","id":1.50}"#, Order::Free, &mut bindings).is_ok());
}

#[test]
fn a_mismatch_binds_nothing() {
    let mut bindings = Bindings::default();
    let pattern = Pattern::parse(r#"{"id":"<a>","method":"m"}"#).unwrap();
    assert!(pattern.matches(br#"{"id":1,"method":"n"}"#, Order::Free, &mut bindings).is_err());
    assert!(pattern.matches(br#"{"id":2,"method":"m"}"#, Order::Free, &mut bindings).is_ok());
}

#[test]
fn anything_at_all_may_be_allowed() {
    assert_eq!(check("\"<any>\"", "no JSON {"), Ok(()));
    assert!(check("[\"<any>\"]", "[no JSON").is_err());
}

#[test]
fn an_escaped_bracket_is_text() {
    assert!(check(r#"["\u003cany>"]"#, "[1]").is_err());
    assert_eq!(check(r#"["\u003cany>"]"#, r#"["<any>"]"#), Ok(()));
}

#[test]
fn a_mismatch_shows_the_place() {
    let fault = check(
        r#"{"error":{"code":-32700},"id":null}"#,
        r#"{"error":{"code":-32600,"message":"m"},"id":null}"#,
    );
    assert_eq!(fault.unwrap_err(), "at `error.code`: expected -32700, found -32600");
}

#[test]
fn a_batch_is_free_in_its_order_unless_it_is_kept() {
    let expected = Pattern::parse(r#"[{"id":1},{"id":"<a>"},{"id":1}]"#).unwrap();
    let order =
        |order, found: &str| expected.matches(found.as_bytes(), order, &mut Bindings::default());
    assert_eq!(order(Order::Free, r#"[{"id":2},{"id":1},{"id":1}]"#), Ok(()));
    assert_eq!(order(Order::Kept, r#"[{"id":1},{"id":2},{"id":1}]"#), Ok(()));
    assert!(order(Order::Kept, r#"[{"id":2},{"id":1},{"id":1}]"#).is_err());
    assert!(order(Order::Free, r#"[{"id":2},{"id":1},{"id":2}]"#).is_err());
}

#[test]
fn a_refusal_asks_for_no_work() {
    let asks = |text: &str| Pattern::parse(text).unwrap().asks_for_work();
    assert!(!asks(r#"{"error":{"code":-32601},"id":1}"#));
    assert!(!asks(r#"[{"error":{"code":-32600},"id":1}]"#));
    assert!(asks(r#"{"error":{"code":-32602},"id":1}"#));
    assert!(asks(r#"[{"error":{"code":-32600},"id":1},{"result":1,"id":2}]"#));
}

#[test]
fn a_message_that_was_read_is_judged_alike() {
    let pattern = Pattern::parse(r#"{"id":"<a>"}"#).unwrap();
    let mut bindings = Bindings::default();
    let mut read =
        |text| pattern.matches_json(&Json::parse(text).unwrap(), Order::Free, &mut bindings);
    assert_eq!(read(r#"{"id":1}"#), Ok(()));
    assert!(read(r#"{"id":2}"#).is_err());
    assert_eq!(bindings.fill(br#""<a>""#), b"1");
    let any = Pattern::parse("\"<any>\"").unwrap();
    assert_eq!(any.matches_json(&Json::parse("1").unwrap(), Order::Kept, &mut bindings), Ok(()));
}

/// A comparison of each with each would be 250,000 results of 50 kB.
#[test]
fn a_batch_in_any_order_is_not_compared_each_with_each() {
    let result: Vec<String> = (0..5_000).map(|at| format!("\"{at:06}\"")).collect();
    let mut bindings = Bindings::default();
    bindings.set("result", &format!("[{}]", result.join(","))).unwrap();
    let batch = |ids: &mut dyn Iterator<Item = u32>, result: &str| {
        let entry = |id| format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#);
        format!("[{}]", ids.map(entry).collect::<Vec<_>>().join(","))
    };
    let expected = Pattern::parse(&batch(&mut (0..500), "\"<result>\"")).unwrap();
    let backwards = batch(&mut (0..500).rev(), &format!("[{}]", result.join(" ,")));
    let matched = expected.matches(backwards.as_bytes(), Order::Free, &mut bindings);
    assert_eq!(matched, Ok(()));
}

#[test]
fn many_members_are_compared_by_name() {
    let object = |numbers: &mut dyn Iterator<Item = u32>| {
        let members: Vec<String> = numbers.map(|at| format!("\"name-{at}\":{at}")).collect();
        format!(r#"{{"result":{{{}}},"id":1}}"#, members.join(","))
    };
    let expected = object(&mut (0..200_000));
    assert_eq!(check(&expected, &object(&mut (0..200_000).rev())), Ok(()));
    let fault = check(&expected, &object(&mut (0..200_001).rev())).unwrap_err();
    assert_eq!(fault, "at `result.name-200000`: the member must be absent, found 200000");
}

#[test]
fn placeholders_have_types() {
    let message = r#"{"a":"x","b":7,"c":[],"d":{}}"#;
    let typed = r#"{"a":"<any String>","b":"<any integer>","c":"<any Array>","d":"<any Object>"}"#;
    assert_eq!(check(typed, message), Ok(()));
    for (pattern, found) in [
        (r#"{"a":"<any String>"}"#, r#"{"a":1}"#),
        (r#"{"a":"<any integer>"}"#, r#"{"a":1.5}"#),
        (r#"{"a":"<any Array>"}"#, r#"{"a":{}}"#),
        (r#"{"a":"<any Object>"}"#, r#"{"a":[]}"#),
        (r#"{"a":"<any Object>"}"#, "{}"),
    ] {
        assert!(check(pattern, found).is_err(), "{pattern} {found}");
    }
}

#[test]
fn an_open_object_may_have_more_members() {
    let open = r#"{"result":{"a":1,"<other>":"<any>"},"id":1}"#;
    for found in [r#"{"result":{"a":1},"id":1}"#, r#"{"result":{"a":1,"b":{}},"id":1}"#] {
        assert_eq!(check(open, found), Ok(()), "{found}");
    }
    for found in [r#"{"result":{"b":1},"id":1}"#, r#"{"result":{"a":1},"b":2,"id":1}"#] {
        assert!(check(open, found).is_err(), "{found}");
    }
    let error = r#"{"error":{"code":1,"data":{"a":1,"<other>":"<any>"}},"id":1}"#;
    let found =
        |data: &str| format!(r#"{{"error":{{"code":1,"message":"","data":{data}}},"id":1}}"#);
    assert_eq!(check(error, &found(r#"{"a":1,"b":2}"#)), Ok(()));
    assert!(check(error, &found(r#"{"b":2}"#)).is_err());
}
